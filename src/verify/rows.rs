//! Rows of the user's own: the checker's own arithmetic.

use crate::axis::{Axis, Candidate};
use crate::certificate::format::ORDER;
use crate::constraint::{Comparison, Constraint, Decision};
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{Cell, Checkpointing};

use super::rules::Codes;

/// The axes that decide a row, in order; `None` where layers have a part in it.
pub(super) fn axes(row: &Constraint) -> Option<Vec<Axis>> {
    let mut decided = Vec::new();
    for term in &row.terms {
        match term.decision {
            Decision::Degree(axis) | Decision::Is(axis, _) => decided.push(axis),
            Decision::MicroBatches => decided.extend([Axis::DataParallel, Axis::MicroBatch]),
            Decision::Layers(_) | Decision::LayersLast | Decision::CheckpointedLayers => {
                return None;
            }
        }
    }
    let axes = ORDER.into_iter().filter(|axis| decided.contains(axis));
    Some(axes.collect())
}

/// What the discrete choices contribute to the left side, less the right side.
pub(super) fn difference(row: &Constraint, job: &Job, codes: &Codes) -> i64 {
    let at = |axis: Axis| i64::from(codes[axis as usize]);
    let terms = row.terms.iter().map(|term| {
        let value = match term.decision {
            Decision::Degree(axis) => at(axis),
            Decision::Is(axis, code) => i64::from(codes[axis as usize] == code),
            Decision::MicroBatches => {
                let at_once = at(Axis::DataParallel) * at(Axis::MicroBatch);
                job.workload.global_batch as i64 / at_once
            }
            Decision::Layers(_) | Decision::LayersLast | Decision::CheckpointedLayers => 0,
        };
        term.coefficient * value
    });
    terms.sum::<i64>() - row.right
}

/// By how much a row is missed if its sides differ by `least` to `most`.
pub(super) fn missed(comparison: Comparison, least: i64, most: i64) -> i64 {
    match comparison {
        Comparison::AtMost => least.max(0),
        Comparison::AtLeast => (-most).max(0),
        Comparison::Equals => least.max(-most).max(0),
    }
}

/// A row over layers for one combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Its place among all rows of the instance.
    pub(super) index: u32,
    /// How the sides compare.
    pub(super) comparison: Comparison,
    /// What the discrete choices contribute, less the right side.
    pub(super) base: i64,
    /// Coefficient of the layers of each stage.
    layers: Vec<i64>,
    /// Coefficient of every recomputed layer.
    recomputed: i64,
}

impl Row {
    /// What a stage contributes.
    pub(super) fn of_stage(&self, stage: usize, layers: i64, counts: [i64; 3]) -> i64 {
        self.layers[stage] * layers + self.recomputed * counts.iter().sum::<i64>()
    }

    /// The least and the most that the sides differ by, if the stages have such numbers of layers and so
    /// many of all are recomputed, fewest and most.
    pub(super) fn range(&self, windows: &[(i64, i64)], recomputed: (i64, i64)) -> (i64, i64) {
        let mut least = self.base;
        let mut most = self.base;
        let mut add = |coefficient: i64, (from, to): (i64, i64)| {
            least += (coefficient * from).min(coefficient * to);
            most += (coefficient * from).max(coefficient * to);
        };
        for (&coefficient, &window) in self.layers.iter().zip(windows) {
            add(coefficient, window);
        }
        add(self.recomputed, recomputed);
        (least, most)
    }

    /// Whether a difference of the sides keeps the row.
    pub(super) fn holds(&self, difference: i64) -> bool {
        missed(self.comparison, difference, difference) == 0
    }
}

/// The rows over layers for a combination.
pub(super) fn rows(instance: &Instance, cell: &Cell) -> Vec<Row> {
    let all = instance.space.constraints.iter().zip(0..);
    all.filter(|(row, _)| axes(row).is_none())
        .map(|(row, index)| of_cell(row, index, &instance.job, cell))
        .collect()
}

/// A row for a combination.
pub(super) fn of_cell(row: &Constraint, index: u32, job: &Job, cell: &Cell) -> Row {
    let candidate = Candidate {
        cell: *cell,
        // No decision names the flag.
        checkpointing: Checkpointing::None,
    };
    let codes = Axis::ALL.map(|axis| candidate.code(axis));
    let stages = cell.pipeline_parallel as usize;
    let mut layers = vec![0; stages];
    let mut recomputed = 0;
    for term in &row.terms {
        let stage = match term.decision {
            Decision::Layers(stage) => stage as usize,
            Decision::LayersLast => stages - 1,
            Decision::CheckpointedLayers => {
                recomputed += term.coefficient;
                continue;
            }
            Decision::Degree(_) | Decision::Is(..) | Decision::MicroBatches => continue,
        };
        // A shorter pipeline has no such stage.
        if let Some(coefficient) = layers.get_mut(stage) {
            *coefficient += term.coefficient;
        }
    }
    Row {
        index,
        comparison: row.comparison,
        base: difference(row, job, &codes),
        layers,
        recomputed,
    }
}
