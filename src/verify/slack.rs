//! Rows of the user's own that play no part: the answer is proven without them.
//!
//! As with figures there is one way to state rows, so that none can be changed unnoticed:
//!
//! - a row without which every statement is the same is left out,
//! - and so is a term that contributes nothing to any of the stated differences;
//! - of comparisons with the same effect the first of `at_most`, `at_least`, `equals` is stated.

use crate::constraint::{Comparison, Constraint};
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

/// What is stated of rows otherwise than it has to be, as `(place, cause)`.
pub(super) fn faults(
    statement: &Statement,
    budget: &Budget,
) -> Result<Vec<(String, &'static str)>, TooLarge> {
    let stated = &statement.claim.instance.space.constraints;
    let mut faults = Vec::new();
    for (index, row) in stated.iter().enumerate() {
        let place = format!("constraints[{index}]");
        match remedy(statement, index, budget)? {
            None => {}
            Some(Remedy::LeaveOut) => faults.push((place, "has no effect and has to be left out")),
            Some(Remedy::Compare(_)) => {
                faults.push((place, "has the same effect with an earlier comparison"));
            }
            Some(Remedy::WithoutTerm(term)) => {
                let decision = row.terms[term].decision;
                let place = format!("{place}.terms[{decision}]");
                faults.push((place, "has no effect and has to be left out"));
            }
        }
    }
    Ok(faults)
}

/// How a row would have to be stated.
#[derive(Debug, Clone, Copy)]
enum Remedy {
    LeaveOut,
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
            Some(Remedy::Compare(comparison)) => rows[index].comparison = comparison,
        }
        return Ok(Some(rows));
    }
    Ok(None)
}
