//! Instances that demand less.

use crate::axis::{Axis, FlaggedCombination};
use crate::framework::CheckpointRule;
use crate::instance::Instance;
use crate::rules::{self, Rule};

use super::requirement::{Requirement, RequirementSet};
use super::universe::{context_parallel_degrees, tensor_parallel_degrees, unlisted_values};

/// The instance without some of its requirements. Without `gpu_count` the job has as many GPUs as
/// the degrees of `witness` multiply to.
#[must_use]
pub fn without(
    instance: &Instance,
    dropped: RequirementSet,
    witness: &FlaggedCombination,
) -> Instance {
    let mut job = instance.job.clone();
    if dropped.contains(Requirement::Rule(Rule::GpuCount)) {
        job.cluster.gpus = u32::try_from(witness.combination.gpus()).unwrap_or(u32::MAX);
    }
    if dropped.contains(Requirement::CheckpointRule) {
        job.framework.checkpoint_rule = CheckpointRule::Free;
    }
    let mut relaxed = instance.with_job(job);
    for axis in Axis::ALL {
        let is_dropped = dropped.contains(Requirement::Listed(axis));
        let mut values = if is_dropped {
            unlisted_values(&relaxed, axis)
        } else {
            relaxed.space.values(axis).to_vec()
        };
        if is_dropped || !instance.space.listed().contains(axis) {
            values.extend(beyond_rules(&relaxed, dropped, axis));
        }
        if values != relaxed.space.values(axis) {
            relaxed.space.restrict(axis, values);
        }
    }
    let mut position = 0..;
    relaxed.space.forbidden.retain(|_| {
        let index = position.next().unwrap_or(usize::MAX);
        !dropped.contains(Requirement::Forbidden(index))
    });
    let mut position = 0..;
    relaxed.space.constraints.retain(|_| {
        let index = position.next().unwrap_or(usize::MAX);
        !dropped.contains(Requirement::Constraint(index))
    });
    for requirement in dropped.iter() {
        if let Requirement::Rule(rule) = requirement
            && rule != Rule::GpuCount
        {
            rules::relax(&mut relaxed, rule);
        }
    }
    if heads_are_alike(instance) && dropped.contains(Requirement::Rule(Rule::HeadsDivisible)) {
        rules::relax(&mut relaxed, Rule::KeyValueHeadsDivisible);
    }
    relaxed
}

/// Whether every head has a key and a value of its own: then the rules on heads are one.
pub(super) const fn heads_are_alike(instance: &Instance) -> bool {
    let network = &instance.job.transformer;
    network.heads == network.key_value_heads
}

/// Values of an axis that dropped rules make possible.
fn beyond_rules(instance: &Instance, dropped: RequirementSet, axis: Axis) -> Vec<u32> {
    let drops = |rule: Rule| dropped.contains(Requirement::Rule(rule));
    let of_tensor_parallel = [
        Rule::HeadsDivisible,
        Rule::KeyValueHeadsDivisible,
        Rule::TensorParallelWithinNode,
    ];
    match axis {
        Axis::TensorParallel if of_tensor_parallel.into_iter().any(drops) => {
            tensor_parallel_degrees(instance)
        }
        Axis::ContextParallel if drops(Rule::SequenceDivisible) => {
            context_parallel_degrees(instance)
        }
        _ => Vec::new(),
    }
}
