//! Which cells the program has to see: all others are infeasible or provably worse.
//!
//! Cells are visited in the order of their first lower bound. Each that may still win gets the second
//! bound and two plans (near-even, and the distribution of the second bound), which lower the limit for
//! those that follow. A cell whose bound *equals* the limit stays, since it may win the tie.

use super::bounds::{Scratch, balance_bound, bottleneck, fits, near_even};
use super::data::{Cell, Data, Partition, SideRow};
use super::dynamic::quick_objective;
use super::plan::{Plan, plan_of};
use super::side_rows::{Prepared, excludes, keeps_side_rows};

/// What is proven of a cell before any program is solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellBound {
    /// No distribution of the layers fits the stages; see [`shortage`](super::shortage()).
    Infeasible,
    /// A side row cannot hold for it, whatever the layers that fit.
    Excluded {
        /// Index of the row.
        row: usize,
    },
    /// It cannot beat the best plan.
    Pruned {
        /// No plan of the cell has an objective below this.
        lower_bound: i64,
    },
    /// It may have the best plan.
    Survivor {
        /// No plan of the cell has an objective below this.
        lower_bound: i64,
    },
}

/// What the screening leaves.
#[derive(Debug)]
pub(super) struct Screening {
    /// One entry for each cell.
    pub(super) bounds: Vec<CellBound>,
    /// The cells that may win and their lower bounds, the lowest first.
    pub(super) survivors: Vec<(i64, usize)>,
    /// The best plan that was met.
    pub(super) incumbent: Option<Plan>,
    /// Objective that a plan must reach to matter: that of the `k`-th best known class.
    pub(super) limit: i64,
}

/// The best objectives of different classes.
struct Thresholds {
    count: usize,
    best: Vec<(i64, usize)>,
}

impl Thresholds {
    fn offer(&mut self, objective: i64, class: usize) {
        if objective > self.limit() {
            return;
        }
        if let Some(known) = self.best.iter().position(|entry| entry.1 == class) {
            if self.best[known].0 <= objective {
                return;
            }
            self.best.remove(known);
        }
        let place = self.best.partition_point(|entry| entry.0 <= objective);
        self.best.insert(place, (objective, class));
        self.best.truncate(self.count);
    }

    fn limit(&self) -> i64 {
        if self.best.len() < self.count {
            return i64::MAX;
        }
        self.best.last().map_or(i64::MAX, |entry| entry.0)
    }
}

/// Screens for the best plans of `count` different classes of cells.
pub(super) fn screen(
    original: &Data,
    prepared: &Prepared<'_>,
    count: usize,
    class: impl Fn(usize) -> usize,
) -> Screening {
    let data = &*prepared.data;
    let mut scratch = Scratch::default();
    let mut bounds = Vec::with_capacity(data.cells.len());
    let mut order = Vec::with_capacity(data.cells.len());
    for index in 0..data.cells.len() {
        let bound = first_bound(original, prepared, index, &mut scratch);
        if let CellBound::Pruned { lower_bound } = bound {
            order.push((lower_bound, index));
        }
        bounds.push(bound);
    }
    order.sort_unstable();
    let mut thresholds = Thresholds {
        count,
        best: Vec::new(),
    };
    let mut incumbent: Option<Plan> = None;
    let mut survivors = Vec::new();
    for (first, index) in order {
        if first > thresholds.limit() {
            break;
        }
        let cell = &data.cells[index];
        let lower_bound = second_bound(cell, data.layers, &mut scratch).max(first);
        bounds[index] = CellBound::Pruned { lower_bound };
        if lower_bound > thresholds.limit() {
            continue;
        }
        survivors.push((lower_bound, index));
        let before = incumbent.as_ref().map_or(i64::MAX, |plan| plan.objective);
        if let Some(objective) =
            known_objective(prepared, index, &scratch.layers, before, &mut incumbent)
        {
            thresholds.offer(objective, class(index));
        }
    }
    let limit = thresholds.limit();
    survivors.retain(|survivor| survivor.0 <= limit);
    survivors.sort_unstable();
    for &(lower_bound, index) in &survivors {
        bounds[index] = CellBound::Survivor { lower_bound };
    }
    Screening {
        bounds,
        survivors,
        incumbent,
        limit,
    }
}

/// A cell that may win is marked as pruned with its first bound until more is known.
fn first_bound(
    original: &Data,
    prepared: &Prepared<'_>,
    index: usize,
    scratch: &mut Scratch,
) -> CellBound {
    let data = &*prepared.data;
    let cell = &data.cells[index];
    if !fits(cell, data.layers, scratch) {
        return match prepared.tightened_by(index) {
            Some(row) if fits(&original.cells[index], data.layers, scratch) => {
                CellBound::Excluded { row }
            }
            _ => CellBound::Infeasible,
        };
    }
    let excluded = |row: &SideRow| excludes(row, index, cell, data.layers);
    if let Some(row) = data.side_rows.iter().position(excluded) {
        return CellBound::Excluded { row };
    }
    CellBound::Pruned {
        lower_bound: balance_bound(cell, data.layers),
    }
}

fn second_bound(cell: &Cell, layers: i64, scratch: &mut Scratch) -> i64 {
    let floors = bottleneck(cell, layers, scratch);
    floors.objective(cell, floors.extra)
}

/// Objective of the better of two plans that keep the side rows; the best of all cells is kept.
fn known_objective(
    prepared: &Prepared<'_>,
    index: usize,
    greedy: &[i64],
    before: i64,
    incumbent: &mut Option<Plan>,
) -> Option<i64> {
    let data = &*prepared.data;
    let cell = &data.cells[index];
    let mut known: Option<i64> = None;
    let mut offer = |layers: &[i64], objective: i64| {
        let improves = objective < before.min(known.unwrap_or(i64::MAX));
        if !prepared.coupled && !improves {
            known = Some(known.map_or(objective, |known| known.min(objective)));
            return;
        }
        let plan = plan_of(cell, index, layers).filter(|plan| keeps_side_rows(data, plan));
        let Some(plan) = plan else { return };
        known = Some(known.map_or(plan.objective, |known| known.min(plan.objective)));
        if incumbent
            .as_ref()
            .is_none_or(|best| plan.objective < best.objective)
        {
            *incumbent = Some(plan);
        }
    };
    if let Some(objective) = quick_objective(cell, greedy) {
        offer(greedy, objective);
    }
    if cell.partition == Partition::Free
        && let Some(objective) = near_even(cell, data.layers)
    {
        offer(&near_even_layers(cell, data.layers), objective);
    }
    known
}

fn near_even_layers(cell: &Cell, layers: i64) -> Vec<i64> {
    let stages = cell.stages.len() as i64;
    let (even, rest) = (layers / stages, layers % stages);
    let own = |stage: i64| even + i64::from((1..=rest).contains(&stage));
    (0..stages).map(own).collect()
}
