//! From the rows of a file to what a fit can use.

use super::observation::Observation;
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::laboratory::runs::{Run, Skip, Status, other_gpu};

/// A row that a fit cannot use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRow {
    /// The file of runs; empty for a run read from a log.
    pub file: String,
    /// Line in the file of runs; 0 for a run read from a log.
    pub line: u64,
    /// Source and run.
    pub name: String,
    /// Why, for people.
    pub reason: String,
}

/// The rows that tell something of this cluster under this framework, and the others with the
/// reason.
#[must_use]
pub fn observe(
    runs: &[Run],
    cluster: &Cluster,
    framework: &Framework,
) -> (Vec<Observation>, Vec<SkippedRow>) {
    let (mut observations, mut skipped) = (Vec::new(), Vec::new());
    for run in runs {
        match observation(run, cluster, framework) {
            Ok(observation) => observations.push(observation),
            Err(Skip(reason)) => skipped.push(SkippedRow {
                file: run.file.clone(),
                line: run.line,
                name: run.label(),
                reason,
            }),
        }
    }
    (observations, skipped)
}

fn observation(run: &Run, cluster: &Cluster, framework: &Framework) -> Result<Observation, Skip> {
    if let Some(fault) = &run.fault {
        return Err(Skip(fault.clone()));
    }
    if let Some(other) = other_gpu(run, cluster) {
        return Err(other);
    }
    if !run.framework.is_empty() && run.framework != framework.name {
        let (own, fitted) = (&run.framework, &framework.name);
        return Err(Skip(format!("it ran under {own}, not {fitted}")));
    }
    let observation = Observation::new(run, cluster, framework)?;
    match run.status {
        Status::Ok | Status::OutOfMemory => Ok(observation),
        Status::Other => Err(Skip("it neither ran nor ran out of memory".to_owned())),
        Status::Unstated => Err(Skip("no status stated".to_owned())),
    }
}
