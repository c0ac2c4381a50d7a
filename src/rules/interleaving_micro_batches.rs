//! Interleaving needs `M >= pp`, and `pp` divides `M`.

use super::{Case, Definition, Figure, Remedy};
use crate::axis::Axis;
use crate::count::grouped;

pub(super) const RULE: Definition = Definition {
    name: "interleaving_micro_batches",
    demands: "with virtual stages, the micro-batches are a multiple of the pipeline stages",
    axes: &[
        Axis::PipelineParallel,
        Axis::DataParallel,
        Axis::VirtualStages,
        Axis::MicroBatch,
    ],
    amount,
    message,
    limits: |_, _, _| Some(String::new()),
    remedy: Remedy::Figure(Figure::GlobalBatch),
    source: "Narayanan et al., arXiv 2104.04473, section 2.2",
    ..Definition::USUAL
};

/// Micro-batches missing to the first multiple of the stages, or beyond the last.
fn amount(case: &Case) -> u64 {
    if case.combination().virtual_stages == 1 {
        return 0;
    }
    let (stages, micro_batches) = (case.pipeline_parallel(), case.micro_batches());
    if micro_batches < stages {
        stages - micro_batches
    } else {
        micro_batches % stages
    }
}

fn message(case: &Case) -> String {
    let (stages, one) = (case.pipeline_parallel(), case.combination());
    format!(
        "interleaving needs a multiple of {stages} micro-batches, and there are {}: the global batch has to be a multiple of {}",
        grouped(case.micro_batches()),
        grouped(stages * u64::from(one.data_parallel) * u64::from(one.micro_batch))
    )
}
