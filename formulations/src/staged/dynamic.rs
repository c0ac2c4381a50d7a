//! The exact optimum of one cell without side rows, by dynamic programming over its stages.
//!
//! For fixed ceilings `tau` and `delta` of the two maxima, `F_s(l) = min over n in the window of
//! T_s(n) + F_{s+1}(l - n)` with `T_s(n) <= tau`, `D_s(n) <= delta` is the least sum of times of the
//! stages from `s` on with `l` layers. An optimal plan is found where the ceilings are its own maxima,
//! so it suffices to try the times and deltas that occur, as far as
//! `a tau + b F_0(L) + w delta + constant` can still win.
//!
//! The cost of the recursion is a tuple, so that the plan found is the canonical one: of equal
//! objective the least `sum_s T_s`, then the least `sum_s (S n_s - L)^2` (most even), then the least
//! `sum_s s n_s` (earliest layers), then the fewest layers on the first stage where they differ.

use super::bounds::{Scratch, bottleneck, find_upper, fits, near_even};
use super::data::{Cell, Partition};
use super::equal_middle::equal_middle_splits;
use super::plan::{Plan, objective, plan_of, stage_delta};
use super::recompute::quick_recompute;
use super::relaxation::Relaxation;
use super::tables::{StageTable, Tables, tables};

/// `(sum T, sum (S n - L)^2, sum s n)`.
type Cost = (i64, i64, i64);

/// What makes one plan of a cell better than another of the same cell.
type Key = (i64, Cost, Vec<i64>);

/// The canonical optimum of a cell, ignoring side rows; `None` if no plan fits. `index` is the number
/// that the plan shall bear.
#[must_use]
pub fn cell_optimum(cell: &Cell, index: usize, layers: i64) -> Option<Plan> {
    cell_optimum_within(cell, index, layers, i64::MAX)
}

/// The canonical optimum of a cell if its objective is at most `limit`.
#[must_use]
pub fn cell_optimum_within(cell: &Cell, index: usize, layers: i64, limit: i64) -> Option<Plan> {
    let mut scratch = Scratch::default();
    if !fits(cell, layers, &mut scratch) {
        return None;
    }
    if cell.partition == Partition::EqualMiddle && cell.stages.len() > 2 {
        let plan = equal_middle_optimum(cell, index, layers, &mut scratch);
        return plan.filter(|plan| plan.objective <= limit);
    }
    let known = known_objective(cell, layers, &mut scratch);
    let limit = known.map_or(limit, |known| known.min(limit));
    let tables = tables(cell, index, layers, limit, &mut scratch)?;
    optimum(cell, &tables, layers, limit)
}

/// Objective of some plan of a cell that fits.
fn known_objective(cell: &Cell, layers: i64, scratch: &mut Scratch) -> Option<i64> {
    // Leaves a distribution in the buffers; the bound itself is not needed.
    let _ = bottleneck(cell, layers, scratch);
    let greedy = quick_objective(cell, &scratch.layers);
    [greedy, near_even(cell, layers)]
        .into_iter()
        .flatten()
        .min()
}

/// Objective of a distribution with the recomputation that is found at once; `None` if that does not
/// fit.
pub(super) fn quick_objective(cell: &Cell, layers: &[i64]) -> Option<i64> {
    let mut extra = Vec::with_capacity(layers.len());
    for (stage, &layers) in cell.stages.iter().zip(layers) {
        extra.push(quick_recompute(cell, stage, layers)?.extra_time);
    }
    Some(objective(cell, layers, extra.into_iter()))
}

/// The canonical plan of objective at most `limit`.
fn optimum(cell: &Cell, tables: &Tables, layers: i64, limit: i64) -> Option<Plan> {
    let mut best: Option<Key> = None;
    let mut limit = limit;
    let weights = &cell.weights;
    let cost_of = |slowest: i64, total: i64, delta: i64| {
        weights.slowest * slowest + weights.total * total + weights.delta * delta + cell.constant
    };
    let (least_slowest, least_delta) = (tables.floors.slowest, tables.floors.delta);
    let times = ceilings(
        weights.slowest,
        least_slowest,
        tables
            .stages
            .iter()
            .flat_map(|table| table.times.iter().copied()),
    );
    let deltas = tables.stages.iter().enumerate().flat_map(|(stage, table)| {
        (table.lower..=table.upper()).map(move |layers| stage_delta(cell, stage, layers))
    });
    let deltas = ceilings(weights.delta, least_delta, deltas);
    let mut recursion = Recursion::new(cell, tables, layers);
    let free = recursion.run(i64::MAX, i64::MAX)?;
    for &slowest in &times {
        let floor = if slowest == i64::MAX {
            least_slowest
        } else {
            slowest
        };
        if cost_of(floor, free.0, least_delta) > limit {
            break;
        }
        let Some(with_slowest) = recursion.run(slowest, i64::MAX) else {
            continue;
        };
        for &delta in &deltas {
            let delta_floor = if delta == i64::MAX {
                least_delta
            } else {
                delta
            };
            if cost_of(floor, with_slowest.0, delta_floor) > limit {
                break;
            }
            let Some(cost) = recursion.run(slowest, delta) else {
                continue;
            };
            let layers = recursion.plan(slowest, delta);
            let extra = tables.stages.iter().zip(&layers);
            let extra = extra.map(|(table, &layers)| table.recompute(layers).extra_time);
            let key = (objective(cell, &layers, extra), cost, layers);
            if key.0 <= limit && best.as_ref().is_none_or(|best| key < *best) {
                limit = key.0;
                best = Some(key);
            }
        }
    }
    plan_of(cell, tables.cell, &best?.2)
}

