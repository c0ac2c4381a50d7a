//! Runs that a fit misses by far.

use super::observation::Observation;
use crate::cluster::Cluster;
use crate::cost_model::memory::oom_probability;
use crate::framework::Framework;
use crate::laboratory::runs::Status;
use crate::quantity::{Bytes, Seconds};

/// A run that the fit misses by far: a wrong row, a disturbed run, or something that the cost
/// model lacks.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// File of runs; empty for a run read from a log.
    pub file: String,
    /// Line in it; 0 for a run read from a log.
    pub line: u64,
    /// Source and run.
    pub name: String,
    /// What is missed.
    pub miss: Miss,
}

/// What of a run is missed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Miss {
    /// The step time.
    Time {
        /// Measured.
        measured: Seconds,
        /// Predicted by the fit.
        predicted: Seconds,
    },
    /// The peak.
    Peak {
        /// Measured.
        measured: Bytes,
        /// Predicted by the fit.
        predicted: Bytes,
    },
    /// It ran though it should not have fitted, or the other way round.
    Ending {
        /// Predicted probability of running out of memory.
        oom_probability: f64,
    },
}

impl Miss {
    /// Relative error of the prediction; `None` for an ending.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        match *self {
            Self::Time {
                measured,
                predicted,
            } => Some(predicted / measured - 1.0),
            Self::Peak {
                measured,
                predicted,
            } => Some(predicted / measured - 1.0),
            Self::Ending { .. } => None,
        }
    }
}

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
pub(super) fn outliers(
    observations: &[&Observation],
    cluster: &Cluster,
    framework: &Framework,
) -> Vec<Outlier> {
    let mut misses: Vec<(usize, Miss)> = Vec::new();
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for (index, run) in observations.iter().enumerate() {
        let job = run.job(cluster, framework);
        if let Some(measured) = run.step_time {
            let predicted = run.predicted_time(&job);
            times.push((
                index,
                (predicted / measured).ln(),
                Miss::Time {
                    measured,
                    predicted,
                },
            ));
        }
        let (predicted, fullest) = run.predicted_peaks(&job);
        if let Some(measured) = run.peak {
            peaks.push((
                index,
                (predicted / measured).ln(),
                Miss::Peak {
                    measured,
                    predicted,
                },
            ));
        }
        let capacity = cluster.accelerator.usable_memory;
        let oom_probability = oom_probability(fullest, capacity, cluster.calibration.memory);
        let unlikely = match run.status {
            Status::Ok => oom_probability > CERTAIN,
            Status::OutOfMemory => oom_probability < 1.0 - CERTAIN,
            Status::Other | Status::Unstated => false,
        };
        if unlikely {
            misses.push((index, Miss::Ending { oom_probability }));
        }
    }
    misses.extend(far(&times));
    misses.extend(far(&peaks));
    misses.sort_by_key(|(index, _)| *index);
    let named = misses.into_iter().map(|(index, miss)| Outlier {
        file: observations[index].file.clone(),
        line: observations[index].line,
        name: observations[index].name.clone(),
        miss,
    });
    named.collect()
}

/// The misses that are far off among these.
fn far(all: &[(usize, f64, Miss)]) -> impl Iterator<Item = (usize, Miss)> {
    let mut sizes: Vec<f64> = all.iter().map(|(_, error, _)| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let spread = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0) * NORMAL;
    let limit = LEAST.max(DEVIATIONS * spread);
    let off = all.iter().filter(move |(_, error, _)| error.abs() > limit);
    off.map(|(index, _, miss)| (*index, *miss))
}
