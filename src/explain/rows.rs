//! Rows of the user's own that are moved or dropped.

use crate::constraint::{Comparison, Constraint, Decision};
use crate::instance::Instance;
use crate::layout::Layout;
use crate::planner::infeasibility::{best_layout, may_have_layout};
use crate::planner::{Deadline, PlanError};

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// Its name.
    pub name: String,
    /// Another right side; `None` where the row is dropped.
    pub right: Option<Side>,
}

/// A right side that is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// How the sides compare.
    pub comparison: Comparison,
    /// So far.
    pub from: i64,
    /// Then.
    pub to: i64,
}

/// What is done with the rows of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Their right sides are moved.
    Moved,
    /// They are dropped.
    Dropped,
}

/// The changes of the rows with these positions, and all rows then. `best` is the best layout of
/// `varied`, which has none of them.
///
/// # Errors
///
/// When the solver fails.
pub(super) fn changed_rows(
    instance: &Instance,
    positions: &[usize],
    way: Way,
    (varied, best): (&Instance, &Layout),
    deadline: Deadline,
) -> Result<(Vec<RowChange>, Vec<Constraint>), PlanError> {
    let batch = varied.job.workload.global_batch;
    let (mut changes, mut rows) = (Vec::new(), Vec::new());
    for (position, row) in instance.space.constraints.iter().enumerate() {
        if !positions.contains(&position) {
            rows.push(row.clone());
            continue;
        }
        // What the best layout without the rows keeps anyway need not be moved.
        let enough = row.left(best, batch);
        if way == Way::Moved && row.holds(enough) {
            rows.push(row.clone());
            continue;
        }
        let mut change = RowChange {
            name: row.name.clone(),
            right: None,
        };
        if way == Way::Moved {
            // One row alone is moved no further than it must.
            let to = match positions.len() {
                1 => least_move(varied, row, enough, deadline)?,
                _ => enough,
            };
            change.right = Some(Side {
                comparison: row.comparison,
                from: row.right,
                to,
            });
            rows.push(Constraint {
                right: to,
                ..row.clone()
            });
        }
        changes.push(change);
    }
    Ok((changes, rows))
}

/// The right side nearest to the row's own with which `varied` has a layout: it has one with
/// `enough`.
fn least_move(
    varied: &Instance,
    row: &Constraint,
    enough: i64,
    deadline: Deadline,
) -> Result<i64, PlanError> {
    if row.comparison == Comparison::Equals {
        return Ok(enough);
    }
    let (mut fails, mut holds) = (row.right, enough);
    while fails.abs_diff(holds) > 1 {
        let middle = fails.midpoint(holds);
        let mut with_row = varied.clone();
        with_row.space.constraints.push(Constraint {
            right: middle,
            ..row.clone()
        });
        if has_layout(&with_row, deadline)? {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    Ok(holds)
}

fn has_layout(instance: &Instance, deadline: Deadline) -> Result<bool, PlanError> {
    let rows = &instance.space.constraints;
    Ok(may_have_layout(instance, deadline)?
        && (rows.iter().all(Constraint::is_of_cell) || best_layout(instance, deadline)?.is_some()))
}

/// The row as an inline table of TOML.
pub(super) fn inline_table(row: &Constraint) -> String {
    let key = |decision: &Decision| match decision {
        Decision::Is(axis, code) => format!("\"{axis}={}\"", axis.show(*code)),
        Decision::Layers(index) if *index > 0 => format!("\"{decision}\""),
        other => other.to_string(),
    };
    let terms = row.terms.iter();
    let terms: Vec<String> = terms
        .map(|term| format!("{} = {}", key(&term.decision), term.coefficient))
        .collect();
    format!(
        "{{name = \"{}\", terms = {{{}}}, {} = {}}}",
        row.name,
        terms.join(", "),
        row.comparison.as_str(),
        row.right
    )
}

/// Most rows that are named.
const MOST_NAMED: usize = 4;

/// The changes in words, with their amounts.
pub(crate) fn words(changes: &[RowChange]) -> String {
    let word = |change: &RowChange| match &change.right {
        None => format!("drop row `{}`", change.name),
        Some(Side {
            comparison,
            from,
            to,
        }) => format!(
            "row `{}` {} {to} instead of {from}",
            change.name,
            comparison.words()
        ),
    };
    let mut all: Vec<String> = changes.iter().take(MOST_NAMED).map(word).collect();
    match changes.len().saturating_sub(MOST_NAMED) {
        0 => {}
        further => all.push(format!("and {further} further rows likewise")),
    }
    all.join(", ")
}
