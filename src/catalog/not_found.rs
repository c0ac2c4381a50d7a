//! A name that the catalog does not have.

use std::{error, fmt};

use super::Kind;
use crate::reading::{shown, spelling};

/// The catalog has no preset of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// What was looked for.
    pub kind: Kind,
    /// The name.
    pub name: String,
    /// The names that were probably meant.
    pub suggestions: Vec<String>,
    /// Every name of the kind.
    pub known: Vec<String>,
}

impl NotFound {
    pub(super) fn new<'a>(
        kind: Kind,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            suggestions: spelling::nearest(name, known.clone())
                .into_iter()
                .map(ToOwned::to_owned)
                .collect(),
            known: known.map(ToOwned::to_owned).collect(),
        }
    }

    /// What is wrong, without the remedy.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "the catalog has no {} `{}`",
            self.kind.as_str(),
            shown(&self.name)
        )
    }

    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> String {
        let known = self.known.iter().map(String::as_str);
        match spelling::did_you_mean(&self.name, known.clone()) {
            Some(question) => format!("{question} `parlayout catalog` lists all"),
            None => format!("known: {}", spelling::list(known)),
        }
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.text(), self.hint())
    }
}

impl error::Error for NotFound {}
