//! Values of the command line that replace or add to those of a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::paths;
use crate::catalog;
use crate::reading::document::{self, Entry};
use crate::reading::{Node, Origin, Problems, Source, SourceKind, Table, Tree, shown, spelling};

/// Values of the command line, applied to an instance before it is checked, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    list: Vec<Override>,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Override {
    /// As messages show it: `--set gpus=32`.
    argument: String,
    /// Where in `argument` the value starts.
    value_start: usize,
    target: Target,
}

/// What an argument sets.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// `--set`: the bytes of the argument that name a key.
    Key(std::ops::Range<usize>),
    /// A flag of its own.
    Flag(Flag),
}

/// Flags that stand for a key of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// `--model`: a preset or the path of a `config.json`; replaces `[model]`.
    Model,
    /// `--cluster`: a preset or the path of a cluster file; replaces all of `[cluster]` but
    /// `gpus`.
    Cluster,
    /// `--framework`: a preset; replaces `[framework]`.
    Framework,
    /// `--gpus`.
    Gpus,
    /// `--gpus-per-node`.
    GpusPerNode,
    /// `--sequence-length`.
    SequenceLength,
    /// `--global-batch`.
    GlobalBatch,
    /// `--precision`.
    Precision,
    /// `--gradients`.
    Gradients,
    /// `--optimizer`.
    Optimizer,
    /// `--max-oom-risk`.
    MaxOomRisk,
}

impl Flag {
    /// The flag as it is typed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "--model",
            Self::Cluster => "--cluster",
            Self::Framework => "--framework",
            Self::Gpus => "--gpus",
            Self::GpusPerNode => "--gpus-per-node",
            Self::SequenceLength => "--sequence-length",
            Self::GlobalBatch => "--global-batch",
            Self::Precision => "--precision",
            Self::Gradients => "--gradients",
            Self::Optimizer => "--optimizer",
            Self::MaxOomRisk => "--max-oom-risk",
        }
    }

    /// The key that the flag sets to `value`.
    fn key(self, value: &str) -> &'static str {
        match self {
            Self::Model if catalog::model_section(value).is_ok() => "model.preset",
            Self::Model if has_extension(value, "json") || Path::new(value).exists() => {
                "model.config"
            }
            Self::Model => "model.preset",
            Self::Cluster if catalog::cluster_section(value).is_ok() => "cluster.preset",
            Self::Cluster if has_extension(value, "toml") || Path::new(value).exists() => {
                "cluster.file"
            }
            Self::Cluster => "cluster.preset",
            Self::Framework => "framework.preset",
            Self::Gpus => "cluster.gpus",
            Self::GpusPerNode => "cluster.gpus_per_node",
            Self::SequenceLength => "training.sequence_length",
            Self::GlobalBatch => "training.global_batch",
            Self::Precision => "training.precision",
            Self::Gradients => "training.gradients",
            Self::Optimizer => "training.optimizer",
            Self::MaxOomRisk => "limits.max_oom_risk",
        }
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

impl Overrides {
    /// No values.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds `--set key=value`. The key is a dotted path (`cluster.gpus`) or the last part of one
    /// where that is unique (`gpus`); the value is TOML, or else a string.
    pub fn set(&mut self, assignment: &str) {
        const PREFIX: &str = "--set ";
        let equals = assignment.find('=').unwrap_or(assignment.len());
        self.list.push(Override {
            argument: format!("{PREFIX}{assignment}"),
            value_start: PREFIX.len() + (equals + 1).min(assignment.len()),
            target: Target::Key(PREFIX.len()..PREFIX.len() + equals),
        });
    }

