//! What the layouts of a combination cost, as a document states it.

use crate::cost_model::discrepancy::features;
use crate::job::Job;
use crate::layout::{Cell, Checkpointing};
use crate::planner::quantise::CellUnits;

use super::document::StatedCosts;

/// The coefficients of a combination of a job whose layers may be recomputed as these flags say.
pub(crate) fn stated(
    job: &Job,
    (position, cell): (u64, &Cell),
    flags: &[Checkpointing],
    units: &CellUnits,
) -> StatedCosts {
    let extra = units.stages.iter().map(|stage| stage.extra_time);
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
        work: i64::from(job.transformer.layers) * units.layer_time + extra.sum::<i64>(),
        recompute: modes
            .map(|(name, mode)| {
                let time = units.recompute_time[mode];
                (name, [time, units.kept[mode], units.workspace[mode]])
            })
            .collect(),
        stages: [stage(0), stage(units.stages.len() - 1)],
        residual: residual(job, cell),
    }
}

/// What measured runs add to the logarithms of times of a cell: without and with recomputation.
fn residual(job: &Job, cell: &Cell) -> [f64; 2] {
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
