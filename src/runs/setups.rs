//! Which cluster and framework a row of measured runs is modelled with.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::catalog::{self, NotFound};
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::layout::Sharding;

use super::model_run::{Modelled, Skip, model};
use super::record::Run;

/// The cluster that the paper's runs were measured on, for rows of its GPU.
const CALIBRATED: (&str, &str) = ("a100-80gb", "a100-80gb-one-nic");

/// A GPU whose memory the source does not state, and the data-sheet cluster that stands in.
const UNSTATED_MEMORY: (&str, &str) = ("a100", "dgx-a100-80gb");

/// Clusters and frameworks for the rows of a file.
#[derive(Debug)]
pub struct RunSetups {
    cluster: Option<Cluster>,
    framework: Option<Framework>,
    clusters: RefCell<HashMap<String, Option<Cluster>>>,
    frameworks: RefCell<HashMap<String, Framework>>,
}

impl RunSetups {
    /// Setups for rows: a given cluster and framework for all, or chosen by row.
    ///
    /// # Errors
    ///
    /// If the framework's name is not in the catalog.
    pub fn new(cluster: Option<Cluster>, framework: Option<&str>) -> Result<Self, NotFound> {
        Ok(Self {
            cluster,
            framework: framework.map(catalog::framework).transpose()?,
            clusters: RefCell::default(),
            frameworks: RefCell::default(),
        })
    }

    /// The cluster for a row: the given one; the calibrated cluster for its GPU; the data-sheet
    /// preset of the row's GPU.
    ///
    /// # Errors
    ///
    /// If no cluster of the catalog has the row's GPU.
    pub fn cluster(&self, run: &Run) -> Result<Cluster, Skip> {
        if let Some(cluster) = &self.cluster {
            return Ok(cluster.clone());
        }
        let mut known = self.clusters.borrow_mut();
        let found = known
            .entry(run.gpu.clone())
            .or_insert_with(|| cluster_of_gpu(&run.gpu));
        found
            .clone()
            .ok_or_else(|| Skip(format!("no cluster of the catalog has the GPU {}", run.gpu)))
    }

    /// The framework for a row: the given one; the row's own column; the one that its source is
    /// known to have used; by its sharding.
    ///
    /// # Errors
    ///
    /// If the row names a framework that the catalog lacks.
    pub fn framework(&self, run: &Run) -> Result<Framework, Skip> {
        if let Some(framework) = &self.framework {
            return Ok(framework.clone());
        }
        let name = if run.framework.is_empty() {
            catalog::framework_of_source(&run.source).unwrap_or_else(|| by_sharding(run))
        } else {
            &run.framework
        };
        let mut known = self.frameworks.borrow_mut();
        if let Some(framework) = known.get(name) {
            return Ok(framework.clone());
        }
        let framework = catalog::framework(name).map_err(|error| Skip(error.to_string()))?;
        known.insert(name.to_owned(), framework.clone());
        Ok(framework)
    }

    /// Predicts a row.
    ///
    /// # Errors
    ///
    /// The reason why the row cannot be modelled.
    pub fn model(&self, run: &Run) -> Result<Modelled, Skip> {
        model(run, &self.cluster(run)?, &self.framework(run)?)
    }
}

fn cluster_of_gpu(gpu: &str) -> Option<Cluster> {
    let preset = match [CALIBRATED, UNSTATED_MEMORY]
        .into_iter()
        .find(|(name, _)| *name == gpu)
    {
        Some((_, preset)) => preset,
        None => catalog::data_sheet_cluster(gpu)?,
    };
    catalog::cluster(preset).ok()
}

/// Fully sharded runs are FSDP's habit, others Megatron-LM's.
fn by_sharding(run: &Run) -> &'static str {
    match Sharding::parse(&run.sharding) {
        Some(Sharding::Parameters | Sharding::Hybrid) => "fsdp",
        _ => "megatron-lm",
    }
}
