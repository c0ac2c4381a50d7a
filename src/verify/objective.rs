//! Answers over several numbers of GPUs, or to demands on time and utilisation.

use serde_json::Value;

use super::answer::{self, Answer, Asked};
use super::{Rejected, Stop};
use crate::instance::Instance;
use crate::plan::{Evaluated, Infeasibility, Outcome};
use crate::planner::Best;
use crate::planner::objective::{self, Count, Goal, Objective};

/// What is said of a number of GPUs.
pub(super) struct Stated<'a> {
    pub(super) place: String,
    pub(super) instance: Instance,
    pub(super) status: &'static str,
    pub(super) layout: Option<&'a Evaluated>,
}

impl<'a> Stated<'a> {
    pub(super) fn new(at: usize, count: &'a Count, asked: &Instance) -> Self {
        Self {
            place: format!("objective.counts[{at}]"),
            instance: objective::on(asked, count.gpus),
            status: count.best.as_ref().map_or("too-slow", Best::status),
            layout: count.fastest(),
        }
    }
}

/// The answer, chosen anew among what it says of each number of GPUs.
pub(super) fn read(document: &Value, asked: &Asked, goal: Goal) -> Result<Answer, Stop> {
    let list = document["objective"]["counts"].as_array();
    let list = list.ok_or_else(|| Rejected::new("objective.counts", "it is missing"))?;
    let counts = list.iter().enumerate();
    let counts = counts
        .map(|(at, stated)| count(at, stated, asked, &goal))
        .collect::<Result<Vec<_>, _>>()?;
    if !is_enough(&goal, &counts) {
        let cause = "these are not the numbers of GPUs that decide";
        return Err(Rejected::new("objective.counts", cause).into());
    }
    let counts_are_proven = counts.iter().all(Count::is_proven);
    let deciding = objective::deciding(&goal, &counts);
    let gpus = deciding.map_or(goal.counts[goal.counts.len() - 1], |count| count.gpus);
    let instance = objective::on(&asked.instance, gpus);
    let outcome = answer::outcome(document, &instance)?;
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
    let over = (goal, counts);
    Ok(Answer::over(asked, over, instance, outcome, misses_demands))
}

/// Where the last number of GPUs is too slow whatever the layout: the layout that is said to miss the
/// demands by least.
fn slow(
    document: &Value,
    instance: &Instance,
    counts: &[Count],
) -> Result<Option<Evaluated>, Stop> {
    let nearest = &document["infeasibility"]["nearest"];
    let is_too_slow = counts.last().is_some_and(|count| count.best.is_none());
    let rules = nearest["violations"].as_array().into_iter().flatten();
    let mut rules = rules.filter_map(|violation| violation["rule"].as_str());
    let is_slow = rules.any(|rule| rule == objective::DEADLINE);
    if !is_too_slow || !is_slow {
        return Ok(None);
    }
    let place = "infeasibility.nearest.layout";
    answer::legal(instance, &nearest["layout"], place).map(Some)
}

/// Whether an answer says something of every number of GPUs that it has to.
fn is_enough(goal: &Goal, counts: &[Count]) -> bool {
    let all = goal.counts.iter();
    all.zip(counts).all(|(gpus, count)| *gpus == count.gpus)
        && match objective::enough(goal, counts) {
            Some(needed) if goal.objective == Objective::FewestGpus => needed == counts.len(),
            _ => counts.len() == goal.counts.len(),
        }
}

/// What a document says of one number of GPUs, its figures computed anew.
fn count(at: usize, stated: &Value, asked: &Asked, goal: &Goal) -> Result<Count, Stop> {
    let place = |key: &str| format!("objective.counts[{at}].{key}");
    let gpus = answer::count(&stated["gpus"])
        .ok_or_else(|| Rejected::new(place("gpus"), "it is missing or not possible"))?;
    let instance = objective::on(&asked.instance, gpus);
    let least_step_time = objective::least_step_time(&instance.job);
    let layout = || answer::legal(&instance, &stated["layout"], &place("layout"));
    let best = match answer::text_at(stated, "status")? {
        "optimal" => Some(Best::Optimal(layout()?)),
        "feasible" => Some(Best::Feasible(layout()?)),
        "infeasible" => Some(Best::Infeasible),
        "unknown" => Some(Best::Unknown),
        "too-slow" => None,
        _ => return Err(Rejected::new(place("status"), "there is no such status").into()),
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
