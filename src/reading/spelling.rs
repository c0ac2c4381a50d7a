//! "Did you mean": the nearest of the words that would have been right.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Names that other tools give to our keys.
static SYNONYMS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../catalog/synonyms.toml"))
        .expect("the catalog's synonyms are valid")
});

/// What is not modelled yet, and the words for it.
static NOT_MODELLED: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../catalog/not-modelled.toml"))
        .expect("the catalog's words for what is not modelled are valid")
});

/// The candidates that `word` most likely stands for, equally near; none if none is near.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    const MOST: usize = 3;
    let word = normal(word);
    let meant = synonym(&word);
    let mut best = 0.6;
    let mut nearest = Vec::new();
    for candidate in candidates {
        let plain = normal(candidate);
        let starts = word.len() >= 3 && (plain.starts_with(&word) || word.starts_with(&plain));
        let near = strsim::normalized_damerau_levenshtein(&word, &plain);
        let within = word.len() >= 5 && plain.contains(&word);
        let likeness = if meant == Some(candidate) || plain == word {
            2.0
        } else if starts {
            1.0 + near
        } else if within {
            near.max(0.8)
        } else {
            near
        };
        if likeness > best {
            best = likeness;
            nearest.clear();
        }
        if likeness >= best && nearest.len() < MOST {
            nearest.push(candidate);
        }
    }
    nearest
}

/// Our key for what another tool calls `word`.
pub(crate) fn synonym(word: &str) -> Option<&'static str> {
    let mut synonyms = SYNONYMS.iter();
    let found = synonyms.find(|(_, others)| others.iter().any(|other| other == word));
    found.map(|(key, _)| key.as_str())
}

/// What `word` stands for, if that is not modelled yet.
pub(crate) fn not_modelled(word: &str) -> Option<&'static str> {
    let word = normal(word);
    let mut all = NOT_MODELLED.iter();
    let found = all.find(|(_, words)| words.contains(&word));
    found.map(|(what, _)| what.as_str())
}

/// A question after the candidates that `word` most likely stands for.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let quoted: Vec<String> = nearest(word, candidates)
        .into_iter()
        .map(|candidate| format!("`{candidate}`"))
        .collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

/// A text that lists the words in backticks.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// Spelling without the differences that people do not see; long words are cut, for speed.
fn normal(word: &str) -> String {
    word.chars()
        .take(64)
        .map(|c| {
            if c == '-' {
                '_'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}
