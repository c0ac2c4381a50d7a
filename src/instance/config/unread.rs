//! Fields that no family read: an error where the name says that they shape the network.

use serde_json::Value as Json;

use super::family;
use super::fields::KNOWN;
use super::keys::Config;
use crate::reading::shown;

/// Reports the fields that have no effect.
pub(super) fn check(config: &mut Config) {
    let known = family::find(config.model_type()).is_some();
    let mut harmless = Vec::new();
    let unread: Vec<(String, Json)> = config
        .fields
        .iter()
        .filter(|(field, value)| {
            !value.is_null()
                && !field.starts_with('_')
                && !config.read.contains(*field)
                && !KNOWN.without_effect.contains(field)
        })
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    for (field, value) in unread {
        match shaping(&field, &value) {
            Some(name) => {
                let text = format!(
                    "`{}` would change the network's shape, but it is not understood here",
                    shown(&name)
                );
                let hint = "remove the field if it is wrong, or describe the network by the keys \
                            of its shape in `[model]`, without `config`";
                config.refuse(&field, text, hint);
            }
            None if !known && value != Json::Bool(false) && !value.is_string() => {
                let text = format!(
                    "`{}` is not understood, and neither is the `model_type`",
                    shown(&field)
                );
                let hint = "remove the field if the network is a LLaMA without it, or describe the \
                            network by the keys of its shape in `[model]`, without `config`";
                config.refuse(&field, text, hint);
            }
            None => harmless.push(field),
        }
    }
    config.warn_of(&harmless);
}

/// The name that says a size, of the field itself or of one within it.
fn shaping(field: &str, value: &Json) -> Option<String> {
    let name = field.to_ascii_lowercase();
    let any = |parts: &[String]| parts.iter().any(|part| name.contains(part));
    match value {
        Json::Object(fields) => fields
            .iter()
            .find_map(|(inner, value)| shaping(inner, value))
            .map(|inner| format!("{field}.{inner}")),
        Json::Number(number) if number.as_f64().is_none_or(|number| number <= 0.0) => None,
        Json::Array(items) if !items.iter().any(Json::is_number) => None,
        Json::Number(_) | Json::Array(_) => {
            (any(&KNOWN.shaping) && !any(&KNOWN.settings)).then(|| field.to_owned())
        }
        _ => None,
    }
}
