//! `2 cp` divides the sequence length where `cp > 1`; `tp cp` does with sequence parallelism.

use super::{Case, Definition, Figure, MEGATRON_LM, Remedy};
use crate::axis::Axis;
use crate::count::counted;
use crate::layout::SequenceParallel;

pub(super) const RULE: Definition = Definition {
    name: "sequence_divisible",
    demands: "2 x context parallel divides the sequence; with sequence parallelism, tensor x context parallel does",
    axes: &[
        Axis::TensorParallel,
        Axis::ContextParallel,
        Axis::SequenceParallel,
    ],
    amount: |case| left_over(case, zigzag(case)).max(left_over(case, split(case))),
    message,
    limits: |instance, _, _| Some(counted(instance.job.workload.sequence_length, "token")),
    remedy: Remedy::Figure(Figure::SequenceLength),
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `context_parallel` guide; Korthikanti et al., arXiv 2205.05198",
    ..Definition::USUAL
};

/// Parts of a sequence among context-parallel ranks, each of which takes an early and a late one.
fn zigzag(case: &Case) -> u64 {
    match u64::from(case.combination().context_parallel) {
        1 => 1,
        several => 2 * several,
    }
}

/// Parts of a sequence where tensor-parallel ranks split it too.
fn split(case: &Case) -> u64 {
    let one = case.combination();
    match one.sequence_parallel {
        SequenceParallel::On => case.tensor_parallel() * u64::from(one.context_parallel),
        SequenceParallel::Off => 1,
    }
}

/// Tokens that are left over.
const fn left_over(case: &Case, parts: u64) -> u64 {
    case.instance.job.workload.sequence_length % parts
}

fn message(case: &Case) -> String {
    let sequence = counted(case.job().workload.sequence_length, "token");
    if left_over(case, zigzag(case)) > 0 {
        let context = case.combination().context_parallel;
        return format!(
            "a sequence of {sequence} is not a multiple of 2 x context parallel {context}"
        );
    }
    let degree = case.tensor_parallel();
    format!("a sequence of {sequence} cannot be split among {degree} tensor-parallel ranks")
}
