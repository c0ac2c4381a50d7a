//! Runs that were seen to fit into memory are accepted ever after: hard evidence for their own
//! combination. For its neighbours they are evidence like any other, weighed by the fit.

use super::observation::Observation;
use crate::cost_model::memory;
use crate::cost_model::seen_to_fit::key;
use crate::instance::DEFAULT_OOM_RISK;
use crate::laboratory::runs::{Setup, Status};

/// Logarithm of (predicted peak / memory of a GPU), a factor of two, beyond which the row is wrong.
const IMPLAUSIBLE: f64 = std::f64::consts::LN_2;
/// What whole numbers and the small parts of a network, which rows do not state, may add to a peak.
const ROUNDING: f64 = 2e-3;

/// The runs seen to fit whose predicted peaks the default risk refuses: the key of each and by how much,
/// as a logarithm, its peak exceeds what that risk leaves of a GPU.
fn refused(observations: &[&Observation], setup: &Setup) -> Vec<(String, f64)> {
    let capacity = setup.cluster.accelerator.usable_memory;
    let error = setup.cluster.calibration.memory;
    let admissible = memory::admissible_peak(capacity, error, DEFAULT_OOM_RISK);
    let fitted = observations.iter().filter(|run| run.status == Status::Ok);
    let fitted = fitted.filter(|run| run.modelled.unstated.is_none());
    let excesses = fitted.filter_map(|run| {
        let job = run.job(setup);
        let peak = run.predicted_peaks(&job).1;
        let excess = (peak / admissible).ln() + ROUNDING;
        let is_plausible = (peak / capacity).ln() < IMPLAUSIBLE;
        (excess > 0.0 && is_plausible)
            .then(|| (key(&job, &run.modelled.layout.combination), excess))
    });
    excesses.collect()
}

/// Whether a run that was seen to fit would be refused.
pub(super) fn condemns_any(observations: &[&Observation], setup: &Setup) -> bool {
    !refused(observations, setup).is_empty()
}

/// Records the runs seen to fit that would be refused, so that the default risk accepts each and all
/// layouts of its combination that are predicted no larger. By how much, as a logarithm, the admissible
/// peak of one rises at most.
pub(super) fn record(observations: &[&Observation], setup: &mut Setup) -> f64 {
    let mut most = 0.0_f64;
    for (key, excess) in refused(observations, setup) {
        let raise = (excess * 1e3).ceil() / 1e3;
        let known = setup.cluster.seen_to_fit.entry(key).or_insert(0.0);
        *known = known.max(raise);
        most = most.max(raise);
    }
    most
}
