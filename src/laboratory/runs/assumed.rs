//! Which cluster and framework runs were predicted with, by source.

use schemars::JsonSchema;
use serde::Serialize;

use super::model_run::Modelled;
use super::record::Run;
use crate::cluster::CalibrationKind;

/// A cluster and a framework that runs of a source were predicted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Assumed {
    /// Where the runs come from.
    pub source: String,
    /// The cluster.
    pub cluster: String,
    /// Whether its figures were fitted to measured runs, or come from data sheets.
    pub figures: CalibrationKind,
    /// The framework.
    pub framework: String,
    /// Runs.
    pub runs: usize,
}

/// What the runs were predicted with, in order of first appearance.
pub fn assumed<'a>(runs: impl Iterator<Item = (&'a Run, &'a Modelled)>) -> Vec<Assumed> {
    let mut found: Vec<Assumed> = Vec::new();
    for (run, modelled) in runs {
        let (cluster, framework) = (&modelled.job.cluster, &modelled.job.framework);
        let known = found.iter_mut().rfind(|it| {
            (&it.source, &it.cluster, &it.framework)
                == (&run.source, &cluster.name, &framework.name)
        });
        match known {
            Some(known) => known.runs += 1,
            None => found.push(Assumed {
                source: run.source.clone(),
                cluster: cluster.name.clone(),
                figures: cluster.calibration.kind,
                framework: framework.name.clone(),
                runs: 1,
            }),
        }
    }
    found
}
