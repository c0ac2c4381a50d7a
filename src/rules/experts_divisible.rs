//! `ep` divides the experts of a layer, `etp` the width of each; a dense network has none.

use super::{Case, Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "experts_divisible",
    demands: "expert parallelism divides the experts, expert tensor parallelism the width of each",
    axes: &[Axis::ExpertParallel, Axis::ExpertTensorParallel],
    amount,
    message,
    limits: |instance, _, _| {
        let experts = instance.job.transformer.experts?;
        Some(format!("{} experts", experts.experts))
    },
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `core/transformer/transformer_config.py`: `num_moe_experts` must be divisible by \
             `expert_model_parallel_size`",
    ..Definition::USUAL
};

fn amount(case: &Case) -> u64 {
    let one = case.combination();
    let (ranks, parts) = (one.expert_parallel, one.expert_tensor_parallel);
    let (ranks, parts) = (u64::from(ranks), u64::from(parts));
    match case.job().transformer.experts {
        None => ranks * parts - 1,
        Some(experts) => experts.experts % ranks + experts.expert_width % parts,
    }
}

fn message(case: &Case) -> String {
    let one = case.combination();
    let Some(experts) = case.job().transformer.experts else {
        let degree = one.expert_parallel * one.expert_tensor_parallel;
        return format!("expert parallel {degree} needs a mixture of experts");
    };
    if experts.experts.is_multiple_of(u64::from(one.expert_parallel)) {
        return format!(
            "experts of width {} cannot be split among {} expert-tensor-parallel ranks",
            experts.expert_width, one.expert_tensor_parallel
        );
    }
    format!(
        "{} experts cannot be spread over {} expert-parallel ranks",
        experts.experts, one.expert_parallel
    )
}
