//! Bounds of a group that need no program: what lies above the best known plan is pruned.
//!
//! Three lower bounds of growing cost, for a group with `S` stages and `E = sum_s e_s`:
//! 1. [`balance_bound`]: no stage layout can beat the perfect balance,
//!    `tau >= max(ceil((L t + E) / S), ceil(L / S) t + min_s e_s, max_s e_s + lower_s t)` and
//!    `delta >= max(ceil((L d + sum_s dx_s) / S), ceil(L / S) d + min_s dx_s, max_s dx_s + lower_s d)`.
//! 2. [`bottleneck_bound`]: `tau* = min {v : sum_s max {n : T_s(n) <= v} >= L}`, found by giving each
//!    layer to the stage that is least slow with it, which is exact since `T_s` does not decrease;
//!    and the least extra time that any distribution needs, layers and recomputation in fractions.
//! 3. the same with exact tables of every stage within the windows that the best known plan leaves.
//!
//! Each gives `a tau + b (L t + E + extra) + w delta + constant`.

use super::data::{Group, Kind, Layers, Partition, RecomputeRule, Stage, Weights, alike};
use super::equal_middle::{equal_middle, middles};
use super::extra::least_total_extra;
use super::plan::{stage_time, value};
use super::recompute::quick_recompute;
use super::relaxation::Relaxation;

/// Buffers that are kept between groups.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Most layers of each stage.
    pub(super) upper: Vec<i64>,
    /// Layers of each stage.
    pub(super) layers: Vec<i64>,
    /// Time of each stage with one layer more.
    next: Vec<i64>,
    /// Rates and widths of the extra time of each stage.
    pub(super) rates: Vec<(f64, f64)>,
}

/// Lower bounds of the two maxima of the objective.
#[derive(Debug, Clone, Copy)]
pub(super) struct Floors {
    pub(super) slowest: i64,
    pub(super) delta: i64,
    /// `L t + sum_s e_s`, exact.
    pub(super) total: i64,
    /// Extra time of all recomputation, at least.
    pub(super) extra: i64,
}

impl Floors {
    pub(super) fn objective(&self, group: &Group, extra: i64) -> i64 {
        self.weighted(&group.weights, group.constant, extra)
    }

    fn weighted(&self, weights: &Weights, constant: i64, extra: i64) -> i64 {
        weights.slowest * self.slowest
            + weights.total * (self.total + extra)
            + weights.delta * self.delta
            + constant
    }
}

pub(super) fn ceil_div(numerator: i64, denominator: i64) -> i64 {
    -(-numerator).div_euclid(denominator)
}

/// The floors of perfect balance.
pub(super) fn balance(group: &Group, layers: i64) -> Floors {
    let recomputed = match group.recompute {
        RecomputeRule::AllLayers { mode } => group.modes[mode].extra_time,
        _ => 0,
    };
    let layer = group.layer();
    balance_of(
        &group.stages,
        (layer.time + recomputed, layer.delta),
        layers,
    )
}

/// The same of stages whose layers take so much time and delta each.
fn balance_of(stages: &[Stage], (time, delta): (i64, i64), layers: i64) -> Floors {
    let (mut total, mut total_delta) = (0, 0);
    let (mut least, mut least_delta) = (i64::MAX, i64::MAX);
    let (mut most, mut most_delta) = (i64::MIN, i64::MIN);
    for stage in stages {
        total += stage.extra_time;
        total_delta += stage.extra_delta;
        least = least.min(stage.extra_time);
        least_delta = least_delta.min(stage.extra_delta);
        most = most.max(stage.extra_time + stage.lower_layers * time);
        most_delta = most_delta.max(stage.extra_delta + stage.lower_layers * delta);
    }
    let stages = stages.len() as i64;
    let even = ceil_div(layers, stages);
    Floors {
        slowest: (ceil_div(layers * time + total, stages))
            .max(even * time + least)
            .max(most),
        delta: (ceil_div(layers * delta + total_delta, stages))
            .max(even * delta + least_delta)
            .max(most_delta),
        total: layers * time + total,
        extra: 0,
    }
}

