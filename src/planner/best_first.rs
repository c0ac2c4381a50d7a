//! Exact costs in order of their bounds, no further than needed.

use std::cmp::Reverse;

use super::constraints;
use super::cost_table::{CostTable, ExactCost};
use crate::layout::Layout;

/// A combination whose exact cost was computed.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// Position in the table; earlier wins among equals.
    pub index: usize,
    /// Its layout.
    pub layout: Layout,
    /// Its exact cost.
    pub cost: ExactCost,
}

/// The outcome of a best-first walk.
#[derive(Debug, Clone, Default)]
pub struct Walk {
    /// The best combinations that fit, best first.
    pub best: Vec<Evaluation>,
    /// Combinations evaluated that do not fit, or break a row of the user's own.
    pub over_capacity: Vec<Evaluation>,
    /// Combinations that a bound excludes from the best.
    pub pruned: u64,
}

/// The `count` best combinations that fit into `capacity`, and proof that there is no better:
/// combinations are taken in order of their lower bounds on time until the next bound exceeds
/// the exact time of the last of the best.
#[must_use]
pub fn walk(table: &CostTable, capacity: i64, count: usize) -> Walk {
    let mut order: Vec<usize> = (0..table.entries.len())
        .filter(|&index| table.entries[index].cell.is_some())
        .collect();
    order.sort_by_key(|&index| (table.entries[index].bound, index));
    let mut found = Walk::default();
    for (position, &index) in order.iter().enumerate() {
        let entry = &table.entries[index];
        if found.best.len() == count
            && found
                .best
                .last()
                .is_some_and(|worst| entry.bound > worst.cost.units)
        {
            found.pruned = (order.len() - position) as u64;
            break;
        }
        let Some((layout, cost)) = table.exact(entry) else {
            continue;
        };
        let fits = CostTable::fits(&cost, capacity) && constraints::keeps(table.instance, &layout);
        let evaluation = Evaluation {
            index,
            layout,
            cost,
        };
        if !fits {
            found.over_capacity.push(evaluation);
            continue;
        }
        let rank = |item: &Evaluation| (Reverse(item.cost.profit), item.index);
        let place = found
            .best
            .partition_point(|item| rank(item) < rank(&evaluation));
        found.best.insert(place, evaluation);
        found.best.truncate(count);
    }
    found
}
