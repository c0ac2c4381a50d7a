//! The one way to state a job: nothing in a certificate could be changed without a statement changing.
//!
//! - A figure that might as well be 1 in its unit is left out, and so is a measured run without effect.
//! - A figure that could be a hundredth larger or smaller without effect is *weak*: it is stated with
//!   the fewest digits, and of those nearest to 0, that have the same effect.
//! - Of numbers of GPUs a node with the same effect the smallest is stated.
//! - Of names with the same effect the first is stated.
//!
//! Every other figure is stated in full.

use crate::certificate::job::ABSENT;
use crate::certificate::learned::DISCREPANCY;
use crate::certificate::parameters::{NAMED, PARAMETERS, Range, Scope};
use crate::instance::Instance;
use crate::job::Job;

use super::budget::{Budget, TooLarge};
use super::decimal;
use super::effect::{Probe, changes_rules, is_same, silent};
use super::statement::{Claim, Statement};

/// By how much it is changed, to see whether it is weak.
const SLIGHTLY: [f64; 2] = [0.99, 1.01];
/// Rounds of simplification: each may open the way for another. The last changes nothing.
const ROUNDS: usize = 20;

/// Figures that may be left out.
fn optional() -> impl Iterator<Item = usize> {
    (0..PARAMETERS.len()).filter(|&index| !PARAMETERS[index].range.is_required())
}

/// The figures among some that might as well be [`ABSENT`].
fn without_effect(
    statement: &Statement,
    job: &Job,
    figures: impl Iterator<Item = usize>,
    budget: &Budget,
) -> Result<Vec<usize>, TooLarge> {
    let probes: Vec<Probe> = figures.map(|index| Probe::Figure(index, ABSENT)).collect();
    let silent = silent(statement, job, &probes, budget)?.into_iter();
    let figure = |probe| match probe {
        Probe::Figure(index, _) => Some(index),
        _ => None,
    };
    let mut found: Vec<usize> = silent.filter_map(figure).collect();
    found.sort_unstable();
    Ok(found)
}

/// The figures that are stated and weak, or of which the smallest is stated.
fn weak(
    statement: &Statement,
    job: &Job,
    stated: impl Iterator<Item = usize>,
    budget: &Budget,
) -> Result<Vec<usize>, TooLarge> {
    let slightly = |index: usize| {
        let figure = (PARAMETERS[index].get)(job);
        SLIGHTLY.map(|factor| match PARAMETERS[index].range {
            Range::Size(_) if factor < 1.0 => figure - 1.0,
            Range::Size(_) => figure + 1.0,
            _ => figure * factor,
        })
    };
    // There is nothing simpler than 0.
    let figure = |index: usize| (PARAMETERS[index].get)(job);
    let stated: Vec<usize> = stated.filter(|&index| figure(index) != 0.0).collect();
    let possible = |index: usize, value: f64| PARAMETERS[index].range.contains(value);
    let probes = stated.iter().flat_map(|&index| {
        let values = slightly(index).into_iter();
        values
            .filter(move |&value| possible(index, value))
            .map(move |value| Probe::Figure(index, value))
    });
    let silent = silent(statement, job, &probes.collect::<Vec<_>>(), budget)?;
    let is_weak = |index: &usize| {
        let is_own = |probe: &Probe| matches!(probe, Probe::Figure(other, _) if other == index);
        matches!(PARAMETERS[*index].range, Range::Whole(_)) || silent.iter().any(is_own)
    };
    Ok(stated.into_iter().filter(is_weak).collect())
}

/// Values that would be stated rather than `value` if they had the same effect: simpler ones first.
fn simpler(range: Range, value: f64) -> Vec<f64> {
    let values: Vec<f64> = match range {
        Range::Count(_) | Range::Size(_) => vec![value - 1.0],
        Range::Whole(_) => (1..value as u32).map(f64::from).collect(),
        _ => {
            let before = decimal::before(value);
            let zero = before.map(|_| 0.0);
            let shorter = decimal::shorter(value);
            zero.into_iter().chain(shorter).chain(before).collect()
        }
    };
    let possible = |other: &f64| range.contains(*other);
    values.into_iter().filter(possible).collect()
}

