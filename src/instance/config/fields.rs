//! Fields of a `config.json` that do not change the shape.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// What the reader knows by name; the catalog's file says what each key means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) without_effect: Vec<String>,
    pub(super) shaping: Vec<String>,
    pub(super) settings: Vec<String>,
    names: BTreeMap<String, Vec<String>>,
    /// As tables, since one may state what differs from another.
    pub(super) family: Vec<toml::Table>,
    pub(super) refused: Vec<Refused>,
}

/// Networks that are not modelled.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Refused {
    pub(super) what: String,
    pub(super) types: Vec<String>,
    pub(super) parts: Vec<String>,
    pub(super) fields: Vec<String>,
    pub(super) numbers: BTreeMap<String, f64>,
}

/// `catalog/config-json.toml`.
pub(super) static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../catalog/config-json.toml"))
        .expect("the catalog's names of fields are valid")
});

/// The fields that state what the key of `[model]` does.
pub(super) fn names(key: &str) -> &'static [String] {
    KNOWN.names.get(key).map_or(&[], Vec::as_slice)
}

pub(super) const SLIDING: &str = "sliding_attention";

pub(super) fn layer_types(fields: &Map<String, Json>) -> Vec<&str> {
    fields
        .get("layer_types")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect()
}

/// What fields say that is modelled only in part.
pub(super) fn warnings(fields: &Map<String, Json>) -> Vec<String> {
    let mut warnings = Vec::new();
    let layers = fields.get("attention_types").map(Json::to_string);
    let local = layers.is_some_and(|layers| layers.contains("local"));
    if local {
        warnings
            .push("`attention_types`: attention is modelled over the whole sequence".to_owned());
    }
    let chunk = fields.get("attention_chunk_size").and_then(Json::as_u64);
    if let Some(chunk) = chunk {
        warnings.push(format!(
            "`attention_chunk_size`: attention is modelled over the whole sequence, not over chunks of \
             {chunk} tokens"
        ));
    }
    if fields.contains_key("quantization_config") {
        let text = "`quantization_config` has no effect: training uses the instance's precision";
        warnings.push(text.to_owned());
    }
    warnings
}
