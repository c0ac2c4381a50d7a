//! Megatron-LM's advice: sharded gradients or weights without tensor and context parallelism.

use super::{Applies, Case, Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "full_sharding_alone",
    demands: "sharded gradients or weights come without tensor and context parallelism",
    axes: &[Axis::TensorParallel, Axis::ContextParallel, Axis::Sharding],
    amount,
    message: |case| {
        format!(
            "{} advises against {} with tensor or context parallelism before Blackwell: for best performance they need \
             different settings of `CUDA_DEVICE_MAX_CONNECTIONS`",
            MEGATRON_LM.name,
            case.combination().sharding
        )
    },
    applies: Applies::AsAdvice,
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, warning of `megatron/training/arguments.py`",
    ..Definition::USUAL
};

/// Ranks beyond the one that there should be.
fn amount(case: &Case) -> u64 {
    let one = case.combination();
    let ranks = u64::from(one.tensor_parallel) * u64::from(one.context_parallel);
    if one.sharding.state().gradients.splits() {
        ranks - 1
    } else {
        0
    }
}
