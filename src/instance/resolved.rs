//! An instance written out in full: every figure in the keys of instance files, to its last digit.
//!
//! What is written depends on no preset and no other file, and the reader of instance files makes
//! the same [`Instance`] of it; name and warnings apart, which say how the instance was typed.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::search::FORBID;
use super::{Instance, check, paths};
use crate::axis::{Assignment, Axis, AxisSet};
use crate::catalog::written::{self, Digits};
use crate::catalog::{Section, axes};
use crate::cluster::Cluster;
use crate::constraint::{Constraint, Decision};
use crate::framework::Framework;
use crate::layout_space::LayoutSpace;
use crate::reading::document::Entry;
use crate::reading::{InputError, Node, Origin, Source, SourceKind, Table, Tree, join};

/// The instance in the keys of instance files.
#[must_use]
pub fn resolved(instance: &Instance) -> Section {
    let job = &instance.job;
    let mut file = table([
        ("model", keys(&job.transformer).into()),
        ("cluster", cluster(&job.cluster).into()),
        ("framework", framework(&job.framework).into()),
        ("training", keys(&job.workload).into()),
        ("limits", json!({ "max_oom_risk": instance.max_oom_risk })),
        ("search", search(&instance.space).into()),
    ]);
    if !instance.space.constraints.is_empty() {
        let rows = instance.space.constraints.iter().map(constraint);
        file.insert("constraint".to_owned(), rows.collect());
    }
    file
}

/// The instance that [`resolved`] wrote, under another name.
///
/// # Errors
///
/// If the sections break rules of instance files, or refer to a file.
pub fn from_resolved(name: &str, sections: &Section) -> Result<Instance, InputError> {
    let mut problems = paths::problems();
    let table = table_of("", sections);
    for (section, key) in [("model", "config"), ("cluster", "file")] {
        let node = table.get(section).map(|node| &node.value);
        if let Some(Tree::Table(table)) = node
            && let Some(node) = table.get(key)
        {
            let text = format!("`{section}.{key}` refers to another file");
            problems.add(&node.origin, text, "write the figures instead");
            return Err(InputError::Broken(problems));
        }
    }
    check::check(name, &table, problems)
}

fn table<const N: usize>(entries: [(&str, Json); N]) -> Section {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// The fields of a value whose fields are the keys of a section; what it has none of is left out.
fn keys(value: &impl Serialize) -> Section {
    let json = serde_json::to_value(value).expect("keys are texts");
    let entries = json.as_object().cloned().unwrap_or_default().into_iter();
    entries.filter(|(_, value)| *value != json!(0)).collect()
}

fn cluster(cluster: &Cluster) -> Section {
    let mut written = table([("name", json!(cluster.name)), ("gpus", json!(cluster.gpus))]);
    written.extend(written::cluster(cluster, Digits::All));
    if let Some(name) = &cluster.calibration.framework {
        written.insert("framework".to_owned(), json!({ "preset": name }));
    }
    written
}

fn framework(framework: &Framework) -> Section {
    let mut written = table([
        ("name", json!(framework.name)),
        ("axes", axes::written(&framework.axes).into()),
    ]);
    written.extend(written::framework(framework, Digits::All));
    written
}

/// The value of an axis as `[search]` takes it.
pub(crate) fn value(axis: Axis, code: u32) -> Json {
    match axis.names() {
        Some(_) => axis.show(code).into(),
        None => code.into(),
    }
}

/// What the user lists; every other axis follows from the rest of the instance.
fn search(space: &LayoutSpace) -> Section {
    let listed = |axis: Axis| {
        space
            .values(axis)
            .iter()
            .map(move |&code| value(axis, code))
    };
    let axes = space.listed().iter();
    let mut search: Section = axes
        .map(|axis| (axis.to_string(), listed(axis).collect()))
        .collect();
    if !space.forbidden.is_empty() {
        let forbidden = space.forbidden.iter().map(forbidden);
        search.insert(FORBID.to_owned(), forbidden.collect());
    }
    search
}

/// A forbidden combination as a table of `forbid`.
pub(crate) fn forbidden(assignment: &Assignment) -> Json {
    let values = assignment.0.iter();
    let values = values.map(|&(axis, code)| (axis.to_string(), value(axis, code)));
    Json::Object(values.collect())
}

/// A row as a table of `constraint`.
pub(crate) fn constraint(row: &Constraint) -> Json {
    let name = |decision: Decision| match decision {
        Decision::Is(axis, code) => format!("{axis}={}", axis.show(code)),
        other => other.to_string(),
    };
    let terms = row.terms.iter();
    let terms: Section = terms
        .map(|term| (name(term.decision), term.coefficient.into()))
        .collect();
    json!({ "name": row.name, "terms": terms, (row.comparison.as_str()): row.right })
}

/// The axes with these names.
pub(crate) fn axes_named(names: &[String]) -> Option<AxisSet> {
    let mut axes = names.iter().map(|name| Axis::parse(name));
    axes.try_fold(AxisSet::EMPTY, |set, axis| Some(set.with(axis?)))
}

/// A table of JSON as the tree that instances are read from. Each value is a text of its own, so that
/// messages can show it.
fn table_of(path: &str, section: &Section) -> Table {
    let entry = |(key, value): (&String, &Json)| {
        let path = join(path, key);
        let node = node(&path, value);
        Entry {
            key: key.clone(),
            key_origin: node.origin.clone(),
            node,
        }
    };
    Table {
        entries: section.iter().map(entry).collect(),
    }
}

fn node(path: &str, json: &Json) -> Node {
    let value = match json {
        Json::Null => Tree::Date,
        Json::Bool(on) => Tree::Switch(*on),
        Json::Number(number) => Tree::of_number(number),
        Json::String(text) => Tree::Text(text.clone()),
        Json::Array(items) => Tree::List(items.iter().map(|item| node(path, item)).collect()),
        Json::Object(section) => Tree::Table(table_of(path, section)),
    };
    let text = match json {
        Json::Array(_) | Json::Object(_) => "…".to_owned(),
        scalar => scalar.to_string(),
    };
    let span = 0..text.len();
    let source = Arc::new(Source {
        name: format!("resolved_instance.{path}"),
        text,
        folder: PathBuf::new(),
        kind: SourceKind::Argument,
    });
    Node {
        value,
        origin: Origin::new(&source, span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::sections::ModelSection;
    use crate::catalog::{self, Kind, model};
    use crate::reading::Problems;

    #[test]
    fn every_network_is_read_as_it_was_written() {
        let models = catalog::entries().into_iter();
        for entry in models.filter(|entry| entry.kind == Kind::Model) {
            let network = catalog::model(&entry.name).expect("it is in the catalog");
            let mut problems = Problems::default();
            let written = table_of("model", &keys(&network));
            let section = ModelSection::of_table(&written, "model", &mut problems);
            let read = model::complete(&section, String::new(), None, &mut problems);
            assert_eq!(read, Some(network), "{problems}");
            assert!(problems.list().is_empty(), "{problems}");
        }
    }
}
