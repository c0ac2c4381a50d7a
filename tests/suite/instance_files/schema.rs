//! The JSON Schema, the reader and the documentation agree.

use super::*;
use serde_json::Value as Json;

/// Set to write the schema instead of comparing it.
const UPDATE: &str = "PARLAYOUT_WRITE_SCHEMA";

#[test]
fn the_shipped_schema_is_that_of_the_reader() {
    let path = folder("schema/instance.schema.json");
    let json = serde_json::to_string_pretty(&instance::json_schema()).expect("it is JSON") + "\n";
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &json).expect("the folder is writable");
    }
    let shipped = std::fs::read_to_string(&path).expect("it is shipped");
    assert!(
        shipped == json,
        "run the tests with {UPDATE}=1 and commit the schema"
    );
}

#[test]
fn the_schema_refuses_the_risks_that_the_reader_refuses() {
    let risk = &instance::json_schema()["properties"]["limits"]["properties"]["max_oom_risk"];
    let bounds = ["exclusiveMinimum", "exclusiveMaximum"].map(|key| risk[key].as_f64());
    assert_eq!(bounds, [Some(0.0), Some(1.0)]);
    for refused in ["0", "1", "1.5", "-0.1"] {
        assert!(with_sets(&[&format!("limits.max_oom_risk={refused}")]).is_err());
    }
}

/// The paths of all keys that the schema knows.
fn keys(schema: &Json, root: &Json, path: &str, found: &mut Vec<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => &root["$defs"][reference.trim_start_matches("#/$defs/")],
        None => schema,
    };
    let Some(properties) = schema["properties"].as_object() else {
        found.push(path.to_owned());
        return;
    };
    for (key, below) in properties {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        keys(below, root, &path, found);
    }
}

#[test]
fn the_reader_knows_every_key_of_the_schema_and_the_documentation_names_it() {
    let root = instance::json_schema();
    let mut paths = Vec::new();
    keys(&root, &root, "", &mut paths);
    assert!(paths.len() > 70, "{paths:?}");
    let page = |name: &str| std::fs::read_to_string(folder(name)).expect("it is shipped");
    let documentation = page("docs/instance-format.md") + &page("docs/figures.md");
    for path in paths {
        let message = match with_sets(&[&format!("{path}=\u{1}")]) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(!message.contains("unknown key"), "{path}: {message}");
        let leaf = path.rsplit('.').next().expect("a path has a last part");
        assert!(
            documentation.contains(&format!("`{leaf}`")),
            "{path} is not documented"
        );
    }
}
