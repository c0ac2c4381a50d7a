//! How far a group is from fitting.

use super::bounds;
use super::data::{Group, MAX_MODES, Partition, RecomputeRule, Stage, alike};
use super::equal_middle::equal_middle_splits;
use super::recompute::memory;

/// Why no distribution of the layers fits a group.
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

/// Whether some distribution of the layers fits the group: quicker than [`shortage`].
#[must_use]
pub fn fits(group: &Group, layers: i64) -> bool {
    bounds::fits(group, layers, &mut bounds::Scratch::default())
}

/// What a group is short of; `None` if some distribution of the layers fits.
///
/// The least largest memory `min over n of max_s mem_s(n_s)` is found by giving each layer to the stage
/// that needs least memory with it, which is exact since memory does not decrease with layers.
#[must_use]
pub fn shortage(group: &Group, layers: i64) -> Option<Shortage> {
    let count = group.stages.len();
    let distribution = if group.partition == Partition::EqualMiddle && count > 2 {
        least_equal_middle(group, layers)
    } else {
        least_memory_layers(group, layers)
    };
    let Some(distribution) = distribution else {
        return Some(Shortage::Layers);
    };
    let (memory, stage) = largest(group, &distribution);
    (memory > group.capacity).then_some(Shortage::Memory {
        stage,
        amount: memory - group.capacity,
    })
}

fn least_memory_layers(group: &Group, layers: i64) -> Option<Vec<i64>> {
    let stages = &group.stages;
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
        let stage =
            open.min_by_key(|&stage| least_memory(group, &stages[stage], own[stage] + 1))?;
        own[stage] += 1;
    }
    Some(own)
}

fn least_equal_middle(group: &Group, layers: i64) -> Option<Vec<i64>> {
    equal_middle_splits(group, layers).min_by_key(|own| largest(group, own).0)
}

/// Largest least memory of the stages and the first stage that has it.
fn largest(group: &Group, layers: &[i64]) -> (i64, usize) {
    let mut largest = (i64::MIN, 0);
    for (index, (stage, &layers)) in group.stages.iter().zip(layers).enumerate() {
        let memory = least_memory(group, stage, layers);
        if memory > largest.0 {
            largest = (memory, index);
        }
    }
    largest
}

/// Least memory of a stage with so many layers, however long it takes to recompute them.
fn least_memory(group: &Group, stage: &Stage, layers: i64) -> i64 {
    let with = |mode: usize, count: i64| {
        let mut counts = [0; MAX_MODES];
        counts[mode] = count;
        memory(group, stage, &alike(layers), &counts)
    };
    match group.recompute {
        RecomputeRule::None => with(0, 0),
        RecomputeRule::Uniform { mode, count } => with(mode, count.min(layers)),
        RecomputeRule::AllLayers { mode } => with(mode, layers),
        RecomputeRule::Free => {
            let all = (0..group.modes.len()).map(|mode| with(mode, layers));
            all.fold(with(0, 0), i64::min)
        }
    }
}
