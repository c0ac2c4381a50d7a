//! Hugging Face `config.json` of a dense decoder, as a `[model]` section.
//!
//! A field that changes the network and is not modelled is an error; one that is left out of the
//! count, or not known, is a named warning.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::architecture::{self, Architecture, AttentionBias, Positions};
use super::config_fields::{HARMLESS, SHAPE, unsupported, warnings};
use crate::catalog::sections::ModelSection;
use crate::reading::{Field, Node, Origin, Problems, Source, Table, Tree, Value, shown, spelling};
use crate::transformer::{Biases, Embeddings};

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
    let fields = match serde_json::from_str::<Json>(&source.text) {
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

/// The fields of the language model: those of `text_config` where a config nests it.
fn section(
    source: &Arc<Source>,
    mut fields: Map<String, Json>,
    given: &ModelSection,
    problems: &mut Problems,
) -> Option<ModelSection> {
    let mut start = 0;
    if let Some(Json::Object(nested)) = fields.remove("text_config") {
        start = source.text.find("\"text_config\"").unwrap_or(0);
        let tied = fields.remove("tie_word_embeddings");
        problems.warn("only the language model (`text_config`) of the config is modelled");
        fields = nested;
        if let Some(tied) = tied {
            fields.entry("tie_word_embeddings").or_insert(tied);
        }
    }
    fields.retain(|_, value| !value.is_null());
    let config = Config {
        source,
        start,
        fields,
    };
    let broken = problems.list().len();
    for (field, what) in unsupported(&config.fields) {
        problems.add(
            &config.origin(&field),
            format!("`{}` is not modelled yet: {what}", shown(&field)),
            "describe a dense decoder, or give its shape in `[model]`",
        );
    }
    if problems.list().len() > broken {
        return None;
    }
    for warning in warnings(&config.fields) {
        problems.warn(warning);
    }
    let architecture = config.architecture(problems);
    config.warn_of_unknown_fields(architecture, problems);
    Some(config.shape(architecture, given, problems))
}

/// The fields of one config, and where they stand.
struct Config<'a> {
    source: &'a Arc<Source>,
    /// Byte from which fields are looked for in the text.
    start: usize,
    fields: Map<String, Json>,
}

