//! Networks that are not modelled: refused by name.

use serde_json::Value as Json;

use super::family;
use super::fields::{KNOWN, Refused, SLIDING, layer_types};
use super::keys::Config;
use crate::reading::{Problems, shown};

/// Attention to a part of the sequence.
const LIMITED: [&str; 2] = [SLIDING, "chunked_attention"];

/// Reports every field that describes a network that is not modelled.
pub(super) fn check(config: &Config, problems: &mut Problems) {
    let mut refuse = |field: &str, text: String| {
        let several = ["layers", "embeddings in each layer", "shapes"];
        let are = several.iter().any(|end| text.ends_with(end));
        let verb = if are { "are" } else { "is" };
        problems.add(
            &config.origin(field),
            format!("{text}, which {verb} not modelled yet"),
            "plan for a dense decoder, or describe a similar one by its shape in `[model]`",
        );
    };
    let family = family::find(config.model_type());
    if let Some(model_type) = config.model_type()
        && family.is_none()
        && let Some(what) = kind(model_type)
    {
        refuse("model_type", format!("`{}` {what}", shown(model_type)));
        return;
    }
    for refused in &KNOWN.refused {
        let (_, what) = refused.what.split_once(' ').unwrap_or_default();
        for (field, harmless) in &refused.numbers {
            let is_read = family.is_some_and(|family| family.reads(field));
            let number = config.fields.get(field).filter(|_| !is_read);
            let number = number.and_then(Json::as_f64);
            if let Some(number) = number.filter(|number| number > harmless) {
                refuse(field, format!("`{field}` is {number}: {what}"));
            }
        }
        for field in &refused.fields {
            let stated = config.fields.get(field);
            if stated.is_some_and(|value| !matches!(value, Json::Null | Json::Bool(false))) {
                refuse(field, format!("`{field}`: {what}"));
            }
        }
    }
    let mut kinds = layer_types(&config.fields).into_iter();
    if let Some(other) =
        kinds.find(|kind| !kind.ends_with("full_attention") && !LIMITED.contains(kind))
    {
        refuse(
            "layer_types",
            format!(
                "`layer_types` has `{}`: state-space or linear-attention layers",
                shown(other)
            ),
        );
    }
}

fn kind(model_type: &str) -> Option<&'static str> {
    let is_type = |refused: &&Refused| refused.types.iter().any(|name| name == model_type);
    let has_part = |refused: &&Refused| refused.parts.iter().any(|part| model_type.contains(part));
    let refused = KNOWN.refused.iter();
    let found = refused.clone().find(is_type);
    let found = found.or_else(|| refused.clone().find(has_part))?;
    Some(&found.what)
}
