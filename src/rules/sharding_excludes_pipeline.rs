//! ZeRO-2, ZeRO-3 and HSDP exclude pipeline parallelism.

use super::{Case, Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "sharding_excludes_pipeline",
    demands: "sharded gradients or weights (ZeRO-2, ZeRO-3, HSDP) do not go with a pipeline",
    axes: &[Axis::PipelineParallel, Axis::Sharding],
    amount,
    message: |case| {
        format!(
            "{} does not go with {} pipeline stages: use zero-1, or one stage",
            case.combination().sharding,
            case.pipeline_parallel()
        )
    },
    limits: |_, _, _| Some(String::new()),
    refused_by: &[MEGATRON_LM],
    source: "Rajbhandari et al., arXiv 1910.02054; Megatron-LM, `use_megatron_fsdp`",
    ..Definition::USUAL
};

/// Stages beyond the one that there can be.
fn amount(case: &Case) -> u64 {
    let state = case.combination().sharding.state();
    if state.gradients.splits() {
        case.pipeline_parallel() - 1
    } else {
        0
    }
}