    /// Adds a flag with its value.
    pub fn flag(&mut self, flag: Flag, value: &str) {
        let argument = format!("{} {value}", flag.as_str());
        self.list.push(Override {
            value_start: argument.len() - value.len(),
            argument,
            target: Target::Flag(flag),
        });
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Applies the values in their order.
    pub(crate) fn apply(&self, table: &mut Table, problems: &mut Problems) {
        for one in &self.list {
            one.apply(table, problems);
        }
    }
}

impl Override {
    fn apply(&self, table: &mut Table, problems: &mut Problems) {
        let source = Arc::new(Source {
            name: "command line".to_owned(),
            text: self.argument.clone(),
            folder: PathBuf::new(),
            kind: SourceKind::Argument,
        });
        let value = &self.argument[self.value_start..];
        let (path, at) = match &self.target {
            Target::Flag(flag) => {
                let key = flag.key(value);
                let at = Origin::new(&source, 0..flag.as_str().len());
                clear(*flag, table);
                (key.to_owned(), at)
            }
            Target::Key(range) => {
                let at = Origin::new(&source, range.clone());
                if range.end == self.argument.len() {
                    let hint = "write `--set key=value`, such as `--set cluster.gpus=32`";
                    problems.add(&at, "`--set` has no `=`", hint);
                    return;
                }
                let Some(path) = full_path(self.argument[range.clone()].trim(), &at, problems)
                else {
                    return;
                };
                (path, at)
            }
        };
        let text_only = matches!(
            self.target,
            Target::Flag(Flag::Model | Flag::Cluster | Flag::Framework)
        );
        let node = if text_only {
            None
        } else {
            document::parse_value(&source, self.value_start)
        };
        let node = node.unwrap_or_else(|| Node {
            value: Tree::Text(value.trim().to_owned()),
            origin: Origin::new(&source, self.value_start..self.argument.len()),
        });
        drop_rival(&path, table);
        put(table, &path, &path, node, &at, problems);
    }
}

/// The dotted path that the user's key stands for.
fn full_path(key: &str, at: &Origin, problems: &mut Problems) -> Option<String> {
    if key.contains('.') {
        return Some(key.to_owned());
    }
    if matches!(key, "model" | "cluster" | "framework") {
        return Some(format!("{key}.preset"));
    }
    if key == "constraint" {
        return Some(key.to_owned());
    }
    let found = paths::of_leaf(key);
    match found.as_slice() {
        [path] => Some((*path).to_owned()),
        [] if spelling::not_modelled(key).is_some() => {
            problems.add_unknown_key(at, "", key, &[]);
            None
        }
        [] => {
            let hint = spelling::did_you_mean(key, paths::leaves()).unwrap_or_else(|| {
                "write a key of an instance file, such as `cluster.gpus`".to_owned()
            });
            problems.add(at, format!("unknown key `{}`", shown(key)), hint);
            None
        }
        several => {
            let list = spelling::list(several.iter().copied());
            problems.add(
                at,
                format!("`{key}` is not unique"),
                format!("write one of {list}"),
            );
            None
        }
    }
}

/// Drops what a flag that names a whole section replaces.
fn clear(flag: Flag, table: &mut Table) {
    let (section, kept): (&str, &[&str]) = match flag {
        Flag::Model => ("model", &[]),
        Flag::Framework => ("framework", &[]),
        Flag::Cluster => ("cluster", &["gpus"]),
        _ => return,
    };
    for entry in &mut table.entries {
        if entry.key == section
            && let Tree::Table(section) = &mut entry.node.value
        {
            section.retain(|key| kept.contains(&key));
        }
    }
}

/// A preset takes the place of a file's config and the other way round.
fn drop_rival(path: &str, table: &mut Table) {
    let (section, rival) = match path {
        "model.preset" => ("model", "config"),
        "model.config" => ("model", "preset"),
        "cluster.preset" => ("cluster", "file"),
        "cluster.file" => ("cluster", "preset"),
        _ => return,
    };
    for entry in &mut table.entries {
        if entry.key == section
            && let Tree::Table(section) = &mut entry.node.value
        {
            section.retain(|key| key != rival);
        }
    }
}

/// Sets `path` below `table`, adding the tables on the way.
fn put(
    table: &mut Table,
    path: &str,
    whole: &str,
    node: Node,
    at: &Origin,
    problems: &mut Problems,
) {
    let (key, rest) = path
        .split_once('.')
        .map_or((path, None), |(key, rest)| (key, Some(rest)));
    let position = table.entries.iter().position(|entry| entry.key == key);
    let Some(rest) = rest else {
        let entry = Entry {
            key: key.to_owned(),
            key_origin: at.clone(),
            node,
        };
        match position {
            Some(position) => table.entries[position] = entry,
            None => table.entries.push(entry),
        }
        return;
    };
    let position = position.unwrap_or_else(|| {
        table.entries.push(Entry {
            key: key.to_owned(),
            key_origin: at.clone(),
            node: Node {
                value: Tree::Table(Table::default()),
                origin: at.clone(),
            },
        });
        table.entries.len() - 1
    });
    match &mut table.entries[position].node.value {
        Tree::Table(below) => put(below, rest, whole, node, at, problems),
        _ => problems.add(
            at,
            format!(
                "`{}` is no table, so that `{}` cannot be set",
                shown(key),
                shown(whole)
            ),
            "see the keys in docs/instance-format.md",
        ),
    }
}
