//! Changes that give an infeasible instance a layout, each verified by solving.

use crate::axis::Axis;
use crate::instance::Instance;
use crate::layout::{Checkpointing, Layout};
use crate::plan::Evaluated;
use crate::planner::infeasibility::{
    Analysis, Correction, Requirement, RequirementSet, best_layout, may_have_layout,
    unlisted_values, without,
};
use crate::planner::{Deadline, PlanError};
use crate::rules::Rule;

use super::change::Change;
use super::rows::{Way, changed_rows};
use super::{Reread, best_plan, quantities};

/// Changes with what they lead to.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// The changes.
    pub changes: Vec<Change>,
    /// The best layout of the changed instance.
    pub evaluated: Evaluated,
}

impl Repair {
    /// What the changes cost together ([`Change::cost`]).
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.changes.iter().map(Change::cost).sum()
    }

    /// The assignments of `--set` that make the changes.
    pub fn assignments(&self) -> impl Iterator<Item = String> {
        self.changes.iter().map(Change::assignment)
    }
}

/// Most repairs that are named.
pub const MOST_REPAIRS: usize = 8;
/// Most corrections that repairs are looked for in.
const MOST_CORRECTIONS: usize = 24;
/// Most changes of one repair.
const MOST_CHANGES: u32 = 3;

/// The repairs that were found.
pub(super) struct Repairs {
    /// The cheapest first.
    pub(super) found: Vec<Repair>,
    /// Whether the time was over before all were looked for.
    pub(super) is_cut: bool,
}

/// The cheapest repairs; of equal cost the one with the higher utilisation first. Every one of
/// them was read again from its assignments and solved in time.
pub(super) fn repairs(
    instance: &Instance,
    analysis: &Analysis,
    kept: &[Axis],
    (reread, deadline): (&Reread, Deadline),
) -> Result<Repairs, PlanError> {
    let mut found: Vec<Repair> = Vec::new();
    let possible = analysis.corrections.iter().filter(|correction| {
        let touches = |&axis: &Axis| correction.dropped.contains(Requirement::Listed(axis));
        correction.dropped.len() <= MOST_CHANGES
            && !kept.iter().any(touches)
            && split(correction.dropped).is_some()
    });
    let tasks = possible.take(MOST_CORRECTIONS).flat_map(|correction| {
        let quantity = split(correction.dropped).and_then(|it| it.1);
        let ways = quantity.map_or_else(
            || vec![None],
            |it| it.ways().into_iter().map(Some).collect(),
        );
        ways.into_iter().map(move |way| (correction, way))
    });
    let mut is_cut = false;
    for task in tasks {
        // None takes more than half of what is left, so that the others have a chance.
        let share = deadline.earlier(Deadline::after(deadline.left().map(|left| left / 2)));
        match add_repairs(instance, task, &mut found, (reread, share)) {
            Ok(()) => {}
            Err(PlanError::TimeOver) => is_cut = true,
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|one, other| {
        let mfu = |repair: &Repair| repair.evaluated.prediction.mfu.value();
        (one.cost().total_cmp(&other.cost())).then(mfu(other).total_cmp(&mfu(one)))
    });
    found.truncate(MOST_REPAIRS);
    Ok(Repairs { found, is_cut })
}

/// Adds the ways to do without the requirements of a correction that have a layout.
fn add_repairs(
    instance: &Instance,
    task: (&Correction, Option<Quantity>),
    found: &mut Vec<Repair>,
    (reread, deadline): (&Reread, Deadline),
) -> Result<(), PlanError> {
    for changes in changes(instance, task, deadline)? {
        let assignments: Vec<String> = changes.iter().map(Change::assignment).collect();
        let known = found
            .iter()
            .any(|repair| repair.assignments().eq(assignments.clone()));
        if changes.is_empty() || known {
            continue;
        }
        let Some(changed) = reread(&assignments) else {
            continue;
        };
        if let Some(plan) = best_plan(&changed, deadline)? {
            let evaluated = plan.choice;
            found.push(Repair { changes, evaluated });
        }
    }
    Ok(())
}

/// A quantity of the job that decides whether a requirement can be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    Gpus,
    Memory,
    GlobalBatch,
    SequenceLength,
    NodeSize,
    /// What of the job takes memory, for want of more of it.
    Shorter,
    Optimizer,
}

