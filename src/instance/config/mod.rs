//! Hugging Face `config.json` of a decoder, as a `[model]` section.
//!
//! `family` and `special` say what each `model_type` makes of its fields, `refused` which networks are
//! not modelled, `keys` reads fields and remembers which. A field that nobody read is an error where
//! its name says that it is part of the shape, else a named warning.

mod experts;
mod family;
mod fields;
mod keys;
mod numerics;
mod refused;
mod shape;
mod special;
mod unread;
mod windows;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::catalog::sections::ModelSection;
use crate::reading::{Origin, Problems, Source};
use keys::{Config, Nesting};

/// The name of the network and its shape, of which the instance itself may give parts. `path` is
/// the file or a folder that has a `config.json`.
pub(crate) fn read(
    path: &str,
    at: &Origin,
    given: &ModelSection,
    problems: &mut Problems,
) -> Option<(String, ModelSection)> {
    let mut file = at.source.folder.join(path);
    if file.is_dir() {
        file.push("config.json");
    }
    let source = Source::named_at(&file, at, problems)?;
    let fields = match serde_json::from_str::<Json>(source.text.trim_start_matches('\u{feff}')) {
        Ok(Json::Object(fields)) => fields,
        Ok(_) => {
            let start = Origin::new(&source, 0..0);
            problems.add(
                &start,
                "the file is not a JSON object",
                "give a `config.json`",
            );
            return None;
        }
        Err(error) => {
            let origin = Origin::new(&source, position(&source.text, &error));
            let text = error.to_string();
            let text = text.split(" at line").next().unwrap_or_default();
            let hint = "give the `config.json` of a model";
            problems.add(&origin, format!("the file is not JSON: {text}"), hint);
            return None;
        }
    };
    Some((name(&file), section(&source, fields, given, problems)?))
}

/// The byte at which JSON ends to be valid.
fn position(text: &str, error: &serde_json::Error) -> std::ops::Range<usize> {
    let line = error.line().saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut at = (start + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at..at
}

/// The folder's name for `config.json`, else the file's stem.
fn name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    let folder = file.parent().and_then(Path::file_name);
    let name = if stem == "config" {
        folder.unwrap_or(stem)
    } else {
        stem
    };
    name.to_string_lossy().into_owned()
}

/// Keys under which a config of several parts nests its language model.
const NESTED: &[&str] = &["text_config", "llm_config", "language_config"];

/// The shape that the fields describe.
fn section(
    source: &Arc<Source>,
    mut fields: Map<String, Json>,
    given: &ModelSection,
    problems: &mut Problems,
) -> Option<ModelSection> {
    let broken = problems.list().len();
    let mut start = 0;
    let mut nesting = Nesting::Top;
    let nested = NESTED
        .iter()
        .find(|key| fields.get(**key).is_some_and(Json::is_object));
    if let Some(key) = nested
        && let Some(Json::Object(text_fields)) = fields.remove(*key)
    {
        refused::check(&Config::new(source, 0, fields.clone(), given), problems);
        start = source.text.find(&format!("\"{key}\"")).unwrap_or(0);
        nesting = Nesting::Inner;
        problems.warn(format!(
            "only the language model (`{key}`) of the config is modelled"
        ));
        let tied = fields.remove("tie_word_embeddings");
        fields = text_fields;
        if let Some(tied) = tied {
            fields.entry("tie_word_embeddings").or_insert(tied);
        }
    } else if let Some(part) = ["vision_config", "audio_config"]
        .iter()
        .find(|part| fields.get(**part).is_some_and(Json::is_object))
    {
        problems.warn(format!(
            "only the language model of the config is modelled, without `{part}`"
        ));
    }
    let mut config = Config::new(source, start, fields, given);
    config.nesting = nesting;
    refused::check(&config, problems);
    if problems.list().len() > broken {
        return None;
    }
    for warning in fields::warnings(&config.fields) {
        config.problems.warn(warning);
    }
    let shape = family::shape(&mut config);
    unread::check(&mut config);
    config.report(problems);
    (problems.list().len() == broken).then(|| shape.section())
}
