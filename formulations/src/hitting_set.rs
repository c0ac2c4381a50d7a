//! Minimum hitting set: the fewest elements of which every set has one.
//!
//! Problem SP8 of Garey and Johnson, *Computers and Intractability* (1979); the same as set covering
//! with the roles of rows and columns exchanged. It explains why nothing is feasible: when every
//! candidate breaks some rules, the sets of rules that are broken together are the ways to repair, and
//! a hitting set of them is a smallest set of rules that clash.
//!
//! # Sets
//! * `E`: elements, the bits of a mask; `S`: the sets to hit, each a mask.
//!
//! # Variables
//! * `y_e in {0,1}`: element `e` is taken.
//!
//! # Objective
//! `count: minimise sum_e y_e`. Among equal counts the lexicographically first elements win, each by a
//! further run with what is decided fixed.
//!
//! # Constraints
//! * `hit(s)`: `sum_{e in s} y_e >= 1` for every set.

use crate::model::{ColumnId, Direction, Model, Sense};
use crate::solve::{self, SolveError, SolverOptions};

#[cfg(test)]
mod tests;

/// A hitting-set problem; see the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// The sets, one bit an element. An empty set makes the problem infeasible.
    pub sets: Vec<u128>,
}

/// The program.
#[must_use]
pub fn build(data: &Data) -> Model {
    program(data).0
}

/// The fewest elements that hit every set, of equals the lexicographically first; `None` if a set is
/// empty.
///
/// # Errors
/// When the solver fails.
pub fn solve(data: &Data) -> Result<Option<u128>, SolveError> {
    let (mut model, columns) = program(data);
    let Some(mut best) = taken(&model, &columns)? else {
        return Ok(None);
    };
    let all = columns.iter().map(|&(_, column)| (column, 1.0));
    model.add_row("least", all, Sense::AtMost, f64::from(best.count_ones()));
    // Takes the smallest element that some best set has, then the next, and so on.
    for &(element, column) in &columns {
        let mut with = model.clone();
        with.add_row("take", [(column, 1.0)], Sense::AtLeast, 1.0);
        if best >> element & 1 == 0 {
            let Some(other) = taken(&with, &columns)? else {
                continue;
            };
            best = other;
        }
        model = with;
    }
    Ok(Some(best))
}

/// The program, and the column of each element that some set has.
fn program(data: &Data) -> (Model, Vec<(u32, ColumnId)>) {
    let mut model = Model::new("hitting set", Direction::Minimise);
    let used = data.sets.iter().fold(0, |used, set| used | set);
    let elements = (0..u128::BITS).filter(|element| used >> element & 1 == 1);
    let columns: Vec<(u32, ColumnId)> = elements
        .map(|element| (element, model.add_binary(format!("y({element})"))))
        .collect();
    let of = |set: u128| {
        let own = columns
            .iter()
            .filter(move |(element, _)| set >> element & 1 == 1);
        own.map(|&(_, column)| (column, 1.0))
    };
    for (index, &set) in data.sets.iter().enumerate() {
        model.add_row(format!("hit({index})"), of(set), Sense::AtLeast, 1.0);
    }
    model.set_objective("count", of(used), 0.0);
    (model, columns)
}

/// The elements that a best solution takes, if there is one.
fn taken(model: &Model, columns: &[(u32, ColumnId)]) -> Result<Option<u128>, SolveError> {
    let options = SolverOptions {
        absolute_gap: 0.5,
        ..SolverOptions::default()
    };
    let outcome = solve::solve(model, &options)?;
    Ok(outcome.solution().map(|point| {
        let taken = columns
            .iter()
            .filter(|(_, column)| point.integer(*column) == 1);
        taken.fold(0, |taken, (element, _)| taken | 1 << element)
    }))
}
