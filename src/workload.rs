//! What one optimizer step has to do: sequences, batch, number formats.

use crate::choice::choice;
use crate::quantity::ElementWidth;

/// The training job, apart from network and machine. Fields are keys of `[training]`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Workload {
    /// Tokens of one sequence, `s`.
    pub sequence_length: u64,
    /// Sequences of one optimizer step.
    pub global_batch: u64,
    /// Number format of the matrix products.
    pub precision: Precision,
    /// What is kept for every parameter besides weight and gradient.
    pub optimizer: Optimizer,
    /// Which arithmetic a stated utilisation counts.
    pub mfu_convention: FlopConvention,
    /// Tokens of the expert-parallel rank that has most over their mean, `lambda`; 1 where balance is
    /// forced. Without meaning in a dense network.
    #[serde(skip_serializing_if = "is_usual")]
    pub load_imbalance: f64,
}

/// The load imbalance of natural routing: of twelve sources of measured runs together 1.24, of one model
/// between 1.0 and 1.6.
pub const USUAL_IMBALANCE: f64 = 1.24;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_usual(imbalance: &f64) -> bool {
    imbalance.to_bits() == USUAL_IMBALANCE.to_bits()
}

impl Workload {
    /// Tokens of one optimizer step.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.global_batch * self.sequence_length
    }
}

choice!(
    /// Number format of the matrix products.
    Precision, "a precision" {
        /// bfloat16 with fp32 master weights.
        Bf16 = "bf16",
        /// fp16 with fp32 master weights.
        Fp16 = "fp16",
        /// fp8 matrix products over bf16 weights.
        Fp8 = "fp8",
    }
);

impl Precision {
    /// Width of the weights that layers read; fp8 products keep 16-bit weights as well.
    #[must_use]
    pub const fn weights(self) -> ElementWidth {
        match self {
            Self::Bf16 | Self::Fp16 | Self::Fp8 => ElementWidth::SIXTEEN_BITS,
        }
    }

    /// Width of activations between operators, in memory and on the network.
    #[must_use]
    pub const fn activations(self) -> ElementWidth {
        match self {
            Self::Bf16 | Self::Fp16 | Self::Fp8 => ElementWidth::SIXTEEN_BITS,
        }
    }
}

choice!(
    /// Width in which gradients are accumulated and reduced.
    GradientWidth, "a width of gradients" {
        /// 2 bytes.
        Bf16 = "bf16",
        /// 4 bytes.
        Fp32 = "fp32",
    }
);

impl GradientWidth {
    /// The width.
    #[must_use]
    pub const fn width(self) -> ElementWidth {
        match self {
            Self::Bf16 => ElementWidth::SIXTEEN_BITS,
            Self::Fp32 => ElementWidth::THIRTY_TWO_BITS,
        }
    }
}

choice!(
    /// Optimizer, by the state that it keeps.
    Optimizer, "an optimizer" {
        /// fp32 master weight and two fp32 moments: 12 bytes a parameter.
        Adam = "adam",
        /// bf16 master copy and moments: 6 bytes a parameter.
        AdamBf16 = "adam-bf16",
        /// fp32 master weight and two bf16 moments: 8 bytes a parameter (Megatron-LM's precision-aware
        /// optimizer, as the recipes of DeepSeek-V3 use it).
        AdamBf16Moments = "adam-bf16-moments",
        /// fp32 master weight and one fp32 moment: 8 bytes a parameter.
        SgdMomentum = "sgd-momentum",
    }
);

impl Optimizer {
    /// Whether it works on fp32 gradients; a precision-aware one reads them as they are (Megatron-LM,
    /// `--use-precision-aware-optimizer`).
    #[must_use]
    pub const fn needs_wide_gradients(self) -> bool {
        match self {
            Self::Adam | Self::SgdMomentum => true,
            Self::AdamBf16 | Self::AdamBf16Moments => false,
        }
    }

    /// Bytes of optimizer state a parameter.
    #[must_use]
    pub const fn bytes_per_parameter(self) -> f64 {
        match self {
            Self::Adam => 12.0,
            Self::SgdMomentum | Self::AdamBf16Moments => 8.0,
            Self::AdamBf16 => 6.0,
        }
    }
}

choice!(
    /// What counts as the model's own arithmetic. A reported MFU is comparable only under the same
    /// convention.
    FlopConvention, "a convention of the MFU" {
        /// `6 N + 12 L h s` a token, `N = L (4 h^2 + 3 h f) + 2 V h`: input embedding counted,
        /// attention as a full square (Hagemann et al., appendix A; Chowdhery et al., arXiv 2204.02311).
        Paper = "paper",
        /// The same without the input embedding, which multiplies nothing.
        WithoutInputEmbedding = "without-input-embedding",
        /// Without the input embedding, and attention causal: half the square.
        Causal = "causal",
    }
);

impl FlopConvention {
    /// The formula, for people.
    #[must_use]
    pub const fn formula(self) -> &'static str {
        match self {
            Self::Paper => "6N + 12Lhs per token, N with 2Vh, full attention square",
            Self::WithoutInputEmbedding => "6N + 12Lhs per token, N with one Vh",
            Self::Causal => "6N + 6Lhs per token, N with one Vh, causal attention",
        }
    }
}
