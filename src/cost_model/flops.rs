//! Arithmetic of a training step and the conventions under which its utilisation is stated.

use crate::job::Job;
use crate::quantity::{Flops, Mfu, Seconds};
use crate::transformer::Transformer;
use crate::workload::FlopConvention;

/// FLOP of forward and backward pass for one token of a sequence of `sequence_length`.
#[must_use]
pub fn per_token(
    transformer: &Transformer,
    sequence_length: u64,
    convention: FlopConvention,
) -> Flops {
    let weights = transformer.matrix_weights() as f64;
    let embedding = transformer.embedding_weights() as f64;
    let square = 12.0
        * f64::from(transformer.layers)
        * transformer.attention_width() as f64
        * sequence_length as f64;
    Flops::new(match convention {
        FlopConvention::Paper => 6.0 * weights + square,
        FlopConvention::WithoutInputEmbedding => 6.0 * (weights - embedding) + square,
        FlopConvention::Causal => 6.0 * (weights - embedding) + square / 2.0,
    })
}

/// FLOP of one optimizer step over all GPUs, by the workload's convention.
#[must_use]
pub fn per_step(job: &Job) -> Flops {
    let token = per_token(
        &job.transformer,
        job.workload.sequence_length,
        job.workload.mfu_convention,
    );
    token * job.workload.tokens() as f64
}

/// Utilisation of the bf16 peak of `G` GPUs by a step of `step_time`:
/// `MFU = flops / (G peak T)`. The bf16 peak is the reference at every precision.
#[must_use]
pub fn utilisation(job: &Job, step_time: Seconds) -> Mfu {
    let peak = job.cluster.accelerator.peak_bf16 * f64::from(job.cluster.gpus);
    Mfu::new(per_step(job) / (peak * step_time))
}
