//! `ep etp` divides the ranks of a pipeline stage, `tp cp dp`, over which experts are spread anew.

use super::{Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "expert_ranks_divisible",
    demands: "expert x expert tensor parallelism divides the ranks of a pipeline stage",
    axes: &[
        Axis::TensorParallel,
        Axis::DataParallel,
        Axis::ContextParallel,
        Axis::ExpertParallel,
        Axis::ExpertTensorParallel,
    ],
    amount: |case| case.combination().stage_ranks() % case.combination().expert_ranks(),
    message: |case| {
        let one = case.combination();
        format!(
            "expert x expert tensor parallel is {} x {}, which does not divide the {} ranks of a pipeline \
             stage (tensor x context x data parallel)",
            one.expert_parallel,
            one.expert_tensor_parallel,
            one.stage_ranks()
        )
    },
    refused_by: &[MEGATRON_LM],
    source: "Liu et al., arXiv 2504.14960, section 3; Megatron-LM, `core/parallel_state.py`",
    ..Definition::USUAL
};
