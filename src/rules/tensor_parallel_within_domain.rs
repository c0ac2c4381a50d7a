//! Where you or the framework say so, a tensor-parallel group lies within one NVLink domain.

use super::{Case, Definition, FrameworkChange, Remedy};
use crate::axis::Axis;
use crate::count::counted;
use crate::framework::TensorParallelReach;

pub(super) const RULE: Definition = Definition {
    name: "tensor_parallel_within_domain",
    demands: "where `framework.tensor_parallel_reach` says so, tensor parallel lies within an NVLink domain",
    axes: &[Axis::TensorParallel],
    amount,
    message: |case| {
        format!(
            "{} tensor-parallel ranks do not fit evenly into NVLink domains of {}",
            case.tensor_parallel(),
            counted(case.job().cluster.domain(), "GPU")
        )
    },
    limits: |instance, _, _| {
        let job = &instance.job;
        let is_limit = job.framework.tensor_parallel_reach == TensorParallelReach::Domain;
        is_limit.then(|| format!("NVLink domains of {}", counted(job.cluster.domain(), "GPU")))
    },
    remedy: Remedy::Framework(FrameworkChange {
        key: "tensor_parallel_reach",
        to: "anywhere",
        words: "tensor parallelism across NVLink domains",
        set: |framework| framework.tensor_parallel_reach = TensorParallelReach::Anywhere,
    }),
    source: "Narayanan et al., arXiv 2104.04473, section 3.2",
    ..Definition::USUAL
};

/// Ranks beyond one domain, or GPUs of a domain that are left over.
fn amount(case: &Case) -> u64 {
    let (cluster, ranks) = (&case.job().cluster, case.combination().tensor_parallel);
    let reach = case.job().framework.tensor_parallel_reach;
    if reach == TensorParallelReach::Anywhere || cluster.is_within_domain(ranks) {
        return 0;
    }
    let domain = cluster.domain();
    u64::from(if ranks > domain {
        ranks - domain
    } else {
        domain % ranks
    })
}
