//! Answers over several numbers of GPUs, or to demands on time and utilisation.

use serde_json::Value;

use super::answer::{self, Answer};
use super::{Rejected, Stop};
use crate::axis::AxisSet;
use crate::instance::Instance;
use crate::plan::{Evaluated, Infeasibility, Outcome};
use crate::planner::Best;
use crate::planner::objective::{self, Count, Goal, Objective};
use crate::report::document::{
    CountDocument, CountStatus, InfeasibilityDocument, ObjectiveDocument,
};

/// The answer, chosen anew among what it says of each number of GPUs.
pub(super) fn read(
    document: &Value,
    stated: &ObjectiveDocument,
    asked: Instance,
    diverse: AxisSet,
) -> Result<Answer, Stop> {
    let goal = answer::goal(stated, &asked)?;
    let counts = stated.counts.iter().enumerate();
    let counts = counts
        .map(|(at, stated)| count(at, stated, &asked, &goal))
        .collect::<Result<Vec<_>, _>>()?;
    let enough = match objective::enough(&goal, &counts) {
        Some(needed) if goal.objective == Objective::FewestGpus => needed,
        _ => goal.counts.len(),
    };
    if enough != counts.len() {
        let cause = "these are not the numbers of GPUs that decide";
        return Err(Rejected::new("objective.counts", cause).into());
    }
    let counts_are_proven = counts.iter().all(Count::is_proven);
    let deciding = objective::deciding(&goal, &counts);
    let gpus = deciding.map_or(goal.counts[goal.counts.len() - 1], |count| count.gpus);
    let instance = objective::on(&asked, gpus);
    let outcome = answer::outcome(document, &instance, diverse)?;
    let fastest = match deciding.and_then(Count::fastest) {
        Some(fastest) => Some(fastest.clone()),
        None => slow(document, &instance, &counts)?,
    };
    let (is_possible, misses_demands) = match &fastest {
        Some(fastest) if goal.is_met(fastest) => (outcome.plan().is_some(), false),
        Some(_) => (outcome.plan().is_none(), counts_are_proven),
        None => (outcome.plan().is_none(), false),
    };
    let is_proven = matches!(outcome, Outcome::Optimal(_) | Outcome::Infeasible(_));
    if !is_possible || is_proven && !counts_are_proven {
        let cause = "it does not follow from what is known of each number of GPUs";
        return Err(Rejected::new("status", cause).into());
    }
    let outcome = match (outcome, fastest) {
        (Outcome::Infeasible(Infeasibility { proof, .. }), Some(fastest)) => {
            Outcome::Infeasible(objective::missing(&goal, fastest, proof))
        }
        (outcome, _) => outcome,
    };
    Ok(Answer {
        asked,
        instance,
        outcome,
        diverse,
        over: Some((goal, counts)),
        misses_demands,
    })
}

/// Where the last number of GPUs is too slow whatever the layout: the layout that is said to miss the
/// demands by least.
fn slow(
    document: &Value,
    instance: &Instance,
    counts: &[Count],
) -> Result<Option<Evaluated>, Stop> {
    let stated: Option<InfeasibilityDocument> = answer::at(document, "infeasibility")?;
    let is_too_slow = counts.last().is_some_and(|count| count.best.is_none());
    let Some(nearest) = stated
        .and_then(|stated| stated.nearest)
        .filter(|_| is_too_slow)
    else {
        return Ok(None);
    };
    let mut rules = nearest.violations.iter();
    if !rules.any(|violation| violation.rule == objective::DEADLINE) {
        return Ok(None);
    }
    let place = "infeasibility.nearest.layout";
    answer::legal(instance, nearest.layout, place).map(Some)
}

/// What a document says of one number of GPUs, its figures computed anew.
fn count(at: usize, stated: &CountDocument, asked: &Instance, goal: &Goal) -> Result<Count, Stop> {
    let place = |key: &str| format!("objective.counts[{at}].{key}");
    let gpus = stated.gpus;
    if goal.counts.get(at) != Some(&gpus) {
        let cause = "it is not the next of the numbers that were to be tried";
        return Err(Rejected::new(place("gpus"), cause).into());
    }
    let instance = objective::on(asked, gpus);
    let least_step_time = objective::least_step_time(&instance.job);
    let layout = || answer::legal(&instance, stated.layout.clone(), &place("layout"));
    let best = match stated.status {
        CountStatus::Optimal => Some(Best::Optimal(layout()?)),
        CountStatus::Feasible => Some(Best::Feasible(layout()?)),
        CountStatus::Infeasible => Some(Best::Infeasible),
        CountStatus::Unknown => Some(Best::Unknown),
        CountStatus::TooSlow => None,
    };
    let longest = goal.longest_step();
    let is_too_slow = longest.is_some_and(|longest| least_step_time > longest);
    if is_too_slow != best.is_none() {
        let cause = "whether it is too slow follows from the matrix products alone";
        return Err(Rejected::new(place("status"), cause).into());
    }
    Ok(Count {
        gpus,
        least_step_time,
        best,
    })
}
