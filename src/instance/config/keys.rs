//! The fields of one config: read by name, with a memory of what was read.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::fields::names;
use crate::catalog::sections::ModelSection;
use crate::reading::{
    Field, Node, Origin, Problems, Source, Table, Tree, Value as _, shown, spelling,
};
use crate::transformer::{Biases, Embeddings};

/// Whether a config is the file itself or a part of one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nesting {
    Top,
    /// Parts leave out what is Hugging Face's default, even layers and hidden size.
    Inner,
}

/// A size of the network and where it is stated.
#[derive(Clone)]
pub(super) struct Size {
    pub(super) count: u64,
    pub(super) origin: Origin,
}

/// The fields of one config, and where they stand.
pub(super) struct Config<'a> {
    source: &'a Arc<Source>,
    /// Byte from which fields are looked for in the text.
    start: usize,
    pub(super) fields: Map<String, Json>,
    /// What the instance says itself: it overrides the config.
    pub(super) given: &'a ModelSection,
    pub(super) nesting: Nesting,
    pub(super) read: BTreeSet<String>,
    /// Sizes that the config leaves out, with what Hugging Face takes.
    implied: Vec<String>,
    pub(super) problems: Problems,
}

impl<'a> Config<'a> {
    pub(super) fn new(
        source: &'a Arc<Source>,
        start: usize,
        fields: Map<String, Json>,
        given: &'a ModelSection,
    ) -> Self {
        Self {
            source,
            start,
            fields,
            given,
            nesting: Nesting::Top,
            read: BTreeSet::new(),
            implied: Vec::new(),
            problems: Problems::default(),
        }
    }

    /// Hands over what was found.
    pub(super) fn report(mut self, problems: &mut Problems) {
        if !self.implied.is_empty() {
            self.problems.warn(format!(
                "the config leaves out {}: Hugging Face's defaults are taken",
                self.implied.join(", ")
            ));
        }
        problems.append(self.problems);
    }

    pub(super) fn model_type(&self) -> Option<&str> {
        self.fields.get("model_type").and_then(Json::as_str)
    }

