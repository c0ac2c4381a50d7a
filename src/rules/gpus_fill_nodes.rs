//! `tp pp dp cp mod g_node = 0`: a job of several nodes uses all GPUs of each.

use super::{Case, Definition, Figure, MEGATRON_LM, Remedy};
use crate::axis::Axis;
use crate::count::counted;

pub(super) const RULE: Definition = Definition {
    name: "gpus_fill_nodes",
    demands: "the GPUs of a job that is larger than a node fill its nodes",
    axes: &[
        Axis::TensorParallel,
        Axis::PipelineParallel,
        Axis::DataParallel,
        Axis::ContextParallel,
    ],
    amount,
    message: |case| {
        let (gpus, node) = sizes(case);
        let left = match gpus % node {
            1 => "1 is".to_owned(),
            several => format!("{several} are"),
        };
        format!("{} do not fill nodes of {node}: {left} left over", counted(gpus, "GPU"))
    },
    remedy: Remedy::Figure(Figure::Gpus),
    refused_by: &[MEGATRON_LM],
    source: "`torchrun --nproc-per-node` starts equally many processes on each node",
    ..Definition::USUAL
};

/// GPUs that are left over on the last node.
fn amount(case: &Case) -> u64 {
    let (gpus, node) = sizes(case);
    if gpus <= node { 0 } else { gpus % node }
}

fn sizes(case: &Case) -> (u64, u64) {
    let node = u64::from(case.job().cluster.gpus_per_node);
    (case.combination().gpus(), node)
}
