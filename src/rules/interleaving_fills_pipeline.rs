//! Interleaving needs a micro-batch per pipeline stage, `M >= pp`: all that Megatron-LM demands.

use super::{Applies, Case, Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "interleaving_fills_pipeline",
    demands: "with virtual stages, there are at least as many micro-batches as pipeline stages",
    axes: &[
        Axis::PipelineParallel,
        Axis::DataParallel,
        Axis::VirtualStages,
        Axis::MicroBatch,
    ],
    amount: |case| match case.combination().virtual_stages {
        1 => 0,
        _ => case.pipeline_parallel().saturating_sub(case.micro_batches()),
    },
    message,
    applies: Applies::InExports,
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `microbatch_group_size_per_vp_stage`",
    ..Definition::USUAL
};

fn message(case: &Case) -> String {
    let (stages, one) = (case.pipeline_parallel(), case.combination());
    let least = stages * u64::from(one.data_parallel) * u64::from(one.micro_batch);
    format!(
        "`virtual_stages = {}` needs at least as many micro-batches as the {stages} stages, and there are {}: use a global batch of at least {least}, or `virtual_stages = 1`",
        one.virtual_stages,
        case.micro_batches()
    )
}
