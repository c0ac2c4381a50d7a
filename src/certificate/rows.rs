//! Rows of the user's own that no layout of a combination keeps.

use std::collections::BTreeMap;

use formulations::staged::RecomputeRule;

use crate::constraint::{Comparison, Constraint, Decision};
use crate::layout::Layout;
use crate::plan::Formulation;
use crate::planner::cost_table::CostTable;
use crate::planner::staged_cells::{self, Choice, Variant};

use super::writer::position;

/// The first row over layers that no distribution keeps, and by how much it is missed at least.
/// `lightest` are variants of the choice.
pub(super) fn missed_by_all(
    table: &CostTable,
    choice: &Choice,
    lightest: &[Variant],
) -> Option<(u32, i64)> {
    let rows = table.instance.space.constraints.iter().zip(0..);
    let mut of_layers = rows.filter(|(row, _)| !row.is_of_cell());
    of_layers.find_map(|(row, index)| {
        let [least, most] = range(table, choice, lightest, row)?;
        let missed = missed(row, least, most);
        (missed > 0).then_some((index, missed))
    })
}

/// The least and the most that the sides of a row can differ by, by the fewest and the most layers of each
/// stage and of all that are recomputed.
pub(super) fn range(
    table: &CostTable,
    choice: &Choice,
    lightest: &[Variant],
    row: &Constraint,
) -> Option<[i64; 2]> {
    let cell = &lightest.first()?.cell;
    let (mut coefficients, mut recomputed) = (vec![0; cell.stages.len()], 0);
    let last = cell.stages.len() - 1;
    for term in &row.terms {
        let stage = match term.decision {
            Decision::Layers(stage) => stage as usize,
            Decision::LayersLast => last,
            Decision::CheckpointedLayers => {
                recomputed = term.coefficient;
                continue;
            }
            Decision::Degree(_) | Decision::Is(..) | Decision::MicroBatches => continue,
        };
        if stage <= last {
            coefficients[stage] += term.coefficient;
        }
    }
    let without_layers = Layout {
        cell: choice.cell,
        stages: Vec::new(),
    };
    let batch = table.instance.job.workload.global_batch;
    let own = row.left(&without_layers, batch) - row.right;
    let stages = cell.stages.iter().zip(coefficients);
    let mut ends: Vec<[i64; 2]> = stages
        .map(|(stage, of)| [of * stage.lower_layers, of * stage.upper_layers])
        .collect();
    ends.push(recomputable(table, lightest).map(|layers| recomputed * layers));
    let least: i64 = ends.iter().map(|ends| ends[0].min(ends[1])).sum();
    let most: i64 = ends.iter().map(|ends| ends[0].max(ends[1])).sum();
    Some([own + least, own + most])
}

/// The ranges of a row over layers in the combinations at these positions that break no rule.
pub(super) fn ranges(
    table: &CostTable,
    formulation: Formulation,
    positions: &[u64],
    row: &Constraint,
) -> Vec<i64> {
    let at = |rank: usize| position(table.instance, &table.entries[rank].candidate);
    let mut found: BTreeMap<u64, [i64; 2]> = BTreeMap::new();
    match formulation {
        Formulation::Staged => {
            let choices = staged_cells::choices(table).into_iter();
            for choice in choices.filter(|choice| positions.contains(&at(choice.rank))) {
                let lightest = staged_cells::lightest_variants(table, &choice);
                let range = range(table, &choice, &lightest, row);
                found.extend(range.map(|range| (at(choice.rank), range)));
            }
        }
        Formulation::LayoutChoice => {
            let batch = table.instance.job.workload.global_batch;
            for (rank, entry) in table.entries.iter().enumerate() {
                if let Some((layout, _)) = table.exact(entry) {
                    let difference = row.left(&layout, batch) - row.right;
                    found.insert(at(rank), [difference; 2]);
                }
            }
            found.retain(|at, _| positions.contains(at));
        }
    }
    found.into_values().flatten().collect()
}

/// The fewest and the most layers that may be recomputed.
fn recomputable(table: &CostTable, lightest: &[Variant]) -> [i64; 2] {
    let layers = i64::from(table.instance.job.transformer.layers);
    let all = |variant: &Variant| matches!(variant.cell.recompute, RecomputeRule::AllLayers { .. });
    let has_modes = lightest.iter().any(|variant| !variant.modes.is_empty());
    [
        if lightest.iter().all(all) { layers } else { 0 },
        if has_modes { layers } else { 0 },
    ]
}

/// By how much a row is missed whose sides differ by `least` to `most`.
fn missed(row: &Constraint, least: i64, most: i64) -> i64 {
    let (above, below) = (least.max(0), (-most).max(0));
    match row.comparison {
        Comparison::AtMost => above,
        Comparison::AtLeast => below,
        Comparison::Equals => above.max(below),
    }
}
