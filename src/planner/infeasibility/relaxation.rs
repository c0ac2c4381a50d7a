//! Instances that demand less.

use crate::axis::{Axis, Candidate};
use crate::framework::CheckpointRule;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout_space::LayoutSpace;
use crate::rule::Rule;

use super::requirement::{Requirement, RequirementSet};
use super::universe::{
    context_parallel_degrees, listed_axes, tensor_parallel_degrees, unlisted_values,
};

/// The instance with another job: listed values stay, axes that are not listed try everything that
/// is legal for the new job.
#[must_use]
pub fn with_job(instance: &Instance, job: Job) -> Instance {
    let mut space = LayoutSpace::everything_legal(&job);
    for axis in listed_axes(instance) {
        space.restrict(axis, instance.space.values(axis).to_vec());
    }
    space.forbidden.clone_from(&instance.space.forbidden);
    space.relaxed = instance.space.relaxed;
    Instance {
        job,
        space,
        ..instance.clone()
    }
}

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
    let listed = listed_axes(instance);
    let mut relaxed = with_job(instance, job);
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
    if tensor.into_iter().any(drops) && !listed.contains(&Axis::TensorParallel) {
        let values = tensor_parallel_degrees(&relaxed);
        relaxed.space.restrict(Axis::TensorParallel, values);
    }
    if drops(Rule::SequenceDivisible) && !listed.contains(&Axis::ContextParallel) {
        let values = context_parallel_degrees(&relaxed);
        relaxed.space.restrict(Axis::ContextParallel, values);
    }
    let mut position = 0..;
    relaxed.space.forbidden.retain(|_| {
        let index = position.next().unwrap_or(usize::MAX);
        !dropped.contains(Requirement::Forbidden(index))
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
