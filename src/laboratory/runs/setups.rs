//! Which cluster and framework a row of measured runs is modelled with.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::catalog::{self, Machine, NotFound};
use crate::cluster::Cluster;
use crate::figures::Figure;
use crate::framework::Framework;
use crate::layout::Sharding;

use super::model_run::{Modelled, Skip, model, reached_of_line_rate, readable};
use super::network::has_experts;
use super::record::Run;

/// GPUs whose memory sources do not state, and the data-sheet clusters that stand in.
const UNSTATED_MEMORY: [(&str, &str); 2] =
    [("a100", "dgx-a100-80gb"), ("mi300x", "mi300x-platform")];

/// Cluster and framework, whose figures predictions rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The cluster.
    pub cluster: Cluster,
    /// The framework.
    pub framework: Framework,
}

impl Setup {
    /// A figure as a number in base units.
    #[must_use]
    pub fn number(&self, figure: &Figure) -> f64 {
        figure.number(&self.cluster, &self.framework)
    }

    /// Gives a figure a value.
    pub fn set(&mut self, figure: &Figure, value: f64) {
        figure.set(&mut self.cluster, &mut self.framework, value);
    }
}

/// Clusters and frameworks for the rows of a file.
#[derive(Debug)]
pub struct RunSetups {
    machine: Option<Machine>,
    framework: Option<String>,
    /// Where the cluster of a row comes from, if none is given.
    origin: ClusterOrigin,
    /// Runs of which networks are modelled.
    networks: Networks,
    /// Setups by preset of the cluster (empty: the given one) and framework.
    known: RefCell<HashMap<(&'static str, String), Setup>>,
}

/// Runs of which networks are modelled. What is known of the errors of dense networks says little of
/// mixtures of experts, so that they are judged apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Networks {
    /// Dense ones.
    Dense,
    /// Mixtures of experts.
    Experts,
    /// All.
    Any,
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
            networks: Networks::Dense,
            known: RefCell::default(),
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

    /// The same for runs of these networks; without it, of dense ones.
    #[must_use]
    pub fn of(self, networks: Networks) -> Self {
        Self { networks, ..self }
    }

    /// Cluster and framework for a row. The cluster is the given one; the one where its source is known
    /// to have used the row's GPU; the data-sheet preset of the GPU. Figures of the framework that were fitted on it replace the catalog's.
    ///
    /// # Errors
    ///
    /// If no cluster of the catalog has the row's GPU, or the given one has another, or if the row
    /// names a framework that the catalog lacks.
    pub fn setup(&self, run: &Run) -> Result<Setup, Skip> {
        let mut setup = self.usual_setup(run)?;
        catalog::follow_source(&run.source, &run.software, &mut setup.framework);
        let ports = catalog::ports_of_source(&run.source);
        if let (ClusterOrigin::DataSheet, None, Some(ports)) = (self.origin, &self.machine, ports) {
            setup.cluster.inter_node_bandwidth = reached_of_line_rate(ports);
        }
        Ok(setup)
    }

    /// The same without the habits of its source.
    fn usual_setup(&self, run: &Run) -> Result<Setup, Skip> {
        let given = self.machine.as_ref();
        if let Some(other) = given.and_then(|machine| other_gpu(run, &machine.cluster)) {
            return Err(other);
        }
        let unknown = || Skip(format!("no cluster of the catalog has the GPU {}", run.gpu));
        let preset = match given {
            Some(_) => "",
            None => preset(run, self.origin).ok_or_else(unknown)?,
        };
        let key = (preset, self.framework_name(run).to_owned());
        let mut known = self.known.borrow_mut();
        if let Some(setup) = known.get(&key) {
            return Ok(setup.clone());
        }
        let machine = match given {
            Some(machine) => machine.clone(),
            None => catalog::machine(preset).map_err(|error| Skip(error.to_string()))?,
        };
        let framework = machine.framework(Some(&key.1));
        let setup = Setup {
            framework: framework.map_err(|error| Skip(error.summary()))?,
            cluster: machine.cluster,
        };
        known.insert(key, setup.clone());
        Ok(setup)
    }

    /// The framework of a row: the given one; the row's own column; the one that its source is known
    /// to have used; the given cluster's; by its sharding.
    #[must_use]
    pub fn framework_name<'a>(&'a self, run: &'a Run) -> &'a str {
        let stated = Some(run.framework.as_str()).filter(|name| !name.is_empty());
        let given = self.machine.as_ref();
        self.framework
            .as_deref()
            .or(stated)
            .or_else(|| catalog::framework_of_source(&run.source, &run.gpu))
            .or_else(|| given.and_then(Machine::framework_name))
            .unwrap_or_else(|| by_sharding(run))
    }

    /// Predicts a row.
    ///
    /// # Errors
    ///
    /// The reason why the row cannot be modelled.
    pub fn model(&self, run: &Run) -> Result<Modelled, Skip> {
        readable(run)?;
        match (self.networks, has_experts(run)) {
            (Networks::Dense, true) => {
                return Err(Skip("mixtures of experts are judged apart".to_owned()));
            }
            (Networks::Experts, false) => {
                return Err(Skip("dense networks are judged apart".to_owned()));
            }
            _ => {}
        }
        model(run, &self.setup(run)?)
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
    let unstated = UNSTATED_MEMORY.iter().find(|(gpu, _)| run.gpu == *gpu);
    match unstated {
        Some((_, stand_in)) => Some(stand_in),
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
