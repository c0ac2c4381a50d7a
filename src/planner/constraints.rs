//! Rows of the user's own in the programs.
//!
//! A row over discrete choices alone is a rule that a combination breaks or keeps, whatever its
//! layers. A row over layers or checkpointed layers goes into the program `staged` as a side row; in
//! `layout choice`, where the framework's cut gives every combination its layers, each row has one
//! coefficient a combination.

use formulations::layout_choice::{LeftSide, Rule as Row};
use formulations::model::Sense;
use formulations::staged::{Scope, SideRow, StageIndex, StageTerm};

use crate::axis::Candidate;
use crate::constraint::{Comparison, Constraint, Decision};
use crate::instance::Instance;
use crate::layout::{Cell, Layout};

use super::candidates;

/// Whether a row over discrete choices excludes the cell.
#[must_use]
pub fn breaks_cell(instance: &Instance, cell: &Cell) -> bool {
    let batch = instance.job.workload.global_batch;
    let mut rows = instance.space.constraints.iter();
    rows.any(|row| row.is_of_cell() && !row.holds(cell_part(row, cell, batch)))
}

/// Whether a layout keeps every row.
#[must_use]
pub fn keeps(instance: &Instance, layout: &Layout) -> bool {
    let batch = instance.job.workload.global_batch;
    let mut rows = instance.space.constraints.iter();
    rows.all(|row| row.holds(row.left(layout, batch)))
}

/// Whether some row is about layers.
#[must_use]
pub fn concern_layers(instance: &Instance) -> bool {
    over_layers(instance).next().is_some()
}

fn over_layers(instance: &Instance) -> impl Iterator<Item = &Constraint> {
    let rows = instance.space.constraints.iter();
    rows.filter(|row| !row.is_of_cell())
}

/// What the discrete choices contribute to the left side.
fn cell_part(row: &Constraint, cell: &Cell, batch: u64) -> i64 {
    let without_layers = Layout {
        cell: *cell,
        stages: Vec::new(),
    };
    row.left(&without_layers, batch)
}

const fn sense(comparison: Comparison) -> Sense {
    match comparison {
        Comparison::AtMost => Sense::AtMost,
        Comparison::AtLeast => Sense::AtLeast,
        Comparison::Equals => Sense::Equal,
    }
}

/// The rows of the program `layout choice` over these combinations.
pub(super) fn choice_rows(instance: &Instance, chosen: &[Candidate]) -> Vec<Row> {
    let batch = instance.job.workload.global_batch;
    let left = |row: &Constraint, candidate: &Candidate| {
        let layout = candidates::layout(instance, candidate);
        layout.map_or_else(
            || cell_part(row, &candidate.cell, batch),
            |layout| row.left(&layout, batch),
        )
    };
    let rows = instance.space.constraints.iter().map(|row| Row {
        name: row.rule(),
        left: LeftSide::OverItems(chosen.iter().map(|item| left(row, item)).collect()),
        sense: sense(row.comparison),
        right: row.right,
    });
    rows.collect()
}

/// The rows over layers of the program `staged`, whose cells stand for these combinations.
pub(super) fn side_rows(instance: &Instance, cells: &[Cell]) -> Vec<SideRow> {
    let batch = instance.job.workload.global_batch;
    let rows = over_layers(instance).map(|row| {
        let mut layers: Vec<StageTerm> = Vec::new();
        let mut recomputed = 0;
        for term in &row.terms {
            let stage = match term.decision {
                Decision::Layers(index) => StageIndex::FromFirst(index as usize),
                Decision::LayersLast => StageIndex::FromLast(0),
                Decision::CheckpointedLayers => {
                    recomputed += term.coefficient;
                    continue;
                }
                Decision::Degree(_) | Decision::Is(..) | Decision::MicroBatches => continue,
            };
            layers.push(StageTerm {
                stage,
                coefficient: term.coefficient,
            });
        }
        SideRow {
            name: row.rule(),
            scope: Scope::Every,
            cells: cells
                .iter()
                .map(|cell| cell_part(row, cell, batch))
                .collect(),
            layers,
            recomputed,
            sense: sense(row.comparison),
            right: row.right,
        }
    });
    rows.collect()
}
