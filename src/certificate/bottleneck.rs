//! The bound of the slowest stage, as certificates state it: exact where the screening of the planner
//! settles for less.

use formulations::staged::bounds::balance_bound;
use formulations::staged::recompute::least_recompute;
use formulations::staged::{Cell, Partition};

/// Times of one stage for `lower_layers`, `lower_layers + 1`, and so on, as far as it fits:
/// `(T_s(n), R_s(n))`.
type Rows = Vec<(i64, i64)>;

/// `a max(tau*) + b (L t + sum_s e_s + R*) + w delta* + constant`, where `tau*` is the least time of the
/// slowest stage and `R*` the least time of recomputing, each over all distributions that fit, and
/// `delta*` that of perfect balance. The cell must fit and recompute freely.
pub(super) fn bound(cell: &Cell, layers: i64) -> i64 {
    let tables: Vec<Rows> = (0..cell.stages.len())
        .map(|stage| rows(cell, stage, layers))
        .collect();
    let balanced = balance_bound(cell, layers);
    let (slowest, extra) = if cell.partition == Partition::EqualMiddle && cell.stages.len() > 2 {
        equal_middle(cell, &tables, layers)
    } else {
        (
            slowest(cell, &tables, layers),
            least_extra(cell, &tables, layers),
        )
    };
    let weights = &cell.weights;
    balanced + weights.slowest * (slowest - balanced_time(cell, layers)) + weights.total * extra
}

/// The time of the slowest stage in the bound of perfect balance.
fn balanced_time(cell: &Cell, layers: i64) -> i64 {
    let alone = Cell {
        weights: formulations::staged::Weights {
            slowest: 1,
            total: 0,
            delta: 0,
        },
        constant: 0,
        ..cell.clone()
    };
    balance_bound(&alone, layers)
}

fn rows(cell: &Cell, stage: usize, layers: i64) -> Rows {
    let own = &cell.stages[stage];
    (own.lower_layers..=own.upper_layers.min(layers))
        .map_while(|layers| {
            let extra = least_recompute(cell, own, layers)?.extra_time;
            Some((layers * cell.layer.time + own.extra_time + extra, extra))
        })
        .collect()
}

/// `min max_s T_s(n_s)`: of all layers above the fewest, those are taken that leave their stage least
/// slow. Times do not decrease along a stage, so they make a distribution.
fn slowest(cell: &Cell, tables: &[Rows], layers: i64) -> i64 {
    let fewest: i64 = cell.stages.iter().map(|stage| stage.lower_layers).sum();
    let first = tables.iter().map(|rows| rows[0].0).max().unwrap_or(0);
    let mut further: Vec<i64> = tables
        .iter()
        .flat_map(|rows| rows[1..].iter().map(|row| row.0))
        .collect();
    further.sort_unstable();
    let last = usize::try_from(layers - fewest - 1).ok();
    let last = last.and_then(|last| further.get(last)).copied();
    first.max(last.unwrap_or(first))
}

/// `min sum_s R_s(n_s)`, stage by stage from the last.
fn least_extra(cell: &Cell, tables: &[Rows], layers: i64) -> i64 {
    let free: i64 = tables
        .iter()
        .zip(&cell.stages)
        .map(|(rows, stage)| {
            let count = rows.iter().take_while(|row| row.1 == 0).count() as i64;
            stage.lower_layers + count - 1
        })
        .sum();
    if free >= layers && tables.iter().all(|rows| rows[0].1 == 0) {
        return 0;
    }
    let mut after: Vec<Option<i64>> = vec![None; layers as usize + 1];
    after[0] = Some(0);
    for (rows, stage) in tables.iter().zip(&cell.stages).rev() {
        let with = |left: usize| {
            let counts = rows.iter().zip(stage.lower_layers as usize..);
            counts
                .filter_map(|(row, own)| Some(row.1 + after[left.checked_sub(own)?]?))
                .min()
        };
        after = (0..after.len()).map(with).collect();
    }
    after[layers as usize].unwrap_or(0)
}

/// Both, over all distributions with an equal middle.
fn equal_middle(cell: &Cell, tables: &[Rows], layers: i64) -> (i64, i64) {
    let last = tables.len() - 1;
    let row = |stage: usize, own: i64| {
        let index = usize::try_from(own - cell.stages[stage].lower_layers).ok()?;
        tables[stage].get(index).copied()
    };
    let (mut slowest, mut extra) = (i64::MAX, i64::MAX);
    for middle in 1..layers {
        let between: Option<Rows> = (1..last).map(|stage| row(stage, middle)).collect();
        let both = layers - middle * (last as i64 - 1);
        let (Some(between), true) = (between, both > 0) else {
            break;
        };
        let time = between.iter().map(|row| row.0).max().unwrap_or(0);
        let sum: i64 = between.iter().map(|row| row.1).sum();
        for first in 1..both {
            let (Some(first), Some(end)) = (row(0, first), row(last, both - first)) else {
                continue;
            };
            slowest = slowest.min(time.max(first.0).max(end.0));
            extra = extra.min(sum + first.1 + end.1);
        }
    }
    (slowest, extra)
}
