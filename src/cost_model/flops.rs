//! Arithmetic of a training step and the conventions under which its utilisation is stated.

use crate::job::Job;
use crate::quantity::{Flops, Mfu, Seconds};
use crate::transformer::Transformer;

/// What counts as the model's own arithmetic. A reported MFU is comparable only under the same
/// convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlopConvention {
    /// `6 N + 12 L h s` a token, `N = L (4 h^2 + 3 h f) + 2 V h`: input embedding counted,
    /// attention as a full square (Hagemann et al., appendix A; Chowdhery et al., arXiv 2204.02311).
    #[default]
    Paper,
    /// The same without the input embedding, which multiplies nothing.
    WithoutInputEmbedding,
    /// Without the input embedding, and attention causal: half the square.
    Causal,
}

impl FlopConvention {
    /// The spelling in files and output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::WithoutInputEmbedding => "without-input-embedding",
            Self::Causal => "causal",
        }
    }

    /// The formula, for people.
    #[must_use]
    pub const fn formula(self) -> &'static str {
        match self {
            Self::Paper => "6N + 12Lhs a token, N with 2Vh, full attention square",
            Self::WithoutInputEmbedding => "6N + 12Lhs a token, N with one Vh",
            Self::Causal => "6N + 6Lhs a token, N with one Vh, causal attention",
        }
    }
}

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