impl Quantity {
    /// What can be changed where this decides.
    fn ways(self) -> Vec<Self> {
        match self {
            Self::Memory => vec![Self::Memory, Self::Optimizer, Self::Shorter],
            other => vec![other],
        }
    }
}

/// What of a correction can be switched, and the one quantity that has to change besides. `None`
/// if it needs something that no user can change, such as the number of heads, or two quantities.
fn split(dropped: RequirementSet) -> Option<(RequirementSet, Option<Quantity>)> {
    let mut switched = RequirementSet::EMPTY;
    let mut quantity = None;
    for requirement in dropped.iter() {
        let needed = match requirement {
            Requirement::Listed(_)
            | Requirement::Forbidden(_)
            | Requirement::CheckpointRule
            | Requirement::Constraint(_)
            | Requirement::Rule(
                Rule::LayersCoverStages | Rule::RmsNormKernelExcludesCheckpointing,
            ) => {
                switched = switched.with(requirement);
                continue;
            }
            Requirement::Rule(Rule::GpuCount) => Quantity::Gpus,
            Requirement::Rule(Rule::MemoryCapacity) => Quantity::Memory,
            Requirement::Rule(Rule::GlobalBatchDivisible | Rule::InterleavingMicroBatches) => {
                Quantity::GlobalBatch
            }
            Requirement::Rule(Rule::SequenceDivisible) => Quantity::SequenceLength,
            Requirement::Rule(Rule::TensorParallelWithinNode) => Quantity::NodeSize,
            Requirement::Rule(_) => return None,
        };
        if quantity.is_some_and(|other| other != needed) {
            return None;
        }
        quantity = Some(needed);
    }
    Some((switched, quantity))
}

/// The ways to do without the requirements of a correction with one quantity changed, each a list of
/// changes.
fn changes(
    instance: &Instance,
    (correction, quantity): (&Correction, Option<Quantity>),
    deadline: Deadline,
) -> Result<Vec<Vec<Change>>, PlanError> {
    let Some((switched, _)) = split(correction.dropped) else {
        return Ok(Vec::new());
    };
    let base = switch(instance, switched, correction);
    let variations = match quantity {
        None => vec![(None, base)],
        Some(quantity) => quantities::variations(&base, quantity, (&correction.witness, deadline))?
            .into_iter()
            .map(|(change, varied)| (Some(change), varied))
            .collect(),
    };
    let mut found = Vec::new();
    for (change, varied) in variations {
        // The best layout of the relaxed instance says which values to list.
        let Some(best) = best_layout(&varied, deadline)? else {
            continue;
        };
        let requirements = switched.iter();
        let mut others: Vec<Change> = requirements
            .filter_map(|requirement| switch_change(instance, requirement, &best.layout))
            .collect();
        merge_permits(&mut others);
        others.extend(change);
        let rows = row_positions(instance, switched);
        if rows.is_empty() {
            found.push(others);
            continue;
        }
        for way in [Way::Moved, Way::Dropped] {
            let (changed, rows) =
                changed_rows(instance, &rows, way, (&varied, &best.layout), deadline)?;
            let mut all = others.clone();
            if !changed.is_empty() {
                all.insert(0, Change::Rows { changed, rows });
            }
            found.push(all);
        }
    }
    if let (Some(axis), None) = (only_degree(switched), quantity) {
        found.extend(nearest_value(instance, axis, deadline)?.map(|change| vec![change]));
    }
    Ok(found)
}

/// The one axis of numbers that is switched, and nothing besides.
fn only_degree(switched: RequirementSet) -> Option<Axis> {
    let mut requirements = switched.iter();
    match (requirements.next(), requirements.next()) {
        (Some(Requirement::Listed(axis)), None) => Some(axis).filter(|it| it.names().is_none()),
        _ => None,
    }
}

