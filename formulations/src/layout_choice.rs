//! Layout choice: select one item of a product of axes, under linear rows, for the largest profit.
//!
//! A *multiple-choice* selection problem (Nauss 1978; Kellerer, Pferschy and Pisinger, *Knapsack
//! Problems*, 2004, chapter 11, with a single class), in which a product of one-hot axes names the
//! items.
//!
//! # Sets
//! * `A`: axes; `V_a`: values of axis `a`.
//! * `C`: items, each with one value `v(c,a)` on every axis. Not every combination need be an item,
//!   and several items may share one.
//! * `R`: rules.
//!
//! # Parameters
//! * `p_c`: profit of an item, an integer (parts per billion of whatever the caller maximises).
//! * `a_rc` or `a_rav`: integer coefficient of a rule on an item, or on a value of an axis; `b_r`: its
//!   right side.
//!
//! # Variables
//! * `x_c in {0,1}`: item `c` is selected.
//! * `u_av in [0,1]`: value `v` of axis `a` is selected. Whole as soon as `x` is, so it is not
//!   declared so; declaring it makes the search twenty times longer.
//!
//! # Objective
//! `profit: maximise sum_c p_c x_c`, to an absolute gap below one. Among equal profits the first
//! item wins: where several items share the best profit, a second program, with the row `profit_floor: sum_c p_c x_c >= best`, minimises
//! `sum_c c x_c`.
//!
//! # Constraints
//! * `select_one`: `sum_c x_c = 1`.
//! * `link_a(v)`: `sum_{c: v(c,a) = v} x_c - u_av = 0` for every axis and value.
//! * one row a rule, under its own name: `sum_c a_rc x_c (<=, =, >=) b_r`, or
//!   `sum_av a_rav u_av (<=, =, >=) b_r`.
//!
//! # Exactness
//! With one item selected, the left side of a rule *is* the selected item's own number
//! `l_rc = a_rc` (or `sum_a a_r,a,v(c,a)`), so rule `r` holds if and only if the item is not in
//! `X_r = {c : l_rc violates b_r}`, and `sum_{c in X_r} x_c <= 0` describes the same selections with a
//! tighter relaxation (coefficient strengthening under a one-hot row, taken to its end; Savelsbergh
//! 1994, section 3). [`build`] states the rules with the caller's numbers: this is what is printed
//! and exported. [`solve()`] hands over the strengthened rows, since a floating-point solver cannot be
//! trusted to see an excess of 1 over 200,000,000. What comes back is checked in integers against
//! the caller's numbers.
//!
//! [`oracle`] answers the same by enumeration.

use std::time::Instant;

use crate::model::{ColumnId, Direction, Model, Sense};
use crate::solve::{self, Outcome, Point, SolveError, SolverOptions, Statistics};

mod rules;
#[cfg(test)]
mod tests;

pub use rules::{Violation, violated_rules};

/// A selection problem; see the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// The axes.
    pub axes: Vec<Axis>,
    /// The items. Their order is the tie rule: of equal profit the first wins.
    pub items: Vec<Item>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// An axis: a name and the values of which one is selected.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name, as it is to stand in columns and rows.
    pub name: String,
    /// Names of the values; value 1 of axis `width` becomes the column `width(1)`.
    pub values: Vec<String>,
}

/// A combination that may be selected.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Index of the value on each axis.
    pub choice: Vec<usize>,
    /// What it is worth.
    pub profit: i64,
}

/// A named linear rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Name, the same in the row, the documentation and the violation.
    pub name: String,
    /// The left side.
    pub left: LeftSide,
    /// How the sides compare.
    pub sense: Sense,
    /// The right side.
    pub right: i64,
}

/// Left side of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum LeftSide {
    /// `sum_c a_c x_c`: one coefficient for each item.
    OverItems(Vec<i64>),
    /// `sum_av a_av u_av`: the terms that are not zero.
    OverAxes(Vec<AxisTerm>),
}

/// `coefficient * u(axis, value)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisTerm {
    /// Index of the axis.
    pub axis: usize,
    /// Index of the value on the axis.
    pub value: usize,
    /// The coefficient.
    pub coefficient: i64,
}

