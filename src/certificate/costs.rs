//! What the layouts of a combination cost, as a document states it.

use crate::cost_model::discrepancy::features;
use crate::job::Job;
use crate::layout::{Cell, Checkpointing};
use crate::planner::quantise::CellUnits;

use super::document::StatedCosts;

/// The coefficients of a combination whose layers may be recomputed as these flags say.
pub(crate) fn stated(
    position: u64,
    units: &CellUnits,
    flags: &[Checkpointing],
    residual: [f64; 2],
) -> StatedCosts {
    let modes = flags
        .iter()
        .filter_map(|flag| Some((flag.as_str().to_owned(), flag.recompute()? as usize)));
    let stage = |index: usize| {
        let own = &units.stages[index];
        [
            own.extra_time,
            own.extra_delta,
            own.fixed_memory,
            own.in_flight,
        ]
    };
    StatedCosts {
        position,
        weights: [units.max_weight, units.sum_weight, units.delta_weight],
        constant: units.constant,
        layer: [
            units.layer_time,
            units.layer_delta,
            units.layer_memory,
            units.activations,
        ],
        recompute: modes
            .map(|(name, mode)| {
                let time = units.recompute_time[mode];
                (name, [time, units.kept[mode], units.workspace[mode]])
            })
            .collect(),
        stages: [stage(0), stage(units.stages.len() - 1)],
        residual,
    }
}

/// What measured runs add to the logarithms of times of a cell: without and with recomputation.
pub(crate) fn residual(job: &Job, cell: &Cell) -> [f64; 2] {
    let learned = job.cluster.discrepancy.as_ref();
    [Checkpointing::None, Checkpointing::Full].map(|flag| {
        let logarithm = learned.map(|learned| learned.logarithm(&features(job, cell, flag)));
        rounded(logarithm.unwrap_or(0.0))
    })
}

/// To 12 digits: the last ones may differ from machine to machine.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}
