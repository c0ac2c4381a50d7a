//! Settings of a job, as a script, a configuration file or a dump writes them.

use std::collections::BTreeMap;

/// Settings by flag or dotted path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    /// Their values; a flag without a value has an empty one.
    pub(crate) values: BTreeMap<String, String>,
    /// The values that nobody knows before a script runs, as written: `${TP}`.
    pub(crate) unset: BTreeMap<String, String>,
    /// The lines that state them, from 1.
    pub(crate) lines: BTreeMap<String, u32>,
    /// What is not stated.
    pub(crate) unstated: Unstated,
}

/// What holds of a setting that is not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Unstated {
    /// The usual value: what differs from it would be stated.
    #[default]
    Usual,
    /// Nothing is known of it.
    Unknown,
}

impl Settings {
    /// Adds a value that a line states.
    pub(crate) fn state(&mut self, key: String, value: String, line: u32) {
        self.lines.insert(key.clone(), line);
        self.values.insert(key, value);
    }

    /// The key among these that is stated, with its line.
    pub(crate) fn place(&self, keys: &str) -> Option<(&str, u32)> {
        let stated = |key: &&str| self.values.contains_key(*key) || self.unset.contains_key(*key);
        let key = keys.split('|').find(stated)?;
        let (key, line) = self.lines.get_key_value(key)?;
        Some((key, *line))
    }

    /// What is stated below a path, by the rest of its key.
    pub(crate) fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.values.iter();
        all.filter_map(move |(key, value)| Some((key.strip_prefix(path)?, value.as_str())))
    }

    /// The value of the first key that has one; `keys` are apart by `|`.
    pub(crate) fn text(&self, keys: &str) -> Option<&str> {
        let values = keys.split('|').filter_map(|key| self.values.get(key));
        let mut stated = values.filter(|value| !matches!(value.as_str(), "null" | "None"));
        stated.next().map(String::as_str)
    }

    /// The whole number of the first key that has a value.
    pub(crate) fn number(&self, keys: &str) -> Option<u64> {
        self.text(keys)?.replace('_', "").parse().ok()
    }

    /// Whether a switch is on, which it usually is not.
    pub(crate) fn switch(&self, key: &str) -> Option<bool> {
        match self.text(key).map(str::to_ascii_lowercase).as_deref() {
            Some("" | "true") => Some(true),
            Some(_) => Some(false),
            None => (self.unstated == Unstated::Usual).then(|| self.unset.contains_key(key)),
        }
    }

    /// Whether a switch is known to be on.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.switch(key) == Some(true)
    }

    /// Whether a setting that is not stated has its usual value.
    pub(crate) fn is_usual(&self, keys: &str) -> bool {
        let mut keys = keys.split('|');
        self.unstated == Unstated::Usual && !keys.any(|key| self.unset.contains_key(key))
    }
}
