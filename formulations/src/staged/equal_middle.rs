//! Groups whose stages in the middle have the same number of layers: so few distributions that each is tried.

use std::ops::RangeInclusive;

use super::bounds::{Scratch, ceil_div};
use super::data::{Group, alike};
use super::plan::{objective, stage_time};
use super::relaxation::Relaxation;

/// Layers of a middle stage, fewest and most, with which the rest fits on the ends. `None` if none.
/// Fewer than three stages have no middle.
pub(super) fn middles(group: &Group, layers: i64, upper: &[i64]) -> Option<RangeInclusive<i64>> {
    let end = group.stages.len() - 1;
    if end < 2 {
        return Some(0..=0);
    }
    let lower = |stage: usize| group.stages[stage].lower_layers;
    let middle = end as i64 - 1;
    let from = (1..end).map(lower).max().unwrap_or(0);
    let to = upper[1..end].iter().copied().min().unwrap_or(0);
    let from = from.max(ceil_div(layers - upper[0] - upper[end], middle));
    let to = to.min((layers - lower(0) - lower(end)).div_euclid(middle));
    (from <= to).then_some(from..=to)
}

/// The least time of the slowest stage when all stages in the middle have the same layers; leaves the
/// distribution of least objective in `scratch.layers`.
pub(super) fn equal_middle(relaxation: &Relaxation<'_>, layers: i64, scratch: &mut Scratch) -> i64 {
    let group = relaxation.group;
    let (mut slowest, mut best) = (i64::MAX, i64::MAX);
    for trial in splits_within(group, layers, scratch.upper.clone()) {
        let stages = trial.iter().zip(group.stages.iter());
        let costs = stages.map(|(&own, stage)| (alike(own), relaxation.extra_time(stage, own)));
        let times = (costs.clone().enumerate())
            .map(|(stage, (layers, extra))| stage_time(group, stage, &layers, extra));
        slowest = slowest.min(times.max().unwrap_or(i64::MAX));
        let cost = objective(group, costs);
        if cost < best {
            best = cost;
            scratch.layers.clone_from(&trial);
        }
    }
    slowest
}

/// Layers of the stages in every distribution with equal middle stages; for three stages or more.
pub(super) fn equal_middle_splits(
    group: &Group,
    layers: i64,
) -> impl Iterator<Item = Vec<i64>> + '_ {
    let stages = group.stages.iter();
    let upper = stages.map(|stage| stage.upper_layers.min(layers)).collect();
    splits_within(group, layers, upper)
}

/// The same with at most so many layers on each stage.
fn splits_within(
    group: &Group,
    layers: i64,
    upper: Vec<i64>,
) -> impl Iterator<Item = Vec<i64>> + '_ {
    let end = group.stages.len() - 1;
    let range = middles(group, layers, &upper);
    range.into_iter().flatten().flat_map(move |middle| {
        let both = layers - middle * (end as i64 - 1);
        let least = group.stages[0].lower_layers.max(both - upper[end]);
        let most = upper[0].min(both - group.stages[end].lower_layers);
        (least..=most).map(move |first| {
            let mut lengths = vec![middle; end + 1];
            (lengths[0], lengths[end]) = (first, both - first);
            lengths
        })
    })
}
