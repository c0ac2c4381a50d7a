//! `tp` divides the attention heads.

use super::{Case, Definition, MEGATRON_LM};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "heads_divisible",
    demands: "tensor parallel divides the attention heads",
    axes: &[Axis::TensorParallel],
    amount: |case| case.job().transformer.heads % case.tensor_parallel(),
    message,
    limits: |instance, _, _| Some(format!("{} heads", instance.job.transformer.heads)),
    refused_by: &[MEGATRON_LM],
    source: "Shoeybi et al., arXiv 1909.08053, section 3",
    ..Definition::USUAL
};

fn message(case: &Case) -> String {
    let heads = case.job().transformer.heads;
    let divisors = (1..=heads).filter(|degree| heads.is_multiple_of(*degree));
    let divisors: Vec<String> = divisors.map(|degree| degree.to_string()).collect();
    format!(
        "{heads} attention heads cannot be split among {} tensor-parallel ranks; possible are {}",
        case.tensor_parallel(),
        divisors.join(", ")
    )
}