impl Config<'_> {
    /// Where the text has the field's value, as far as a search can tell.
    fn origin(&self, field: &str) -> Origin {
        let text = &self.source.text;
        let key = format!("\"{field}\"");
        let Some(at) = text[self.start..].find(&key).map(|at| at + self.start) else {
            return Origin::new(self.source, self.start..self.start);
        };
        let after = at + key.len();
        let line = text[after..].lines().next().unwrap_or_default();
        let value = line.trim_start_matches([' ', '\t', ':']);
        let length = match value.strip_prefix('"') {
            Some(text) => text.find('"').map(|end| end + 2),
            None => value.find([',', '}', ' ', '\t', '\r']),
        };
        let from = after + line.len() - value.len();
        let to = from + length.unwrap_or(value.len());
        Origin::new(self.source, if from < to { from..to } else { at..after })
    }

    fn architecture(&self, problems: &mut Problems) -> &'static Architecture {
        let model_type = self.fields.get("model_type").and_then(Json::as_str);
        if let Some(known) = model_type.and_then(architecture::find) {
            if let Some(uncounted) = known.uncounted {
                problems.warn(format!("not counted: {uncounted}"));
            }
            return known;
        }
        let what = match model_type {
            Some(other) => format!("`model_type` `{}` is not known", shown(other)),
            None => "`model_type` is missing".to_owned(),
        };
        problems.warn(format!(
            "{what}: assumed a gated feed-forward block, RMSNorm, no biases but those that the \
             config states, and untied embeddings unless it states otherwise, as in LLaMA"
        ));
        architecture::llama()
    }

    fn warn_of_unknown_fields(&self, architecture: &Architecture, problems: &mut Problems) {
        let known = |field: &str| {
            HARMLESS.contains(&field)
                || SHAPE.iter().any(|(_, names)| names.contains(&field))
                || architecture.fields.contains(&field)
        };
        let unknown: Vec<String> = self
            .fields
            .keys()
            .filter(|field| !known(field) && !field.starts_with('_'))
            .map(|field| shown(field))
            .collect();
        if !unknown.is_empty() {
            problems.warn(format!(
                "fields of the config that are not understood and have no effect: {}",
                spelling::list(unknown.iter().take(12).map(String::as_str))
            ));
        }
    }

    /// The value of a field as the reader's type.
    fn read(&self, field: &str, problems: &mut Problems) -> Field<u64> {
        let Some(json) = self.fields.get(field) else {
            return Field::Absent;
        };
        let value = match json {
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Tree::Integer(Some(number.into())),
                (_, Some(number)) => Tree::Integer(Some(number.into())),
                _ => Tree::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Tree::Text(text.clone()),
            Json::Bool(on) => Tree::Switch(*on),
            Json::Array(_) => Tree::List(Vec::new()),
            Json::Null | Json::Object(_) => Tree::Table(Table::default()),
        };
        let origin = self.origin(field);
        let node = Node { value, origin };
        match u64::read(&node, field, problems) {
            Some(count) => Field::Given(count, node.origin),
            None => Field::Broken,
        }
    }

    /// The field that states one of our keys.
    fn count(&self, key: &str, problems: &mut Problems) -> Field<u64> {
        names_of(key)
            .iter()
            .find(|name| self.fields.contains_key(**name))
            .map_or(Field::Absent, |name| self.read(name, problems))
    }

    /// The same for a key that every network has, unless the instance itself gives it.
    fn required(
        &self,
        key: &str,
        given: &Field<u64>,
        implied: Option<u64>,
        problems: &mut Problems,
    ) -> Field<u64> {
        let start = Origin::new(self.source, self.start..self.start);
        match (self.count(key, problems), implied) {
            (Field::Absent, Some(implied)) => Field::Given(implied, start),
            (Field::Absent, None) if given.is_absent() => {
                let text = format!("the config has no `{}`", names_of(key)[0]);
                problems.add(&start, text, format!("give `{key}` in `[model]`"));
                Field::Broken
            }
            (field, _) => field,
        }
    }

    fn flag(&self, field: &str) -> Option<bool> {
        self.fields.get(field).and_then(Json::as_bool)
    }

    fn shape(
        &self,
        architecture: &Architecture,
        given: &ModelSection,
        problems: &mut Problems,
    ) -> ModelSection {
        let here = || Origin::new(self.source, 0..0);
        let implied_count = |count: u64| Field::Given(count, here());
        let hidden = self.required("hidden", &given.hidden, None, problems);
        let expansion = architecture.default_expansion.zip(hidden.value());
        let implied = expansion.map(|(times, hidden)| hidden.saturating_mul(times));
        let width = &given.feed_forward_width;
        let feed_forward_width = self.required("feed_forward_width", width, implied, problems);
        let mut head_width = self.count("head_width", problems);
        if head_width.is_absent()
            && let Some(width) = architecture.default_head_width
        {
            head_width = implied_count(width);
        }
        let learned_positions = match architecture.positions {
            Positions::Rotary => Field::Absent,
            Positions::Learned {
                field,
                default,
                extra,
            } => match self.read(field, problems) {
                Field::Absent => implied_count(default + extra),
                Field::Given(count, at) => Field::Given(count.saturating_add(extra), at),
                Field::Broken => Field::Broken,
            },
        };
        let tied = self.flag("tie_word_embeddings");
        let embeddings = if tied.unwrap_or(architecture.tied) {
            Embeddings::Tied
        } else {
            Embeddings::Untied
        };
        ModelSection {
            layers: self.required("layers", &given.layers, None, problems),
            heads: self.required("heads", &given.heads, None, problems),
            key_value_heads: self.count("key_value_heads", problems),
            vocabulary: self.required("vocabulary", &given.vocabulary, None, problems),
            hidden,
            head_width,
            feed_forward_width,
            feed_forward: Field::Given(architecture.feed_forward, here()),
            embeddings: Field::Given(embeddings, here()),
            normalization: Field::Given(architecture.normalization, here()),
            biases: Field::Given(self.biases(architecture, problems), here()),
            learned_positions,
            ..ModelSection::default()
        }
    }

    fn biases(&self, architecture: &Architecture, problems: &mut Problems) -> Biases {
        let default = match architecture.biases {
            AttentionBias::Fixed(biases) => return biases,
            AttentionBias::Stated { default } => default,
        };
        let attention = self.flag("attention_bias").unwrap_or(default);
        let feed_forward = self.flag("mlp_bias").unwrap_or(default);
        match (attention, feed_forward) {
            (true, true) => Biases::All,
            (false, false) => Biases::None,
            (true, false) => {
                problems.warn("not counted: the bias of the attention's output projection");
                Biases::QueryKeyValue
            }
            (false, true) => {
                problems.warn("not counted: the biases of the feed-forward block");
                Biases::None
            }
        }
    }
}

/// The fields that state one of our keys.
fn names_of(key: &str) -> &'static [&'static str] {
    SHAPE
        .iter()
        .find(|(ours, _)| *ours == key)
        .map_or(&[], |(_, names)| names)
}
