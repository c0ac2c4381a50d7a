//! Minimum-weight hitting set: the lightest elements of which every set has one.
//!
//! Problem SP8 of Garey and Johnson, *Computers and Intractability* (1979); the same as set covering
//! with the roles of rows and columns exchanged. It explains why nothing is feasible: when every
//! candidate breaks some rules, the sets of rules that are broken together are the ways to repair, and
//! a hitting set of them is a smallest set of rules that clash ([`minimal_masks`] leaves only the
//! repairs that matter).
//!
//! # Sets
//! * `E`: elements; `S`: the sets to hit, each a subset of `E`.
//!
//! # Parameters
//! * `w_e > 0`: integer weight of an element.
//!
//! # Variables
//! * `y_e in {0,1}`: element `e` is taken.
//!
//! # Objective
//! `weight: minimise sum_e w_e y_e`. Among equal weights the fewest elements win, then the
//! lexicographically first ones; each by a further run with what is decided fixed.
//!
//! # Constraints
//! * `hit(s)`: `sum_{e in s} y_e >= 1` for every set.
//!
//! [`oracle`] answers the same by branching on the elements of the first set that is not hit.

use crate::model::{ColumnId, Direction, Model, Sense};
use crate::solve::{self, Outcome, Point, SolveError, SolverOptions, Statistics};

#[cfg(test)]
mod tests;

/// A hitting-set problem; see the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// Weight of each element, positive.
    pub weights: Vec<i64>,
    /// The sets, each a list of element indices. An empty set makes the problem infeasible.
    pub sets: Vec<Vec<usize>>,
}

/// A set of elements that hits every set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The elements in ascending order.
    pub elements: Vec<usize>,
    /// Sum of their weights.
    pub weight: i64,
}

/// The program.
///
/// # Panics
/// When a set has an element without a weight.
#[must_use]
pub fn build(data: &Data) -> Model {
    let (mut model, elements) = columns_and_rows(data);
    let weights = data.weights.iter().map(|&weight| weight as f64);
    model.set_objective("weight", elements.into_iter().zip(weights), 0.0);
    model
}

/// Finds the lightest hitting set, of equals the one with fewest elements, of these the
/// lexicographically first.
///
/// # Errors
/// When the solver fails.
///
/// # Panics
/// When a set has an element without a weight.
pub fn solve(data: &Data, options: &SolverOptions) -> Result<Outcome<Solution>, SolveError> {
    let options = SolverOptions {
        absolute_gap: 0.5,
        ..*options
    };
    let (mut model, elements) = columns_and_rows(data);
    let weights: Vec<f64> = data.weights.iter().map(|&weight| weight as f64).collect();
    let ones = vec![1.0; elements.len()];
    let mut statistics = Statistics::default();
    let mut best = None;
    for (name, coefficients) in [("weight", &weights), ("count", &ones)] {
        let terms: Vec<_> = elements
            .iter()
            .copied()
            .zip(coefficients.iter().copied())
            .collect();
        model.set_objective(name, terms.clone(), 0.0);
        let outcome = solve::solve(&model, &options)?;
        statistics.add(outcome.statistics());
        let Outcome::Optimal { solution, .. } = outcome else {
            return Ok(stopped(data, &elements, outcome, best, statistics));
        };
        let value: f64 = (terms.iter())
            .map(|&(column, a)| a * solution.value(column))
            .sum();
        model.add_row(format!("least_{name}"), terms, Sense::AtMost, value);
        best = Some(decode(data, &elements, &solution));
    }
    let Some(mut best) = best else {
        return Ok(Outcome::Infeasible { statistics });
    };
    // Takes the smallest element that some best set has, then the next, and so on.
    for element in 0..data.weights.len() {
        if !best.elements.contains(&element) {
            let mut trial = model.clone();
            trial.add_row("take", [(elements[element], 1.0)], Sense::AtLeast, 1.0);
            let outcome = solve::solve(&trial, &options)?;
            statistics.add(outcome.statistics());
            match outcome.solution() {
                Some(point) => best = decode(data, &elements, point),
                None => continue,
            }
        }
        model.add_row("take", [(elements[element], 1.0)], Sense::AtLeast, 1.0);
    }
    Ok(Outcome::Optimal {
        solution: best,
        statistics,
    })
}

/// The same by branching; shares nothing with the program.
#[must_use]
pub fn oracle(data: &Data) -> Option<Solution> {
    let mut best = None;
    branch(data, &mut Vec::new(), 0, &mut best);
    best.map(|(weight, _, elements)| Solution { elements, weight })
}

type Key = (i64, usize, Vec<usize>);

fn branch(data: &Data, taken: &mut Vec<usize>, weight: i64, best: &mut Option<Key>) {
    if best
        .as_ref()
        .is_some_and(|best| (weight, taken.len()) > (best.0, best.1))
    {
        return;
    }
    let open = data
        .sets
        .iter()
        .find(|set| !set.iter().any(|element| taken.contains(element)));
    let Some(open) = open else {
        let mut elements = taken.clone();
        elements.sort_unstable();
        let key = (weight, elements.len(), elements);
        if best.as_ref().is_none_or(|best| key < *best) {
            *best = Some(key);
        }
        return;
    };
    for &element in open {
        taken.push(element);
        branch(data, taken, weight + data.weights[element], best);
        taken.pop();
    }
}

/// The masks of which no other mask is a part, each once, those with fewest bits first, then the
/// smallest numbers.
#[must_use]
pub fn minimal_masks(masks: &[u64]) -> Vec<u64> {
    let mut sorted = masks.to_vec();
    sorted.sort_unstable_by_key(|mask| (mask.count_ones(), *mask));
    sorted.dedup();
    let mut minimal: Vec<u64> = Vec::new();
    for mask in sorted {
        if !minimal.iter().any(|part| part & mask == *part) {
            minimal.push(mask);
        }
    }
    minimal
}

/// The bits of a mask in ascending order, as a set of [`Data`].
#[must_use]
pub fn elements_of(mask: u64) -> Vec<usize> {
    (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
}

fn columns_and_rows(data: &Data) -> (Model, Vec<ColumnId>) {
    let mut model = Model::new("hitting set", Direction::Minimise);
    let elements: Vec<_> = (0..data.weights.len())
        .map(|element| model.add_binary(format!("y({element})")))
        .collect();
    for (index, set) in data.sets.iter().enumerate() {
        let mut set = set.clone();
        set.sort_unstable();
        set.dedup();
        let terms = set.iter().map(|&element| (elements[element], 1.0));
        model.add_row(format!("hit({index})"), terms, Sense::AtLeast, 1.0);
    }
    (model, elements)
}

fn decode(data: &Data, columns: &[ColumnId], point: &Point) -> Solution {
    let elements: Vec<usize> = (0..columns.len())
        .filter(|&element| point.integer(columns[element]) == 1)
        .collect();
    Solution {
        weight: elements.iter().map(|&element| data.weights[element]).sum(),
        elements,
    }
}

/// What is known when a run ends without an optimum. After the first run the weight is proven.
fn stopped(
    data: &Data,
    elements: &[ColumnId],
    outcome: Outcome<Point>,
    best: Option<Solution>,
    statistics: Statistics,
) -> Outcome<Solution> {
    let Some(solution) = best else {
        return outcome.map(|point| decode(data, elements, &point));
    };
    Outcome::Feasible {
        bound: solution.weight as f64,
        gap: 0.0,
        solution,
        statistics,
    }
}
