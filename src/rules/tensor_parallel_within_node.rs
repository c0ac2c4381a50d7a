//! A tensor-parallel group lies within one node: `tp` divides the GPUs per node.

use super::{Case, Definition, Figure, Remedy};
use crate::axis::Axis;

pub(super) const RULE: Definition = Definition {
    name: "tensor_parallel_within_node",
    demands: "tensor parallel divides the GPUs per node",
    axes: &[Axis::TensorParallel],
    amount,
    message: |case| {
        format!(
            "{} tensor-parallel ranks do not fit evenly into nodes of {} GPUs",
            case.tensor_parallel(),
            case.job().cluster.gpus_per_node
        )
    },
    limits: |instance, _, _| Some(format!("nodes of {} GPUs", instance.job.cluster.gpus_per_node)),
    remedy: Remedy::Figure(Figure::NodeSize),
    source: "Narayanan et al., arXiv 2104.04473, section 3.2",
    ..Definition::USUAL
};

/// Ranks beyond one node, or GPUs of a node that are left over.
fn amount(case: &Case) -> u64 {
    let (node, degree) = (
        u64::from(case.job().cluster.gpus_per_node),
        case.tensor_parallel(),
    );
    if degree > node {
        degree - node
    } else {
        node % degree
    }
}
