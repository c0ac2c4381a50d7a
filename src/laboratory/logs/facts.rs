//! What is known of a job, from whatever source.

use std::collections::BTreeMap;

use super::settings::Settings;
use crate::axis::Axis;
use crate::layout_argument;

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
