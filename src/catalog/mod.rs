//! Presets shipped in the binary: GPUs, clusters, models and frameworks, each with its source.
//!
//! The tables in `catalog/` are written in the keys of instance files: the `sections` that describe
//! a network, a cluster or a framework, which instances state in part and build on these presets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use crate::axis::Axis;
use crate::choice::choice;
use crate::cluster::{Accelerator, Cluster};
use crate::framework::support::Aspect;
use crate::framework::{CrossEntropy, Dispatcher, ExpertSplit, Framework, LoggedMemory};
use crate::layout::AttentionKernel;
use crate::reading::{Problems, Source, SourceKind, Value, document};
use crate::transformer::Transformer;
use crate::workload::GradientWidth;

pub(crate) mod axes;
pub(crate) mod cluster;
mod discrepancy;
mod entries;
mod evidence;
mod explained;
pub(crate) mod framework;
mod machine;
pub(crate) mod model;
mod not_found;
pub(crate) mod sections;
mod seen_to_fit;
pub(crate) mod written;

pub use entries::{Entry, entries};
pub use evidence::{
    DEVIATIONS_OF_80_PERCENT, Evidence, Mechanism, Support, TimeTrust, scarcely_measured,
    time_trust, usual_trust,
};
pub use explained::{Explained, ExplainedFigure, explain};
pub use machine::Machine;
pub use not_found::NotFound;
pub use written::{Section, cluster_file};

use cluster::Unstated;
use sections::{AcceleratorSection, ClusterSection, FrameworkSection, ModelSection};

choice!(
    /// A kind of preset.
    Kind {
        /// One kind of GPU.
        Accelerator = "accelerator",
        /// Nodes, networks and efficiencies.
        Cluster = "cluster",
        /// A network.
        Model = "model",
        /// A training framework.
        Framework = "framework",
    }
);

/// The presets of one kind, in the order of their file.
struct Shelf<S> {
    kind: Kind,
    presets: Vec<(String, S)>,
}

struct Catalog {
    accelerators: Shelf<AcceleratorSection>,
    clusters: Shelf<ClusterSection>,
    models: Shelf<ModelSection>,
    frameworks: Shelf<FrameworkSection>,
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog {
    accelerators: shelf(
        Kind::Accelerator,
        include_str!("../../catalog/accelerators.toml"),
    ),
    clusters: shelf(Kind::Cluster, include_str!("../../catalog/clusters.toml")),
    models: shelf(Kind::Model, include_str!("../../catalog/models.toml")),
    frameworks: shelf(
        Kind::Framework,
        include_str!("../../catalog/frameworks.toml"),
    ),
});

/// Reads one file of the catalog.
fn shelf<S: Value>(kind: Kind, text: &str) -> Shelf<S> {
    let source = Arc::new(Source {
        name: format!("catalog of {}s", kind.as_str()),
        text: text.to_owned(),
        folder: PathBuf::new(),
        kind: SourceKind::Catalog,
    });
    let mut problems = Problems::default();
    let table = document::parse(&source, &mut problems);
    let presets = table
        .entries
        .into_iter()
        .filter_map(|entry| {
            Some((
                entry.key.clone(),
                S::read(&entry.node, &entry.key, &mut problems)?,
            ))
        })
        .collect();
    assert!(
        problems.list().is_empty(),
        "the catalog is valid: {problems}"
    );
    Shelf { kind, presets }
}

impl<S> Shelf<S> {
    fn get(&self, name: &str) -> Result<&S, NotFound> {
        self.presets
            .iter()
            .find(|(preset, _)| preset == name)
            .map(|(_, section)| section)
            .ok_or_else(|| NotFound::new(self.kind, name, self.names()))
    }

    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.presets.iter().map(|(name, _)| name.as_str())
    }
}

/// A GPU over those that it derives from.
pub(crate) fn accelerator_section(name: &str) -> Result<AcceleratorSection, NotFound> {
    let own = CATALOG.accelerators.get(name)?;
    match own.preset.value() {
        None => Ok(own.clone()),
        Some(parent) => Ok(own.clone().over(&accelerator_section(parent)?)),
    }
}

/// The GPU that the generation of a GPU begins with, whose kernels it runs: its own name where it
/// derives from none.
#[must_use]
pub fn generation(accelerator: &str) -> &str {
    let section = CATALOG.accelerators.get(accelerator).ok();
    match section.and_then(|section| section.preset.value()) {
        Some(parent) => generation(parent),
        None => accelerator,
    }
}

pub(crate) fn cluster_section(name: &str) -> Result<&'static ClusterSection, NotFound> {
    CATALOG.clusters.get(name)
}

pub(crate) fn model_section(name: &str) -> Result<&'static ModelSection, NotFound> {
    CATALOG.models.get(name)
}

pub(crate) fn framework_section(name: &str) -> Result<&'static FrameworkSection, NotFound> {
    CATALOG.frameworks.get(name)
}

/// Where the values are stated that a framework of the catalog has of an axis.
#[must_use]
pub fn source_of_axis(framework: &str, axis: Axis) -> Option<&'static str> {
    let axes = framework_section(framework).ok()?.axes.value()?;
    axes.source(Aspect::Axis(axis))
}

/// The first cluster of the catalog with this accelerator whose figures are not fitted to one
/// installation.
#[must_use]
pub fn data_sheet_cluster(accelerator: &str) -> Option<&'static str> {
    let presets = CATALOG.clusters.presets.iter();
    presets
        .filter(|(_, section)| !cluster::is_measured(section))
        .find(|(_, section)| {
            section
                .accelerator
                .value()
                .is_some_and(|name| name == accelerator)
        })
        .map(|(name, _)| name.as_str())
}

