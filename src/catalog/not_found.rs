//! A name that the catalog does not have.

use super::Kind;
use crate::reading::{shown, spelling};

/// The catalog has no preset of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}\nhint: {}", self.text(), self.hint())]
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
                .filter(|near| kind != Kind::Model || same_family(name, near))
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
        let near = self.suggestions.iter().map(|near| format!("`{near}`"));
        let near: Vec<String> = near.collect();
        if !near.is_empty() {
            let near = near.join(" or ");
            return format!("did you mean {near}? `parlayout catalog` lists all");
        }
        match self.kind {
            Kind::Model => "give the network's `config.json` from Hugging Face as the model: \
                            `path/to/config.json`; `parlayout catalog model` lists the presets"
                .to_owned(),
            Kind::Cluster => "describe the machine by its figures: `memory`, `peak_bf16`, \
                              `memory_bandwidth`, `gpus_per_node`, `intra_node_bandwidth` and \
                              `inter_node_bandwidth` in `[cluster]` of an instance file \
                              (docs/instance-format.md); `parlayout catalog cluster` lists the \
                              presets"
                .to_owned(),
            _ => {
                let known = self.known.iter().map(String::as_str);
                format!("known: {}", spelling::list(known))
            }
        }
    }
}

/// Whether the letters that two names of models begin with are alike: no other family is proposed for
/// a name that the catalog does not have.
fn same_family(one: &str, other: &str) -> bool {
    let family = |name: &str| -> String {
        let letters = name.chars().take_while(|c| c.is_alphabetic());
        letters.collect::<String>().to_lowercase()
    };
    strsim::normalized_damerau_levenshtein(&family(one), &family(other)) >= 0.75
}
