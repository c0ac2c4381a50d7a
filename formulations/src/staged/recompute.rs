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

/// A lower limit of the extra time of so many layers that fit, exact but for several modes.
pub(super) fn least_extra_time(cell: &Cell, stage: &Stage, layers: i64) -> i64 {
    match cell.recompute {
        RecomputeRule::None => 0,
        RecomputeRule::Uniform { mode, count } => count.min(layers) * cell.modes[mode].extra_time,
        RecomputeRule::AllLayers { mode } => layers * cell.modes[mode].extra_time,
        RecomputeRule::Free => {
            let per_layer = cell.layer.memory + stage.in_flight * cell.layer.activation;
            let need = layers * per_layer + stage.fixed_memory - cell.capacity;
            if need <= 0 {
                return 0;
            }
            if let [mode] = &cell.modes[..] {
                let gain = gain(cell, stage, mode);
                return if gain <= 0 {
                    0
                } else {
                    ceil_div(need + mode.workspace, gain).max(1) * mode.extra_time
                };
            }
            // Whatever the mix, its memory saved is at least `need` and the smallest workspace, and no
            // unit of it takes less time than by the best mode.
            let workspace = cell
                .modes
                .iter()
                .map(|mode| mode.workspace)
                .min()
                .unwrap_or(0);
            let times = cell.modes.iter().filter_map(|mode| {
                let gain = gain(cell, stage, mode);
                (gain > 0).then(|| fractional_time(need + workspace, mode.extra_time, gain))
            });
            times.min().unwrap_or(0)
        }
    }
}

/// The most layers that fit on a stage, however they are recomputed; negative if not even none.
pub(super) fn most_layers(cell: &Cell, stage: &Stage) -> i64 {
    let (layer, room) = (&cell.layer, cell.capacity - stage.fixed_memory);
    if room < 0 {
        return -1;
    }
    let kept = layer.memory + stage.in_flight * layer.activation;
    let recomputed = |mode: &RecomputeMode| {
        let each = layer.memory + stage.in_flight * mode.activation;
        floor_layers(room - mode.workspace, each)
    };
    let most = match cell.recompute {
        RecomputeRule::None | RecomputeRule::Uniform { count: 0, .. } => floor_layers(room, kept),
        RecomputeRule::AllLayers { mode } => recomputed(&cell.modes[mode]),
        RecomputeRule::Uniform { mode, count } => {
            let mode = &cell.modes[mode];
            let gained = count * gain(cell, stage, mode);
            let beyond = floor_layers(room - mode.workspace + gained, kept);
            if beyond >= count {
                beyond
            } else {
                recomputed(mode).min(count)
            }
        }
        RecomputeRule::Free => {
            let modes = cell
                .modes
                .iter()
                .filter(|mode| mode.activation < layer.activation);
            modes
                .map(recomputed)
                .fold(floor_layers(room, kept), i64::max)
        }
    };
    // No layers need no workspace.
    most.max(0).min(stage.upper_layers)
}

fn floor_layers(room: i64, each: i64) -> i64 {
    if room < 0 {
        -1
    } else if each == 0 {
        i64::MAX
    } else {
        room / each
    }
}

/// Memory that recomputing one layer saves.
fn gain(cell: &Cell, stage: &Stage, mode: &RecomputeMode) -> i64 {
    stage.in_flight * (cell.layer.activation - mode.activation)
}

fn ceil_div(numerator: i64, denominator: i64) -> i64 {
    (numerator + denominator - 1).div_euclid(denominator)
}

/// Time of saving `need > 0` with a mode in fractions of layers, rounded up.
fn fractional_time(need: i64, extra_time: i64, gain: i64) -> i64 {
    let product = i128::from(need) * i128::from(extra_time);
    ((product - 1) / i128::from(gain)) as i64 + 1
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
