//! From the rows of a file to what a fit can use.

use schemars::JsonSchema;
use serde::Serialize;

use super::observation::Observation;
use crate::laboratory::runs::{Place, Run, Setup, Skip, Status, other_gpu};

/// A row that a fit cannot use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedRow {
    /// Where it stands.
    #[serde(flatten)]
    pub place: Place,
    /// Why.
    pub reason: String,
}

/// The rows that tell something of this cluster under this framework, and the others with the
/// reason.
#[must_use]
pub fn observe(runs: &[Run], setup: &Setup) -> (Vec<Observation>, Vec<SkippedRow>) {
    let (mut observations, mut skipped) = (Vec::new(), Vec::new());
    for run in runs {
        match observation(run, setup) {
            Ok(observation) => observations.push(observation),
            Err(Skip(reason)) => skipped.push(SkippedRow {
                place: run.place(),
                reason,
            }),
        }
    }
    (observations, skipped)
}

fn observation(run: &Run, setup: &Setup) -> Result<Observation, Skip> {
    if let Some(fault) = &run.fault {
        return Err(Skip(fault.clone()));
    }
    if let Some(other) = other_gpu(run, &setup.cluster) {
        return Err(other);
    }
    if !run.framework.is_empty() && run.framework != setup.framework.name {
        let (own, fitted) = (&run.framework, &setup.framework.name);
        return Err(Skip(format!("it ran under {own}, not {fitted}")));
    }
    let observation = Observation::new(run, setup)?;
    match run.status {
        Status::Ok | Status::OutOfMemory => Ok(observation),
        Status::Other => Err(Skip("it neither ran nor ran out of memory".to_owned())),
        Status::Unstated => Err(Skip("no status stated".to_owned())),
    }
}
