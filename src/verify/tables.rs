//! What a stage costs for every number of layers that fits.

use super::budget::{Budget, TooLarge};
use super::problem::{Problem, Way};
use super::recompute::{Recomputed, least};

/// A stage by its number of layers: `fewest`, `fewest + 1`, and so on.
#[derive(Debug)]
pub(super) struct Table {
    /// Layers of the first row.
    pub(super) fewest: i64,
    /// One row for each number of layers that fits; none if not even the fewest do.
    pub(super) rows: Vec<Row>,
}

/// A stage with some number of layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// `T_s(n)`, with the least recomputation that fits.
    pub(super) time: i64,
    /// `D_s(n)`.
    pub(super) delta: i64,
    /// That recomputation.
    pub(super) recomputed: Recomputed,
}

impl Table {
    /// The most layers that fit; one less than the fewest if none do.
    pub(super) fn most(&self) -> i64 {
        self.fewest + self.rows.len() as i64 - 1
    }

    /// The row of a number of layers that fits.
    pub(super) fn row(&self, layers: i64) -> &Row {
        &self.rows[(layers - self.fewest) as usize]
    }
}

/// The tables of all stages for one way of recomputing.
pub(super) fn tables(problem: &Problem, way: Way, budget: &Budget) -> Result<Vec<Table>, TooLarge> {
    let mut tables = Vec::with_capacity(problem.stages());
    for (stage, &(fewest, most)) in problem.windows.iter().enumerate() {
        let mut rows = Vec::new();
        for layers in fewest..=most {
            budget.spend(4)?;
            let Some(recomputed) = least(problem, way, stage, layers, budget)? else {
                break;
            };
            rows.push(Row {
                time: problem.time(stage, layers, recomputed.extra),
                delta: problem.delta(stage, layers),
                recomputed,
            });
        }
        tables.push(Table { fewest, rows });
    }
    Ok(tables)
}
