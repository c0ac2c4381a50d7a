//! `[cluster.discrepancy]`: what measured runs say beyond the formulas.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::document::{Node, Origin, Tree};
use super::error::Problems;
use super::file::DiscrepancySection;
use super::reader::{Field, Value};
use crate::cluster::{DIMENSIONS, Discrepancy};

/// A list of numbers of either sign.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers(pub(crate) Vec<f64>);

/// A list of coordinates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Points(pub(crate) Vec<[f64; DIMENSIONS]>);

/// What to do about a broken list.
const HINT: &str = "`parlayout calibrate --learn-residuals` writes this section";
/// Largest number: beyond it arithmetic loses its meaning.
const LARGEST: f64 = 1e9;

/// The numbers of a list.
fn numbers(node: &Node) -> Option<Vec<f64>> {
    let Tree::List(items) = &node.value else {
        return None;
    };
    let number = |item: &Node| {
        let number = match item.value {
            Tree::Integer(Some(number)) => number as f64,
            Tree::Float(number) => number,
            _ => return None,
        };
        (number.abs() <= LARGEST).then_some(number)
    };
    items.iter().map(number).collect()
}

impl Value for Numbers {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let list = numbers(node);
        if list.is_none() {
            let text = format!("`{path}` must be a list of numbers up to 1e9");
            problems.add(&node.origin, text, HINT);
        }
        list.map(Self)
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
                format!("`{path}` must be a list of lists of {DIMENSIONS} numbers up to 1e9");
            problems.add(&node.origin, text, HINT);
        }
        points.map(Self)
    }
}

impl JsonSchema for Numbers {
    fn schema_name() -> Cow<'static, str> {
        "Numbers".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "number" } })
    }
}

impl JsonSchema for Points {
    fn schema_name() -> Cow<'static, str> {
        "Points".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let point = json_schema!({
            "type": "array", "items": { "type": "number" },
            "minItems": DIMENSIONS, "maxItems": DIMENSIONS
        });
        json_schema!({ "type": "array", "items": point })
    }
}

/// The section is broken, which is reported.
pub(super) struct Broken;

/// The section's content, if the file has it.
pub(super) fn resolve(
    field: &Field<DiscrepancySection>,
    problems: &mut Problems,
) -> Result<Option<Discrepancy>, Broken> {
    match field {
        Field::Absent => Ok(None),
        Field::Broken => Err(Broken),
        Field::Given(section, at) => complete(section, at, problems).map(Some).ok_or(Broken),
    }
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
    let (amplitude, length_scale, noise) = (amplitude?.0, length_scale?.0, noise?.0);
    let flaw = if weights.len() != points.len() {
        format!("has {} weights for {} points", weights.len(), points.len())
    } else if length_scale <= 0.0 || noise <= 0.0 {
        "needs a `length_scale` and a `noise` above 0".to_owned()
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
