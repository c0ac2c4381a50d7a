//! The kinds of values that keys take: text, counts, numbers, quantities, choices.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::document::{Node, Tree};
use super::error::{Problems, shown};
use super::reader::Value;
use super::spelling;
use crate::choice::Choice;
use crate::quantity::{self, Measured};

/// Reports a value of the wrong kind.
fn wrong_kind<T>(
    node: &Node,
    path: &str,
    wanted: &str,
    hint: &str,
    problems: &mut Problems,
) -> Option<T> {
    let found = match &node.value {
        Tree::Date | Tree::List(_) | Tree::Table(_) => node.value.kind().to_owned(),
        _ => format!("`{}`", shown(node.written())),
    };
    problems.add(
        &node.origin,
        format!("`{path}` must be {wanted}, not {found}"),
        hint,
    );
    None
}

impl Value for String {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Tree::Text(text) if text.trim().is_empty() => {
                problems.add(&node.origin, format!("`{path}` is empty"), "write a text");
                None
            }
            Tree::Text(text) => Some(text.clone()),
            _ => wrong_kind(
                node,
                path,
                "a string",
                "write it in double quotes",
                problems,
            ),
        }
    }
}

/// A whole number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(pub(crate) u64);

impl Value for Count {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let key = path.rsplit('.').next().unwrap_or(path);
        let example = format!("write digits, such as `{key} = 8`");
        let hint = match &node.value {
            Tree::Integer(Some(number)) => match u64::try_from(*number) {
                Ok(number) if number >= 1 => return Some(Self(number)),
                Err(_) if *number > 0 => "check the number of digits".to_owned(),
                _ => example,
            },
            Tree::Integer(None) => "check the number of digits".to_owned(),
            Tree::Text(text) if text.trim().parse::<u64>().is_ok() => {
                format!("remove the quotes: `{key} = {}`", text.trim())
            }
            Tree::Float(number) if number.fract() == 0.0 && number.abs() < LARGEST_NUMBER => {
                format!("write `{key} = {number:.0}`")
            }
            _ => example,
        };
        wrong_kind(node, path, "a whole number of at least 1", &hint, problems)
    }
}

impl JsonSchema for Count {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

/// A number of at least 0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Number(pub(crate) f64);

/// Largest number that a key takes: beyond it arithmetic loses its meaning.
const LARGEST_NUMBER: f64 = 1e9;

impl Value for Number {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let number = number(&node.value);
        if (0.0..=LARGEST_NUMBER).contains(&number) {
            return Some(Self(number));
        }
        let wanted = "a number of at least 0 and at most 1e9";
        let key = path.rsplit('.').next().unwrap_or(path);
        let hint = format!("write it without quotes and unit, such as `{key} = 0.5`");
        wrong_kind(node, path, wanted, &hint, problems)
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": LARGEST_NUMBER })
    }
}

/// A number between -1 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Signed(pub(crate) f64);

impl Value for Signed {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let number = number(&node.value);
        if (-1.0..=1.0).contains(&number) {
            return Some(Self(number));
        }
        let hint = "write it without quotes and unit, such as `0.01`";
        wrong_kind(node, path, "a number between -1 and 1", hint, problems)
    }
}

impl JsonSchema for Signed {
    fn schema_name() -> Cow<'static, str> {
        "Signed".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": -1, "maximum": 1 })
    }
}

/// The number of a value, or none.
fn number(value: &Tree) -> f64 {
    match value {
        Tree::Integer(Some(number)) => *number as f64,
        Tree::Float(number) => *number,
        _ => f64::NAN,
    }
}

/// A quantity written with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantity<Q>(pub(crate) Q);

impl<Q: Measured + Clone> Value for Quantity<Q> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let unit = Q::UNITS[0].0;
        let text = match &node.value {
            Tree::Text(text) => text,
            Tree::Integer(Some(_)) | Tree::Float(_) => {
                let hint = format!("write it in quotes: `\"{} {unit}\"`", shown(node.written()));
                problems.add(&node.origin, format!("`{path}` has no unit"), hint);
                return None;
            }
            _ => {
                let wanted = format!("a {} with its unit", Q::NOUN);
                let hint = format!("write a number and a unit in quotes, such as `\"80 {unit}\"`");
                return wrong_kind(node, path, &wanted, &hint, problems);
            }
        };
        match quantity::parse::<Q>(&shown(text)) {
            Ok(quantity) => Some(Self(quantity)),
            Err(message) => {
                let hint = format!("write a number of at least 0 and a unit, such as `80 {unit}`");
                let (text, hint) = message.split_once(": ").unwrap_or((&message, &hint));
                problems.add(&node.origin, format!("`{path}`: {text}"), hint);
                None
            }
        }
    }
}

impl<Q: Measured> JsonSchema for Quantity<Q> {
    fn schema_name() -> Cow<'static, str> {
        Q::NOUN.into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let units: Vec<&str> = Q::UNITS.iter().map(|(name, _)| *name).collect();
        let pattern = format!(r"^\s*[0-9][0-9_.eE+-]*\s*({})\s*$", units.join("|"));
        json_schema!({ "type": "string", "pattern": pattern })
    }
}

/// One of several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OneOf<C>(pub(crate) C);

impl<C: Choice> Value for OneOf<C> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let names = || C::NAMES.iter().copied();
        let hint = format!("write one of {}", spelling::list(names()));
        let Tree::Text(text) = &node.value else {
            return wrong_kind(node, path, "a string", &hint, problems);
        };
        let found = C::of_name(text);
        if found.is_none() {
            let hint = match spelling::did_you_mean(text, names()) {
                Some(question) => format!("{question} known: {}", spelling::list(names())),
                None => hint,
            };
            problems.add(
                &node.origin,
                format!("`{path}`: `{}` is not {}", shown(text), C::NOUN),
                hint,
            );
        }
        found.map(Self)
    }
}

impl<C: Choice> JsonSchema for OneOf<C> {
    fn schema_name() -> Cow<'static, str> {
        C::NOUN.into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": C::NAMES })
    }
}
