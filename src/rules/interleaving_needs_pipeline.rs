//! Virtual stages interleave a pipeline: they need `pp > 1` and the 1F1B schedule.

use super::{Case, Definition, MEGATRON_LM};
use crate::axis::Axis;
use crate::layout::Schedule;

pub(super) const RULE: Definition = Definition {
    name: "interleaving_needs_pipeline",
    demands: "virtual stages need several pipeline stages and the schedule 1f1b",
    axes: &[
        Axis::PipelineParallel,
        Axis::VirtualStages,
        Axis::Schedule,
    ],
    amount,
    message: |case| {
        format!(
            "`virtual_stages = {}` needs several pipeline stages under schedule 1f1b, not {} under {}: use 1",
            case.combination().virtual_stages,
            case.pipeline_parallel(),
            case.combination().schedule
        )
    },
    refused_by: &[MEGATRON_LM],
    source: "Narayanan et al., arXiv 2104.04473, section 2.2",
    ..Definition::USUAL
};

/// Model chunks per rank beyond the one that there can be.
fn amount(case: &Case) -> u64 {
    let one = case.combination();
    let interleaves =
        one.pipeline_parallel > 1 && one.schedule == Schedule::OneForwardOneBackward;
    if interleaves {
        0
    } else {
        u64::from(one.virtual_stages) - 1
    }
}
