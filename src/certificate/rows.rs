//! Rows of the user's own that no layout of a combination keeps.

use formulations::staged::RecomputeRule;

use crate::constraint::{Comparison, Constraint, Decision};
use crate::layout::Layout;
use crate::planner::cost_table::CostTable;
use crate::planner::staged_cells::{Choice, Variant};

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
        let missed = missed_at_least(table, choice, lightest, row)?;
        (missed > 0).then_some((index, missed))
    })
}

fn missed_at_least(
    table: &CostTable,
    choice: &Choice,
    lightest: &[Variant],
    row: &Constraint,
) -> Option<i64> {
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
    Some(missed(row, own + least, own + most))
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
