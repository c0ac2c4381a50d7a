//! What the program takes for granted of its data.

use super::StagedError;
use super::data::{
    Data, Group, Kind, Layers, MAX_KINDS, MAX_MODES, RecomputeMode, RecomputeRule, SideRow, Stage,
};
use crate::model::Sense;

/// Sums within a group stay below this, so that no arithmetic overflows and doubles are exact.
const LARGEST: f64 = (1_i64 << 52) as f64;

/// Checks what the program takes for granted.
pub(super) fn check(data: &Data) -> Result<(), StagedError> {
    for (index, group) in data.groups.iter().enumerate() {
        if let Some(cause) = flaw(group, &data.layers) {
            return Err(StagedError::Data {
                place: format!("group {index}"),
                cause,
            });
        }
    }
    for row in &data.side_rows {
        if let Some(cause) = row_flaw(row, data) {
            return Err(StagedError::Data {
                place: row.name.clone(),
                cause,
            });
        }
    }
    Ok(())
}

fn flaw(group: &Group, layers: &Layers) -> Option<&'static str> {
    let weights = &group.weights;
    let kinds = &group.kinds;
    let costs = |kind: &Kind| [kind.time, kind.delta, kind.memory, kind.activation];
    let mut not_negative = [weights.slowest, weights.total, weights.delta]
        .into_iter()
        .chain(kinds.iter().flat_map(costs));
    if not_negative.any(|value| value < 0) {
        return Some("a weight or a cost of a layer is negative");
    }
    let known = |kind: usize| kind < kinds.len();
    if !group.modes.iter().all(|mode| known(mode.kind)) {
        return Some("a recompute mode of a kind that it does not have");
    }
    let all = layers.all();
    if kinds.is_empty() || kinds.len() > MAX_KINDS || all[kinds.len()..].iter().any(|&it| it > 0) {
        return Some("not one cost for each kind of layers");
    }
    if group.stages.is_empty() {
        return Some("no stage");
    }
    if group.modes.len() > MAX_MODES {
        return Some("more recompute modes than are supported");
    }
    let sound =
        |mode: &RecomputeMode| mode.extra_time > 0 && mode.activation >= 0 && mode.workspace >= 0;
    if !group.modes.iter().all(sound) {
        return Some("a recompute mode takes no time or has negative memory");
    }
    match group.recompute {
        RecomputeRule::Uniform { mode, .. } | RecomputeRule::AllLayers { mode }
            if mode >= group.modes.len() =>
        {
            return Some("its recompute rule names a mode that it does not have");
        }
        RecomputeRule::Uniform { count, .. } if count < 0 => {
            return Some("its recompute rule has a negative count");
        }
        RecomputeRule::Uniform { .. } | RecomputeRule::AllLayers { .. } if kinds.len() > 1 => {
            return Some("its recompute rule is for layers of one kind");
        }
        _ => {}
    }
    let mut most = Stage {
        extra_time: 0,
        extra_delta: 0,
        fixed_memory: 0,
        in_flight: 0,
        lower_layers: 0,
        upper_layers: 0,
    };
    for stage in group.stages.iter() {
        if stage.in_flight < 0 || stage.lower_layers < 0 {
            return Some("a stage has negative units in flight or fewest layers");
        }
        most.extra_time = most.extra_time.max(stage.extra_time.saturating_abs());
        most.extra_delta = most.extra_delta.max(stage.extra_delta.saturating_abs());
        most.fixed_memory = most.fixed_memory.max(stage.fixed_memory.saturating_abs());
        most.in_flight = most.in_flight.max(stage.in_flight);
        most.lower_layers = most.lower_layers.max(stage.lower_layers);
    }
    (largest(group, &most, layers.count()) >= LARGEST)
        .then_some("numbers too large; take coarser units")
}

/// About the largest sum that is formed within the group, in doubles, which do not overflow.
fn largest(group: &Group, most: &Stage, layers: i64) -> f64 {
    let mode = |of: fn(&RecomputeMode) -> i64| {
        let values = group.modes.iter().map(of);
        values.max().unwrap_or(0) as f64
    };
    let layers = layers.max(most.lower_layers) as f64 + 1.0;
    let stages = group.stages.len() as f64;
    let weights = &group.weights;
    let of_kinds = |of: fn(&Kind) -> i64| group.kinds.iter().map(of).max().unwrap_or(0) as f64;
    let activation = of_kinds(|kind| kind.activation) + mode(|mode| mode.activation);
    let memory = layers * (of_kinds(|kind| kind.memory) + most.in_flight as f64 * activation)
        + mode(|mode| mode.workspace)
        + most.fixed_memory as f64
        + (group.capacity as f64).abs();
    let time = layers * (of_kinds(|kind| kind.time) + mode(|mode| mode.extra_time))
        + most.extra_time as f64 * stages;
    let delta = layers * of_kinds(|kind| kind.delta) + most.extra_delta as f64 * stages;
    let objective = (weights.slowest as f64 + weights.total as f64) * time
        + weights.delta as f64 * delta
        + (group.constant as f64).abs();
    (memory * stages)
        .max(objective)
        .max(layers * stages * stages)
}

fn row_flaw(row: &SideRow, data: &Data) -> Option<&'static str> {
    if !row.groups.is_empty() && row.groups.len() != data.groups.len() {
        return Some("not one coefficient for each group");
    }
    let limits_from_above = match row.sense {
        Sense::AtMost => row.recomputed >= 0,
        Sense::Equal => row.recomputed == 0,
        Sense::AtLeast => row.recomputed <= 0,
    };
    let least_is_exact = |group: &Group| {
        let decides = group.recompute == RecomputeRule::Free;
        !decides || limits_from_above && group.modes.len() <= 1
    };
    if row.recomputed != 0 && !data.groups.iter().all(least_is_exact) {
        return Some(
            "a row on recomputed layers can only limit them from above, and only where a group has one \
             recompute mode",
        );
    }
    None
}
