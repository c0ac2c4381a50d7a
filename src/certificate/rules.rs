//! By how much the combinations of a space break each rule, from the planner's own figures.

use crate::axis::{Axis, Candidate};
use crate::constraint::{Constraint, Decision};
use crate::instance::Instance;
use crate::layout::{Layout, Schedule};
use crate::planner::candidates;
use crate::rule::Rule;
use crate::verify::header::sort_key;

use super::document::{Forbidden, RuleTable};
use super::format::{ORDER, RULES};
use super::space::values;

/// The tables of all rules.
pub(super) fn tables(instance: &Instance) -> Vec<RuleTable> {
    let tables = RULES.into_iter().map(|(rule, axes)| RuleTable {
        rule: rule.to_string(),
        axes: axes.iter().map(ToString::to_string).collect(),
        amounts: amounts(instance, rule, axes),
    });
    tables.collect()
}

fn amounts(instance: &Instance, rule: Rule, axes: &[Axis]) -> Vec<i64> {
    let amounts = combinations(instance, axes).map(|candidate| {
        if candidates::broken_rules(instance, &candidate).contains(rule) {
            amount(instance, rule, &candidate)
        } else {
            0
        }
    });
    amounts.collect()
}

/// A candidate for each combination of the values of some axes, the last axis fastest.
fn combinations(instance: &Instance, axes: &[Axis]) -> impl Iterator<Item = Candidate> + use<> {
    // Axes that do not decide the rule take their first value.
    let mut codes = [0; Axis::COUNT];
    for axis in Axis::ALL {
        codes[axis as usize] = instance.space.values(axis)[0];
    }
    let mut candidates = vec![codes];
    for &axis in axes {
        let values = instance.space.values(axis);
        candidates = candidates
            .iter()
            .flat_map(|codes| {
                values.iter().map(move |&code| {
                    let mut codes = *codes;
                    codes[axis as usize] = code;
                    codes
                })
            })
            .collect();
    }
    candidates
        .into_iter()
        .map(|codes| Candidate::from_codes(&codes))
}

/// The differences of the sides of a row over discrete choices, over the values of its axes.
pub(super) fn differences(instance: &Instance, row: &Constraint) -> Vec<i64> {
    let batch = instance.job.workload.global_batch;
    let of = |layout: &Layout| row.left(layout, batch) - row.right;
    let decides = |axis: &Axis| {
        row.terms.iter().any(|term| match term.decision {
            Decision::Degree(other) | Decision::Is(other, _) => other == *axis,
            Decision::MicroBatches => matches!(axis, Axis::DataParallel | Axis::MicroBatch),
            Decision::Layers(_) | Decision::LayersLast | Decision::CheckpointedLayers => false,
        })
    };
    let axes: Vec<Axis> = ORDER.into_iter().filter(decides).collect();
    let layouts = combinations(instance, &axes).map(|candidate| Layout {
        cell: candidate.cell,
        stages: Vec::new(),
    });
    layouts.map(|layout| of(&layout)).collect()
}

/// By how much the candidate breaks a rule that it breaks.
fn amount(instance: &Instance, rule: Rule, candidate: &Candidate) -> i64 {
    let (job, cell) = (&instance.job, &candidate.cell);
    let tp = u64::from(cell.tensor_parallel);
    let pp = u64::from(cell.pipeline_parallel);
    let amount = match rule {
        Rule::GpuCount => {
            let gpus = i64::try_from(cell.gpus()).unwrap_or(i64::MAX);
            return gpus - i64::from(job.cluster.gpus);
        }
        Rule::HeadsDivisible => job.transformer.heads % tp,
        Rule::KeyValueHeadsDivisible => candidates::key_value_remainder(instance, cell),
        Rule::TensorParallelWithinNode => u64::from(job.cluster.gpus_per_node) % tp,
        Rule::GlobalBatchDivisible => candidates::batch_remainder(instance, cell),
        Rule::SequenceDivisible => candidates::sequence_remainder(instance, cell),
        Rule::LayersCoverStages => missing_layers(instance, candidate),
        Rule::InterleavingNeedsPipeline => {
            u64::from(pp == 1) + u64::from(cell.schedule != Schedule::OneForwardOneBackward)
        }
        Rule::InterleavingMicroBatches => {
            let micro_batches = cell.micro_batches(job.workload.global_batch);
            pp.checked_sub(micro_batches)
                .filter(|&missing| missing > 0)
                .unwrap_or(micro_batches % pp)
        }
        Rule::ShardingExcludesPipeline => pp - 1,
        Rule::ExpertsDivisible => u64::from(cell.expert_parallel) - 1,
        _ => 1,
    };
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The fewest further layers with which the framework has a cut.
fn missing_layers(instance: &Instance, candidate: &Candidate) -> u64 {
    let mut longer = instance.clone();
    let layers = instance.job.transformer.layers;
    let cell = &candidate.cell;
    let enough = cell
        .pipeline_parallel
        .saturating_mul(cell.virtual_stages)
        .saturating_mul(2);
    let found = (1..=enough).find(|&more| {
        longer.job.transformer.layers = layers + more;
        candidates::partition(&longer, cell).is_some()
    });
    u64::from(found.unwrap_or(enough))
}

/// The forbidden combinations that exclude anything beyond the rules, in order.
pub(super) fn forbidden(instance: &Instance) -> Vec<Forbidden> {
    if instance.space.forbidden.is_empty() {
        return Vec::new();
    }
    let place = |axis: Axis| ORDER.iter().position(|&other| other == axis);
    let mut assignments = instance.space.forbidden.clone();
    for assignment in &mut assignments {
        assignment
            .0
            .sort_by_key(|&(axis, code)| (place(axis), code));
        assignment.0.dedup();
    }
    assignments.sort_by_cached_key(sort_key);
    assignments.dedup();
    let mut free = instance.clone();
    free.space.forbidden.clear();
    free.space.constraints.clear();
    let listed = candidates::list(&free);
    let counted = assignments.iter().map(|assignment| {
        let excluded = listed
            .entries
            .iter()
            .filter(|(candidate, broken)| broken.is_empty() && assignment.matches(candidate));
        Forbidden {
            values: values(assignment),
            excludes: excluded.count() as u64,
        }
    });
    counted.filter(|forbidden| forbidden.excludes > 0).collect()
}
