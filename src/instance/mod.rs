//! Instances: what is read from a file or from flags, checked.
//!
//! Text becomes a tree of values that know their place (`reading`), the tree becomes
//! the keys that were typed (`file`), and those become what is valid (`check`), on the presets of
//! the [`catalog`](crate::catalog). Every broken rule is collected on the way and reported at once.
//! The format is described in `docs/instance-format.md`.

use std::path::Path;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::job::Job;
use crate::layout_space::LayoutSpace;
use crate::transformer::Transformer;

mod check;
mod config;
mod constraint;
mod constraint_terms;
mod file;
mod model;
mod overrides;
mod paths;
pub(crate) mod resolved;
mod search;

pub use crate::reading::{InputError, Place, Problem, Problems};
pub(crate) use check::DEFAULT_OOM_RISK;
pub use file::json_schema;
pub use overrides::Overrides;
pub(crate) use resolved::axes_named;
pub use resolved::{from_resolved, resolved};

use crate::catalog::Machine;
use crate::catalog::cluster::{self, Unstated};
use crate::files::{Content, read_text};
use crate::reading::{Source, SourceKind, Table, document};
use file::InstanceFile;

/// A checked problem: nothing after it needs to check again.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Name for people: the file's stem, or what the job is.
    pub name: String,
    /// Network, machine, framework and workload.
    pub job: Job,
    /// The layouts that may be tried.
    pub space: LayoutSpace,
    /// Largest accepted probability that the layout runs out of memory (0 to 1, both excluded).
    pub max_oom_risk: f64,
    /// What the reader should know, though it is not an error.
    pub warnings: Vec<String>,
}

impl Instance {
    /// The same wishes for another job.
    #[must_use]
    pub fn with_job(&self, job: Job) -> Self {
        Self {
            space: self.space.for_job(&job),
            job,
            ..self.clone()
        }
    }

    /// Reads an instance file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or breaks rules; all of them are reported.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        read(path, &Overrides::none())
    }
}

/// Reads an instance file, with values of the command line applied before it is checked.
///
/// # Errors
///
/// If the file cannot be read or breaks rules; all of them are reported.
pub fn read(path: &Path, overrides: &Overrides) -> Result<Instance, InputError> {
    let text = read_text(path, Content::Settings).map_err(|error| InputError::Unreadable {
        path: error.path,
        reason: error.reason,
        hint: error.hint,
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    from_text(&path.to_string_lossy(), &text, folder, overrides)
}

/// Reads an instance from text. Messages call it `name`; paths in it are relative to `folder`.
///
/// # Errors
///
/// If the text breaks rules; all of them are reported.
pub fn from_text(
    name: &str,
    text: &str,
    folder: &Path,
    overrides: &Overrides,
) -> Result<Instance, InputError> {
    if text.trim().is_empty() && overrides.is_empty() {
        return Err(InputError::Unreadable {
            path: name.into(),
            reason: "it is empty".to_owned(),
            hint: "an instance has the sections `[model]`, `[cluster]` and `[training]`".to_owned(),
        });
    }
    let source = Arc::new(Source {
        name: name.to_owned(),
        text: text.to_owned(),
        folder: folder.to_owned(),
        kind: SourceKind::File,
    });
    let mut problems = paths::problems();
    let mut table = document::parse(&source, &mut problems);
    if !problems.list().is_empty() && table.entries.is_empty() {
        return Err(InputError::Broken(problems));
    }
    overrides.apply(&mut table, &mut problems);
    let stem = Path::new(name)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    check::check(&stem, &table, problems)
}

/// The cluster that `--cluster` names: a preset or a cluster file. Without a number of GPUs it is
/// one node.
///
/// # Errors
///
/// If there is no such preset, the file cannot be read, or it breaks rules.
pub fn read_cluster(name: &str) -> Result<Cluster, InputError> {
    read_machine(name).map(|machine| machine.cluster)
}

/// The cluster that `--cluster` names, with the figures of the framework that it was fitted with.
///
/// # Errors
///
/// If there is no such preset, the file cannot be read, or it breaks rules.
pub fn read_machine(name: &str) -> Result<Machine, InputError> {
    let (file, mut problems) = of_flag("cluster", name);
    let section = file.cluster.value().zip(file.cluster.origin());
    let machine = section.and_then(|(section, at)| {
        cluster::resolve(section, Unstated::OneNode, Some(at), &mut problems)
    });
    problems.none_or(machine).map(|(machine, _)| machine)
}

/// What a flag alone makes of an instance file.
fn of_flag(flag: &'static str, value: &str) -> (InstanceFile, Problems) {
    let mut overrides = Overrides::none();
    overrides.flag(flag, value);
    let mut problems = paths::problems();
    let mut table = Table::default();
    overrides.apply(&mut table, &mut problems);
    (InstanceFile::of_table(&table, "", &mut problems), problems)
}

/// The network that `--model` names: a preset or the path of a `config.json`.
///
/// # Errors
///
/// If there is no such preset, the file cannot be read, or it breaks rules.
pub fn read_model(name: &str) -> Result<Transformer, InputError> {
    let (file, mut problems) = of_flag("model", name);
    let section = file.model.value().zip(file.model.origin());
    let model = section.and_then(|(section, at)| model::resolve(section, Some(at), &mut problems));
    problems.none_or(model).map(|(model, _)| model)
}

/// The instance that flags alone describe.
///
/// # Errors
///
/// If flags are missing or break rules; all of them are reported.
pub fn from_flags(overrides: &Overrides) -> Result<Instance, InputError> {
    let mut problems = paths::problems();
    let mut table = Table::default();
    overrides.apply(&mut table, &mut problems);
    let mut instance = check::check("", &table, problems)?;
    instance.name = instance.job.title();
    Ok(instance)
}