/// A selected item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Solution {
    /// Its index.
    pub item: usize,
    /// Its profit.
    pub profit: i64,
    /// Proven: no permitted item has a larger profit. Equals `profit` when optimal.
    pub bound: i64,
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutChoiceError {
    /// The data contradicts itself.
    #[error("`{place}` does not fit the data: {cause}")]
    Data {
        /// Which item or rule.
        place: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// The solver gave no outcome.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The solver's answer does not stand up to the check in integers.
    #[error("the solver's answer fails the exact check: {cause}")]
    Inexact {
        /// What the check found.
        cause: String,
    },
}

/// The program with the caller's numbers, for reading and for export.
#[must_use]
pub fn build(data: &Data) -> Model {
    let (mut model, columns) = columns_and_links(data);
    let profits = profits(data);
    model.set_objective("profit", terms(&columns.items, &profits), 0.0);
    for rule in &data.rules {
        add_rule(&mut model, &columns, rule);
    }
    model
}

/// Selects the permitted item of the largest profit, the first of equals.
///
/// # Errors
/// When the data contradicts itself, or the solver fails or gives an answer that is not one.
pub fn solve(data: &Data, options: &SolverOptions) -> Result<Outcome<Solution>, LayoutChoiceError> {
    rules::check(data)?;
    let start = Instant::now();
    let (mut model, columns) = columns_and_links(data);
    model.set_objective("profit", terms(&columns.items, &profits(data)), 0.0);
    for rule in &data.rules {
        add_strengthened_rule(&mut model, &columns, rule, data);
    }
    let options = SolverOptions {
        absolute_gap: 0.5,
        ..*options
    };
    let outcome = solve::solve(&model, &options)?;
    let Some(point) = outcome.solution() else {
        return Ok(outcome.map(|_| unreachable!("no solution to decode")));
    };
    let item = decode(data, &columns, point)?;
    let profit = data.items[item].profit;
    let mut statistics = outcome.statistics();
    if let Outcome::Feasible { bound, .. } = outcome {
        // A bound that is not finite says nothing; every item is below the largest profit.
        let largest = data.items.iter().map(|item| item.profit).max();
        let bound = largest.map_or(profit, |largest| (bound.floor() as i64).min(largest));
        return Ok(feasible(item, profit, bound.max(profit), statistics));
    }
    let left = options
        .time_limit
        .map(|limit| limit.saturating_sub(start.elapsed()));
    let options = SolverOptions {
        time_limit: left,
        ..options
    };
    first_of_equals(data, model, &columns, item, &mut statistics, &options)
}

/// The second program: the first item whose profit is that of the first program's answer.
fn first_of_equals(
    data: &Data,
    mut model: Model,
    columns: &Columns,
    item: usize,
    statistics: &mut Statistics,
    options: &SolverOptions,
) -> Result<Outcome<Solution>, LayoutChoiceError> {
    let profit = data.items[item].profit;
    // No program is needed to see that no item before this one has its profit.
    if data.items[..item]
        .iter()
        .all(|before| before.profit != profit)
    {
        return Ok(optimal(item, profit, *statistics));
    }
    let floor = Rule {
        name: "profit_floor".into(),
        left: LeftSide::OverItems(profits(data)),
        sense: Sense::AtLeast,
        right: profit,
    };
    add_strengthened_rule(&mut model, columns, &floor, data);
    // Minimising the index is maximising its negative: the model keeps its direction.
    let order: Vec<i64> = (0..data.items.len()).map(|index| -(index as i64)).collect();
    model.set_objective("order", terms(&columns.items, &order), 0.0);
    let outcome = solve::solve(&model, options)?;
    statistics.add(outcome.statistics());
    let (Outcome::Optimal { solution, .. } | Outcome::Feasible { solution, .. }) = &outcome else {
        if let Outcome::Infeasible { .. } = outcome {
            return Err(inexact(format!("no item has the profit {profit}")));
        }
        return Ok(feasible(item, profit, profit, *statistics));
    };
    let first = decode(data, columns, solution)?.min(item);
    if data.items[first].profit != profit {
        return Err(inexact(format!("item {first} has not the profit {profit}")));
    }
    if let Outcome::Feasible { .. } = outcome {
        return Ok(feasible(first, profit, profit, *statistics));
    }
    Ok(optimal(first, profit, *statistics))
}

/// The same by enumeration, in integers; shares nothing with the program.
#[must_use]
pub fn oracle(data: &Data) -> Option<Solution> {
    let permitted = (0..data.items.len()).filter(|&item| violated_rules(data, item).is_empty());
    let item = permitted.max_by_key(|&item| (data.items[item].profit, std::cmp::Reverse(item)))?;
    let profit = data.items[item].profit;
    Some(Solution {
        item,
        profit,
        bound: profit,
    })
}

struct Columns {
    items: Vec<ColumnId>,
    values: Vec<Vec<ColumnId>>,
}

fn columns_and_links(data: &Data) -> (Model, Columns) {
    let mut model = Model::new("layout choice", Direction::Maximise);
    let items: Vec<_> = (0..data.items.len())
        .map(|index| model.add_binary(format!("x({index})")))
        .collect();
    let values: Vec<Vec<_>> = (data.axes.iter())
        .map(|axis| {
            (axis.values.iter())
                .map(|value| model.add_continuous(format!("{}({value})", axis.name), 0.0, 1.0))
                .collect()
        })
        .collect();
    let columns = Columns { items, values };
    let ones = columns.items.iter().map(|&item| (item, 1.0));
    model.add_row("select_one", ones, Sense::Equal, 1.0);
    add_links(&mut model, &columns, data);
    (model, columns)
}

fn add_links(model: &mut Model, columns: &Columns, data: &Data) {
    for (index, axis) in data.axes.iter().enumerate() {
        let mut with_value = vec![Vec::new(); axis.values.len()];
        for (item, &column) in data.items.iter().zip(&columns.items) {
            with_value[item.choice[index]].push((column, 1.0));
        }
        for ((value, mut terms), &u) in axis
            .values
            .iter()
            .zip(with_value)
            .zip(&columns.values[index])
        {
            terms.push((u, -1.0));
            model.add_row(
                format!("link_{}({value})", axis.name),
                terms,
                Sense::Equal,
                0.0,
            );
        }
    }
}

fn add_rule(model: &mut Model, columns: &Columns, rule: &Rule) {
    let terms = match &rule.left {
        LeftSide::OverItems(coefficients) => terms(&columns.items, coefficients).collect(),
        LeftSide::OverAxes(axis_terms) => (axis_terms.iter())
            .map(|term| {
                let column = columns.values[term.axis][term.value];
                (column, term.coefficient as f64)
            })
            .collect::<Vec<_>>(),
    };
    model.add_row(&rule.name, terms, rule.sense, rule.right as f64);
}

/// `sum_{c in X_r} x_c <= 0`; see "Exactness" in the module.
fn add_strengthened_rule(model: &mut Model, columns: &Columns, rule: &Rule, data: &Data) {
    let violating = (data.items.iter().zip(&columns.items).enumerate())
        .filter(|&(index, (item, _))| rules::excess(rule, index, item) != 0)
        .map(|(_, (_, &column))| (column, 1.0));
    model.add_row(&rule.name, violating, Sense::AtMost, 0.0);
}

fn terms<'a>(
    columns: &'a [ColumnId],
    coefficients: &'a [i64],
) -> impl Iterator<Item = (ColumnId, f64)> + 'a {
    let pairs = columns.iter().zip(coefficients);
    pairs.map(|(&column, &coefficient)| (column, coefficient as f64))
}