/// Where the runs of one source were made.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RunsSource {
    framework: String,
    /// The framework of runs on a GPU, if it is another.
    #[serde(default)]
    frameworks: BTreeMap<String, String>,
    /// What it trained with where that is not the framework's habit.
    #[serde(default)]
    habits: SourceHabits,
    /// The same of runs whose `software` has this text in it.
    #[serde(default)]
    releases: BTreeMap<String, SourceHabits>,
    /// Whether figures of the catalog were fitted to these runs.
    #[serde(default)]
    fitted: bool,
    #[serde(default)]
    clusters: BTreeMap<String, String>,
    /// Line rate of all network ports of a node in one direction, in GB/s, if it is not the data sheet's.
    ports: Option<f64>,
}

/// What runs that do not say were trained with, if it is not the habit of their framework.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SourceHabits {
    attention: Option<AttentionKernel>,
    gradients: Option<GradientWidth>,
    cross_entropy: Option<CrossEntropy>,
    dropout: Option<f64>,
    /// What its peaks count.
    peaks: Option<LoggedMemory>,
    experts: Option<ExpertSplit>,
    dispatcher: Option<Dispatcher>,
}

impl SourceHabits {
    fn apply(&self, framework: &mut Framework) {
        if let Some(kernel) = self.attention {
            framework.usual_attention = kernel;
        }
        if let Some(width) = self.gradients {
            framework.memory.set_gradients(width.width().bytes());
        }
        if let Some(kind) = self.cross_entropy {
            framework.memory.cross_entropy = kind;
        }
        if let Some(share) = self.dropout {
            framework.usual_dropout = share;
        }
        if let Some(split) = self.experts {
            framework.usual_expert_tensor_parallel = split;
        }
        if let Some(dispatcher) = self.dispatcher {
            framework.speed.dispatcher = dispatcher;
        }
        if let Some(counted) = self.peaks {
            framework.memory.logged_memory = counted;
        }
    }
}

static SOURCES: LazyLock<BTreeMap<String, RunsSource>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../catalog/sources.toml"))
        .expect("the catalog's sources are valid")
});

/// The framework that a source of measured runs used on this GPU, where that is known.
#[must_use]
pub fn framework_of_source(source: &str, gpu: &str) -> Option<&'static str> {
    let known = SOURCES.get(source)?;
    Some(known.frameworks.get(gpu).unwrap_or(&known.framework))
}

/// Gives a framework the habits of a source of measured runs, and of the release that a run used.
pub fn follow_source(source: &str, software: &str, framework: &mut Framework) {
    let Some(known) = SOURCES.get(source) else {
        return;
    };
    known.habits.apply(framework);
    for (release, habits) in &known.releases {
        if software.contains(release.as_str()) {
            habits.apply(framework);
        }
    }
}

/// Whether figures of the catalog were fitted to the runs of this source: scores on them are in
/// sample.
#[must_use]
pub fn is_fitted_to(source: &str) -> bool {
    SOURCES.get(source).is_some_and(|known| known.fitted)
}

/// The cluster on which a source of measured runs used this GPU, where that is known.
#[must_use]
pub fn cluster_of_source(source: &str, gpu: &str) -> Option<&'static str> {
    let clusters = &SOURCES.get(source)?.clusters;
    clusters.get(gpu).map(String::as_str)
}

/// Line rate of all network ports of a node of this source in one direction, in GB/s, where its account
/// states another than the data sheet's.
#[must_use]
pub fn ports_of_source(source: &str) -> Option<f64> {
    SOURCES.get(source)?.ports
}

/// A GPU by its catalog name.
///
/// # Errors
///
/// If there is none of this name.
///
/// # Panics
///
/// Never: the catalog is complete, which tests assert.
pub fn accelerator(name: &str) -> Result<Accelerator, NotFound> {
    let section = accelerator_section(name)?;
    let mut cluster = Cluster::default();
    section
        .gpu
        .apply(&mut cluster, &mut Framework::default())
        .expect("every accelerator of the catalog is complete");
    name.clone_into(&mut cluster.accelerator.name);
    Ok(cluster.accelerator)
}

/// One node of a cluster by its catalog name.
///
/// # Errors
///
/// If there is none of this name.
///
/// # Panics
///
/// Never: the catalog is complete, which tests assert.
pub fn cluster(name: &str) -> Result<Cluster, NotFound> {
    machine(name).map(|machine| machine.cluster)
}

/// One node of a cluster by its catalog name, with the figures of the framework that it was
/// fitted with.
///
/// # Errors
///
/// If there is none of this name.
///
/// # Panics
///
/// Never: the catalog is complete, which tests assert.
pub fn machine(name: &str) -> Result<Machine, NotFound> {
    let section = cluster_section(name)?;
    let mut problems = Problems::default();
    let mut machine = cluster::resolve(section, Unstated::OneNode, None, &mut problems)
        .expect("every cluster of the catalog is complete");
    name.clone_into(&mut machine.cluster.name);
    Ok(machine)
}

/// A network by its catalog name.
///
/// # Errors
///
/// If there is none of this name.
///
/// # Panics
///
/// Never: the catalog is complete, which tests assert.
pub fn model(name: &str) -> Result<Transformer, NotFound> {
    let section = model_section(name)?;
    let mut problems = Problems::default();
    let transformer = model::complete(section, name.to_owned(), None, &mut problems);
    Ok(transformer.expect("every model of the catalog is complete"))
}

/// A framework by its catalog name.
///
/// # Errors
///
/// If there is none of this name.
///
/// # Panics
///
/// Never: the catalog is complete, which tests assert.
pub fn framework(name: &str) -> Result<Framework, NotFound> {
    let section = framework_section(name)?;
    let framework = framework::complete(section, name);
    Ok(framework.expect("every framework of the catalog is complete"))
}
