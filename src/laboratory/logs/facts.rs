//! What is known of a job, from whatever source.

use std::collections::BTreeMap;

use super::settings::Settings;

/// What is known of a job, as a row of runs states it: texts by column. Beside columns there are
/// `gpus_about` (GPUs as far as rounded figures tell), `accumulation` (micro-batches of a step and
/// replica), `chunk_layers` (layers of a model chunk) and `refused` (what no row can say).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    fields: BTreeMap<&'static str, String>,
    /// Flags of a script whose values nobody knows before it runs, with what was written.
    pub(super) unset: BTreeMap<String, String>,
}

impl Facts {
    /// The settings that a column takes as they are, by column.
    pub(super) fn copied(columns: &[(&'static str, &str)], settings: &Settings) -> Self {
        let mut facts = Self::default();
        for (column, keys) in columns {
            facts.note(column, settings.number(keys));
        }
        facts
    }

    /// These facts, and another where they do not say.
    #[must_use]
    pub fn with(mut self, column: &'static str, value: Option<impl ToString>) -> Self {
        self.note(column, value);
        self
    }

    /// Adds what these facts do not say.
    pub(super) fn note(&mut self, column: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            let field = self.fields.entry(column);
            field.or_insert_with(|| value.to_string());
        }
    }

    /// These facts, and `others` where they do not say.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        for (column, value) in others.fields {
            self.note(column, Some(value));
        }
        self.unset.extend(others.unset);
        self
    }

    /// What a column says.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&str> {
        self.fields.get(column).map(String::as_str)
    }

    /// The number that a column says.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<u64> {
        self.text(column)?.parse().ok()
    }
}