fn profits(data: &Data) -> Vec<i64> {
    data.items.iter().map(|item| item.profit).collect()
}

/// The one selected item, checked against every rule in integers.
fn decode(data: &Data, columns: &Columns, point: &Point) -> Result<usize, LayoutChoiceError> {
    let mut selected = (columns.items.iter().enumerate())
        .filter(|(_, column)| point.integer(**column) != 0)
        .map(|(index, _)| index);
    let (Some(item), None) = (selected.next(), selected.next()) else {
        return Err(inexact("not exactly one item is selected".into()));
    };
    if let Some(violation) = violated_rules(data, item).first() {
        let name = &data.rules[violation.rule].name;
        return Err(inexact(format!("item {item} violates `{name}`")));
    }
    Ok(item)
}

fn optimal(item: usize, profit: i64, statistics: Statistics) -> Outcome<Solution> {
    Outcome::Optimal {
        solution: Solution {
            item,
            profit,
            bound: profit,
        },
        statistics,
    }
}

fn feasible(item: usize, profit: i64, bound: i64, statistics: Statistics) -> Outcome<Solution> {
    Outcome::Feasible {
        solution: Solution {
            item,
            profit,
            bound,
        },
        bound: bound as f64,
        gap: (bound - profit) as f64,
        statistics,
    }
}

fn inexact(cause: String) -> LayoutChoiceError {
    LayoutChoiceError::Inexact { cause }
}
