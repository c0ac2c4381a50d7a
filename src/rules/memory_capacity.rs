//! Peak memory of every stage stays within what the accepted risk allows.

use super::{Definition, Figure, Remedy, Rule};
use crate::cluster::MemoryError;
use crate::cost_model::seen_to_fit::memory_error;
use crate::cost_model::{self, Costs, memory};
use crate::instance::Instance;
use crate::layout::{Combination, Layout};
use crate::plan::Violation;
use crate::quantity::Bytes;

const NAME: &str = "memory_capacity";

pub(super) const RULE: Definition = Definition {
    name: NAME,
    demands: "the peak memory of every stage is within what the accepted risk leaves of a GPU",
    in_layout: Some(in_layout),
    limits: |instance, best, _| {
        let combination = &best.layout.combination;
        let left = admissible_of(instance, combination) - best.prediction.memory.peak();
        Some(format!("{left} left on the fullest stage"))
    },
    remedy: Remedy::Figure(Figure::Memory),
    source: "`limits.max_oom_risk` of the instance",
    ..Definition::USUAL
};

/// The memory of a GPU that the accepted risk leaves of a combination that no run has shown to fit.
#[must_use]
pub fn admissible(instance: &Instance) -> Bytes {
    within(instance, instance.job.cluster.calibration.memory)
}

/// The memory of a GPU that the accepted risk leaves a combination.
#[must_use]
pub fn admissible_of(instance: &Instance, combination: &Combination) -> Bytes {
    within(instance, memory_error(&instance.job, combination))
}

fn within(instance: &Instance, error: MemoryError) -> Bytes {
    let usable = instance.job.cluster.accelerator.usable_memory;
    memory::admissible_peak(usable, error, instance.max_oom_risk)
}

/// Stages whose peak is too high. Without whole micro-batches or a layer on each stage there is no
/// memory to speak of.
fn in_layout(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let first = [Rule::GlobalBatchDivisible, Rule::LayersCoverStages];
    let keeps = |&rule: &Rule| {
        super::relaxed(instance).contains(rule)
            || super::violations_of(rule, instance, layout).is_empty()
    };
    if !first.iter().all(keeps) {
        return Vec::new();
    }
    let job = &instance.job;
    let costs = Costs::new(job, &layout.combination);
    let memory = cost_model::evaluate(job, &costs, &layout.stages).memory;
    let (capacity, limit) = (
        memory.capacity,
        admissible_of(instance, &layout.combination),
    );
    let risk = instance.max_oom_risk * 100.0;
    let stages = memory.stages.iter().enumerate();
    stages
        .map(|(index, stage)| (index, stage.peak()))
        .filter(|&(_, peak)| peak > limit)
        .map(|(index, peak)| Violation {
            rule: format!("{NAME}({index})"),
            message: format!(
                "stage {index} needs {peak}, {:.1} GiB more than the {limit} that an accepted risk of {risk} % leaves of {capacity}",
                (peak - limit).gib()
            ),
        })
        .collect()
}
