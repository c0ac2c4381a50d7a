//! The exact tables of a cell within the windows that the best known objective leaves.
//!
//! A plan of objective at most `U` has, with the floors of [`bounds`](super::bounds),
//! `T_s(n_s) <= (U - constant - b (L t + E + extra) - w delta*) / a` and
//! `D_s(n_s) <= (U - constant - b (L t + E + extra) - a tau*) / w` on every stage (no window where the
//! weight is zero). Both sides grow with `n`, so the window is an interval; its lower end follows from
//! what the other stages can hold at most.

use super::bounds::{Floors, Scratch, bottleneck};
use super::data::Cell;
use super::plan::{stage_delta, stage_time};
use super::recompute::{Recompute, least_recompute};

/// Least recomputation of a stage for each number of layers of its window.
#[derive(Debug, Clone)]
pub(super) struct StageTable {
    /// First number of layers of the window.
    pub(super) lower: i64,
    /// Recomputation for `lower`, `lower + 1`, and so on; never empty.
    pub(super) recompute: Vec<Recompute>,
    /// `T_s(n)` likewise.
    pub(super) times: Vec<i64>,
}

impl StageTable {
    /// Last number of layers of the window.
    pub(super) fn upper(&self) -> i64 {
        self.lower + self.times.len() as i64 - 1
    }

    /// The recomputation of a number of layers within the window.
    pub(super) fn recompute(&self, layers: i64) -> Recompute {
        self.recompute[(layers - self.lower) as usize]
    }

    /// The time of a number of layers within the window.
    pub(super) fn time(&self, layers: i64) -> i64 {
        self.times[(layers - self.lower) as usize]
    }
}

/// Tables of all stages of a cell.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    /// Index of the cell.
    pub(super) cell: usize,
    pub(super) stages: Vec<StageTable>,
    /// Floors from the exact tables.
    pub(super) floors: Floors,
    /// No plan of the cell is below this.
    pub(super) lower_bound: i64,
}

/// Tables of a cell that fits; `None` if it has no plan of objective at most `limit`.
pub(super) fn tables(
    cell: &Cell,
    index: usize,
    layers: i64,
    limit: i64,
    scratch: &mut Scratch,
) -> Option<Tables> {
    let mut floors = bottleneck(cell, layers, scratch);
    let extra = floors.extra;
    let slack = limit.saturating_sub(floors.objective(cell, extra));
    if slack < 0 {
        return None;
    }
    let window = |weight: i64, floor: i64| {
        if weight == 0 {
            i64::MAX
        } else {
            floor.saturating_add(slack / weight)
        }
    };
    let slowest = window(cell.weights.slowest, floors.slowest);
    let delta = window(cell.weights.delta, floors.delta);
    let mut stages = Vec::with_capacity(cell.stages.len());
    for (stage, &upper) in scratch.upper.iter().enumerate() {
        stages.push(stage_table(cell, stage, upper, slowest, delta)?);
    }
    narrow(&mut stages, layers)?;
    floors.slowest = floors.slowest.max(slowest_at_least(&stages, layers));
    let lower_bound = floors.objective(cell, extra.max(convex_extra(&stages, layers)));
    (lower_bound <= limit).then_some(Tables {
        cell: index,
        stages,
        floors,
        lower_bound,
    })
}

fn stage_table(
    cell: &Cell,
    stage: usize,
    upper: i64,
    slowest: i64,
    delta: i64,
) -> Option<StageTable> {
    let lower = cell.stages[stage].lower_layers;
    let mut table = StageTable {
        lower,
        recompute: Vec::new(),
        times: Vec::new(),
    };
    for layers in lower..=upper {
        let Some(recompute) = least_recompute(cell, &cell.stages[stage], layers) else {
            break;
        };
        let time = stage_time(cell, stage, layers, recompute.extra_time);
        if time > slowest || stage_delta(cell, stage, layers) > delta {
            break;
        }
        table.recompute.push(recompute);
        table.times.push(time);
    }
    (!table.times.is_empty()).then_some(table)
}

/// Raises the lower end of every window to what the others leave.
fn narrow(stages: &mut [StageTable], layers: i64) -> Option<()> {
    let most: i64 = stages.iter().map(StageTable::upper).sum();
    for table in stages.iter_mut() {
        let least = layers - (most - table.upper());
        if least > table.upper() {
            return None;
        }
        if least > table.lower {
            let dropped = (least - table.lower) as usize;
            table.recompute.drain(..dropped);
            table.times.drain(..dropped);
            table.lower = least;
        }
    }
    let least: i64 = stages.iter().map(|table| table.lower).sum();
    (least <= layers && layers <= most).then_some(())
}

/// `min {v : sum_s max {n : T_s(n) <= v} >= L}` from the tables.
fn slowest_at_least(stages: &[StageTable], layers: i64) -> i64 {
    let mut slowest = stages
        .iter()
        .map(|table| table.times[0])
        .max()
        .unwrap_or(i64::MIN);
    let mut times: Vec<i64> = stages
        .iter()
        .flat_map(|table| table.times[1..].iter().copied())
        .collect();
    let lower: i64 = stages.iter().map(|table| table.lower).sum();
    // Times do not decrease along a stage, so the layers above the lower ends that are least slow are
    // a distribution.
    if let Some(further) = (layers - lower)
        .checked_sub(1)
        .filter(|&further| further >= 0)
    {
        let further = further as usize;
        if further < times.len() {
            slowest = slowest.max(*times.select_nth_unstable(further).1);
        }
    }
    slowest
}

/// `min sum_s R_s(n_s)` over `sum_s n_s = L` with every `R_s` replaced by its lower convex envelope,
/// rounded down.
fn convex_extra(stages: &[StageTable], layers: i64) -> i64 {
    let mut extra = 0.0;
    let mut left = layers;
    let mut segments = Vec::new();
    for table in stages {
        left -= table.lower;
        extra += table.recompute[0].extra_time as f64;
        let mut from = 0;
        while from + 1 < table.recompute.len() {
            let slope = |to: usize| {
                let rise = table.recompute[to].extra_time - table.recompute[from].extra_time;
                rise as f64 / (to - from) as f64
            };
            let after = from + 1..table.recompute.len();
            let Some(to) = after.rev().min_by(|&a, &b| slope(a).total_cmp(&slope(b))) else {
                break;
            };
            segments.push((slope(to), (to - from) as i64));
            from = to;
        }
    }
    segments.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    for (slope, width) in segments {
        let taken = left.min(width);
        extra += slope * taken as f64;
        left -= taken;
    }
    ((extra * (1.0 - 1e-9)).ceil() as i64 - 1).max(0)
}
