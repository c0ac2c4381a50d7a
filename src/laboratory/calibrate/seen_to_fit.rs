//! Runs that were seen to fit into memory are accepted ever after.

use super::adoption::LEAST_SCALE;
use super::observation::Observation;
use crate::cost_model::memory;
use crate::instance::DEFAULT_OOM_RISK;
use crate::laboratory::runs::{Setup, Status};

/// Logarithm of (predicted peak / memory of a GPU), a factor of two, beyond which the row is wrong.
const IMPLAUSIBLE: f64 = std::f64::consts::LN_2;
/// What whole numbers and the small parts of a network, which rows do not state, may add to a peak.
const ROUNDING: f64 = 2e-3;

/// Largest shift of a cluster file.
const LARGEST_SHIFT: f64 = 1.0;

/// By how much, as a logarithm, the largest predicted peak of a run that was seen to fit exceeds what
/// the default risk leaves of a GPU; not above 0 where all are accepted.
pub(super) fn excess(observations: &[&Observation], setup: &Setup) -> f64 {
    let cluster = &setup.cluster;
    let (capacity, error) = (
        cluster.accelerator.usable_memory,
        cluster.calibration.memory,
    );
    let admissible = memory::admissible_peak(capacity, error, DEFAULT_OOM_RISK);
    let fitted = observations.iter().filter(|run| run.status == Status::Ok);
    let peaks = fitted.filter(|run| run.modelled.unstated.is_none());
    let peaks = peaks.map(|run| run.predicted_peaks(&run.job(setup)).1);
    peaks
        .filter(|&peak| (peak / capacity).ln() < IMPLAUSIBLE)
        .map(|peak| (peak / admissible).ln() + ROUNDING)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Changes the memory error until every run that was seen to fit is accepted at the default risk: a
/// layout predicted no larger fits as well. The scale is narrowed first, which leaves the peak that
/// fits as often as not where it is, then the shift is raised. By how much the admissible peak rises,
/// as a logarithm.
pub(super) fn raise(observations: &[&Observation], setup: &mut Setup) -> f64 {
    let excess = excess(observations, setup);
    if excess <= 0.0 {
        return 0.0;
    }
    let error = &mut setup.cluster.calibration.memory;
    let margin = (1.0 / DEFAULT_OOM_RISK - 1.0).ln();
    let narrowed = error.scale - excess / margin;
    let scale = ((narrowed * 1e3).floor() / 1e3).max(LEAST_SCALE.min(error.scale));
    let rest = (excess - (error.scale - scale) * margin).max(0.0);
    error.scale = scale;
    error.shift = (((error.shift + rest) * 1e3).ceil() / 1e3).min(LARGEST_SHIFT);
    excess
}
