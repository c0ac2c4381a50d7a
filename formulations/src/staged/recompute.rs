//! Which layers a stage had best recompute, given its layers: the exact `R` behind bounds, cuts and plans.
//!
//! For `n` layers of each kind the memory of a stage with counts `k` is
//! `mem(n, k) = sum_κ n_κ P_κ + f (sum_κ n_κ A_κ - sum_m k_m (A_κ(m) - C_m)) + max_{m: k_m > 0} W_m + m`,
//! and the objective does not decrease with `sum_m k_m r_m`. So the least extra time that fits is
//! optimal whatever the other stages do.
//!
//! With one mode and `need = mem(n, 0) - capacity`: `k = 0` if `need <= 0`, else
//! `k = max(1, ceil((need + W) / (f (A - C))))`, and `n` does not fit if `k > n` or `A <= C`.
//! With several modes it is a small knapsack: the modes are taken in order of
//! their time for a unit of memory, the worst are enumerated as far as the fractional optimum of the
//! rest permits, the best follows from the closed form. Among equal times the least memory wins, then
//! the lexicographically first counts.

use super::data::{Counts, Group, KindCounts, MAX_MODES, RecomputeMode, RecomputeRule, Stage};
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

const NOTHING: Counts = [0; MAX_MODES];

/// Memory of a stage with so many layers, of which so many are recomputed.
#[must_use]
pub fn memory(group: &Group, stage: &Stage, layers: &KindCounts, counts: &Counts) -> i64 {
    let (mut own, mut activation, mut workspace) = (0, 0, 0);
    for (kind, &count) in group.kinds.iter().zip(layers) {
        own += count * kind.memory;
        activation += count * kind.activation;
    }
    for (mode, &count) in group.modes.iter().zip(counts) {
        activation -= count * saved(group, mode);
        if count > 0 {
            workspace = workspace.max(mode.workspace);
        }
    }
    own + stage.in_flight * activation + workspace + stage.fixed_memory
}

/// The recomputation of least extra time with which so many layers fit; `None` if none does.
#[must_use]
pub fn least_recompute(group: &Group, stage: &Stage, layers: &KindCounts) -> Option<Recompute> {
    if group.recompute != RecomputeRule::Free {
        return forced(group, stage, layers);
    }
    let need = memory(group, stage, layers, &NOTHING) - group.capacity;
    if need <= 0 {
        return Some(of_counts(group, stage, layers, NOTHING));
    }
    match group.modes.len() {
        0 => None,
        1 => single(group, stage, layers, need, 0),
        _ => knapsack(group, stage, layers, need),
    }
}

/// A recomputation that fits, found without a search: the best that uses one mode.
pub(super) fn quick_recompute(
    group: &Group,
    stage: &Stage,
    layers: &KindCounts,
) -> Option<Recompute> {
    if group.recompute != RecomputeRule::Free || group.modes.len() < 2 {
        return least_recompute(group, stage, layers);
    }
    let need = memory(group, stage, layers, &NOTHING) - group.capacity;
    if need <= 0 {
        return Some(of_counts(group, stage, layers, NOTHING));
    }
    (0..group.modes.len())
        .filter_map(|mode| single(group, stage, layers, need, mode))
        .min()
}

/// `A - C`: memory that recomputing one layer saves for each unit in flight.
pub(super) fn saved(group: &Group, mode: &RecomputeMode) -> i64 {
    group.kinds[mode.kind].activation - mode.activation
}

fn ceil_div(numerator: i64, denominator: i64) -> i64 {
    (numerator + denominator - 1).div_euclid(denominator)
}

fn of_counts(group: &Group, stage: &Stage, layers: &KindCounts, counts: Counts) -> Recompute {
    let pairs = group.modes.iter().zip(counts);
    Recompute {
        extra_time: pairs.map(|(mode, count)| mode.extra_time * count).sum(),
        memory: memory(group, stage, layers, &counts),
        counts,
    }
}

