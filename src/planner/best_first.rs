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

/// The `count` best combinations that fit into `capacity`, and proof that there is no better.
#[must_use]
pub fn walk(table: &CostTable, capacity: i64, count: usize) -> Walk {
    walk_classes(table, capacity, count, |index| index)
}

/// The best combinations of the `count` best classes, and proof that there is no better:
/// combinations are taken in order of their lower bounds on time until the next bound exceeds
/// the exact time of the last of the best.
pub(super) fn walk_classes(
    table: &CostTable,
    capacity: i64,
    count: usize,
    class: impl Fn(usize) -> usize,
) -> Walk {
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
        if fits {
            offer(&mut found.best, evaluation, count, &class);
        } else {
            found.over_capacity.push(evaluation);
        }
    }
    found
}

/// Puts a combination in its place among the best, of each class one.
fn offer(
    best: &mut Vec<Evaluation>,
    evaluation: Evaluation,
    count: usize,
    class: impl Fn(usize) -> usize,
) {
    let rank = |item: &Evaluation| (Reverse(item.cost.profit), item.index);
    let same = |item: &Evaluation| class(item.index) == class(evaluation.index);
    if let Some(known) = best.iter().position(same) {
        if rank(&best[known]) <= rank(&evaluation) {
            return;
        }
        best.remove(known);
    }
    let place = best.partition_point(|item| rank(item) < rank(&evaluation));
    best.insert(place, evaluation);
    best.truncate(count);
}
