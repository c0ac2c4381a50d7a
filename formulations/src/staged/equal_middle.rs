//! Cells whose stages in the middle have the same number of layers: so few distributions that each is tried.

use std::ops::RangeInclusive;

use super::bounds::{Scratch, ceil_div};
use super::data::Cell;
use super::plan::{objective, stage_time};
use super::relaxation::Relaxation;

/// Layers of a middle stage, fewest and most, with which the rest fits on the ends. `None` if none.
/// Fewer than three stages have no middle.
pub(super) fn middles(cell: &Cell, layers: i64, upper: &[i64]) -> Option<RangeInclusive<i64>> {
    let end = cell.stages.len() - 1;
    if end < 2 {
        return Some(0..=0);
    }
    let lower = |stage: usize| cell.stages[stage].lower_layers;
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
    let cell = relaxation.cell;
    let last = cell.stages.len() - 1;
    let mut slowest = i64::MAX;
    let mut best = i64::MAX;
    let mut trial = vec![0; last + 1];
    for split in equal_middle_splits(cell, layers, &scratch.upper) {
        trial.fill(split.middle);
        (trial[0], trial[last]) = (split.first, split.last);
        let extra = |stage: usize| relaxation.extra_time(&cell.stages[stage], trial[stage]);
        let time = |stage: usize| stage_time(cell, stage, trial[stage], extra(stage));
        slowest = slowest.min((0..=last).map(time).max().unwrap_or(i64::MAX));
        let cost = objective(cell, &trial, (0..=last).map(extra));
        if cost < best {
            best = cost;
            scratch.layers.clone_from(&trial);
        }
    }
    slowest
}

/// Layers of the first, of each middle and of the last stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split {
    pub(super) first: i64,
    pub(super) middle: i64,
    pub(super) last: i64,
}

/// Every distribution with equal middle stages within the bounds; for three stages or more.
pub(super) fn equal_middle_splits<'a>(
    cell: &'a Cell,
    layers: i64,
    upper: &'a [i64],
) -> impl Iterator<Item = Split> + 'a {
    let end = cell.stages.len() - 1;
    let range = middles(cell, layers, upper);
    range.into_iter().flatten().flat_map(move |middle| {
        let both = layers - middle * (end as i64 - 1);
        let least = cell.stages[0].lower_layers.max(both - upper[end]);
        let most = upper[0].min(both - cell.stages[end].lower_layers);
        (least..=most).map(move |first| Split {
            first,
            middle,
            last: both - first,
        })
    })
}