/// The value nearest to those that are listed with which there may be a layout: the best layout's own
/// may be far from what was meant.
fn nearest_value(
    instance: &Instance,
    axis: Axis,
    deadline: Deadline,
) -> Result<Option<Change>, PlanError> {
    let from = instance.space.values(axis).to_vec();
    let distance = |value: u32| {
        let to = |&listed: &u32| (f64::from(value) / f64::from(listed)).ln().abs();
        from.iter().map(to).fold(f64::INFINITY, f64::min)
    };
    let mut others = unlisted_values(instance, axis);
    others.retain(|value| !from.contains(value));
    others.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
    for value in others {
        let mut pinned = instance.clone();
        pinned.space.restrict(axis, vec![value]);
        if may_have_layout(&pinned, deadline)? {
            let to = vec![value];
            return Ok(Some(Change::Values { axis, from, to }));
        }
    }
    Ok(None)
}

/// Positions of the rows among the requirements.
fn row_positions(instance: &Instance, switched: RequirementSet) -> Vec<usize> {
    let all = 0..instance.space.constraints.len();
    all.filter(|&position| switched.contains(Requirement::Constraint(position)))
        .collect()
}

/// The instance without the switched requirements, rules by the framework's keys.
fn switch(instance: &Instance, switched: RequirementSet, correction: &Correction) -> Instance {
    use crate::framework::{FusedRmsNorm, Partition};
    let cut = Requirement::Rule(Rule::LayersCoverStages);
    let kernel = Requirement::Rule(Rule::RmsNormKernelExcludesCheckpointing);
    let by_key = switched.without(cut).without(kernel);
    let mut changed = without(instance, by_key, &correction.witness);
    let framework = &mut changed.job.framework;
    if switched.contains(cut) {
        framework.partition = Partition::Free;
    }
    if switched.contains(kernel) {
        framework.fused_rmsnorm = FusedRmsNorm::AllowsCheckpointing;
    }
    changed
}

/// The change that a switched requirement stands for.
fn switch_change(instance: &Instance, requirement: Requirement, best: &Layout) -> Option<Change> {
    match requirement {
        Requirement::Listed(axis) => Some(Change::Values {
            axis,
            from: instance.space.values(axis).to_vec(),
            to: used_values(axis, best),
        }),
        Requirement::Forbidden(index) => Some(Change::Permit {
            permitted: vec![instance.space.forbidden.get(index)?.clone()],
            kept: instance.space.forbidden.clone(),
        }),
        Requirement::CheckpointRule => Some(Change::Framework {
            key: "checkpointing",
            to: "free",
        }),
        Requirement::Rule(Rule::LayersCoverStages) => Some(Change::Framework {
            key: "partition",
            to: "free",
        }),
        Requirement::Rule(Rule::RmsNormKernelExcludesCheckpointing) => Some(Change::Framework {
            key: "fused_rmsnorm",
            to: "allows-checkpointing",
        }),
        Requirement::Constraint(_) | Requirement::Rule(_) => None,
    }
}

/// Makes one change of all that permit a forbidden combination.
fn merge_permits(changes: &mut Vec<Change>) {
    let mut all_permitted = Vec::new();
    let mut all = Vec::new();
    changes.retain(|change| match change {
        Change::Permit { permitted, kept } => {
            all_permitted.extend(permitted.clone());
            all.clone_from(kept);
            false
        }
        _ => true,
    });
    if all_permitted.is_empty() {
        return;
    }
    all.retain(|assignment| !all_permitted.contains(assignment));
    changes.push(Change::Permit {
        permitted: all_permitted,
        kept: all,
    });
}

/// The codes of an axis that a layout uses: one, or several flags of checkpointing.
fn used_values(axis: Axis, layout: &Layout) -> Vec<u32> {
    if axis != Axis::Checkpointing {
        let candidate = crate::axis::FlaggedCombination {
            combination: layout.combination,
            checkpointing: Checkpointing::None,
        };
        return vec![candidate.code(axis)];
    }
    let uses = |flag: &Checkpointing| match flag.recompute() {
        None => layout
            .stages
            .iter()
            .any(|stage| stage.checkpointed_layers() < stage.layers),
        Some(mode) => layout
            .stages
            .iter()
            .any(|stage| stage.recomputed[mode as usize] > 0),
    };
    Checkpointing::ALL
        .iter()
        .filter(|flag| uses(flag))
        .map(|&flag| flag as u32)
        .collect()
}
