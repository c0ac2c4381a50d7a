//! In some frameworks the fused `RMSNorm` does not work in checkpointed layers.

use super::{Case, Definition, Repair};
use crate::axis::Axis;
use crate::framework::FusedRmsNorm;
use crate::instance::Instance;
use crate::layout::{Checkpointing, RmsNormKernel};

pub(super) const RULE: Definition = Definition {
    name: "rmsnorm_kernel_excludes_checkpointing",
    demands: "in frameworks where it fails there, no fused RMSNorm in checkpointed layers",
    axes: &[Axis::RmsNormKernel, Axis::Checkpointing],
    amount: |case| u64::from(is_bound(case.instance) && is_both(case)),
    message: |case| {
        format!(
            "the fused RMSNorm kernel of {} does not work in checkpointed layers",
            case.job().framework.name
        )
    },
    limits: |instance, _| {
        let name = &instance.job.framework.name;
        is_bound(instance).then(|| format!("the kernel of {name}"))
    },
    repair: Repair::Framework {
        key: "fused_rmsnorm",
        to: "allows-checkpointing",
        set: |framework| framework.fused_rmsnorm = FusedRmsNorm::AllowsCheckpointing,
    },
    source: "Hagemann et al., arXiv 2311.05610, section 4.3",
    ..Definition::USUAL
};

fn is_bound(instance: &Instance) -> bool {
    instance.job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing
}

fn is_both(case: &Case) -> bool {
    case.combination().rmsnorm_kernel == RmsNormKernel::Fused
        && case.flagged.checkpointing != Checkpointing::None
}
