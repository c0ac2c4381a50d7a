//! What was measured of each run beside what is predicted of it, before and after a calibration.

use schemars::JsonSchema;
use serde::Serialize;

use super::observation::Observation;
use crate::cost_model::memory::oom_probability;
use crate::cost_model::seen_to_fit::memory_error;
use crate::laboratory::runs::{Place, Setup, Status};
use crate::quantity::{Bytes, Seconds};

/// A run beside its predictions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// Where the run stands.
    #[serde(flatten)]
    pub place: Place,
    /// Step time, seconds.
    pub step_time: Measured,
    /// Peak of the stage that was measured, else of the fullest, GiB.
    pub peak_gib: Measured,
    /// Whether it ran out of memory.
    pub ran_out: bool,
    /// Probability of running out of memory; null where the row does not state what decides it.
    pub oom_probability: Option<Predicted>,
}

/// A measured figure and its predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// As measured; null where it is not.
    pub measured: Option<f64>,
    /// Its predictions.
    #[serde(flatten)]
    pub predicted: Predicted,
}

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Predicted {
    /// By the shipped figures.
    pub before: f64,
    /// By those that were adopted.
    pub after: f64,
}

/// Step time, peaks of the measured and of the fullest stage, and the probability of running out.
fn prediction(run: &Observation, setup: &Setup) -> (Seconds, Bytes, f64) {
    let job = run.job(setup);
    let (measured, fullest) = run.predicted_peaks(&job);
    let usable = setup.cluster.accelerator.usable_memory;
    let error = memory_error(&job, &run.modelled.layout.combination);
    let probability = oom_probability(fullest, usable, error);
    (run.predicted_time(&job), measured, probability)
}

/// Every run that a calibration used.
pub(super) fn compared(
    observations: &[&Observation],
    shipped: &Setup,
    adopted: &Setup,
) -> Vec<Compared> {
    let compared = observations.iter().map(|run| {
        let [before, after] = [shipped, adopted].map(|setup| prediction(run, setup));
        Compared {
            place: run.place.clone(),
            step_time: Measured {
                measured: run.step_time.map(Seconds::value),
                predicted: Predicted {
                    before: before.0.value(),
                    after: after.0.value(),
                },
            },
            peak_gib: Measured {
                measured: run.peak.map(Bytes::gib),
                predicted: Predicted {
                    before: before.1.gib(),
                    after: after.1.gib(),
                },
            },
            ran_out: run.status == Status::OutOfMemory,
            oom_probability: run.modelled.unstated.is_none().then_some(Predicted {
                before: before.2,
                after: after.2,
            }),
        }
    });
    compared.collect()
}
