//! `[cluster.discrepancy]`: what measured runs say beyond the formulas.

use serde_json::{Value as Json, json};

use super::sections::DiscrepancySection;
use crate::cluster::{DIMENSIONS, Discrepancy};
use crate::reading::values::number;
use crate::reading::{Field, Node, Origin, Problems, Tree, Value};

/// A list of numbers of either sign.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers(Vec<f64>);

/// A list of coordinates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Points(Vec<[f64; DIMENSIONS]>);

/// What to do about a broken list.
const HINT: &str = "`parlayout calibrate --learn-residuals` writes this section";

/// The numbers of a list.
fn numbers(node: &Node) -> Option<Vec<f64>> {
    match &node.value {
        Tree::List(items) => items.iter().map(number).collect(),
        _ => None,
    }
}

impl Value for Numbers {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let list = numbers(node);
        if list.is_none() {
            let text = format!("`{path}` must be a list of numbers up to 1e12");
            problems.add(&node.origin, text, HINT);
        }
        list.map(Self)
    }

    fn schema() -> Json {
        json!({ "type": "array", "items": { "type": "number" } })
    }
}

impl Value for Points {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let point = |item: &Node| numbers(item)?.try_into().ok();
        let points = match &node.value {
            Tree::List(items) => items.iter().map(point).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        if points.is_none() {
            let text =
                format!("`{path}` must be a list of lists of {DIMENSIONS} numbers up to 1e12");
            problems.add(&node.origin, text, HINT);
        }
        points.map(Self)
    }

    fn schema() -> Json {
        let point = json!({
            "type": "array", "items": { "type": "number" },
            "minItems": DIMENSIONS, "maxItems": DIMENSIONS
        });
        json!({ "type": "array", "items": point })
    }
}

/// The section is broken, which is reported.
pub(super) struct Broken;

/// The section's content, if the file has it.
pub(super) fn resolve(
    field: &Field<DiscrepancySection>,
    problems: &mut Problems,
) -> Result<Option<Discrepancy>, Broken> {
    let (section, at) = match field {
        Field::Absent => return Ok(None),
        Field::Broken => return Err(Broken),
        Field::Given(section, at) => (section, at),
    };
    complete(section, at, problems).map(Some).ok_or(Broken)
}

fn complete(
    section: &DiscrepancySection,
    at: &Origin,
    problems: &mut Problems,
) -> Option<Discrepancy> {
    let at = Some(at);
    macro_rules! take {
        ($key:ident) => {
            section.$key.required(
                concat!("cluster.discrepancy.", stringify!($key)),
                at,
                HINT,
                problems,
            )
        };
    }
    let (amplitude, length_scale, noise) = (take!(amplitude), take!(length_scale), take!(noise));
    let (weights, points) = (take!(weights)?.0, take!(points)?.0);
    let (amplitude, length_scale, noise) = (amplitude?, length_scale?, noise?);
    let flaw = if weights.len() != points.len() {
        format!("has {} weights for {} points", weights.len(), points.len())
    } else if amplitude < 0.0 || length_scale <= 0.0 || noise <= 0.0 {
        "needs an `amplitude` of at least 0, and a `length_scale` and a `noise` above 0".to_owned()
    } else {
        return Some(Discrepancy {
            points,
            weights,
            amplitude,
            length_scale,
            noise,
        });
    };
    problems.add_anywhere(at, format!("`cluster.discrepancy` {flaw}"), HINT);
    None
}
