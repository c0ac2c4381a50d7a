//! A plan, and what it costs, computed from the data alone.

use super::data::{Cell, Counts, Data, Partition, RecomputeRule};
use super::recompute::{Recompute, least_recompute, memory};
use super::side_rows::excess;

/// A cell with the layers and recomputed layers of its stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Index of the cell.
    pub cell: usize,
    /// `n_s`: layers of each stage.
    pub layers: Vec<i64>,
    /// `k_sm`: recomputed layers of each stage by each mode.
    pub recomputed: Vec<Counts>,
    /// `a max_s T_s + b sum_s T_s + w max_s D_s + constant`.
    pub objective: i64,
}

/// Time of a stage with so many layers and so much extra time.
pub(super) fn stage_time(cell: &Cell, stage: usize, layers: i64, extra_time: i64) -> i64 {
    layers * cell.layer.time + extra_time + cell.stages[stage].extra_time
}

/// Delta of a stage with so many layers.
pub(super) fn stage_delta(cell: &Cell, stage: usize, layers: i64) -> i64 {
    layers * cell.layer.delta + cell.stages[stage].extra_delta
}

/// Objective of a distribution with the given extra times of the stages.
pub(super) fn objective(cell: &Cell, layers: &[i64], extra: impl Iterator<Item = i64>) -> i64 {
    let (mut slowest, mut total, mut delta) = (i64::MIN, 0, i64::MIN);
    for ((stage, &layers), extra) in layers.iter().enumerate().zip(extra) {
        let time = stage_time(cell, stage, layers, extra);
        slowest = slowest.max(time);
        total += time;
        delta = delta.max(stage_delta(cell, stage, layers));
    }
    let weights = &cell.weights;
    weights.slowest * slowest + weights.total * total + weights.delta * delta + cell.constant
}

/// The best plan with these layers; `None` if a stage does not fit.
#[must_use]
pub fn plan_of(cell: &Cell, index: usize, layers: &[i64]) -> Option<Plan> {
    let recomputes: Vec<Recompute> = (cell.stages.iter().zip(layers))
        .map(|(stage, &layers)| least_recompute(cell, stage, layers))
        .collect::<Option<_>>()?;
    let extra = recomputes.iter().map(|recompute| recompute.extra_time);
    Some(Plan {
        cell: index,
        layers: layers.to_vec(),
        objective: objective(cell, layers, extra),
        recomputed: recomputes
            .iter()
            .map(|recompute| recompute.counts)
            .collect(),
    })
}

/// What a plan breaks, in words; empty when it is sound. Uses nothing but the data and sums.
#[must_use]
pub fn check_plan(data: &Data, plan: &Plan) -> Vec<String> {
    let cell = &data.cells[plan.cell];
    let mut broken = Vec::new();
    if plan.layers.len() != cell.stages.len() || plan.recomputed.len() != cell.stages.len() {
        return vec!["not one entry for each stage".into()];
    }
    if plan.layers.iter().sum::<i64>() != data.layers {
        broken.push("the layers do not add up".into());
    }
    let mut extra_times = Vec::new();
    for (index, stage) in cell.stages.iter().enumerate() {
        let (layers, counts) = (plan.layers[index], &plan.recomputed[index]);
        let excess = memory(cell, stage, layers, counts) - cell.capacity;
        if excess > 0 {
            broken.push(format!("stage {index} exceeds the capacity by {excess}"));
        }
        if layers < stage.lower_layers || layers > stage.upper_layers {
            broken.push(format!("stage {index} may not have {layers} layers"));
        }
        if !permitted(cell, layers, counts) {
            broken.push(format!("stage {index} may not recompute {counts:?} layers"));
        }
        let pairs = cell.modes.iter().zip(counts);
        extra_times.push(pairs.map(|(mode, count)| mode.extra_time * count).sum());
    }
    let middle = plan
        .layers
        .get(1..plan.layers.len() - 1)
        .unwrap_or_default();
    if cell.partition == Partition::EqualMiddle && middle.windows(2).any(|pair| pair[0] != pair[1])
    {
        broken.push("the stages in the middle differ".into());
    }
    if plan.objective != objective(cell, &plan.layers, extra_times.into_iter()) {
        broken.push("the objective is not that of the plan".into());
    }
    let recomputed = plan.recomputed.iter().flatten().sum();
    for row in &data.side_rows {
        let excess = excess(row, plan.cell, &plan.layers, recomputed);
        if excess != 0 {
            broken.push(format!("row `{}` is off by {excess}", row.name));
        }
    }
    broken
}

fn permitted(cell: &Cell, layers: i64, counts: &Counts) -> bool {
    let within = counts.iter().all(|&count| count >= 0) && counts.iter().sum::<i64>() <= layers;
    let only = |mode: usize, count: i64| {
        (counts.iter().enumerate()).all(|(index, &of)| of == if index == mode { count } else { 0 })
    };
    within
        && counts[cell.modes.len()..].iter().all(|&count| count == 0)
        && match cell.recompute {
            RecomputeRule::None => counts.iter().all(|&count| count == 0),
            RecomputeRule::Free => true,
            RecomputeRule::Uniform { mode, count } => only(mode, count.min(layers)),
            RecomputeRule::AllLayers { mode } => only(mode, layers),
        }
}
