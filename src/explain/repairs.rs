//! Changes that give an infeasible instance a layout, each verified by solving.

use crate::axis::{Axis, FlaggedCombination};
use crate::change::Change;
use crate::framework::support::Aspect;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::Evaluated;
use crate::planner::infeasibility::{
    Analysis, Correction, best_layout, may_have_layout, unlisted_values, without,
};
use crate::planner::{Deadline, PlanError};
use crate::rules::{Figure, FrameworkChange, Remedy, Requirement, Rule, RuleSet, supported_aspect};

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

/// The cheapest repairs; of equal cost the one with the higher utilisation first. Every one of
/// them was read again from its assignments and solved in time. With whether the time was over before
/// all were looked for.
pub(super) fn repairs(
    instance: &Instance,
    analysis: &Analysis,
    kept: &[Axis],
    (reread, deadline): (&Reread, Deadline),
) -> Result<(Vec<Repair>, bool), PlanError> {
    let mut found: Vec<Repair> = Vec::new();
    let possible = analysis.corrections.iter().filter(|correction| {
        let touches = |&axis: &Axis| correction.dropped.contains(Requirement::listed(axis));
        correction.dropped.len() <= MOST_CHANGES && !kept.iter().any(touches)
    });
    let mut is_cut = false;
    for correction in possible
        .filter(|correction| split(correction.dropped).is_some())
        .take(MOST_CORRECTIONS)
    {
        // None takes more than half of what is left, so that the others have a chance.
        let share = deadline.earlier(Deadline::after(deadline.left().map(|left| left / 2)));
        match add_repairs(instance, correction, &mut found, (reread, share)) {
            Ok(()) => {}
            Err(PlanError::TimeOver(_)) => is_cut = true,
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|one, other| {
        let mfu = |repair: &Repair| repair.evaluated.prediction.mfu.value();
        (one.cost().total_cmp(&other.cost())).then(mfu(other).total_cmp(&mfu(one)))
    });
    found.truncate(MOST_REPAIRS);
    Ok((found, is_cut))
}

/// Adds the ways to do without the requirements of a correction that have a layout.
fn add_repairs(
    instance: &Instance,
    correction: &Correction,
    found: &mut Vec<Repair>,
    (reread, deadline): (&Reread, Deadline),
) -> Result<(), PlanError> {
    for changes in changes(instance, correction, deadline)? {
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

/// What of a correction can be switched, and the one figure that has to change besides. `None` if it
/// needs something that no user can change, such as the number of heads, or two figures.
fn split(dropped: RuleSet) -> Option<(RuleSet, Option<Figure>)> {
    let mut switched = RuleSet::EMPTY;
    let mut figure = None;
    for requirement in dropped.iter() {
        match requirement.rule.definition().remedy {
            Remedy::None => return None,
            Remedy::Instance | Remedy::Framework(_) | Remedy::Supported => {
                switched = switched.with(requirement);
            }
            Remedy::Figure(needed) if figure.is_some_and(|other| other != needed) => return None,
            Remedy::Figure(needed) => figure = Some(needed),
        }
    }
    Some((switched, figure))
}

/// The ways to do without the requirements of a correction with one figure changed, each a list of
/// changes.
fn changes(
    instance: &Instance,
    correction: &Correction,
    deadline: Deadline,
) -> Result<Vec<Vec<Change>>, PlanError> {
    let Some((switched, figure)) = split(correction.dropped) else {
        return Ok(Vec::new());
    };
    let lacks = |it: &Requirement| matches!(it.rule.definition().remedy, Remedy::Supported);
    if switched.iter().any(|it| lacks(&it)) {
        // A framework cannot be changed, but what is asked of it can.
        return match (switched.iter().next(), switched.len(), figure) {
            (Some(only), 1, None) => nearest_supported(instance, only, deadline),
            _ => Ok(Vec::new()),
        };
    }
    let base = switch(instance, switched, &correction.witness);
    let variations: Vec<Option<Change>> = match figure {
        None => vec![None],
        Some(figure) => quantities::variations(&base, figure, (&correction.witness, deadline))?
            .into_iter()
            .map(Some)
            .collect(),
    };
    let mut found = Vec::new();
    for change in variations {
        let varied = change
            .as_ref()
            .map_or_else(|| base.clone(), |change| change.apply(&base));
        // The best layout of the relaxed instance says which values to list.
        let Some(best) = best_layout(&varied, deadline)? else {
            continue;
        };
        let mut others = switched_changes(instance, switched, &best.layout);
        others.extend(change);
        let rows = parts(instance, switched, Rule::Constraint);
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
    if let (Some(axis), None) = (only_degree(switched), figure) {
        found.extend(nearest_value(instance, axis, deadline)?.map(|change| vec![change]));
    }
    Ok(found)
}

/// The one axis of numbers that is switched, and nothing besides.
fn only_degree(switched: RuleSet) -> Option<Axis> {
    let mut requirements = switched.iter();
    match (requirements.next(), requirements.next()) {
        (Some(only), None) => only.axis().filter(|it| it.names().is_none()),
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
    nearest_of(instance, axis, unlisted_values(instance, axis), deadline)
}

/// The nearest value that the framework has instead of one that it lacks.
fn nearest_supported(
    instance: &Instance,
    lacking: Requirement,
    deadline: Deadline,
) -> Result<Vec<Vec<Change>>, PlanError> {
    let aspect = supported_aspect(lacking.part);
    let axis = match aspect {
        Aspect::Axis(axis) => axis,
        _ => Axis::Sharding,
    };
    let has = instance.job.framework.axes.of(aspect);
    let mut values = unlisted_values(instance, axis);
    values.extend(has.0.iter().flatten());
    values.retain(|&code| has.has(code));
    values.sort_unstable();
    values.dedup();
    let change = nearest_of(instance, axis, values, deadline)?;
    Ok(change.into_iter().map(|change| vec![change]).collect())
}

/// The nearest of some values to those that are listed with which there may be a layout: numbers by their
/// ratio, choices by their place.
fn nearest_of(
    instance: &Instance,
    axis: Axis,
    mut others: Vec<u32>,
    deadline: Deadline,
) -> Result<Option<Change>, PlanError> {
    let from = instance.space.values(axis).to_vec();
    let distance = |value: u32| {
        let to = |&listed: &u32| match axis.names() {
            None => (f64::from(value) / f64::from(listed)).ln().abs(),
            Some(_) => f64::from(value.abs_diff(listed)),
        };
        from.iter().map(to).fold(f64::INFINITY, f64::min)
    };
    others.retain(|value| !from.contains(value));
    others.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
    for value in others {
        let change = Change::Values {
            axis,
            from: from.clone(),
            to: vec![value],
        };
        if may_have_layout(&change.apply(instance), deadline)? {
            return Ok(Some(change));
        }
    }
    Ok(None)
}

/// The parts of a rule that are switched, those included that share a position.
fn parts(instance: &Instance, switched: RuleSet, rule: Rule) -> Vec<usize> {
    let parts = 0..rule.parts(instance);
    parts
        .filter(|&part| switched.contains(Requirement { rule, part }))
        .collect()
}

/// The instance without the switched requirements, rules by the framework's keys.
pub(super) fn switch(
    instance: &Instance,
    switched: RuleSet,
    witness: &FlaggedCombination,
) -> Instance {
    let by_key = switched.iter().filter(|it| framework_change(*it).is_some());
    let others = switched.without(by_key.collect());
    let framework = switched.iter().filter_map(framework_change);
    framework.fold(without(instance, others, witness), |changed, change| {
        Change::Framework(change).apply(&changed)
    })
}

/// The key of the framework by which a requirement is dropped.
fn framework_change(requirement: Requirement) -> Option<FrameworkChange> {
    match requirement.rule.definition().remedy {
        Remedy::Framework(change) => Some(change),
        _ => None,
    }
}

/// The changes that the switched requirements stand for, but for constraints: values that the best
/// layout uses, combinations that are permitted, keys of the framework.
fn switched_changes(instance: &Instance, switched: RuleSet, best: &Layout) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut permitted, mut kept) = (Vec::new(), instance.space.forbidden.clone());
    for requirement in switched.iter() {
        if let Some(axis) = requirement.axis() {
            changes.push(Change::Values {
                axis,
                from: instance.space.values(axis).to_vec(),
                to: used_values(axis, best),
            });
        } else if let Some(change) = framework_change(requirement) {
            changes.push(Change::Framework(change));
        }
    }
    for part in parts(instance, switched, Rule::Forbidden) {
        permitted.push(instance.space.forbidden[part].clone());
    }
    if !permitted.is_empty() {
        kept.retain(|assignment| !permitted.contains(assignment));
        changes.push(Change::Permit { permitted, kept });
    }
    changes
}

/// The codes of an axis that a layout uses: one, or several flags of checkpointing.
fn used_values(axis: Axis, layout: &Layout) -> Vec<u32> {
    if axis == Axis::Checkpointing {
        return layout.flags().iter().map(|&flag| flag as u32).collect();
    }
    vec![FlaggedCombination::plain(layout.combination).code(axis)]
}
