//! What one optimizer step has to do: sequences, batch, number formats.

use crate::cost_model::flops::FlopConvention;

/// The training job, apart from network and machine.
#[derive(Debug, Clone, PartialEq)]
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
}

impl Workload {
    /// Tokens of one optimizer step.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.global_batch * self.sequence_length
    }
}

/// Number format of the matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Precision {
    /// bfloat16 with fp32 master weights.
    Bf16,
    /// fp16 with fp32 master weights.
    Fp16,
    /// fp8 matrix products over bf16 weights.
    Fp8,
}

/// Optimizer, by the state that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Optimizer {
    /// fp32 master weight and two fp32 moments: 12 bytes a parameter.
    Adam,
    /// fp32 master weight and one fp32 moment: 8 bytes a parameter.
    SgdMomentum,
    /// bf16 master copy and moments: 6 bytes a parameter.
    AdamBf16,
}

impl Optimizer {
    /// Bytes of optimizer state a parameter.
    #[must_use]
    pub const fn bytes_per_parameter(self) -> f64 {
        match self {
            Self::Adam => 12.0,
            Self::SgdMomentum => 8.0,
            Self::AdamBf16 => 6.0,
        }
    }
}
