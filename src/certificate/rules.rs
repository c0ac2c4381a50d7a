//! By how much the combinations of a space break each rule, from the planner's own figures.

use crate::axis::{Assignment, Axis, Candidate};
use crate::constraint::{Constraint, Decision};
use crate::instance::Instance;
use crate::layout::{Layout, Schedule};
use crate::planner::candidates;
use crate::rule::Rule;
use crate::verify::header::sort_key;

use super::document::{Forbidden, RuleTable};
use super::format::{ORDER, RULES};
use super::space::values;
use super::writer::position;

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

/// What forbidden values exclude by themselves.
struct Effect {
    /// Combinations that no rule, row or earlier entry excludes.
    count: u64,
    /// Position of the first of them.
    first: u64,
}

/// The combinations that break no rule of the tables and no row over discrete choices.
fn not_broken(instance: &Instance) -> Vec<Candidate> {
    let mut free = instance.clone();
    free.space.forbidden.clear();
    let listed = candidates::list(&free).entries.into_iter();
    let kept = listed.filter(|(_, broken)| broken.is_empty());
    kept.map(|(candidate, _)| candidate).collect()
}

/// The effect of each of some forbidden values on the combinations `left`, in their order.
fn effects(instance: &Instance, mut left: Vec<Candidate>, forbidden: &[Assignment]) -> Vec<Effect> {
    let effects = forbidden.iter().map(|assignment| {
        let (excluded, others): (Vec<_>, Vec<_>) =
            left.drain(..).partition(|left| assignment.matches(left));
        left = others;
        let positions = excluded
            .iter()
            .map(|candidate| position(instance, candidate));
        Effect {
            count: excluded.len() as u64,
            first: positions.min().unwrap_or(0),
        }
    });
    effects.collect()
}

/// Forbidden values in order, their axes too, without repetition.
fn sorted(forbidden: &[Assignment]) -> Vec<Assignment> {
    let place = |axis: Axis| ORDER.iter().position(|&other| other == axis);
    let mut sorted = forbidden.to_vec();
    for assignment in &mut sorted {
        assignment
            .0
            .sort_by_key(|&(axis, code)| (place(axis), code));
        assignment.0.dedup();
    }
    sorted.sort_by_cached_key(sort_key);
    sorted.dedup();
    sorted
}

/// The forbidden values of an instance that exclude something which no rule, row or earlier entry does,
/// without values that make no difference to that, in order.
pub(super) fn effective(instance: &Instance) -> Vec<Assignment> {
    let mut forbidden = sorted(&instance.space.forbidden);
    if forbidden.is_empty() {
        return forbidden;
    }
    let all = not_broken(instance);
    while let Some(simpler) = simpler(&all, &forbidden) {
        forbidden = sorted(&simpler);
    }
    forbidden
}

/// The forbidden values, which are in order, after one change, if they have to be stated otherwise.
/// `all` are the combinations that no rule or row excludes.
fn simpler(all: &[Candidate], forbidden: &[Assignment]) -> Option<Vec<Assignment>> {
    let mut left = all.to_vec();
    for (index, assignment) in forbidden.iter().enumerate() {
        let excluded = |assignment: &Assignment| {
            let matching = left.iter().filter(|left| assignment.matches(left));
            matching.count()
        };
        let own = excluded(assignment);
        let mut simpler = forbidden.to_vec();
        if own == 0 {
            simpler.remove(index);
            return Some(simpler);
        }
        // At least one value is stated.
        let values = Some(assignment.0.len()).filter(|&values| values > 1);
        for value in 0..values.unwrap_or(0) {
            simpler[index].0.remove(value);
            if excluded(&simpler[index]) == own {
                return Some(simpler);
            }
            simpler[index] = assignment.clone();
        }
        left.retain(|left| !assignment.matches(left));
    }
    None
}

/// The forbidden values of an instance, which are effective, as a document states them.
pub(super) fn forbidden(instance: &Instance) -> Vec<Forbidden> {
    let assignments = &instance.space.forbidden;
    if assignments.is_empty() {
        return Vec::new();
    }
    let effects = effects(instance, not_broken(instance), assignments);
    let stated = assignments.iter().zip(effects);
    let stated = stated.map(|(assignment, effect)| Forbidden {
        values: values(assignment),
        excludes: effect.count,
        first: effect.first,
    });
    stated.collect()
}
