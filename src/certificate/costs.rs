//! What the layouts of a combination cost, as a document states it.

use crate::cost_model::CellCosts;
use crate::cost_model::discrepancy::features;
use crate::job::Job;
use crate::layout::Checkpointing;

use super::document::StatedCosts;

/// The costs of a combination of a job whose layers may be recomputed as these flags say.
pub(crate) fn stated(
    job: &Job,
    position: u64,
    flags: &[Checkpointing],
    costs: &CellCosts,
) -> StatedCosts {
    let (layer, memory, state) = (&costs.layer, &costs.layer_memory, &costs.state);
    let modes = flags
        .iter()
        .filter_map(|flag| Some((flag.as_str().to_owned(), flag.recompute()? as usize)));
    let stages = costs.cell.pipeline_parallel;
    let stage = |index: u32| {
        let extra = costs.extra(index);
        let (time, logits) = (extra.time().value(), extra.logits.value());
        [time, extra.parameters, logits, costs.in_flight(index)].map(rounded)
    };
    let extra: f64 = (0..stages)
        .map(|index| costs.extra(index).time().value())
        .sum();
    let layers = f64::from(job.transformer.layers);
    StatedCosts {
        position,
        micro_batches: costs.micro_batches,
        fills: rounded(costs.fill_share),
        layer_s: [
            layer.gemm,
            layer.attention,
            layer.elementwise,
            layer.rmsnorm,
            layer.tensor_parallel,
            layer.context_parallel,
            layer.total(),
        ]
        .map(|time| rounded(time.value())),
        recompute: modes
            .map(|(name, mode)| {
                let time = costs.recompute[mode].value();
                let (kept, workspace) = (memory.kept[mode], memory.workspace[mode]);
                (name, [time, kept.value(), workspace.value()].map(rounded))
            })
            .collect(),
        layer: [costs.layer_parameters, memory.activations.value()].map(rounded),
        state_bytes: [state.weights, state.gradients, state.optimizer].map(rounded),
        step_s: [costs.data_parallel, costs.optimizer, costs.step_overhead]
            .map(|time| rounded(time.value())),
        fixed_bytes: rounded(costs.fixed.value()),
        stages: [stage(0), stage(stages - 1)],
        network_s: rounded(layers * layer.total().value() + extra),
        residual: residual(job, costs),
    }
}

/// What measured runs add to the logarithms of times: without and with recomputation.
fn residual(job: &Job, costs: &CellCosts) -> [f64; 2] {
    let learned = job.cluster.discrepancy.as_ref();
    [Checkpointing::None, Checkpointing::Full].map(|flag| {
        let at = features(job, &costs.cell, flag);
        rounded(learned.map_or(0.0, |learned| learned.logarithm(&at)))
    })
}

/// To nine digits: the last ones may differ from machine to machine.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}
