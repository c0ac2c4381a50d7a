//! A plan, and what it costs, computed from the data alone.

use super::data::{Counts, Data, Group, KindCounts, Layers, Partition, RecomputeRule};
use super::recompute::{Recompute, least_recompute, memory, prescribed};
use super::side_rows::excess;

/// A group with the layers and recomputed layers of its stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Index of the group.
    pub group: usize,
    /// `n_s`: layers of each stage.
    pub layers: Vec<i64>,
    /// `k_sm`: recomputed layers of each stage by each mode.
    pub recomputed: Vec<Counts>,
    /// `a max_s T_s + b sum_s T_s + w max_s D_s + constant`.
    pub objective: i64,
}

/// Time of a stage with so many layers and so much extra time.
pub(super) fn stage_time(group: &Group, stage: usize, layers: &KindCounts, extra_time: i64) -> i64 {
    let of_layers = group.kinds.iter().zip(layers);
    let of_layers: i64 = of_layers.map(|(kind, count)| kind.time * count).sum();
    of_layers + extra_time + group.stages[stage].extra_time
}

/// Delta of a stage with so many layers.
pub(super) fn stage_delta(group: &Group, stage: usize, layers: &KindCounts) -> i64 {
    let of_layers = group.kinds.iter().zip(layers);
    let of_layers: i64 = of_layers.map(|(kind, count)| kind.delta * count).sum();
    of_layers + group.stages[stage].extra_delta
}

/// Objective of a distribution: of each stage its layers and its extra time.
pub(super) fn objective(group: &Group, stages: impl Iterator<Item = (KindCounts, i64)>) -> i64 {
    let (mut slowest, mut total, mut delta) = (i64::MIN, 0, i64::MIN);
    for (stage, (layers, extra)) in stages.enumerate() {
        let time = stage_time(group, stage, &layers, extra);
        slowest = slowest.max(time);
        total += time;
        delta = delta.max(stage_delta(group, stage, &layers));
    }
    value(group, slowest, total, delta)
}

/// `a slowest + b total + w delta + constant`.
pub(super) fn value(group: &Group, slowest: i64, total: i64, delta: i64) -> i64 {
    let weights = &group.weights;
    weights.slowest * slowest + weights.total * total + weights.delta * delta + group.constant
}

/// The layers of each kind on each of the stages that have so many layers, in their order.
pub(super) fn on_stages(layers: &Layers, lengths: &[i64]) -> Vec<KindCounts> {
    let mut start = 0;
    let stage = |&length: &i64| {
        let end = start + length as usize;
        let counts = layers.between(start, end);
        start = end;
        counts
    };
    lengths.iter().map(stage).collect()
}

/// The best plan with so many layers on each stage, all layers in sum; `None` if a stage does not fit.
#[must_use]
pub fn plan_of(group: &Group, index: usize, layers: &Layers, lengths: &[i64]) -> Option<Plan> {
    let counts = on_stages(layers, lengths);
    let recomputes: Vec<Recompute> = (group.stages.iter().zip(&counts))
        .map(|(stage, counts)| least_recompute(group, stage, counts))
        .collect::<Option<_>>()?;
    let extra = recomputes.iter().map(|recompute| recompute.extra_time);
    Some(Plan {
        group: index,
        layers: lengths.to_vec(),
        objective: objective(group, counts.into_iter().zip(extra)),
        recomputed: recomputes
            .iter()
            .map(|recompute| recompute.counts)
            .collect(),
    })
}

/// What a plan breaks, in words; empty when it is sound. Uses nothing but the data and sums.
#[must_use]
pub fn check_plan(data: &Data, plan: &Plan) -> Vec<String> {
    let group = &data.groups[plan.group];
    let mut broken = Vec::new();
    if plan.layers.len() != group.stages.len() || plan.recomputed.len() != group.stages.len() {
        return vec!["not one entry for each stage".into()];
    }
    if plan.layers.iter().sum::<i64>() != data.layers.count() {
        return vec!["the layers do not add up".into()];
    }
    let of_kinds = on_stages(&data.layers, &plan.layers);
    let mut extra_times = Vec::new();
    for (index, stage) in group.stages.iter().enumerate() {
        let (layers, counts) = (plan.layers[index], &plan.recomputed[index]);
        let excess = memory(group, stage, &of_kinds[index], counts) - group.capacity;
        if excess > 0 {
            broken.push(format!("stage {index} exceeds the capacity by {excess}"));
        }
        if layers < stage.lower_layers || layers > stage.upper_layers {
            broken.push(format!("stage {index} may not have {layers} layers"));
        }
        if !permitted(group, &of_kinds[index], counts) {
            broken.push(format!("stage {index} may not recompute {counts:?} layers"));
        }
        let pairs = group.modes.iter().zip(counts);
        extra_times.push(pairs.map(|(mode, count)| mode.extra_time * count).sum());
    }
    let middle = plan
        .layers
        .get(1..plan.layers.len() - 1)
        .unwrap_or_default();
    if group.partition == Partition::EqualMiddle && middle.windows(2).any(|pair| pair[0] != pair[1])
    {
        broken.push("the stages in the middle differ".into());
    }
    if plan.objective != objective(group, of_kinds.into_iter().zip(extra_times)) {
        broken.push("the objective is not that of the plan".into());
    }
    let recomputed = plan.recomputed.iter().flatten().sum();
    for row in &data.side_rows {
        let excess = excess(row, plan.group, &plan.layers, recomputed);
        if excess != 0 {
            broken.push(format!("row `{}` is off by {excess}", row.name));
        }
    }
    broken
}

fn permitted(group: &Group, layers: &KindCounts, counts: &Counts) -> bool {
    if group.recompute != RecomputeRule::Free {
        return *counts == prescribed(group.recompute, layers);
    }
    let mut left = *layers;
    for (mode, count) in group.modes.iter().zip(counts) {
        left[mode.kind] -= count;
    }
    counts.iter().all(|&count| count >= 0)
        && left.iter().all(|&left| left >= 0)
        && counts[group.modes.len()..].iter().all(|&count| count == 0)
}
