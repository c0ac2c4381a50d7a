//! Instances that demand less.

use crate::axis::{Axis, Candidate};
use crate::framework::CheckpointRule;
use crate::instance::Instance;
use crate::rule::Rule;

use super::requirement::{Requirement, RequirementSet};
use super::universe::{context_parallel_degrees, tensor_parallel_degrees, unlisted_values};

/// The instance without some of its requirements. Without `gpu_count` the job has as many GPUs as
/// the degrees of `witness` multiply to.
#[must_use]
pub fn without(instance: &Instance, dropped: RequirementSet, witness: &Candidate) -> Instance {
    let mut job = instance.job.clone();
    if dropped.contains(Requirement::Rule(Rule::GpuCount)) {
        job.cluster.gpus = u32::try_from(witness.cell.gpus()).unwrap_or(u32::MAX);
    }
    if dropped.contains(Requirement::CheckpointRule) {
        job.framework.checkpoint_rule = CheckpointRule::Free;
    }
    let listed = instance.space.listed();
    let mut relaxed = instance.with_job(job);
    for axis in Axis::ALL {
        if dropped.contains(Requirement::Listed(axis)) {
            let values = unlisted_values(&relaxed, axis);
            relaxed.space.restrict(axis, values);
        }
    }
    let tensor = [
        Rule::HeadsDivisible,
        Rule::KeyValueHeadsDivisible,
        Rule::TensorParallelWithinNode,
    ];
    let drops = |rule: Rule| dropped.contains(Requirement::Rule(rule));
    if tensor.into_iter().any(drops) && !listed.contains(Axis::TensorParallel) {
        let values = tensor_parallel_degrees(&relaxed);
        relaxed.space.restrict(Axis::TensorParallel, values);
    }
    if drops(Rule::SequenceDivisible) && !listed.contains(Axis::ContextParallel) {
        let values = context_parallel_degrees(&relaxed);
        relaxed.space.restrict(Axis::ContextParallel, values);
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
            relaxed.space.relaxed.insert_if(rule, true);
        }
    }
    relaxed
}
