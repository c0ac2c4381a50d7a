//! Instances that demand less.

use crate::axis::{Axis, FlaggedCombination};
use crate::framework::CheckpointRule;
use crate::framework::support::Supported;
use crate::instance::Instance;
use crate::rules::{self, Requirement, Rule, RuleSet};

use super::values::{context_parallel_degrees, tensor_parallel_degrees, unlisted_values};

/// The instance without some of its requirements. Without `gpu_count` the job has as many GPUs as
/// the degrees of `witness` multiply to.
#[must_use]
pub fn without(instance: &Instance, dropped: RuleSet, witness: &FlaggedCombination) -> Instance {
    let mut job = instance.job.clone();
    if dropped.contains(Rule::GpuCount) {
        job.cluster.gpus = u32::try_from(witness.combination.gpus()).unwrap_or(u32::MAX);
    }
    if dropped.contains(Rule::CheckpointingByFramework) {
        job.framework.checkpoint_rule = CheckpointRule::Free;
    }
    let of_framework = dropped
        .iter()
        .filter(|it| it.rule == Rule::FrameworkSupports);
    for Requirement { part, .. } in of_framework {
        let values = job.framework.axes.of_mut(rules::supported_aspect(part));
        *values = Supported::default();
    }
    let mut relaxed = instance.with_job(job);
    for axis in Axis::ALL {
        let is_dropped = dropped.contains(Requirement::listed(axis));
        let mut values = if is_dropped {
            unlisted_values(&relaxed, axis)
        } else {
            relaxed.space.values(axis).to_vec()
        };
        if is_dropped || !instance.space.is_listed(axis) {
            values.extend(beyond_rules(&relaxed, dropped, axis));
        }
        if values != relaxed.space.values(axis) {
            relaxed.space.restrict(axis, values);
        }
    }
    keep(&mut relaxed.space.forbidden, dropped, Rule::Forbidden);
    keep(&mut relaxed.space.constraints, dropped, Rule::Constraint);
    for Requirement { rule, .. } in dropped.iter() {
        match rule {
            Rule::GpuCount
            | Rule::AllowedValues
            | Rule::FrameworkSupports
            | Rule::Forbidden
            | Rule::Constraint => {}
            other => rules::relax(&mut relaxed, other),
        }
    }
    if heads_are_alike(instance) && dropped.contains(Rule::HeadsDivisible) {
        rules::relax(&mut relaxed, Rule::KeyValueHeadsDivisible);
    }
    relaxed
}

/// Keeps the parts of a rule that are not dropped.
fn keep<T>(parts: &mut Vec<T>, dropped: RuleSet, rule: Rule) {
    let mut positions = 0..;
    parts.retain(|_| {
        let part = positions.next().unwrap_or(usize::MAX);
        !dropped.contains(Requirement { rule, part })
    });
}

/// Whether every head has a key and a value of its own: then the rules on heads are one.
pub(super) const fn heads_are_alike(instance: &Instance) -> bool {
    let network = &instance.job.transformer;
    network.heads == network.key_value_heads
}

/// Values of an axis that dropped rules make possible.
fn beyond_rules(instance: &Instance, dropped: RuleSet, axis: Axis) -> Vec<u32> {
    let of_tensor_parallel = [
        Rule::HeadsDivisible,
        Rule::KeyValueHeadsDivisible,
        Rule::TensorParallelWithinDomain,
    ];
    match axis {
        Axis::TensorParallel if of_tensor_parallel.iter().any(|&it| dropped.contains(it)) => {
            tensor_parallel_degrees(instance)
        }
        Axis::ContextParallel if dropped.contains(Rule::SequenceDivisible) => {
            context_parallel_degrees(instance)
        }
        _ => Vec::new(),
    }
}
