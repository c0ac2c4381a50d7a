//! `dp b` divides the global batch: whole micro-batches on every replica.

use super::{Case, Definition, Figure, Remedy};
use crate::axis::Axis;
use crate::count::{counted, grouped};

pub(super) const RULE: Definition = Definition {
    name: "global_batch_divisible",
    demands: "data parallel x micro-batch divides the global batch",
    axes: &[Axis::DataParallel, Axis::MicroBatch],
    amount: |case| case.job().workload.global_batch % at_once(case),
    message,
    remedy: Remedy::Figure(Figure::GlobalBatch),
    source: "Megatron-LM, `num_microbatches_calculator.py`",
    ..Definition::USUAL
};

/// Sequences that all replicas take at once.
fn at_once(case: &Case) -> u64 {
    let one = case.combination();
    u64::from(one.data_parallel) * u64::from(one.micro_batch)
}

fn message(case: &Case) -> String {
    let (batch, at_once, one) = (
        case.job().workload.global_batch,
        at_once(case),
        case.combination(),
    );
    let above = (batch / at_once + 1) * at_once;
    let nearest = match batch / at_once {
        0 => format!("nearest is {}", grouped(above)),
        steps => format!("nearest are {} and {}", grouped(steps * at_once), grouped(above)),
    };
    format!(
        "the global batch of {} is not a multiple of {} x micro-batch {} = {}; {nearest}",
        grouped(batch),
        counted(one.data_parallel, "replica"),
        one.micro_batch,
        grouped(at_once),
    )
}
