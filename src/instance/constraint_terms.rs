//! The terms of a `[[constraint]]`: names of what a layout decides, with their coefficients.

use serde_json::{Map, Value as Json, json};

use crate::axis::Axis;
use crate::constraint::{Decision, Term};
use crate::reading::document::Entry;
use crate::reading::{Node, Origin, Problems, Tree, Value, join, shown, spelling};

/// Largest coefficient: sums stay far from the limits of 64 bits and of the solver's doubles.
const LARGEST_COEFFICIENT: i128 = 1_000_000;

/// Names of decisions that are no axis.
const NAMES: [&str; 5] = [
    "micro_batches",
    "layers_first",
    "layers_last",
    "checkpointed_layers",
    "layers[0]",
];

/// Axes whose values are numbers.
fn numeric_axes() -> impl Iterator<Item = &'static str> + Clone {
    let axes = Axis::ALL.iter().filter(|axis| axis.names().is_none());
    axes.map(|axis| axis.as_str())
}

/// The terms of a row, with the place of each.
#[derive(Debug, Clone)]
pub(crate) struct Terms(pub(crate) Vec<(Term, Origin)>);

impl Terms {
    pub(crate) const HINT: &str = "write `terms = { tensor_parallel = 1, pipeline_parallel = 2 }`";
}

impl Value for Terms {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let hint = Self::HINT;
        let Tree::Table(terms) = &node.value else {
            let text = format!("`{path}` must be a table, not {}", node.value.kind());
            problems.add(&node.origin, text, hint);
            return None;
        };
        if terms.entries.is_empty() {
            problems.add(&node.origin, format!("`{path}` is empty"), hint);
            return None;
        }
        let mut read: Vec<(Term, Origin)> = Vec::new();
        let mut sound = true;
        for entry in &terms.entries {
            let decision = read_decision(entry, problems);
            let path = join(path, &shown(&entry.key));
            let coefficient = read_integer(&entry.node, &path, LARGEST_COEFFICIENT, problems);
            let (Some(decision), Some(coefficient)) = (decision, coefficient) else {
                sound = false;
                continue;
            };
            if read.iter().any(|(term, _)| term.decision == decision) {
                let text = format!("`{decision}` has two coefficients");
                problems.add(&entry.key_origin, text, "add them up");
                sound = false;
            }
            let term = Term {
                coefficient,
                decision,
            };
            read.push((term, entry.key_origin.clone()));
        }
        sound.then_some(Self(read))
    }

    fn schema() -> Json {
        let coefficient = whole_numbers(LARGEST_COEFFICIENT);
        let fixed = NAMES.into_iter().filter(|name| !name.contains('['));
        let names = numeric_axes().chain(fixed);
        let properties: Map<String, Json> = names
            .map(|name| (name.to_owned(), coefficient.clone()))
            .collect();
        json!({
            "type": "object",
            "minProperties": 1,
            "properties": properties,
            "patternProperties": {
                "^layers\\[[0-9]+\\]$": coefficient,
                "^[a-z_]+ *= *[a-z0-9-]+$": coefficient,
            },
            "additionalProperties": false,
        })
    }
}

/// The schema of whole numbers of at most `most`, whatever their sign.
pub(crate) fn whole_numbers(most: i128) -> Json {
    json!({ "type": "integer", "minimum": -(most as i64), "maximum": most as i64 })
}

/// The decision that a key names.
fn read_decision(entry: &Entry, problems: &mut Problems) -> Option<Decision> {
    let key = entry.key.as_str();
    match key {
        "micro_batches" => return Some(Decision::MicroBatches),
        "layers_first" => return Some(Decision::Layers(0)),
        "layers_last" => return Some(Decision::LayersLast),
        "checkpointed_layers" => return Some(Decision::CheckpointedLayers),
        _ => {}
    }
    let stage = key
        .strip_prefix("layers[")
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some(index) = stage.and_then(|digits| digits.parse().ok()) {
        return Some(Decision::Layers(index));
    }
    if let Some((axis, value)) = key.split_once('=') {
        return read_value(entry, axis.trim(), value.trim(), problems);
    }
    match Axis::parse(key) {
        Some(axis) if axis.names().is_none() => Some(Decision::Degree(axis)),
        Some(axis) => {
            let text = format!("the values of `{axis}` are no numbers");
            let hint = match axis {
                Axis::Checkpointing => "count `checkpointed_layers` instead".to_owned(),
                _ => format!(
                    "name a value, which counts as 1 where it is chosen: `\"{axis}={}\" = 1`",
                    axis.names()
                        .and_then(|names| names.last().copied())
                        .unwrap_or_default()
                ),
            };
            problems.add(&entry.key_origin, text, hint);
            None
        }
        None => {
            let known = || numeric_axes().chain(NAMES);
            let hint = spelling::did_you_mean(key, known()).unwrap_or_else(|| {
                format!(
                    "terms are {}, or a value of an axis such as `\"sharding=zero-3\"`",
                    spelling::list(known())
                )
            });
            let text = format!("a layout has no `{}`", shown(key));
            problems.add(&entry.key_origin, text, hint);
            None
        }
    }
}

/// The decision `axis=value`.
fn read_value(entry: &Entry, axis: &str, value: &str, problems: &mut Problems) -> Option<Decision> {
    let names = || Axis::ALL.iter().map(|axis| axis.as_str());
    let Some(found) = Axis::parse(axis) else {
        let text = format!("a layout has no `{}`", shown(axis));
        let hint = spelling::did_you_mean(axis, names())
            .unwrap_or_else(|| format!("axes are {}", spelling::list(names())));
        problems.add(&entry.key_origin, text, hint);
        return None;
    };
    if found == Axis::Checkpointing {
        let text = "`checkpointing` may differ from layer to layer";
        problems.add(
            &entry.key_origin,
            text,
            "count `checkpointed_layers` instead",
        );
        return None;
    }
    let code = found.parse_value(value);
    if code.is_none() {
        let text = format!("`{found}` cannot be `{}`", shown(value));
        let hint = match found.names() {
            Some(names) => format!("write one of {}", spelling::list(names.iter().copied())),
            None => "write a whole number of at least 1".to_owned(),
        };
        problems.add(&entry.key_origin, text, hint);
    }
    code.map(|code| Decision::Is(found, code))
}

/// A whole number of at most `most`, whatever its sign.
pub(crate) fn read_integer(
    node: &Node,
    path: &str,
    most: i128,
    problems: &mut Problems,
) -> Option<i64> {
    if let Tree::Integer(Some(number)) = node.value
        && (-most..=most).contains(&number)
    {
        return i64::try_from(number).ok();
    }
    let text = format!(
        "`{path}` must be a whole number between -{most} and {most}, not `{}`",
        shown(node.written())
    );
    let hint = match node.value {
        Tree::Float(_) => "multiply the row until all its numbers are whole",
        Tree::Integer(_) => "divide the row by a number that keeps it whole",
        _ => "write digits, with a minus where needed",
    };
    problems.add(&node.origin, text, hint);
    None
}
