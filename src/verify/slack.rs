//! Rows of the user's own that play no part: the answer is proven without them.
//!
//! As with figures there is one way to state rows, so that none can be changed unnoticed:
//!
//! - a row without which every statement is the same is left out,
//! - and so is a term that contributes nothing to any of the stated differences;
//! - of decisions that come to the same in every difference the first by name is stated;
//! - of comparisons with the same effect the first of `at_most`, `at_least`, `equals` is stated.

use crate::axis::Axis;
use crate::constraint::{Comparison, Constraint, Decision};
use crate::instance::Instance;

use super::budget::{Budget, TooLarge};
use super::optimum::best;
use super::rows;
use super::rules::Codes;
use super::space::{table, walk};
use super::statement::{Claim, Settlement, Statement};

/// The comparisons in order.
const COMPARISONS: [Comparison; 3] = [Comparison::AtMost, Comparison::AtLeast, Comparison::Equals];

/// Left side minus right side of a row as a document states it: of one over discrete choices for every
/// combination of the values of its axes, of another the least and the most in every combination whose
/// costs are stated. `None` if there are more than `most`.
pub(super) fn differences(
    statement: &Statement,
    row: &Constraint,
    most: usize,
) -> Option<Vec<i64>> {
    let instance = statement.claim.instance;
    if let Some(axes) = rows::axes(row) {
        let of = |codes: &Codes| rows::difference(row, &instance.job, codes);
        return table(instance, &axes, most, of);
    }
    let ranges = ranges(statement, row);
    (ranges.len() <= most).then_some(ranges)
}

fn ranges(statement: &Statement, row: &Constraint) -> Vec<i64> {
    let examples = statement.examples.iter();
    let ranges = examples.filter_map(|example| example.open).map(|index| {
        let job = &statement.claim.instance.job;
        let row = rows::of_cell(row, 0, job, &statement.open[index].cell);
        let (least, most) = statement.problem(index).range(&row);
        [least, most]
    });
    ranges.flatten().collect()
}

/// Why a row, a term or a forbidden combination is refused that says nothing of its own.
pub(super) const LEAVE_OUT: &str = "has no effect and has to be left out";

/// What is stated of rows otherwise than it has to be, as `(place, cause)`.
pub(super) fn faults(
    statement: &Statement,
    budget: &Budget,
) -> Result<Vec<(String, String)>, TooLarge> {
    let stated = &statement.claim.instance.space.constraints;
    let mut faults = Vec::new();
    for (index, row) in stated.iter().enumerate() {
        let place = format!("constraints[{index}]");
        match remedy(statement, index, budget)? {
            None => {}
            Some(Remedy::LeaveOut) => faults.push((place, LEAVE_OUT.to_owned())),
            Some(Remedy::Compare(_)) => {
                let cause = "has the same effect with an earlier comparison";
                faults.push((place, cause.to_owned()));
            }
            Some(Remedy::Rename(term, decision)) => {
                let place = format!("{place}.terms[{}]", row.terms[term].decision);
                faults.push((place, format!("comes to the same as `{decision}`")));
            }
            Some(Remedy::WithoutTerm(term)) => {
                let decision = row.terms[term].decision;
                let place = format!("{place}.terms[{decision}]");
                faults.push((place, LEAVE_OUT.to_owned()));
            }
        }
    }
    Ok(faults)
}

/// How a row would have to be stated.
#[derive(Debug, Clone, Copy)]
enum Remedy {
    LeaveOut,
    Rename(usize, Decision),
    WithoutTerm(usize),
    Compare(Comparison),
}

fn remedy(
    statement: &Statement,
    index: usize,
    budget: &Budget,
) -> Result<Option<Remedy>, TooLarge> {
    let stated = &statement.claim.instance.space.constraints;
    let mut others = stated.clone();
    others.remove(index);
    if is_same_with(statement, others, Some(index), budget)? {
        return Ok(Some(Remedy::LeaveOut));
    }
    if let Some(term) = idle_term(statement, &stated[index]) {
        return Ok(Some(Remedy::WithoutTerm(term)));
    }
    for (term, decision) in earlier_decisions(statement, &stated[index]) {
        let mut others = stated.clone();
        others[index].terms[term].decision = decision;
        if is_same_with(statement, others, None, budget)? {
            return Ok(Some(Remedy::Rename(term, decision)));
        }
    }
    let own = stated[index].comparison;
    for comparison in COMPARISONS.into_iter().take_while(|&other| other != own) {
        let mut others = stated.clone();
        others[index].comparison = comparison;
        if is_same_with(statement, others, None, budget)? {
            return Ok(Some(Remedy::Compare(comparison)));
        }
    }
    Ok(None)
}

