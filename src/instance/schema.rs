//! The JSON Schema of instance files.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json};

use super::file::InstanceFile;

/// The sections that every file has.
const REQUIRED: [&str; 3] = ["model", "cluster", "training"];

/// The JSON Schema of an instance file, generated from the types that read it.
#[must_use]
pub fn json_schema() -> Json {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<InstanceFile>();
    schema.insert("required".to_owned(), REQUIRED.as_slice().into());
    schema.to_value()
}

/// The schema of a table: its keys with their descriptions, and no others.
pub(crate) fn object<const N: usize>(
    description: &str,
    properties: [(&'static str, &'static str, Schema); N],
) -> Schema {
    let mut listed = Map::new();
    for (key, description, schema) in properties {
        listed.insert(key.to_owned(), described(schema, description));
    }
    json_schema!({
        "type": "object",
        "description": description,
        "properties": listed,
        "additionalProperties": false,
    })
}

/// The schema with a description of its own.
pub(crate) fn described(schema: Schema, description: &str) -> Json {
    let mut json = schema.to_value();
    if let Some(object) = json.as_object_mut() {
        object.insert("description".to_owned(), Json::from(description));
    }
    json
}
