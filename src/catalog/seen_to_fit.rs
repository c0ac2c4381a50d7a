//! `[cluster.seen_to_fit]`: layouts that fit though their predicted peaks say otherwise.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::reading::values::number;
use crate::reading::{Node, Problems, Tree, Value};

/// Layouts, each with the raise of the median of its memory error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeenToFit(pub(crate) BTreeMap<String, f64>);

/// Largest raise: a predicted peak beyond twice the memory of a GPU is a mistake of the row.
pub(crate) const LARGEST_RAISE: f64 = 1.0;

impl Value for SeenToFit {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let hint = "`parlayout calibrate` writes this section";
        let Tree::Table(table) = &node.value else {
            let text = format!("`{path}` must be a table of layouts");
            problems.add(&node.origin, text, hint);
            return None;
        };
        let mut seen = BTreeMap::new();
        for entry in &table.entries {
            let raise = number(&entry.node).filter(|raise| (0.0..=LARGEST_RAISE).contains(raise));
            if let Some(raise) = raise {
                seen.insert(entry.key.clone(), raise);
            } else {
                let text = format!("in `{path}` a layout needs a number from 0 to {LARGEST_RAISE}");
                problems.add(&entry.node.origin, text, hint);
            }
        }
        Some(Self(seen))
    }

    fn schema() -> Json {
        json!({
            "type": "object",
            "additionalProperties": { "type": "number", "minimum": 0.0, "maximum": LARGEST_RAISE }
        })
    }
}
