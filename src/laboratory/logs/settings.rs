//! Settings of a job, as a script, a configuration file or a dump writes them.

use std::collections::BTreeMap;

/// Settings by flag or dotted path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Settings {
    /// Their values; a flag without a value has an empty one.
    pub(super) values: BTreeMap<String, String>,
    /// The values that nobody knows before a script runs, as written: `${TP}`.
    pub(super) unset: BTreeMap<String, String>,
    /// What is not stated.
    pub(super) unstated: Unstated,
}

/// What holds of a setting that is not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Unstated {
    /// The usual value: what differs from it would be stated.
    #[default]
    Usual,
    /// Nothing is known of it.
    Unknown,
}

impl Settings {
    /// The value of the first key that has one; `keys` are apart by `|`.
    pub(super) fn text(&self, keys: &str) -> Option<&str> {
        let values = keys.split('|').filter_map(|key| self.values.get(key));
        let mut stated = values.filter(|value| !matches!(value.as_str(), "null" | "None"));
        stated.next().map(String::as_str)
    }

    /// The whole number of the first key that has a value.
    pub(super) fn number(&self, keys: &str) -> Option<u64> {
        self.text(keys)?.replace('_', "").parse().ok()
    }

    /// The number, or the usual one where nothing is stated.
    pub(super) fn usually(&self, keys: &str, usual: u64) -> Option<u64> {
        match self.text(keys) {
            Some(_) => self.number(keys),
            None => self.is_usual(keys).then_some(usual),
        }
    }

    /// Whether a switch is on, which it usually is not.
    pub(super) fn switch(&self, key: &str) -> Option<bool> {
        match self.text(key).map(str::to_ascii_lowercase).as_deref() {
            Some("" | "true") => Some(true),
            Some(_) => Some(false),
            None => (self.unstated == Unstated::Usual).then(|| self.unset.contains_key(key)),
        }
    }

    /// Whether a switch is known to be on.
    pub(super) fn is_on(&self, key: &str) -> bool {
        self.switch(key) == Some(true)
    }

    /// Whether a setting that is not stated has its usual value.
    pub(super) fn is_usual(&self, keys: &str) -> bool {
        let mut keys = keys.split('|');
        self.unstated == Unstated::Usual && !keys.any(|key| self.unset.contains_key(key))
    }
}
