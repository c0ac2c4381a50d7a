//! Which layers a stage recomputes, given how many it has: decided exactly, outside the program.
//!
//! For `n` layers on a stage the memory with counts `k` is
//! `mem(n, k) = n P + f ((n - sum_m k_m) A + sum_m k_m C_m) + max_{m: k_m > 0} W_m + m`,
//! and the objective does not decrease with `sum_m k_m r_m`. So the least extra time that fits is
//! optimal whatever the other stages do, and `k` leaves the program.
//!
//! With one mode and `need = mem(n, 0) - capacity`: `k = 0` if `need <= 0`, else
//! `k = max(1, ceil((need + W) / (f (A - C))))`, and `n` does not fit if `k > n` or `A <= C`.
//! With several modes it is a knapsack in at most three integers: the modes are taken in order of
//! their time for a unit of memory, the worst are enumerated as far as the fractional optimum of the
//! rest permits, the best follows from the closed form. Among equal times the least memory wins, then
//! the lexicographically first counts.

use super::data::{Cell, Counts, RecomputeMode, RecomputeRule, Stage};
use super::relaxation::fractional_time;

/// The recomputation of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recompute {
    /// `sum_m k_m r_m`.
    pub extra_time: i64,
    /// Memory of the stage.
    pub memory: i64,
    /// `k`.
    pub counts: Counts,
}

/// Memory of a stage with so many layers, of which so many are recomputed.
#[must_use]
pub fn memory(cell: &Cell, stage: &Stage, layers: i64, counts: &Counts) -> i64 {
    let mut kept = layers;
    let (mut activation, mut workspace) = (0, 0);
    for (mode, &count) in cell.modes.iter().zip(counts) {
        kept -= count;
        activation += count * mode.activation;
        if count > 0 {
            workspace = workspace.max(mode.workspace);
        }
    }
    activation += kept * cell.layer.activation;
    layers * cell.layer.memory + stage.in_flight * activation + workspace + stage.fixed_memory
}

/// The recomputation of least extra time with which so many layers fit; `None` if none does.
#[must_use]
pub fn least_recompute(cell: &Cell, stage: &Stage, layers: i64) -> Option<Recompute> {
    if cell.recompute != RecomputeRule::Free {
        return forced(cell, stage, layers);
    }
    let need = memory(cell, stage, layers, &[0; 3]) - cell.capacity;
    if need <= 0 {
        return Some(of_counts(cell, stage, layers, [0; 3]));
    }
    match cell.modes.len() {
        0 => None,
        1 => single(cell, stage, layers, need, 0),
        _ => knapsack(cell, stage, layers, need),
    }
}

/// A recomputation that fits, found without a search: the best that uses one mode.
pub(super) fn quick_recompute(cell: &Cell, stage: &Stage, layers: i64) -> Option<Recompute> {
    if cell.recompute != RecomputeRule::Free || cell.modes.len() < 2 {
        return least_recompute(cell, stage, layers);
    }
    let need = memory(cell, stage, layers, &[0; 3]) - cell.capacity;
    if need <= 0 {
        return Some(of_counts(cell, stage, layers, [0; 3]));
    }
    (0..cell.modes.len())
        .filter_map(|mode| single(cell, stage, layers, need, mode))
        .min()
}

/// Memory that recomputing one layer saves.
fn gain(cell: &Cell, stage: &Stage, mode: &RecomputeMode) -> i64 {
    stage.in_flight * (cell.layer.activation - mode.activation)
}

fn ceil_div(numerator: i64, denominator: i64) -> i64 {
    (numerator + denominator - 1).div_euclid(denominator)
}

fn of_counts(cell: &Cell, stage: &Stage, layers: i64, counts: Counts) -> Recompute {
    let pairs = cell.modes.iter().zip(counts);
    Recompute {
        extra_time: pairs.map(|(mode, count)| mode.extra_time * count).sum(),
        memory: memory(cell, stage, layers, &counts),
        counts,
    }
}

/// The recomputation that the rule prescribes, if it fits.
fn forced(cell: &Cell, stage: &Stage, layers: i64) -> Option<Recompute> {
    let mut counts = [0; 3];
    match cell.recompute {
        RecomputeRule::None | RecomputeRule::Free => {}
        RecomputeRule::Uniform { mode, count } => counts[mode] = count.min(layers),
        RecomputeRule::AllLayers { mode } => counts[mode] = layers,
    }
    let recompute = of_counts(cell, stage, layers, counts);
    (recompute.memory <= cell.capacity).then_some(recompute)
}

fn single(cell: &Cell, stage: &Stage, layers: i64, need: i64, mode: usize) -> Option<Recompute> {
    let gain = gain(cell, stage, &cell.modes[mode]);
    if gain <= 0 {
        return None;
    }
    let count = ceil_div(need + cell.modes[mode].workspace, gain).max(1);
    let mut counts = [0; 3];
    counts[mode] = count;
    (count <= layers).then(|| of_counts(cell, stage, layers, counts))
}

fn knapsack(cell: &Cell, stage: &Stage, layers: i64, need: i64) -> Option<Recompute> {
    let mut order: Vec<usize> = (0..cell.modes.len())
        .filter(|&mode| gain(cell, stage, &cell.modes[mode]) > 0)
        .collect();
    let ratio = |mode: usize, other: usize| {
        let time = i128::from(cell.modes[mode].extra_time);
        time * i128::from(gain(cell, stage, &cell.modes[other]))
    };
    order.sort_by(|&a, &b| ratio(b, a).cmp(&ratio(a, b)));
    let mut search = Search {
        cell,
        stage,
        layers,
        best: None,
    };
    // The workspace is that of the largest mode in use: one search for each possible limit.
    for limit in order.iter().map(|&mode| cell.modes[mode].workspace) {
        let usable: Vec<usize> = (order.iter().copied())
            .filter(|&mode| cell.modes[mode].workspace <= limit)
            .collect();
        search.run(&usable, need + limit, [0; 3], 0, layers);
    }
    search.best
}

/// Enumeration of counts, the worst mode first.
struct Search<'a> {
    cell: &'a Cell,
    stage: &'a Stage,
    layers: i64,
    best: Option<Recompute>,
}

impl Search<'_> {
    fn run(&mut self, modes: &[usize], need: i64, counts: Counts, time: i64, left: i64) {
        let [mode, rest @ ..] = modes else { return };
        let (extra_time, gain) = self.costs(*mode);
        let Some((best_time, best_gain)) = rest.last().map(|&best| self.costs(best)) else {
            let count = ceil_div(need, gain);
            if count <= left {
                self.offer(*mode, count, counts);
            }
            return;
        };
        for count in 0..=left {
            let time = time + count * extra_time;
            let need = need - count * gain;
            if need <= 0 {
                self.offer(*mode, count, counts);
                return;
            }
            let least = time + fractional_time(need, best_time, best_gain);
            if self.best.is_some_and(|best| least > best.extra_time) {
                return;
            }
            let mut counts = counts;
            counts[*mode] = count;
            self.run(rest, need, counts, time, left - count);
        }
    }

    fn costs(&self, mode: usize) -> (i64, i64) {
        let mode = &self.cell.modes[mode];
        (mode.extra_time, gain(self.cell, self.stage, mode))
    }

    fn offer(&mut self, mode: usize, count: i64, mut counts: Counts) {
        counts[mode] = count;
        let candidate = of_counts(self.cell, self.stage, self.layers, counts);
        if self.best.is_none_or(|best| candidate < best) {
            self.best = Some(candidate);
        }
    }
}
