//! Experts behind tensor-parallel attention need the sequence split: each rank sends its own tokens.

use super::{Definition, MEGATRON_LM};
use crate::axis::Axis;
use crate::layout::SequenceParallel;

pub(super) const RULE: Definition = Definition {
    name: "experts_need_sequence_parallel",
    demands: "a mixture of experts with tensor parallelism needs sequence parallelism",
    axes: &[Axis::TensorParallel, Axis::SequenceParallel],
    amount: |case| {
        let off = case.combination().sequence_parallel == SequenceParallel::Off;
        let has_experts = case.job().transformer.experts.is_some();
        u64::from(has_experts && off && case.tensor_parallel() > 1)
    },
    message: |_| {
        "each tensor-parallel rank sends its own part of the sequence to the experts: turn sequence \
         parallelism on"
            .to_owned()
    },
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `core/transformer/moe/moe_layer.py`: \"training with tensor parallelism and MoE \
             requires sequence parallelism\"",
    ..Definition::USUAL
};
