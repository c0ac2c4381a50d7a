//! What the program takes for granted of its data.

use super::StagedError;
use super::data::{Cell, Data, MAX_MODES, RecomputeMode, RecomputeRule, Scope, SideRow, Stage};
use crate::model::Sense;

/// Sums within a cell stay below this, so that no arithmetic overflows and doubles are exact.
const LARGEST: f64 = (1_i64 << 48) as f64;

/// Checks what the program takes for granted.
pub(super) fn check(data: &Data) -> Result<(), StagedError> {
    for (index, cell) in data.cells.iter().enumerate() {
        if let Some(cause) = flaw(cell, data.layers) {
            return Err(StagedError::Data {
                place: format!("cell {index}"),
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

fn flaw(cell: &Cell, layers: i64) -> Option<&'static str> {
    let (weights, layer) = (&cell.weights, &cell.layer);
    let not_negative = [
        weights.slowest,
        weights.total,
        weights.delta,
        layer.time,
        layer.delta,
        layer.memory,
        layer.activation,
        layers,
    ];
    if not_negative.iter().any(|&value| value < 0) {
        return Some("a weight, a cost of a layer or the number of layers is negative");
    }
    if cell.stages.is_empty() {
        return Some("no stage");
    }
    if cell.modes.len() > MAX_MODES {
        return Some("more recompute modes than are supported");
    }
    let sound =
        |mode: &RecomputeMode| mode.extra_time > 0 && mode.activation >= 0 && mode.workspace >= 0;
    if !cell.modes.iter().all(sound) {
        return Some("a recompute mode takes no time or has negative memory");
    }
    match cell.recompute {
        RecomputeRule::Uniform { mode, .. } | RecomputeRule::AllLayers { mode }
            if mode >= cell.modes.len() =>
        {
            return Some("its recompute rule names a mode that it does not have");
        }
        RecomputeRule::Uniform { count, .. } if count < 0 => {
            return Some("its recompute rule has a negative count");
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
    for stage in &cell.stages {
        if stage.in_flight < 0 || stage.lower_layers < 0 {
            return Some("a stage has negative units in flight or fewest layers");
        }
        most.extra_time = most.extra_time.max(stage.extra_time.saturating_abs());
        most.extra_delta = most.extra_delta.max(stage.extra_delta.saturating_abs());
        most.fixed_memory = most.fixed_memory.max(stage.fixed_memory.saturating_abs());
        most.in_flight = most.in_flight.max(stage.in_flight);
        most.lower_layers = most.lower_layers.max(stage.lower_layers);
    }
    (largest(cell, &most, layers) >= LARGEST).then_some("numbers too large; take coarser units")
}

/// About the largest sum that is formed within the cell, in doubles, which do not overflow.
fn largest(cell: &Cell, most: &Stage, layers: i64) -> f64 {
    let mode = |of: fn(&RecomputeMode) -> i64| {
        let values = cell.modes.iter().map(of);
        values.max().unwrap_or(0) as f64
    };
    let layers = layers.max(most.lower_layers) as f64 + 1.0;
    let stages = cell.stages.len() as f64;
    let (layer, weights) = (&cell.layer, &cell.weights);
    let activation = layer.activation as f64 + mode(|mode| mode.activation);
    let memory = layers * (layer.memory as f64 + most.in_flight as f64 * activation)
        + mode(|mode| mode.workspace)
        + most.fixed_memory as f64
        + (cell.capacity as f64).abs();
    let time = layers * (layer.time as f64 + mode(|mode| mode.extra_time))
        + most.extra_time as f64 * stages;
    let delta = layers * layer.delta as f64 + most.extra_delta as f64 * stages;
    let objective = (weights.slowest as f64 + weights.total as f64) * time
        + weights.delta as f64 * delta
        + (cell.constant as f64).abs();
    (memory * stages)
        .max(objective)
        .max(layers * stages * stages)
}

fn row_flaw(row: &SideRow, data: &Data) -> Option<&'static str> {
    if !row.cells.is_empty() && row.cells.len() != data.cells.len() {
        return Some("not one coefficient for each cell");
    }
    if let Scope::Only(cells) = &row.scope
        && cells.len() != data.cells.len()
    {
        return Some("its scope has not one entry for each cell");
    }
    let limits_from_above = match row.sense {
        Sense::AtMost => row.recomputed >= 0,
        Sense::Equal => row.recomputed == 0,
        Sense::AtLeast => row.recomputed <= 0,
    };
    let least_is_exact = |(index, cell): (usize, &Cell)| {
        let decides = cell.recompute == RecomputeRule::Free;
        !row.scope.contains(index) || !decides || limits_from_above && cell.modes.len() <= 1
    };
    if row.recomputed != 0 && !data.cells.iter().enumerate().all(least_is_exact) {
        return Some(
            "a row on recomputed layers can only limit them from above, and only where a cell has one \
             recompute mode",
        );
    }
    None
}
