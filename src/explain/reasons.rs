//! Why an instance has no layout, in words with amounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axis::Axis;
use crate::count::{counted, grouped};
use crate::instance::Instance;
use crate::plan::{Formulation, Nearest};
use crate::planner::infeasibility::{
    Analysis, Correction, analyse, least_shortage, nearest, without,
};
use crate::planner::{Deadline, PlanError};
use crate::quantity::Bytes;
use crate::rules::{self, Requirement, Rule, RuleSet};

use super::repairs::{Repair, repairs};
use super::{Reread, TimeLimits};

/// Why an instance has no layout, and what would give it one.
#[derive(Debug, Clone, PartialEq)]
pub struct Reasons {
    /// Sets of requirements that no layout satisfies together, the smallest first; they have nothing
    /// in common, so every one of them has to be resolved. Of each set all are needed; those that are
    /// enough alone come first.
    pub clashes: Vec<Vec<Reason>>,
    /// The layout nearest to being possible.
    pub nearest: Option<Nearest>,
    /// Changes that give the instance a layout, the cheapest first, each solved.
    pub repairs: Vec<Repair>,
    /// Whether the time was over before every repair was looked for.
    pub repairs_cut: bool,
}

/// One requirement that clashes with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The rule's name, or the key of what is listed.
    pub requirement: String,
    /// Whether the instance has a layout without this requirement alone.
    pub enough: bool,
    /// What it demands, with amounts.
    pub message: String,
}

/// Explains an infeasible instance. Repairs leave the values of `kept` axes alone.
///
/// # Errors
///
/// When the solver fails, an answer fails its verification, or the time is over before the clashes are
/// known.
pub fn reasons(
    instance: &Instance,
    kept: &[Axis],
    reread: &Reread,
    limits: &TimeLimits,
) -> Result<Reasons, PlanError> {
    let deadline = limits.whole;
    let analysis = analyse(instance, Formulation::Staged, deadline)?;
    let shortage = shortage(instance, &analysis, deadline)?;
    let each_enough = analysis.each_enough();
    let clashes = analysis.clashes.iter().map(|clash| {
        let reasons = clash.iter().map(|requirement| Reason {
            requirement: requirement.name(instance),
            enough: each_enough.contains(requirement),
            message: match requirement.axis() {
                Some(axis) if kept.contains(&axis) => {
                    let values = instance.space.values(axis);
                    format!("the question asks for {}", axis.any_of(values))
                }
                _ => message(instance, (&analysis, shortage), *clash, requirement),
            },
        });
        let mut reasons: Vec<Reason> = reasons.collect();
        reasons.sort_by_key(|reason| !reason.enough);
        reasons
    });
    let clashes = clashes.collect();
    let nearest = nearest(instance, &keeping(analysis.clone(), kept), deadline)?;
    let (repairs, repairs_cut) = repairs(instance, &analysis, kept, (reread, limits.variations()))?;
    Ok(Reasons {
        clashes,
        nearest,
        repairs,
        repairs_cut,
    })
}

/// The analysis without the corrections that touch axes that are kept, if any others are left.
fn keeping(mut analysis: Analysis, kept: &[Axis]) -> Analysis {
    let touches = |it: &&Correction| {
        let mut axes = kept.iter();
        axes.any(|&axis| it.dropped.contains(Requirement::listed(axis)))
    };
    let (_, others): (Vec<_>, Vec<_>) = analysis.corrections.iter().partition(touches);
    if !others.is_empty() {
        analysis.corrections = others.into_iter().copied().collect();
    }
    analysis
}

/// What a requirement demands of this instance: by what it says of the combination that breaks it
/// and as little else as possible, where it is about combinations.
fn message(
    instance: &Instance,
    (analysis, shortage): (&Analysis, Option<Bytes>),
    clash: RuleSet,
    requirement: Requirement,
) -> String {
    let Requirement { rule, part } = requirement;
    let example = || {
        let witness = breaking(analysis, requirement)?.witness;
        rule.message(instance, &witness, part)
    };
    match rule {
        Rule::GpuCount => gpu_count(instance, clash),
        Rule::MemoryCapacity => memory_capacity(instance, shortage),
        Rule::AllowedValues | Rule::Forbidden | Rule::Constraint => rule.demand(instance, part),
        _ => example().unwrap_or_else(|| rule.demand(instance, part)),
    }
}

/// The GPUs; beside listed degrees, that these do not multiply to them.
fn gpu_count(instance: &Instance, clash: RuleSet) -> String {
    let gpus = counted(instance.job.cluster.gpus, "GPU");
    let degrees = [
        Axis::TensorParallel,
        Axis::PipelineParallel,
        Axis::DataParallel,
        Axis::ContextParallel,
    ];
    let listed: Vec<Axis> = degrees
        .into_iter()
        .filter(|&axis| clash.contains(Requirement::listed(axis)))
        .collect();
    let one_value = |axis: &Axis| match instance.space.values(*axis) {
        &[only] => Some(u64::from(only)),
        _ => None,
    };
    let product = listed
        .iter()
        .map(one_value)
        .try_fold(1_u64, |product, degree| {
            Some(product.saturating_mul(degree?))
        });
    match product {
        Some(product) if listed.len() > 1 => {
            let product = grouped(product);
            format!("the job has {gpus}, and these degrees multiply to {product}")
        }
        _ => format!("the job has {gpus}"),
    }
}

/// What is needed and what there is.
fn memory_capacity(instance: &Instance, shortage: Option<Bytes>) -> String {
    let usable = instance.job.cluster.accelerator.usable_memory;
    let limit = rules::admissible(instance);
    let risk = percentage(instance.max_oom_risk);
    let there_is = format!(
        "an accepted risk of {risk} % leaves {limit} of {usable} ({:.1} GB)",
        usable.value() / 1e9
    );
    match shortage {
        Some(shortage) => format!(
            "every layout that keeps the other rules is at least {shortage} short: it needs {} or \
             more on a GPU, and {there_is}",
            limit + shortage
        ),
        None => there_is,
    }
}

/// What is missing of memory; where choices clash besides, once they are out of the way.
fn shortage(
    instance: &Instance,
    analysis: &Analysis,
    deadline: Deadline,
) -> Result<Option<Bytes>, PlanError> {
    if let Some(shortage) = &analysis.least_shortage {
        return Ok(Some(shortage.amount));
    }
    let memory = Requirement::from(Rule::MemoryCapacity);
    if !analysis.clashes.iter().any(|clash| clash.contains(memory)) {
        return Ok(None);
    }
    let Some(correction) = breaking(analysis, memory) else {
        return Ok(None);
    };
    let others = correction.dropped.without(RuleSet::EMPTY.with(memory));
    least_shortage(&without(instance, others, &correction.witness), deadline)
}

/// The smallest correction that has the requirement, rather one with the job's GPUs.
fn breaking(analysis: &Analysis, requirement: Requirement) -> Option<&Correction> {
    let all = analysis.corrections.iter();
    all.filter(|correction| correction.dropped.contains(requirement))
        .min_by_key(|correction| {
            (
                correction.dropped.contains(Rule::GpuCount),
                correction.dropped.len(),
            )
        })
}

/// A share in percent, without the noise of its binary form.
pub(crate) fn percentage(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}