/// The values that occur above a floor, ascending; no ceiling at all where the weight is zero.
fn ceilings(weight: i64, floor: i64, values: impl Iterator<Item = i64>) -> Vec<i64> {
    if weight == 0 {
        return vec![i64::MAX];
    }
    let mut values: Vec<i64> = values.filter(|&value| value >= floor).collect();
    values.sort_unstable();
    values.dedup();
    values
}

struct Recursion<'a> {
    cell: &'a Cell,
    stages: &'a [StageTable],
    layers: i64,
    /// `F_s(l)` for `s = 0..=S` in rows of `L + 1`.
    costs: Vec<Option<Cost>>,
}

impl<'a> Recursion<'a> {
    fn new(cell: &'a Cell, tables: &'a Tables, layers: i64) -> Self {
        let width = layers as usize + 1;
        let mut costs = vec![None; width * (tables.stages.len() + 1)];
        costs[width * tables.stages.len()] = Some((0, 0, 0));
        Self {
            cell,
            stages: &tables.stages,
            layers,
            costs,
        }
    }

    /// `F_0(L)` under the ceilings.
    fn run(&mut self, slowest: i64, delta: i64) -> Option<Cost> {
        let width = self.layers as usize + 1;
        let count = self.stages.len() as i64;
        // What the stages from here on can hold, and what those before must and can.
        let (mut least_after, mut most_after) = (0, 0);
        let mut least_before: i64 = self.stages.iter().map(|table| table.lower).sum();
        let mut most_before: i64 = self.stages.iter().map(StageTable::upper).sum();
        for (stage, table) in self.stages.iter().enumerate().rev() {
            least_after += table.lower;
            most_after += table.upper();
            least_before -= table.lower;
            most_before -= table.upper();
            let most = self.most(stage, slowest, delta)?;
            let (row, after) = self.costs[width * stage..].split_at_mut(width);
            row.fill(None);
            let from = least_after.max(self.layers - most_before);
            let to = most_after.min(self.layers - least_before);
            for left in from..=to {
                let mut best: Option<Cost> = None;
                for own in table.lower..=most.min(left) {
                    let Some(rest) = after[(left - own) as usize] else {
                        continue;
                    };
                    let uneven = count * own - self.layers;
                    let cost = (
                        rest.0 + table.time(own),
                        rest.1 + uneven * uneven,
                        rest.2 + stage as i64 * own,
                    );
                    if best.is_none_or(|best| cost < best) {
                        best = Some(cost);
                    }
                }
                row[left as usize] = best;
            }
        }
        self.costs[self.layers as usize]
    }

    /// Most layers of a stage under the ceilings; `None` if not even the fewest.
    fn most(&self, stage: usize, slowest: i64, delta: i64) -> Option<i64> {
        let table = &self.stages[stage];
        let fits = |&layers: &i64| {
            table.time(layers) <= slowest && stage_delta(self.cell, stage, layers) <= delta
        };
        (table.lower..=table.upper()).rev().find(fits)
    }

    /// The layers of the last run, the fewest first where costs are equal.
    fn plan(&self, slowest: i64, delta: i64) -> Vec<i64> {
        let width = self.layers as usize + 1;
        let count = self.stages.len() as i64;
        let mut left = self.layers;
        let mut layers = Vec::with_capacity(self.stages.len());
        for (stage, table) in self.stages.iter().enumerate() {
            let most = self.most(stage, slowest, delta).unwrap_or(table.lower);
            let target = self.costs[width * stage + left as usize];
            let attains = |&own: &i64| {
                let rest = self.costs[width * (stage + 1) + (left - own) as usize];
                let uneven = count * own - self.layers;
                rest.is_some_and(|rest| {
                    let cost = (
                        rest.0 + table.time(own),
                        rest.1 + uneven * uneven,
                        rest.2 + stage as i64 * own,
                    );
                    Some(cost) == target
                })
            };
            let own = (table.lower..=most.min(left))
                .find(attains)
                .unwrap_or(table.lower);
            layers.push(own);
            left -= own;
        }
        layers
    }
}

/// The same when all stages in the middle have the same layers: few enough to try each.
fn equal_middle_optimum(
    cell: &Cell,
    index: usize,
    layers: i64,
    scratch: &mut Scratch,
) -> Option<Plan> {
    find_upper(&Relaxation::new(cell), layers, scratch);
    let count = cell.stages.len();
    let mut best: Option<(Key, Plan)> = None;
    for split in equal_middle_splits(cell, layers, &scratch.upper) {
        let mut own = vec![split.middle; count];
        (own[0], own[count - 1]) = (split.first, split.last);
        let Some(plan) = plan_of(cell, index, &own) else {
            continue;
        };
        let key = key_of(cell, &plan, layers);
        if best.as_ref().is_none_or(|best| key < best.0) {
            best = Some((key, plan));
        }
    }
    best.map(|(_, plan)| plan)
}

/// What makes one plan of a cell better than another of the same cell.
pub(super) fn key_of(cell: &Cell, plan: &Plan, layers: i64) -> Key {
    let count = plan.layers.len() as i64;
    let mut cost = (0, 0, 0);
    for (stage, (&own, counts)) in plan.layers.iter().zip(&plan.recomputed).enumerate() {
        let pairs = cell.modes.iter().zip(counts);
        let extra: i64 = pairs.map(|(mode, count)| mode.extra_time * count).sum();
        cost.0 += super::plan::stage_time(cell, stage, own, extra);
        cost.1 += (count * own - layers).pow(2);
        cost.2 += stage as i64 * own;
    }
    (plan.objective, cost, plan.layers.clone())
}
