//! Which cluster and framework a row of measured runs is modelled with.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::catalog::{self, Machine, NotFound};
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::layout::Sharding;

use super::model_run::{Modelled, Skip, model, readable};
use super::record::Run;

/// The cluster that the paper's runs were measured on, for rows of its GPU.
const CALIBRATED: (&str, &str) = ("a100-80gb", "a100-80gb-one-nic");

/// A GPU whose memory the source does not state, and the data-sheet cluster that stands in.
const UNSTATED_MEMORY: (&str, &str) = ("a100", "dgx-a100-80gb");

/// Clusters and frameworks for the rows of a file.
#[derive(Debug)]
pub struct RunSetups {
    machine: Option<Machine>,
    framework: Option<String>,
    /// Where the cluster of a row comes from, if none is given.
    origin: ClusterOrigin,
    /// Clusters by preset.
    machines: RefCell<HashMap<String, Machine>>,
    /// Frameworks by the preset of their cluster (empty: the given one) and name.
    frameworks: RefCell<HashMap<(String, String), Framework>>,
}

/// Where the cluster of a row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClusterOrigin {
    /// The one that its source used, where that is known.
    Source,
    /// The data sheet of its GPU.
    DataSheet,
}

impl RunSetups {
    /// Setups for rows: a given cluster and framework for all, or chosen by row.
    ///
    /// # Errors
    ///
    /// If the framework's name is not in the catalog.
    pub fn new(machine: Option<Machine>, framework: Option<&str>) -> Result<Self, NotFound> {
        if let Some(name) = framework {
            catalog::framework(name)?;
        }
        Ok(Self {
            machine,
            framework: framework.map(ToOwned::to_owned),
            origin: ClusterOrigin::Source,
            machines: RefCell::default(),
            frameworks: RefCell::default(),
        })
    }

    /// The same with clusters from data sheets: nothing that was fitted to the rows' sources.
    #[must_use]
    pub fn from_data_sheets(self) -> Self {
        Self {
            origin: ClusterOrigin::DataSheet,
            ..self
        }
    }

    /// The cluster for a row: the given one; the one where its source used the row's GPU; for
    /// unknown sources the calibrated cluster with that GPU; the data-sheet preset of the GPU.
    ///
    /// # Errors
    ///
    /// If no cluster of the catalog has the row's GPU, or the given one has another.
    pub fn cluster(&self, run: &Run) -> Result<Cluster, Skip> {
        let (_, machine) = self.machine(run)?;
        match other_gpu(run, &machine.cluster).filter(|_| self.machine.is_some()) {
            Some(other) => Err(other),
            None => Ok(machine.cluster),
        }
    }

    /// The cluster for a row, by its preset (empty: the given one).
    fn machine(&self, run: &Run) -> Result<(&'static str, Machine), Skip> {
        if let Some(machine) = &self.machine {
            return Ok(("", machine.clone()));
        }
        let unknown = || Skip(format!("no cluster of the catalog has the GPU {}", run.gpu));
        let preset = preset(run, self.origin).ok_or_else(unknown)?;
        let mut known = self.machines.borrow_mut();
        if let Some(machine) = known.get(preset) {
            return Ok((preset, machine.clone()));
        }
        let machine = catalog::machine(preset).map_err(|error| Skip(error.to_string()))?;
        known.insert(preset.to_owned(), machine.clone());
        Ok((preset, machine))
    }

    /// The framework for a row: the given one; the row's own column; the one that its source is
    /// known to have used; the given cluster's; by its sharding. Figures that were fitted on the
    /// row's cluster replace the catalog's.
    ///
    /// # Errors
    ///
    /// If the row names a framework that the catalog lacks.
    pub fn framework(&self, run: &Run) -> Result<Framework, Skip> {
        let (preset, machine) = self.machine(run)?;
        let name = if let Some(name) = &self.framework {
            name
        } else if !run.framework.is_empty() {
            &run.framework
        } else if let Some(name) = catalog::framework_of_source(&run.source) {
            name
        } else if let Some(name) = machine.framework_name().filter(|_| self.machine.is_some()) {
            name
        } else {
            by_sharding(run)
        };
        let key = (preset.to_owned(), name.to_owned());
        let mut known = self.frameworks.borrow_mut();
        if let Some(framework) = known.get(&key) {
            return Ok(framework.clone());
        }
        let framework = machine.framework(Some(name));
        let framework = framework.map_err(|error| Skip(error.summary()))?;
        known.insert(key, framework.clone());
        Ok(framework)
    }

    /// Predicts a row.
    ///
    /// # Errors
    ///
    /// The reason why the row cannot be modelled.
    pub fn model(&self, run: &Run) -> Result<Modelled, Skip> {
        readable(run)?;
        model(run, &self.cluster(run)?, &self.framework(run)?)
    }
}

/// Why a run tells nothing of a cluster: it ran on another GPU. `a100` without a memory size may be
/// either A100; a GPU without a name may be any.
#[must_use]
pub fn other_gpu(run: &Run, cluster: &Cluster) -> Option<Skip> {
    let (own, gpu) = (&run.gpu, &cluster.accelerator.name);
    let other = gpu != "custom" && !own.is_empty() && !gpu.starts_with(own.as_str());
    other.then(|| Skip(format!("it ran on {own}, not {gpu}")))
}

/// The catalog's cluster for a row.
fn preset(run: &Run, origin: ClusterOrigin) -> Option<&'static str> {
    let by_source = origin == ClusterOrigin::Source;
    if let Some(preset) = catalog::cluster_of_source(&run.source, &run.gpu).filter(|_| by_source) {
        return Some(preset);
    }
    let calibrated = (by_source && !catalog::knows_source(&run.source)).then_some(CALIBRATED);
    let stand_ins = calibrated.into_iter().chain([UNSTATED_MEMORY]);
    let stand_in = stand_ins.into_iter().find(|(name, _)| *name == run.gpu);
    match stand_in {
        Some((_, preset)) => Some(preset),
        None => catalog::data_sheet_cluster(&run.gpu),
    }
}

/// Fully sharded runs are FSDP's habit, others Megatron-LM's.
fn by_sharding(run: &Run) -> &'static str {
    match Sharding::parse(&run.sharding).map(Sharding::state) {
        Some(state) if state.weights.splits() => "fsdp",
        _ => "megatron-lm",
    }
}
