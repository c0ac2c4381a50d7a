//! Runs that a fit misses by far.

use schemars::JsonSchema;
use serde::Serialize;

use super::observation::Observation;
use crate::choice::choice;
use crate::cost_model::memory::oom_probability;
use crate::figures::Seen;
use crate::job::Job;
use crate::laboratory::runs::{Place, Setup, Status};

/// A run that the fit misses by far: a wrong row, a disturbed run, or something that the cost
/// model lacks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Outlier {
    /// Where the run stands.
    #[serde(flatten)]
    pub place: Place,
    /// What is missed.
    pub what: Missed,
    /// What was measured, in seconds or bytes; null for an ending.
    pub measured: Option<f64>,
    /// What the fit predicts; for an ending, the probability of running out of memory.
    pub predicted: f64,
}

choice!(
    /// What of a run is missed.
    Missed {
        /// The step time.
        StepTime = "step_time",
        /// The peak.
        Peak = "peak",
        /// It ran though it should not have fitted, or the other way round.
        Ending = "ending",
    }
);

/// Errors below this are never outliers.
const LEAST: f64 = 0.10;
/// Errors above this many robust standard deviations are.
const DEVIATIONS: f64 = 4.0;
/// Standard deviation of a normal distribution over its median absolute deviation.
const NORMAL: f64 = 1.4826;
/// A run that ended otherwise than with this probability is an outlier.
const CERTAIN: f64 = 0.99;

/// Runs whose step time or peak is off by more than a tenth and by more than four robust standard
/// deviations, and runs that ended as the fit thinks nearly impossible; in the order of the rows.
#[must_use]
pub(super) fn outliers(observations: &[&Observation], setup: &Setup) -> Vec<Outlier> {
    let jobs: Vec<Job> = observations.iter().map(|run| run.job(setup)).collect();
    let runs = || (0..).zip(observations.iter().zip(&jobs));
    let outlier = |index: usize, what, measured, predicted| {
        let place = observations[index].place.clone();
        let outlier = Outlier {
            place,
            what,
            measured,
            predicted,
        };
        (index, outlier)
    };
    let (capacity, error) = (
        setup.cluster.accelerator.usable_memory,
        setup.cluster.calibration.memory,
    );
    let endings = runs().filter_map(|(index, (run, job))| {
        let (_, fullest) = run.predicted_peaks(job);
        let probability = oom_probability(fullest, capacity, error);
        let unlikely = match run.status {
            Status::Ok => probability > CERTAIN,
            Status::OutOfMemory => probability < 1.0 - CERTAIN,
            Status::Other | Status::Unstated => false,
        };
        unlikely.then(|| outlier(index, Missed::Ending, None, probability))
    });
    let mut found: Vec<(usize, Outlier)> = endings.collect();
    for (seen, what) in [
        (Seen::InTime, Missed::StepTime),
        (Seen::InMemory, Missed::Peak),
    ] {
        let measured = runs().filter_map(|(index, (run, job))| {
            let (measured, [predicted, _]) = (run.measured(seen)?, run.predicted(seen, job));
            let size = (predicted / measured).ln().abs();
            Some((size, outlier(index, what, Some(measured), predicted)))
        });
        let measured: Vec<(f64, (usize, Outlier))> = measured.collect();
        let mut sizes: Vec<f64> = measured.iter().map(|(size, _)| *size).collect();
        sizes.sort_by(f64::total_cmp);
        let spread = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0) * NORMAL;
        let limit = LEAST.max(DEVIATIONS * spread);
        let off = measured.into_iter().filter(|(size, _)| *size > limit);
        found.extend(off.map(|(_, outlier)| outlier));
    }
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, outlier)| outlier).collect()
}
