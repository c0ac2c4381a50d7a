//! How the planner's combinations are settled, by the figures of the programs.

use formulations::staged::bounds::{balance_bound, bottleneck_bound};
use formulations::staged::{
    Cell, Partition, RecomputeRule, Shortage, cell_optimum, recompute, shortage,
};

use rayon::prelude::*;

use crate::axis::Candidate;
use crate::layout::Layout;
use crate::planner::constraints;
use crate::planner::cost_table::CostTable;
use crate::planner::staged_cells::{self, Choice};
use crate::verify::statement::Settlement;

use super::{bottleneck, rows};

/// What the combinations are settled against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    /// Objective of the layout that was found.
    pub(super) objective: Option<i64>,
    /// Whether the search was completed.
    pub(super) complete: bool,
}

/// The objective of a layout of the space.
pub(super) fn objective(table: &CostTable, layout: &Layout) -> Option<i64> {
    let entry = table
        .entries
        .iter()
        .find(|entry| entry.cell.is_some() && entry.candidate.cell == layout.cell)?;
    Some(table.cells[entry.cell?].step_time(&layout.stages))
}

/// How a combination is settled, by its position.
pub(super) type Settled = (u64, Settlement);

/// Settles the combinations of the program `staged`.
pub(super) fn staged(
    table: &CostTable,
    goal: Goal,
    position: impl Fn(&Candidate) -> u64 + Sync,
) -> Vec<Settled> {
    let choices = staged_cells::choices(table);
    let settled = choices.par_iter().map(|choice| {
        let position = position(&table.entries[choice.rank].candidate);
        (position, settle(table, choice, goal))
    });
    settled.collect()
}

fn settle(table: &CostTable, choice: &Choice, goal: Goal) -> Settlement {
    let layers = i64::from(table.instance.job.transformer.layers);
    let lightest = staged_cells::lightest_variants(table, choice);
    let fits = |cell: &Cell| bottleneck_bound(cell, layers).is_some();
    if !lightest.iter().any(|variant| fits(&variant.cell)) {
        let cells = lightest.iter().map(|variant| &variant.cell);
        let (peak, stage) = least_peak(cells, layers);
        return Settlement::Infeasible(stage, peak - table.capacity);
    }
    if let Some((row, missed)) = rows::missed_by_all(table, choice, &lightest) {
        return Settlement::Excluded(row, missed);
    }
    let relaxed = staged_cells::relaxed(table, choice);
    let bound = balance_bound(&relaxed.cell, layers);
    let may_win = |bound: i64| goal.objective.is_none_or(|objective| bound <= objective);
    if !may_win(bound) {
        return Settlement::Balance(bound);
    }
    let bound = bottleneck::bound(&relaxed.cell, layers);
    if !may_win(bound) {
        Settlement::Bottleneck(bound)
    } else if !goal.complete {
        Settlement::Open(bound)
    } else if constraints::concern_layers(table.instance) {
        // Rows over layers are left to the checker's dynamic program: the solver takes long for each.
        Settlement::Blocked(bound)
    } else {
        optimum(table, choice).map_or(Settlement::Blocked(bound), Settlement::Solved)
    }
}

/// The objective of the best layout of a choice.
fn optimum(table: &CostTable, choice: &Choice) -> Option<i64> {
    let layers = i64::from(table.instance.job.transformer.layers);
    let variants = staged_cells::variants(table, choice);
    let optima = variants
        .iter()
        .filter_map(|variant| cell_optimum(&variant.cell, 0, layers));
    optima.map(|plan| plan.objective).min()
}

/// The least memory of the fullest stage over all cells and distributions, and the first stage that can
/// need just so much.
fn least_peak<'a>(cells: impl Iterator<Item = &'a Cell>, layers: i64) -> (i64, u32) {
    let needs = cells.map(|cell| {
        let memory: Vec<LeastMemory> = (0..cell.stages.len())
            .map(|stage| LeastMemory::new(cell, stage))
            .collect();
        (peak(cell, &memory, layers), cell, memory)
    });
    let Some((peak, cell, memory)) = needs.min_by_key(|needs| needs.0) else {
        return (i64::MAX, 0);
    };
    let can_need = |&stage: &usize| {
        let own = &cell.stages[stage];
        let mut counts = own.lower_layers..=own.upper_layers;
        counts.any(|count| memory[stage].of(count) == peak)
    };
    let stage = (0..cell.stages.len()).find(can_need).unwrap_or(0);
    (peak, stage as u32)
}

