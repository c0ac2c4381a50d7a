//! Sequence parallelism splits among tensor-parallel ranks: it needs `tp > 1`.

use super::Definition;
use crate::axis::Axis;
use crate::layout::SequenceParallel;

pub(super) const RULE: Definition = Definition {
    name: "sequence_parallel_needs_tensor_parallel",
    demands: "sequence parallelism needs several tensor-parallel ranks",
    axes: &[Axis::TensorParallel, Axis::SequenceParallel],
    amount: |case| {
        let on = case.combination().sequence_parallel == SequenceParallel::On;
        u64::from(on && case.tensor_parallel() == 1)
    },
    message: |_| {
        "sequence parallelism splits among tensor-parallel ranks, and there is only 1".to_owned()
    },
    source: "Korthikanti et al., arXiv 2205.05198",
    ..Definition::USUAL
};
