//! Arithmetic of a training step and the conventions under which its utilisation is stated.

use crate::job::Job;
use crate::quantity::{Flops, Mfu, Seconds};
use crate::transformer::Transformer;
use crate::workload::FlopConvention;

/// FLOP of forward and backward pass for one token of a sequence of `sequence_length`: six for each weight
/// that a product uses, and `6 (a d_qk + a d_v) s` for each layer's attention, `s` as
/// [`Transformer::attended`] has it, half of that where the mask is counted. Counted as in Megatron-LM
/// (`training/training.py`, `num_floating_point_operations`), without its norms.
#[must_use]
pub fn per_token(
    transformer: &Transformer,
    sequence_length: u64,
    convention: FlopConvention,
) -> Flops {
    let weights = transformer.matrix_weights() as f64;
    let embedding = transformer.embedding_weights() as f64;
    let layers = transformer.layers + transformer.prediction_layers;
    let width = transformer.score_width() + transformer.value_width_all();
    let square = 6.0 * f64::from(layers) * width as f64 * transformer.attended(sequence_length);
    Flops::new(match convention {
        FlopConvention::Paper => 6.0 * weights + square,
        FlopConvention::WithoutInputEmbedding => 6.0 * (weights - embedding) + square,
        FlopConvention::Causal => 6.0 * (weights - embedding) + square / 2.0,
    })
}

/// FLOP of one optimizer step over all GPUs.
fn per_step(job: &Job, convention: FlopConvention) -> Flops {
    let sequence_length = job.workload.sequence_length;
    let token = per_token(&job.transformer, sequence_length, convention);
    token * job.workload.tokens() as f64
}

/// Utilisation by the workload's convention, as [`utilisation_by`].
#[must_use]
pub fn utilisation(job: &Job, step_time: Seconds) -> Mfu {
    utilisation_by(job.workload.mfu_convention, job, step_time)
}

/// Utilisation of the bf16 peak of `G` GPUs by a step of `step_time`:
/// `MFU = flops / (G peak T)`. The bf16 peak is the reference at every precision.
#[must_use]
pub fn utilisation_by(convention: FlopConvention, job: &Job, step_time: Seconds) -> Mfu {
    let peak = job.cluster.accelerator.peak_bf16 * f64::from(job.cluster.gpus);
    Mfu::new(per_step(job, convention) / (peak * step_time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn a_step_of_70_percent_by_the_paper_is_of_62_causal() {
        let other = catalog::model("llama-3-8b").expect("it is in the catalog");
        let network = Transformer {
            layers: 28,
            hidden: 3584,
            heads: 28,
            key_value_heads: 4,
            head_width: 128,
            feed_forward_width: 18_944,
            vocabulary: 152_064,
            ..other
        };
        let [paper, causal] = [FlopConvention::Paper, FlopConvention::Causal]
            .map(|convention| per_token(&network, 4096, convention));
        assert!((0.70 * (causal / paper) - 0.62).abs() < 0.001);
    }
}