/// The first lower bound: perfect balance, no recomputation but what is prescribed for every layer.
#[must_use]
pub fn balance_bound(group: &Group, layers: i64) -> i64 {
    balance(group, layers).objective(group, 0)
}

/// The same of the stages and the objective's weights and constant, where no recomputation is prescribed.
#[must_use]
pub fn balance_bound_of(
    stages: &[Stage],
    layer: &Kind,
    (weights, constant): (&Weights, i64),
    layers: i64,
) -> i64 {
    balance_of(stages, (layer.time, layer.delta), layers).weighted(weights, constant, 0)
}

/// Whether any distribution of the layers fits, without a division in the common case.
pub(super) fn fits(group: &Group, layers: i64, scratch: &mut Scratch) -> bool {
    let stages = group.stages.len() as i64;
    let (down, up) = (layers / stages, ceil_div(layers, stages));
    if group.partition == Partition::Free && even_fits(group, down, up) {
        return true;
    }
    let relaxation = Relaxation::new(group);
    if relaxation.lacks_memory(layers) {
        return false;
    }
    find_upper(&relaxation, layers, scratch);
    admits(group, layers, &scratch.upper)
}

/// Whether some distribution keeps between the fewest layers of the stages and these.
fn admits(group: &Group, layers: i64, upper: &[i64]) -> bool {
    let (mut least, mut most) = (0, 0);
    for (stage, &upper) in group.stages.iter().zip(upper) {
        if stage.lower_layers > upper {
            return false;
        }
        least += stage.lower_layers;
        most += upper;
    }
    (least..=most).contains(&layers)
        && (group.partition == Partition::Free || middles(group, layers, upper).is_some())
}

fn even_fits(group: &Group, down: i64, up: i64) -> bool {
    let layer = group.layer();
    let most_modes: &[_] = match group.recompute {
        RecomputeRule::Free => &group.modes,
        RecomputeRule::None => &[],
        _ => return false,
    };
    group.stages.iter().all(|stage| {
        let room = group.capacity - stage.fixed_memory;
        let kept = up * (layer.memory + stage.in_flight * layer.activation);
        let fits = |mode: &super::RecomputeMode| {
            up * (layer.memory + stage.in_flight * mode.activation) + mode.workspace <= room
        };
        stage.lower_layers <= down
            && up <= stage.upper_layers
            && (kept <= room || most_modes.iter().any(fits))
    })
}

/// Most layers of each stage, by memory and by its own limit.
pub(super) fn find_upper(relaxation: &Relaxation<'_>, layers: i64, scratch: &mut Scratch) {
    let stages = relaxation.group.stages.iter();
    let most = stages.map(|stage| relaxation.most_layers(stage).min(layers));
    scratch.upper.clear();
    scratch.upper.extend(most);
}

/// Objective of the near-even split: every stage the same number of layers, what remains to the
/// stages after the first, one each. `None` if it does not fit.
#[must_use]
pub fn near_even(group: &Group, layers: i64) -> Option<i64> {
    let stages = group.stages.len() as i64;
    let (even, rest) = (layers / stages, layers % stages);
    let (mut slowest, mut total, mut delta) = (i64::MIN, 0, i64::MIN);
    for (index, stage) in group.stages.iter().enumerate() {
        let own = even + i64::from((1..=rest).contains(&(index as i64)));
        if own < stage.lower_layers || own > stage.upper_layers {
            return None;
        }
        let extra = quick_recompute(group, stage, &alike(own))?.extra_time;
        let time = stage_time(group, index, &alike(own), extra);
        slowest = slowest.max(time);
        total += time;
        delta = delta.max(own * group.layer().delta + stage.extra_delta);
    }
    let weights = &group.weights;
    Some(weights.slowest * slowest + weights.total * total + weights.delta * delta + group.constant)
}

