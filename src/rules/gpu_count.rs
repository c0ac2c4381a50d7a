//! `tp pp dp cp = G`: the degrees multiply to the GPUs of the job.

use super::{Case, Definition, Figure, Remedy};
use crate::axis::Axis;
use crate::count::{counted, grouped};

pub(super) const RULE: Definition = Definition {
    name: "gpu_count",
    demands: "tensor x pipeline x data x context parallel is the number of GPUs",
    axes: &[
        Axis::TensorParallel,
        Axis::PipelineParallel,
        Axis::DataParallel,
        Axis::ContextParallel,
    ],
    amount,
    message,
    remedy: Remedy::Figure(Figure::Gpus),
    source: "Narayanan et al., arXiv 2104.04473, section 3",
    ..Definition::USUAL
};

fn amount(case: &Case) -> u64 {
    let gpus = u64::from(case.job().cluster.gpus);
    case.combination().gpus().abs_diff(gpus)
}

fn message(case: &Case) -> String {
    let one = case.combination();
    format!(
        "tensor x pipeline x data x context parallel is {} x {} x {} x {} = {}, but the job has {}",
        one.tensor_parallel,
        one.pipeline_parallel,
        one.data_parallel,
        one.context_parallel,
        grouped(one.gpus()),
        counted(case.job().cluster.gpus, "GPU")
    )
}
