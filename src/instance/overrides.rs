//! Values of the command line that replace or add to those of a file.

use std::ops::Range;
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
    Key(Range<usize>),
    /// A flag of its own, by its name without dashes.
    Flag(&'static str),
}

/// Flags that stand for a section.
const SECTIONS: [&str; 3] = ["model", "cluster", "framework"];

/// Whether a value is the path of a file.
fn is_path(value: &str, extension: &str) -> bool {
    let path = Path::new(value);
    let found = path.extension();
    found.is_some_and(|found| found.eq_ignore_ascii_case(extension)) || path.exists()
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

    /// Adds the flag of this name, without dashes, with its value. `model` and `cluster` take a preset
    /// or the path of a file and replace their section (but for the cluster's `gpus`), `framework` a
    /// preset; every other is the last part of a key (`gpus-per-node`).
    pub fn flag(&mut self, flag: &'static str, value: &str) {
        let argument = format!("--{flag} {value}");
        self.list.push(Override {
            value_start: argument.len() - value.len(),
            argument,
            target: Target::Flag(flag),
        });
    }

    /// Adds others, which come later.
    pub fn extend(&mut self, others: &Self) {
        self.list.extend(others.list.iter().cloned());
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
        let (key, range) = match &self.target {
            Target::Flag("model")
                if catalog::model_section(value).is_err() && is_path(value, "json") =>
            {
                ("model.config".to_owned(), None)
            }
            Target::Flag("cluster")
                if catalog::cluster_section(value).is_err() && is_path(value, "toml") =>
            {
                ("cluster.file".to_owned(), None)
            }
            Target::Flag(flag) => (flag.replace('-', "_"), None),
            Target::Key(range) => (
                self.argument[range.clone()].trim().to_owned(),
                Some(range.clone()),
            ),
        };
        let range = range.unwrap_or(0..self.value_start - 1);
        let at = Origin::new(&source, range.clone());
        if range.end == self.argument.len() {
            let hint = "write `--set key=value`, such as `--set cluster.gpus=32`";
            problems.add(&at, "`--set` has no `=`", hint);
            return;
        }
        let Some(path) = full_path(&key, &at, problems) else {
            return;
        };
        let section = match self.target {
            Target::Flag(flag) => SECTIONS.into_iter().find(|section| *section == flag),
            Target::Key(_) => None,
        };
        if let Some(section) = section {
            retain(table, section, |key| section == "cluster" && key == "gpus");
        }
        let node = match section {
            Some(_) => None,
            None => document::parse_value(&source, self.value_start),
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
    if SECTIONS.contains(&key) {
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

/// Keeps of a section only some keys.
fn retain(table: &mut Table, section: &str, keeps: impl Fn(&str) -> bool) {
    for entry in &mut table.entries {
        if entry.key == section
            && let Tree::Table(section) = &mut entry.node.value
        {
            section.retain(&keeps);
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
    retain(table, section, |key| key != rival);
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