    /// Where the text has the field's value, as far as a search can tell.
    pub(super) fn origin(&self, field: &str) -> Origin {
        let text = &self.source.text;
        let key = format!("\"{field}\"");
        let Some(at) = text[self.start..].find(&key).map(|at| at + self.start) else {
            return self.beginning();
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

    fn beginning(&self) -> Origin {
        Origin::new(self.source, self.start..self.start)
    }

    /// Adds a problem with a field.
    pub(super) fn refuse(&mut self, field: &str, text: impl Into<String>, hint: &str) {
        let origin = self.origin(field);
        self.problems.add(&origin, text, hint);
    }

    /// The value of a field that states something; `null` states nothing.
    pub(super) fn value(&mut self, field: &str) -> Option<&Json> {
        let value = self.fields.get(field)?;
        self.read.insert(field.to_owned());
        (!value.is_null()).then_some(value)
    }

    /// A whole number, if the config states it under one of the names.
    pub(super) fn stated(&mut self, names: &[impl AsRef<str>]) -> Option<Size> {
        let mut found: Option<(&str, Size)> = None;
        for name in names.iter().map(AsRef::as_ref) {
            let Some(json) = self.value(name) else {
                continue;
            };
            let value = tree(json);
            let origin = self.origin(name);
            let node = Node { value, origin };
            // What is broken is reported; 1 stands in for it.
            let count = u64::read(&node, name, &mut self.problems).unwrap_or(1);
            match &found {
                Some((other, size)) if size.count != count => {
                    let text = format!(
                        "`{name}` is {count}, but `{other}`, which says the same, is {}",
                        size.count
                    );
                    self.refuse(name, text, "remove the wrong one of the two");
                }
                Some(_) => {}
                None => {
                    let origin = node.origin;
                    found = Some((name, Size { count, origin }));
                }
            }
        }
        found.map(|(_, size)| size)
    }

    /// A size that every network has: the instance's own, the config's, else Hugging Face's
    /// default, with a warning; a default of 0 is none.
    pub(super) fn size(&mut self, key: &str, default: u64) -> Size {
        let names = names(key);
        let stated = self.stated(names);
        let given = match key {
            "layers" => &self.given.layers,
            "hidden" => &self.given.hidden,
            "heads" => &self.given.heads,
            "vocabulary" => &self.given.vocabulary,
            "experts" => &self.given.experts,
            "experts_per_token" => &self.given.experts_per_token,
            "expert_width" => &self.given.expert_width,
            _ => &self.given.feed_forward_width,
        };
        if let (Field::Given(count, origin), _) = (given, &stated) {
            let (count, origin) = (*count, origin.clone());
            return Size { count, origin };
        }
        stated.unwrap_or_else(|| {
            let mut names_of = names.iter();
            let null =
                names_of.find(|name| self.fields.get(name.as_str()).is_some_and(Json::is_null));
            if let Some(name) = null.filter(|_| key != "feed_forward_width") {
                let hint = format!("write the number, or give `{key}` in `[model]`");
                self.refuse(
                    name,
                    format!("`{name}` is `null`, which is no number"),
                    &hint,
                );
                let origin = self.origin(name);
                return Size { count: 1, origin };
            }
            let origin = self.beginning();
            let always = matches!(key, "layers" | "hidden") && self.nesting == Nesting::Top;
            if always || default == 0 {
                let unknown = self.model_type().unwrap_or("of no `model_type`").to_owned();
                self.problems.add(
                    &origin,
                    format!("the config has no `{}`", names[0]),
                    format!(
                        "correct the config, or give `{key}` in `[model]`; the rest is read as \
                         `{}` defines it",
                        shown(&unknown)
                    ),
                );
            } else {
                self.implied.push(format!("`{}` ({default})", names[0]));
            }
            let count = default.max(1);
            Size { count, origin }
        })
    }

    /// A whole number, or what it is where the config says nothing.
    pub(super) fn or(&mut self, names: &[impl AsRef<str>], default: u64) -> Size {
        let origin = self.beginning();
        self.stated(names).unwrap_or(Size {
            count: default,
            origin,
        })
    }

    /// A whole number that may be 0, or what it is where the config says nothing.
    pub(super) fn count(&mut self, names: &[impl AsRef<str>], default: u64) -> u64 {
        let mut fields = names.iter().map(AsRef::as_ref);
        let is_none = fields.any(|name| {
            let stated = self.value(name).and_then(Json::as_u64);
            stated == Some(0)
        });
        if is_none {
            return 0;
        }
        self.stated(names).map_or(default, |size| size.count)
    }

    /// Whether the field is absent, not just `null`.
    pub(super) fn is_absent(&self, names: &[impl AsRef<str>]) -> bool {
        let mut names = names.iter();
        names.all(|name| !self.fields.contains_key(name.as_ref()))
    }

    /// Reports a stated number that the family's networks cannot have.
    pub(super) fn agrees(&mut self, names: &[impl AsRef<str>], right: u64, why: &str) {
        for name in names.iter().map(AsRef::as_ref) {
            if let Some(size) = self.stated(&[name])
                && size.count != right
            {
                let text = format!("`{name}` is {}, but {why}: {right}", size.count);
                self.refuse(name, text, "correct the config");
            }
        }
    }

    /// A switch, or what it is where the config says nothing.
    pub(super) fn flag(&mut self, field: &str, default: bool) -> bool {
        match self.value(field) {
            None => default,
            Some(Json::Bool(on)) => *on,
            Some(other) => {
                let text = format!("`{field}` must be true or false, not `{other}`");
                let hint = format!("write `\"{field}\": {default}`");
                self.refuse(field, text, &hint);
                default
            }
        }
    }

    /// Whether embeddings are tied.
    pub(super) fn embeddings(&mut self, default: Embeddings) -> Embeddings {
        if self.flag("tie_word_embeddings", default == Embeddings::Tied) {
            Embeddings::Tied
        } else {
            Embeddings::Untied
        }
    }

    /// The biases of query, key and value, of the attention's output, of the feed-forward block.
    pub(super) fn biases(&mut self, on: [bool; 3]) -> Biases {
        match on {
            [false, false, false] => Biases::None,
            [true, false, false] => Biases::QueryKeyValue,
            [true, true, false] => Biases::Attention,
            [false, false, true] => Biases::FeedForward,
            [false, true, true] => Biases::AllButQueryKeyValue,
            [true, false, true] => Biases::AllButAttentionOutput,
            [true, true, true] => Biases::All,
            [false, true, false] => {
                let text = "a bias of the attention's output without one of query, key and value \
                            is not modelled";
                let hint = "switch both on or off: `attention_bias`, `attention_out_bias`";
                self.refuse("attention_out_bias", text, hint);
                Biases::None
            }
        }
    }

    /// Notes that attention and feed-forward block read one input.
    pub(super) fn warn_of_parallel(&mut self) {
        self.problems.warn(
            "attention and feed-forward block run side by side: their time is modelled as if one \
             followed the other",
        );
    }

    /// Notes fields that have no effect.
    pub(super) fn warn_of(&mut self, unread: &[String]) {
        if !unread.is_empty() {
            let shown: Vec<String> = unread.iter().take(12).map(|field| shown(field)).collect();
            self.problems.warn(format!(
                "fields of the config that are not understood and have no effect: {}",
                spelling::list(shown.iter().map(String::as_str))
            ));
        }
    }
}

fn tree(json: &Json) -> Tree {
    match json {
        Json::Number(number) => Tree::of_number(number),
        Json::String(text) => Tree::Text(text.clone()),
        Json::Bool(on) => Tree::Switch(*on),
        Json::Array(_) => Tree::List(Vec::new()),
        Json::Null | Json::Object(_) => Tree::Table(Table::default()),
    }
}
