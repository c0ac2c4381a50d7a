//! From the rows of a file to what a fit can use.

use super::observation::Observation;
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::runs::{Run, Skip, Status};

/// A row that a fit cannot use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRow {
    /// Line in the file of runs.
    pub line: u64,
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
                line: run.line,
                reason,
            }),
        }
    }
    (observations, skipped)
}

fn observation(run: &Run, cluster: &Cluster, framework: &Framework) -> Result<Observation, Skip> {
    let gpu = &cluster.accelerator.name;
    // `a100` without a memory size may be either A100; a GPU without a name may be any.
    let other = gpu != "custom" && !run.gpu.is_empty() && !gpu.starts_with(&run.gpu);
    if other {
        return Err(Skip(format!("it ran on {}, not {gpu}", run.gpu)));
    }
    if !run.framework.is_empty() && run.framework != framework.name {
        let (own, fitted) = (&run.framework, &framework.name);
        return Err(Skip(format!("it ran under {own}, not {fitted}")));
    }
    let observation = Observation::new(run, cluster, framework)?;
    if run.status == Status::Other {
        return Err(Skip("it neither ran nor ran out of memory".to_owned()));
    }
    Ok(observation)
}