/// The counts that a rule other than [`RecomputeRule::Free`] prescribes.
pub(super) fn prescribed(rule: RecomputeRule, layers: &KindCounts) -> Counts {
    let mut counts = NOTHING;
    match rule {
        RecomputeRule::None | RecomputeRule::Free => {}
        RecomputeRule::Uniform { mode, count } => counts[mode] = count.min(layers[0]),
        RecomputeRule::AllLayers { mode } => counts[mode] = layers[0],
    }
    counts
}

/// The recomputation that the rule prescribes, if it fits.
fn forced(group: &Group, stage: &Stage, layers: &KindCounts) -> Option<Recompute> {
    let counts = prescribed(group.recompute, layers);
    let recompute = of_counts(group, stage, layers, counts);
    (recompute.memory <= group.capacity).then_some(recompute)
}

fn single(
    group: &Group,
    stage: &Stage,
    layers: &KindCounts,
    need: i64,
    index: usize,
) -> Option<Recompute> {
    let mode = &group.modes[index];
    let gain = stage.in_flight * saved(group, mode);
    if gain <= 0 {
        return None;
    }
    let count = ceil_div(need + mode.workspace, gain).max(1);
    let mut counts = NOTHING;
    counts[index] = count;
    (count <= layers[mode.kind]).then(|| of_counts(group, stage, layers, counts))
}

fn knapsack(group: &Group, stage: &Stage, layers: &KindCounts, need: i64) -> Option<Recompute> {
    let gain = |mode: usize| stage.in_flight * saved(group, &group.modes[mode]);
    let mut order: Vec<usize> = (0..group.modes.len())
        .filter(|&mode| gain(mode) > 0)
        .collect();
    let ratio = |mode: usize, other: usize| {
        i128::from(group.modes[mode].extra_time) * i128::from(gain(other))
    };
    order.sort_by(|&a, &b| ratio(b, a).cmp(&ratio(a, b)));
    let mut search = Search {
        group,
        stage,
        layers,
        best: None,
    };
    // The workspace is that of the largest mode in use: one search for each possible limit.
    for limit in order.iter().map(|&mode| group.modes[mode].workspace) {
        let usable: Vec<usize> = (order.iter().copied())
            .filter(|&mode| group.modes[mode].workspace <= limit)
            .collect();
        search.run(&usable, need + limit, NOTHING, 0, *layers);
    }
    search.best
}

/// Enumeration of counts, the worst mode first.
struct Search<'a> {
    group: &'a Group,
    stage: &'a Stage,
    layers: &'a KindCounts,
    best: Option<Recompute>,
}

impl Search<'_> {
    fn run(&mut self, modes: &[usize], need: i64, counts: Counts, time: i64, left: KindCounts) {
        let [index, rest @ ..] = modes else { return };
        let mode = &self.group.modes[*index];
        let gain = self.stage.in_flight * saved(self.group, mode);
        let most = left[mode.kind];
        let Some(&best) = rest.last() else {
            let count = ceil_div(need, gain);
            if count <= most {
                self.offer(*index, count, counts);
            }
            return;
        };
        let best = &self.group.modes[best];
        let best_gain = self.stage.in_flight * saved(self.group, best);
        for count in 0..=most {
            let time = time + count * mode.extra_time;
            let need = need - count * gain;
            if need <= 0 {
                self.offer(*index, count, counts);
                return;
            }
            let least = time + fractional_time(need, best.extra_time, best_gain);
            if self.best.is_some_and(|best| least > best.extra_time) {
                return;
            }
            let (mut counts, mut left) = (counts, left);
            counts[*index] = count;
            left[mode.kind] -= count;
            self.run(rest, need, counts, time, left);
        }
    }

    fn offer(&mut self, mode: usize, count: i64, mut counts: Counts) {
        counts[mode] = count;
        let candidate = of_counts(self.group, self.stage, self.layers, counts);
        if self.best.is_none_or(|best| candidate < best) {
            self.best = Some(candidate);
        }
    }
}
