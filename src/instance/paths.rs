//! Every key of an instance file by its dotted path.

use std::sync::LazyLock;

use serde_json::Value as Json;

use super::file::json_schema;
use crate::reading::{Problems, join};

/// No problems yet of an instance file.
pub(crate) fn problems() -> Problems {
    Problems::of_sections(elsewhere)
}

/// The paths of all keys; those of `[cluster.framework]` are the ones of `[framework]`, and the keys of
/// `[framework.axes]` mostly those of `[search]`, which is what is meant by them alone.
static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    collect("", &json_schema(), &mut keys);
    keys.retain(|key| !key.starts_with("cluster.framework."));
    keys.retain(|key| !key.starts_with("framework.axes."));
    keys
});

fn collect(path: &str, schema: &Json, keys: &mut Vec<String>) {
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = join(path, key);
        collect(&path, schema, keys);
        keys.push(path);
    }
}

/// The last part of a path.
fn leaf(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The paths of all keys in sections that are called `key`.
pub(crate) fn of_leaf(key: &str) -> Vec<&'static str> {
    let paths = KEYS.iter().map(String::as_str);
    let found = paths.filter(|path| path.contains('.') && leaf(path) == key);
    found.collect()
}

/// The names of all keys.
pub(crate) fn leaves() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|path| leaf(path))
}

/// A hint for a key that belongs in another section than `path`.
fn elsewhere(path: &str, key: &str) -> Option<String> {
    if !path.is_empty() && KEYS.iter().any(|path| path == key) {
        return Some(match key {
            "model" | "cluster" | "framework" => {
                format!("`{key}` is a section of its own: `[{key}]` with `preset = \"…\"`")
            }
            _ if json_schema()["properties"][key]["type"] == "array" => {
                format!("each `{key}` is a section of its own: `[[{key}]]`")
            }
            _ => format!("`{key}` is a section of its own: `[{key}]`"),
        });
    }
    let homes = of_leaf(key);
    let section = homes.first()?.rsplit_once('.')?.0;
    Some(format!("`{key}` belongs in `[{section}]`"))
}
