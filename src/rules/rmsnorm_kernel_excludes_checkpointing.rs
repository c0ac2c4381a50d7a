//! In some frameworks the fused `RMSNorm` does not work in checkpointed layers.

use super::{Case, Definition, FrameworkChange, Remedy};
use crate::axis::Axis;
use crate::framework::FusedRmsNorm;
use crate::instance::Instance;
use crate::layout::{Checkpointing, RmsNormKernel};

pub(super) const RULE: Definition = Definition {
    name: "rmsnorm_kernel_excludes_checkpointing",
    demands: "in frameworks where it fails there, no fused RMSNorm in checkpointed layers",
    axes: &[Axis::RmsNormKernel, Axis::Checkpointing],
    amount: |case| u64::from(is_bound(case.instance) && is_both(case)),
    message: |case| demand(case.instance),
    demand: |instance, _| demand(instance),
    limits: |instance, _, _| {
        let name = &instance.job.framework.name;
        is_bound(instance).then(|| format!("the kernel of {name}"))
    },
    remedy: Remedy::Framework(FrameworkChange {
        key: "fused_rmsnorm",
        to: "allows-checkpointing",
        words: "a fused RMSNorm kernel that works in checkpointed layers",
        set: |framework| framework.fused_rmsnorm = FusedRmsNorm::AllowsCheckpointing,
    }),
    source: "Hagemann et al., arXiv 2311.05610, section 4.3",
    ..Definition::USUAL
};

fn is_bound(instance: &Instance) -> bool {
    instance.job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing
}

fn demand(instance: &Instance) -> String {
    let name = &instance.job.framework.name;
    format!("the fused RMSNorm kernel of {name} does not work in checkpointed layers")
}

fn is_both(case: &Case) -> bool {
    case.combination().rmsnorm_kernel == RmsNormKernel::Fused
        && case.flagged.checkpointing != Checkpointing::None
}