/// The first simpler value of a figure with the same effect.
fn simplification(
    statement: &Statement,
    job: &Job,
    index: usize,
    budget: &Budget,
) -> Result<Option<f64>, TooLarge> {
    let parameter = &PARAMETERS[index];
    for value in simpler(parameter.range, (parameter.get)(job)) {
        if !silent(statement, job, &[Probe::Figure(index, value)], budget)?.is_empty() {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// The first name of a choice that has the same effect as the job's, if that is an earlier one.
fn earlier_name(
    statement: &Statement,
    job: &Job,
    index: usize,
    budget: &Budget,
) -> Result<Option<usize>, TooLarge> {
    let choice = &NAMED[index];
    for name in 0..(choice.get)(job) {
        let probe = Probe::Name(index, name);
        let changes = match choice.scope {
            Scope::Rules => changes_rules(statement, job, probe, budget)?,
            Scope::Costs => silent(statement, job, &[probe], budget)?.is_empty(),
        };
        if !changes {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Measured runs without effect by themselves; `None` where all together have none.
fn silent_runs(
    statement: &Statement,
    job: &Job,
    budget: &Budget,
) -> Result<Option<Vec<usize>>, TooLarge> {
    let Some(learned) = &job.cluster.discrepancy else {
        return Ok(Some(Vec::new()));
    };
    if !silent(statement, job, &[Probe::Runs], budget)?.is_empty() {
        return Ok(None);
    }
    let probes: Vec<Probe> = (0..learned.weights.len()).map(Probe::Run).collect();
    let silent = silent(statement, job, &probes, budget)?.into_iter();
    let run = |probe| match probe {
        Probe::Run(index) => Some(index),
        _ => None,
    };
    Ok(Some(silent.filter_map(run).collect()))
}

/// What is stated otherwise than it has to be, as `(key, cause)`. `stated` has one entry for each figure.
pub(super) fn faults(
    statement: &Statement,
    stated: &[bool],
    budget: &Budget,
) -> Result<Vec<(String, String)>, TooLarge> {
    const LEAVE_OUT: &str = "has no effect and has to be left out";
    let job = &statement.claim.instance.job;
    let mut faults = Vec::new();
    let mut add = |key: &str, cause: String| faults.push((key.to_owned(), cause));
    let figures = || optional().filter(|&index| stated[index]);
    for index in without_effect(statement, job, figures(), budget)? {
        add(PARAMETERS[index].key, LEAVE_OUT.to_owned());
    }
    for index in weak(statement, job, figures(), budget)? {
        if let Some(value) = simplification(statement, job, index, budget)? {
            let cause = format!("has the same effect as `{value}`, which has to be stated");
            add(PARAMETERS[index].key, cause);
        }
    }
    match silent_runs(statement, job, budget)? {
        None => add(DISCREPANCY, LEAVE_OUT.to_owned()),
        Some(runs) => {
            for run in runs {
                add(
                    &format!("{DISCREPANCY}.points[{run}]"),
                    LEAVE_OUT.to_owned(),
                );
            }
        }
    }
    for (index, choice) in NAMED.iter().enumerate() {
        if let Some(name) = earlier_name(statement, job, index, budget)? {
            let name = (choice.names)()[name];
            let cause = format!("has the same effect as `{name}`, which has to be stated");
            add(choice.key, cause);
        }
    }
    Ok(faults)
}

/// Leaves out the figures without effect, all at once or one after the other.
fn leave_out(
    statement: &Statement,
    job: &mut Job,
    pace: Pace,
    budget: &Budget,
) -> Result<(), TooLarge> {
    let apply = |job: &mut Job, index: usize| Probe::Figure(index, ABSENT).apply(job);
    for index in without_effect(statement, job, optional(), budget)? {
        let still = |job: &Job| without_effect(statement, job, std::iter::once(index), budget);
        if pace == Pace::AllAtOnce || !still(job)?.is_empty() {
            apply(job, index);
        }
    }
    Ok(())
}

/// Leaves out measured runs without effect, one after the other.
fn leave_out_runs(statement: &Statement, job: &mut Job, budget: &Budget) -> Result<(), TooLarge> {
    let Some(runs) = silent_runs(statement, job, budget)? else {
        Probe::Runs.apply(job);
        return Ok(());
    };
    for run in runs {
        if !silent(statement, job, &[Probe::Run(run)], budget)?.is_empty() {
            Probe::Run(run).apply(job);
        }
    }
    if let Some(learned) = &mut job.cluster.discrepancy {
        let weights = learned.weights.clone();
        let mut has_weight = weights.iter().map(|&weight| weight != 0.0);
        learned.points.retain(|_| has_weight.next().unwrap_or(true));
        learned.weights.retain(|&weight| weight != 0.0);
    }
    Ok(())
}

/// How figures without effect are left out: those that have none by themselves may have one together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    AllAtOnce,
    OneByOne,
}

/// The job of the statement without the faults that the checker would find.
fn simplify(statement: &Statement, pace: Pace, budget: &Budget) -> Result<Job, TooLarge> {
    let mut job = statement.claim.instance.job.clone();
    for index in 0..NAMED.len() {
        if let Some(name) = earlier_name(statement, &job, index, budget)? {
            Probe::Name(index, name).apply(&mut job);
        }
    }
    leave_out_runs(statement, &mut job, budget)?;
    leave_out(statement, &mut job, pace, budget)?;
    let stated: Vec<usize> = optional().filter(|&index| is_stated(&job, index)).collect();
    for index in weak(statement, &job, stated.into_iter(), budget)? {
        while let Some(value) = simplification(statement, &job, index, budget)? {
            Probe::Figure(index, value).apply(&mut job);
        }
    }
    Ok(job)
}

/// Whether a document states the figure of a job.
pub(crate) fn is_stated(job: &Job, index: usize) -> bool {
    PARAMETERS[index].range.is_required() || (PARAMETERS[index].get)(job) != ABSENT
}

/// The job as it has to be stated. `None` if there seems to be no such job.
///
/// The last round starts from that job and changes nothing: it finds what the checker will find.
pub(crate) fn simplest(statement: &Statement, budget: &Budget) -> Result<Option<Job>, TooLarge> {
    let mut job = simplify(statement, Pace::AllAtOnce, budget)?;
    for _ in 1..ROUNDS {
        let instance = Instance {
            job: job.clone(),
            ..statement.claim.instance.clone()
        };
        let claim = Claim {
            instance: &instance,
            ..statement.claim
        };
        let restated = statement.restated(claim, budget)?;
        let next = if is_same(statement, &restated, budget)? {
            simplify(&restated, Pace::AllAtOnce, budget)?
        } else {
            simplify(statement, Pace::OneByOne, budget)?
        };
        if next == job {
            return Ok(Some(job));
        }
        job = next;
    }
    Ok(None)
}
