//! What is known of a job, from whatever source.

use std::collections::BTreeMap;

use crate::axis::Axis;
use crate::layout_argument;

/// What is known of a job, as a row of runs states it: texts by column. Beside columns there are
/// `gpus_about` (GPUs as far as rounded figures tell), `accumulation` (micro-batches of a step and
/// replica), `chunk_layers` (layers of a model chunk) and `refused` (what no row can say).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    fields: BTreeMap<&'static str, String>,
    /// Where a file states them.
    places: BTreeMap<&'static str, Place>,
    /// What the framework itself would refuse or do otherwise.
    pub(crate) problems: Vec<Problem>,
    /// Flags of a script whose values nobody knows before it runs, with what was written.
    pub(crate) unset: BTreeMap<String, String>,
}

/// Where a file states something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The key or flag, as the file has it.
    pub key: String,
    /// The line, from 1.
    pub line: u32,
}

/// What a framework refuses or does otherwise than its file seems to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A short name, such as `layers_dropped`.
    pub rule: &'static str,
    /// What is wrong.
    pub message: String,
    /// The nearest repair.
    pub repair: String,
    /// Where the rule comes from.
    pub source: &'static str,
    /// The column that it is about.
    pub column: &'static str,
}

impl Facts {
    /// These facts, and another where they do not say.
    #[must_use]
    pub fn with(mut self, column: &'static str, value: Option<impl ToString>) -> Self {
        self.note(column, value);
        self
    }

    /// Adds what these facts do not say.
    pub(crate) fn note(&mut self, column: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            let field = self.fields.entry(column);
            field.or_insert_with(|| value.to_string());
        }
    }

    /// Adds what these facts do not say, and where a file states it.
    pub(crate) fn note_at(
        &mut self,
        column: &'static str,
        value: String,
        place: Option<(&str, u32)>,
    ) {
        if self.fields.contains_key(column) {
            return;
        }
        self.fields.insert(column, value);
        if let Some((key, line)) = place {
            let key = key.to_owned();
            self.places.insert(column, Place { key, line });
        }
    }

    /// Replaces what these facts say.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "as `note` takes it: numbers and names alike"
    )]
    pub(crate) fn set(&mut self, column: &'static str, value: impl ToString) {
        self.fields.insert(column, value.to_string());
    }

    /// Forgets what these facts say, and returns it.
    pub(crate) fn take(&mut self, column: &str) -> Option<String> {
        self.fields.remove(column)
    }

    /// Where a file states a column.
    #[must_use]
    pub fn place(&self, column: &str) -> Option<&Place> {
        self.places.get(column)
    }

    /// What the framework refuses or does otherwise.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Values that nobody knows before a script runs, as written, by flag.
    #[must_use]
    pub const fn unknown(&self) -> &BTreeMap<String, String> {
        &self.unset
    }

    /// Columns and what they say.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.fields
            .iter()
            .map(|(column, text)| (*column, text.as_str()))
    }

    /// These facts, and `others` where they do not say.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        let Self {
            fields,
            places,
            problems,
            unset,
        } = others;
        for (column, value) in fields {
            let place = places.get(column).map(|it| (it.key.as_str(), it.line));
            self.note_at(column, value, place);
        }
        self.problems.extend(problems);
        self.unset.extend(unset);
        self
    }

    /// Whether a column says `true`.
    #[must_use]
    pub fn is_on(&self, column: &str) -> bool {
        self.text(column) == Some("true")
    }

    /// The number that a column says, 1 where it says none.
    #[must_use]
    pub fn one(&self, column: &str) -> u64 {
        self.number(column).unwrap_or(1).max(1)
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

/// These facts, and what follows from them.
#[must_use]
pub fn completed(mut facts: Facts) -> Facts {
    let degrees = ["tensor_parallel", "pipeline_parallel", "context_parallel"];
    let others = degrees
        .iter()
        .fold(1, |all: u64, it| all.saturating_mul(facts.one(it)));
    let replicas = facts.number("data_parallel");
    let gpus = replicas.map(|replicas| replicas.saturating_mul(others));
    facts.note("gpus", gpus.or(facts.number("gpus_about")));
    let gpus = facts.number("gpus");
    facts.note("data_parallel", gpus.map(|gpus| (gpus / others).max(1)));
    let batch = ["accumulation", "data_parallel", "micro_batch"];
    let batch = batch.map(|column| facts.number(column));
    let product = batch
        .iter()
        .try_fold(1_u64, |all, it| all.checked_mul((*it)?));
    facts.note("global_batch", product);
    let layers = facts
        .number("layers")
        .zip(facts.number("pipeline_parallel"));
    let chunks = layers.zip(facts.number("chunk_layers"));
    let chunks = chunks.and_then(|((layers, stages), chunk)| {
        let on_a_stage = layers.checked_div(stages)?;
        Some(on_a_stage.checked_div(chunk)?.max(1))
    });
    // A log or script that names none has none.
    let is_unknown = facts.unset.keys().any(|flag| flag.contains("virtual"));
    facts.note("virtual_stages", chunks.or((!is_unknown).then_some(1)));
    facts
}

/// Reads a layout as the user types it, `tensor_parallel=4,pipeline_parallel=2,micro_batch=1`: the keys
/// and values are those of `[search]`.
///
/// # Errors
///
/// A message for the user about the first part that is wrong.
pub fn layout(text: &str) -> Result<Facts, String> {
    let mut facts = Facts::default();
    for (axis, code) in layout_argument::parse_assignment(text)?.0 {
        let value = match axis {
            Axis::SequenceParallel | Axis::RmsNormKernel => (code == 1).to_string(),
            _ => axis.show(code),
        };
        facts.note(axis.as_str(), Some(value));
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_a_list_of_keys() {
        let facts = layout("tensor_parallel=4, micro_batch=2,sequence_parallel=on").expect("right");
        assert_eq!(facts.number("tensor_parallel"), Some(4));
        assert_eq!(facts.number("micro_batch"), Some(2));
        assert_eq!(facts.text("sequence_parallel"), Some("true"));
        let wrong = |text: &str, part: &str| {
            let message = layout(text).expect_err("it is wrong");
            assert!(message.contains(part), "{message}");
        };
        wrong("xp=4", "has no `xp`");
        wrong("tensor_parallel", "is neither `key=value`");
        wrong("tensor_parallel=0", "is a whole number");
        wrong("sequence_parallel=2", "is one of");
    }
}
