//! The shape of the source: modules import one way, and a rule's name has one home.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::project;

/// Files below a folder that end in `.rs`, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the project has sources");
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The text of a file without its comments and its unit tests.
fn program(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("sources are text");
    let mut kept = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next_opens_a_module =
            (lines.peek()).is_some_and(|next| next.trim_start().starts_with("mod "));
        if line.trim() == "#[cfg(test)]" && next_opens_a_module {
            let is_inline = lines.next().is_some_and(|next| next.ends_with('{'));
            while is_inline && lines.next().is_some_and(|inner| inner != "}") {}
        } else if !line.trim_start().starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn is_test(path: &Path) -> bool {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    parts.any(|part| part == "tests" || part == "tests.rs" || part == "fixture.rs")
}

/// The top-level module that a file of `src` belongs to; the crate's root and the program's have none.
fn module(root: &Path, path: &Path) -> Option<String> {
    let inside = path.strip_prefix(root).expect("a file of src");
    let first = inside.iter().next()?.to_string_lossy().into_owned();
    let name = first.strip_suffix(".rs").unwrap_or(&first);
    (!["lib", "main", "cli"].contains(&name)).then(|| name.to_owned())
}

/// The top-level modules that each one imports.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let root = project("src");
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources(&root).iter().filter(|path| !is_test(path)) {
        let Some(importer) = module(&root, path) else {
            continue;
        };
        let text = program(path);
        let names = text.split("crate::").skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            rest[..end.unwrap_or(rest.len())].to_owned()
        });
        let imported = imports.entry(importer.clone()).or_default();
        imported.extend(names.filter(|name| *name != importer));
    }
    imports
}

#[test]
fn no_top_level_modules_import_each_other_in_a_circle() {
    let mut left = imports();
    let modules: BTreeSet<String> = left.keys().cloned().collect();
    while let Some(lowest) = left
        .iter()
        .find(|(_, imported)| {
            let mut of_modules = imported.intersection(&modules);
            of_modules.all(|name| !left.contains_key(name))
        })
        .map(|(name, _)| name.clone())
    {
        left.remove(&lowest);
    }
    let circle: Vec<String> = left
        .iter()
        .map(|(name, imported)| {
            let inside: Vec<&str> = imported
                .iter()
                .filter(|other| left.contains_key(*other))
                .map(String::as_str)
                .collect();
            format!("{name} -> {}", inside.join(", "))
        })
        .collect();
    assert!(
        circle.is_empty(),
        "modules on circles:\n{}",
        circle.join("\n")
    );
}

#[test]
fn the_product_knows_nothing_of_its_laboratory() {
    for (importer, imported) in imports() {
        assert!(
            importer == "laboratory" || !imported.contains("laboratory"),
            "`{importer}` imports the laboratory"
        );
    }
}
