//! How far a cell is from fitting.

use super::data::{Cell, Partition, RecomputeRule, Stage};
use super::equal_middle::equal_middle_splits;

/// Why no distribution of the layers fits a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// With so much more capacity some distribution would fit, with less none.
    Memory {
        /// The stage that needs it.
        stage: usize,
        /// What is missing.
        amount: i64,
    },
    /// The fewest and most layers of the stages do not admit the number of layers.
    Layers,
}

/// What a cell is short of; `None` if some distribution of the layers fits.
///
/// The least largest memory `min over n of max_s mem_s(n_s)` is found by giving each layer to the stage
/// that needs least memory with it, which is exact since memory does not decrease with layers.
#[must_use]
pub fn shortage(cell: &Cell, layers: i64) -> Option<Shortage> {
    let count = cell.stages.len();
    let distribution = if cell.partition == Partition::EqualMiddle && count > 2 {
        least_equal_middle(cell, layers)
    } else {
        least_memory_layers(cell, layers)
    };
    let Some(distribution) = distribution else {
        return Some(Shortage::Layers);
    };
    let (memory, stage) = largest(cell, &distribution);
    (memory > cell.capacity).then_some(Shortage::Memory {
        stage,
        amount: memory - cell.capacity,
    })
}

fn least_memory_layers(cell: &Cell, layers: i64) -> Option<Vec<i64>> {
    let stages = &cell.stages;
    let mut own: Vec<i64> = stages.iter().map(|stage| stage.lower_layers).collect();
    if stages
        .iter()
        .any(|stage| stage.lower_layers > stage.upper_layers)
    {
        return None;
    }
    let left = layers - own.iter().sum::<i64>();
    if left < 0 {
        return None;
    }
    for _ in 0..left {
        let open = (0..stages.len()).filter(|&stage| own[stage] < stages[stage].upper_layers);
        let stage = open.min_by_key(|&stage| least_memory(cell, &stages[stage], own[stage] + 1))?;
        own[stage] += 1;
    }
    Some(own)
}

fn least_equal_middle(cell: &Cell, layers: i64) -> Option<Vec<i64>> {
    let upper: Vec<i64> = cell
        .stages
        .iter()
        .map(|stage| stage.upper_layers.min(layers))
        .collect();
    let last = upper.len() - 1;
    equal_middle_splits(cell, layers, &upper)
        .map(|split| {
            let mut own = vec![split.middle; last + 1];
            (own[0], own[last]) = (split.first, split.last);
            own
        })
        .min_by_key(|own| largest(cell, own).0)
}

/// Largest least memory of the stages and the first stage that has it.
fn largest(cell: &Cell, layers: &[i64]) -> (i64, usize) {
    let mut largest = (i64::MIN, 0);
    for (index, (stage, &layers)) in cell.stages.iter().zip(layers).enumerate() {
        let memory = least_memory(cell, stage, layers);
        if memory > largest.0 {
            largest = (memory, index);
        }
    }
    largest
}

/// Least memory of a stage with so many layers, however long it takes to recompute them.
fn least_memory(cell: &Cell, stage: &Stage, layers: i64) -> i64 {
    let with = |mode: usize, count: i64| {
        let mut counts = [0; super::MAX_MODES];
        counts[mode] = count;
        super::recompute::memory(cell, stage, layers, &counts)
    };
    match cell.recompute {
        RecomputeRule::None => with(0, 0),
        RecomputeRule::Uniform { mode, count } => with(mode, count.min(layers)),
        RecomputeRule::AllLayers { mode } => with(mode, layers),
        RecomputeRule::Free => {
            let all = (0..cell.modes.len()).map(|mode| with(mode, layers));
            all.fold(with(0, 0), i64::min)
        }
    }
}
