//! Expert parallelism needs a mixture of experts.

use super::{Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "experts_divisible",
    demands: "expert parallelism needs a mixture of experts",
    axes: &[Axis::ExpertParallel],
    amount: |case| u64::from(case.combination().expert_parallel) - 1,
    message: |case| {
        format!(
            "expert parallel {} needs a mixture of experts",
            case.combination().expert_parallel
        )
    },
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `expert_model_parallel_size` in `arguments.py`",
    ..Definition::USUAL
};
