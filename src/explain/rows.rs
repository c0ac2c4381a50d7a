//! Rows of the user's own that are moved or dropped.

use crate::change::{RowChange, Side};
use crate::constraint::{Comparison, Constraint};
use crate::instance::Instance;
use crate::layout::Layout;
use crate::planner::infeasibility::{best_layout, may_have_layout};
use crate::planner::{Deadline, PlanError};

use super::nearest_that_holds;

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
    nearest_that_holds(row.right, enough, |right| {
        let mut with_row = varied.clone();
        with_row.space.constraints.push(Constraint {
            right,
            ..row.clone()
        });
        has_layout(&with_row, deadline)
    })
}

fn has_layout(instance: &Instance, deadline: Deadline) -> Result<bool, PlanError> {
    let rows = &instance.space.constraints;
    Ok(may_have_layout(instance, deadline)?
        && (rows.iter().all(Constraint::is_of_combination)
            || best_layout(instance, deadline)?.is_some()))
}
