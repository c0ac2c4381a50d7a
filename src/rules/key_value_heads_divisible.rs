//! The key-value heads are a multiple or a divisor of `tp`.

use super::{Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "key_value_heads_divisible",
    demands: "the key-value heads are a multiple or a divisor of tensor parallel",
    axes: &[Axis::TensorParallel],
    amount: |case| {
        let (groups, degree) = (
            case.job().transformer.key_value_heads,
            case.tensor_parallel(),
        );
        (groups % degree).min(degree % groups)
    },
    message: |case| {
        format!(
            "{} key-value heads are neither a multiple nor a divisor of {} tensor-parallel ranks",
            case.job().transformer.key_value_heads,
            case.tensor_parallel()
        )
    },
    limits: |instance, _, _| {
        let groups = instance.job.transformer.key_value_heads;
        Some(format!("{groups} key-value heads"))
    },
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `num_query_groups` in `arguments.py`",
    ..Definition::USUAL
};