/// The first term that contributes nothing to the differences.
fn idle_term(statement: &Statement, row: &Constraint) -> Option<usize> {
    let is_idle = |&term: &usize| {
        let alone = Constraint {
            terms: vec![row.terms[term]],
            right: 0,
            ..row.clone()
        };
        let differences = match rows::axes(row) {
            Some(_) => differences(statement, &alone, usize::MAX).unwrap_or_default(),
            None => ranges(statement, &alone),
        };
        differences.iter().all(|&difference| difference == 0)
    };
    (0..row.terms.len()).find(is_idle)
}

/// Decisions that are first by name and that a row does not have yet, with which its differences are the
/// same: instead of the term at the position.
fn earlier_decisions(statement: &Statement, row: &Constraint) -> Vec<(usize, Decision)> {
    let degrees = Axis::ALL.into_iter().filter(|axis| axis.names().is_none());
    let mut decisions: Vec<Decision> = degrees.map(Decision::Degree).collect();
    decisions.extend([
        Decision::MicroBatches,
        Decision::Layers(0),
        Decision::LayersLast,
        Decision::CheckpointedLayers,
    ]);
    decisions.sort_by_cached_key(ToString::to_string);
    let all = differences(statement, row, usize::MAX);
    let mut found = Vec::new();
    for (index, term) in row.terms.iter().enumerate() {
        for &decision in &decisions {
            let is_earlier = decision.to_string() < term.decision.to_string();
            let is_new = !row.terms.iter().any(|other| other.decision == decision);
            let mut renamed = row.clone();
            renamed.terms[index].decision = decision;
            if is_earlier && is_new && differences(statement, &renamed, usize::MAX) == all {
                found.push((index, decision));
            }
        }
    }
    found
}

/// Whether every statement is the same with other rows, of which the one at `left_out` is not there.
fn is_same_with(
    statement: &Statement,
    rows: Vec<Constraint>,
    left_out: Option<usize>,
    budget: &Budget,
) -> Result<bool, TooLarge> {
    let mut instance: Instance = statement.claim.instance.clone();
    instance.space.constraints = rows;
    let walked = walk(&instance, statement.claim.formulation, budget)?;
    if walked.open != statement.open {
        return Ok(false);
    }
    let claim = Claim {
        instance: &instance,
        ..statement.claim
    };
    let mut other = Statement::new(claim, walked.open, budget)?;
    other.settle_all(budget)?;
    let before = |settlement: &Settlement| match (*settlement, left_out) {
        (Settlement::Excluded(row, missed), Some(left_out)) if row as usize >= left_out => {
            Settlement::Excluded(row + 1, missed)
        }
        (settlement, _) => settlement,
    };
    let settled = other.settlements.iter().map(before);
    if !settled.eq(statement.settlements.iter().copied()) {
        return Ok(false);
    }
    match statement.winner_index {
        Some(index) if claim.complete => {
            let best = |statement: &Statement| best(&statement.problem(index), budget);
            Ok(best(statement)? == best(&other)?)
        }
        _ => Ok(true),
    }
}

/// The rows as they have to be stated after one change, if they have to be stated otherwise.
pub(crate) fn simpler(
    statement: &Statement,
    budget: &Budget,
) -> Result<Option<Vec<Constraint>>, TooLarge> {
    let stated = &statement.claim.instance.space.constraints;
    for index in 0..stated.len() {
        let mut rows = stated.clone();
        match remedy(statement, index, budget)? {
            None => continue,
            Some(Remedy::LeaveOut) => {
                rows.remove(index);
            }
            Some(Remedy::WithoutTerm(term)) => {
                rows[index].terms.remove(term);
            }
            Some(Remedy::Rename(term, decision)) => rows[index].terms[term].decision = decision,
            Some(Remedy::Compare(comparison)) => rows[index].comparison = comparison,
        }
        return Ok(Some(rows));
    }
    Ok(None)
}