/// The second lower bound, given the most layers of each stage; what `scratch.layers` holds is at least
/// all layers.
fn bottleneck_within(relaxation: &Relaxation<'_>, layers: i64, scratch: &mut Scratch) -> Floors {
    let group = relaxation.group;
    let mut floors = balance(group, layers);
    if let RecomputeRule::AllLayers { mode } = group.recompute {
        // From here on the extra time is counted apart.
        floors.total -= layers * group.modes[mode].extra_time;
    }
    floors.extra = least_total_extra(relaxation, layers, scratch);
    floors.slowest = match group.partition {
        Partition::EqualMiddle if group.stages.len() > 2 => {
            equal_middle(relaxation, layers, scratch)
        }
        _ => {
            // The slowest stage takes no less than the mean, recomputation included.
            let stages = group.stages.len() as i64;
            let mean = ceil_div(floors.total + floors.extra, stages);
            fill(relaxation, layers, floors.slowest.max(mean), scratch)
        }
    };
    floors
}

/// Gives every stage what it can do within `floor`, then each layer left to the stage that is least
/// slow with it. Returns the time of the slowest stage; the stages may have more than all layers.
fn fill(relaxation: &Relaxation<'_>, layers: i64, floor: i64, scratch: &mut Scratch) -> i64 {
    let stages = &relaxation.group.stages;
    scratch.layers.clear();
    let (mut slowest, mut left) = (floor, layers);
    for (stage, &upper) in stages.iter().zip(&scratch.upper) {
        let (own, time) = relaxation.within(stage, floor, (stage.lower_layers, upper));
        slowest = slowest.max(time);
        left -= own;
        scratch.layers.push(own);
    }
    if left <= 0 {
        return slowest;
    }
    let next = |stage: usize, own: i64, upper: i64| {
        if own < upper {
            relaxation.time(&stages[stage], own + 1)
        } else {
            i64::MAX
        }
    };
    scratch.next.clear();
    for (stage, (&own, &upper)) in scratch.layers.iter().zip(&scratch.upper).enumerate() {
        scratch.next.push(next(stage, own, upper));
    }
    for _ in 0..left {
        let least = scratch
            .next
            .iter()
            .enumerate()
            .min_by_key(|(_, time)| **time);
        let Some((stage, &time)) = least else { break };
        slowest = slowest.max(time);
        scratch.layers[stage] += 1;
        scratch.next[stage] = next(stage, scratch.layers[stage], scratch.upper[stage]);
    }
    slowest
}

/// The second lower bound of a group; `None` if no distribution of the layers fits.
#[must_use]
pub fn bottleneck_bound(group: &Group, layers: i64, scratch: &mut Scratch) -> Option<i64> {
    let relaxation = Relaxation::new(group);
    if relaxation.lacks_memory(layers) {
        return None;
    }
    find_upper(&relaxation, layers, scratch);
    if !admits(group, layers, &scratch.upper) {
        return None;
    }
    let floors = bottleneck_within(&relaxation, layers, scratch);
    Some(floors.objective(group, floors.extra))
}

/// A lower bound for layers of any kinds; `None` only if no distribution of the layers fits.
pub(super) fn lower_bound(group: &Group, layers: &Layers, scratch: &mut Scratch) -> Option<i64> {
    if layers.are_alike() {
        return bottleneck_bound(group, layers.count(), scratch);
    }
    Some(quick_bound(group, layers))
}

/// The same without a look at memory: of perfect balance.
pub(super) fn quick_bound(group: &Group, layers: &Layers) -> i64 {
    if layers.are_alike() {
        return balance_bound(group, layers.count());
    }
    let of_layers = group.kinds.iter().zip(layers.all());
    let of_layers: i64 = of_layers.map(|(kind, count)| kind.time * count).sum();
    let total = of_layers + (group.stages.iter().map(|it| it.extra_time)).sum::<i64>();
    let deltas = group.stages.iter().map(|it| it.extra_delta);
    let (stages, delta) = (group.stages.len() as i64, deltas.max().unwrap_or(0));
    value(group, ceil_div(total, stages), total, delta)
}