/// The least memory of the fullest stage over all distributions: of the layers above the fewest, those
/// that need least make a distribution, since memory does not decrease along a stage.
fn peak(cell: &Cell, memory: &[LeastMemory], layers: i64) -> i64 {
    if cell.partition == Partition::EqualMiddle && cell.stages.len() > 2 {
        return match shortage(cell, layers) {
            Some(Shortage::Memory { amount, .. }) => cell.capacity + amount,
            Some(Shortage::Layers) | None => i64::MAX,
        };
    }
    let stages = || cell.stages.iter().zip(memory);
    let fewest: i64 = cell.stages.iter().map(|stage| stage.lower_layers).sum();
    let forced = stages().map(|(stage, memory)| memory.of(stage.lower_layers));
    let forced = forced.max().unwrap_or(0);
    let Some(last) = usize::try_from(layers - fewest - 1).ok() else {
        return forced;
    };
    // An even distribution fits into this, so what needs more is of no interest.
    let even = (layers + cell.stages.len() as i64 - 1) / cell.stages.len() as i64;
    let enough = stages()
        .map(|(stage, memory)| memory.of(even.clamp(stage.lower_layers, stage.upper_layers)))
        .max()
        .unwrap_or(0);
    let mut further: Vec<i64> = Vec::new();
    for (stage, memory) in stages() {
        let more = (stage.lower_layers + 1..=stage.upper_layers)
            .map(|count| memory.of(count))
            .take_while(|&memory| memory <= enough);
        further.extend(more);
    }
    further.sort_unstable();
    further
        .get(last)
        .map_or(enough, |&memory| memory.max(forced))
}

/// Least memory of a stage by its layers, from 1: the least of straight lines, one for each way to
/// recompute nothing or everything.
struct LeastMemory {
    /// Memory of one layer, and of each further one.
    lines: Vec<(i64, i64)>,
}

impl LeastMemory {
    fn new(cell: &Cell, stage: usize) -> Self {
        let line = |mode: Option<usize>| {
            let with = |layers: i64| {
                let mut counts = [0; 3];
                if let Some(mode) = mode {
                    counts[mode] = layers;
                }
                recompute::memory(cell, &cell.stages[stage], layers, &counts)
            };
            (with(1), with(2) - with(1))
        };
        let all_modes = || (0..cell.modes.len()).map(Some);
        let modes: Vec<Option<usize>> = match cell.recompute {
            RecomputeRule::None | RecomputeRule::Uniform { .. } => vec![None],
            RecomputeRule::AllLayers { mode } => vec![Some(mode)],
            RecomputeRule::Free => std::iter::once(None).chain(all_modes()).collect(),
        };
        Self {
            lines: modes.into_iter().map(line).collect(),
        }
    }

    fn of(&self, layers: i64) -> i64 {
        let lines = self.lines.iter();
        let memory = lines.map(|(first, further)| first + (layers - 1) * further);
        memory.min().unwrap_or(0)
    }
}

/// Settles the combinations of the program `layout choice`, whose layouts are known.
pub(super) fn layout_choice(
    table: &CostTable,
    goal: Goal,
    position: impl Fn(&Candidate) -> u64,
) -> Vec<Settled> {
    let profit = |objective| {
        table
            .quantum
            .parts_per_billion(&table.instance.job, objective)
    };
    let least = goal.objective.map(profit);
    let rows = || table.instance.space.constraints.iter().zip(0..);
    let batch = table.instance.job.workload.global_batch;
    let settled = table.entries.iter().filter_map(|entry| {
        let (layout, cost) = table.exact(entry)?;
        let peak = cost.memory.iter().copied().max().unwrap_or(0);
        let missed = rows().find(|(row, _)| !row.holds(row.left(&layout, batch)));
        let settlement = if peak > table.capacity {
            let stage = cost.memory.iter().position(|&memory| memory == peak);
            Settlement::Infeasible(stage.unwrap_or(0) as u32, peak - table.capacity)
        } else if let Some((row, index)) = missed {
            let missed = (row.left(&layout, batch) - row.right).abs();
            Settlement::Excluded(index, missed)
        } else if least.is_some_and(|least| cost.profit < least) {
            Settlement::Balance(cost.units)
        } else if goal.complete {
            Settlement::Solved(cost.units)
        } else {
            Settlement::Open(cost.units)
        };
        Some((position(&entry.candidate), settlement))
    });
    settled.collect()
}
