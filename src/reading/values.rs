//! The kinds of values that keys take: text, counts, numbers, quantities, choices.

use serde_json::{Value as Json, json};

use super::document::{Node, Tree};
use super::error::{Problems, shown};
use super::section::Value;
use super::spelling;
use crate::choice::Choice;
use crate::quantity::{self, Bytes, BytesPerSecond, FlopsPerSecond, Measured, Seconds};

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
            _ => {
                let hint = "write it in double quotes";
                wrong_kind(node, path, "a string", hint, problems)
            }
        }
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }
}

/// A whole number of at least 1.
impl Value for u64 {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        whole_number(node, path, "a whole number of at least 1", problems)
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 1 })
    }
}

/// A whole number, or 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrNone(pub(crate) u64);

impl Value for OrNone {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        if matches!(&node.value, Tree::Integer(Some(0))) {
            return Some(Self(0));
        }
        whole_number(node, path, "a whole number", problems).map(Self)
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 0 })
    }
}

/// A whole number of at least 1; what else is `wanted` is read already.
fn whole_number(node: &Node, path: &str, wanted: &str, problems: &mut Problems) -> Option<u64> {
    let key = path.rsplit('.').next().unwrap_or(path);
    let example = format!("write digits, such as `{key} = 8`");
    let hint = match &node.value {
        Tree::Integer(Some(number)) => match u64::try_from(*number) {
            Ok(number) if number >= 1 => return Some(number),
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
    wrong_kind(node, path, wanted, &hint, problems)
}

/// Largest number that a key takes: beyond it arithmetic loses its meaning.
const LARGEST_NUMBER: f64 = 1e12;

impl Value for f64 {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let number = number(node);
        if number.is_none() {
            let key = path.rsplit('.').next().unwrap_or(path);
            let hint = format!("write it without quotes and unit, such as `{key} = 0.5`");
            wrong_kind::<Self>(node, path, "a number of at most 1e12", &hint, problems);
        }
        number
    }

    fn schema() -> Json {
        json!({ "type": "number" })
    }
}

/// The number of a value, whatever its sign, if it is not too large.
pub(crate) fn number(node: &Node) -> Option<f64> {
    let number = match node.value {
        Tree::Integer(Some(number)) => number as f64,
        Tree::Float(number) => number,
        _ => return None,
    };
    (number.abs() <= LARGEST_NUMBER).then_some(number)
}

/// A quantity written with its unit.
fn read_quantity<Q: Measured>(node: &Node, path: &str, problems: &mut Problems) -> Option<Q> {
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
    let quantity = quantity::parse::<Q>(&shown(text));
    if let Err(message) = &quantity {
        let hint = format!("write a number of at least 0 and a unit, such as `80 {unit}`");
        let (text, hint) = message.split_once(": ").unwrap_or((message, &hint));
        problems.add(&node.origin, format!("`{path}`: {text}"), hint);
    }
    quantity.ok()
}

macro_rules! quantities {
    ($($quantity:ident)+) => {
        $(impl Value for $quantity {
            fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
                read_quantity(node, path, problems)
            }

            fn schema() -> Json {
                let units: Vec<&str> = Self::UNITS.iter().map(|(name, _)| *name).collect();
                let pattern = format!(r"^\s*[0-9][0-9_.eE+-]*\s*({})\s*$", units.join("|"));
                json!({ "type": "string", "pattern": pattern })
            }
        })+
    };
}
quantities! { Bytes BytesPerSecond FlopsPerSecond Seconds }

/// One of several `names`; `noun` is what it is a choice of.
pub(crate) fn read_name(
    node: &Node,
    path: &str,
    (noun, names): (&str, &[&'static str]),
    problems: &mut Problems,
) -> Option<&'static str> {
    let known = spelling::list(names.iter().copied());
    let hint = format!("write one of {known}");
    let Tree::Text(text) = &node.value else {
        return wrong_kind(node, path, "a string", &hint, problems);
    };
    let found = names.iter().find(|name| *name == text).copied();
    if let Some(what) = spelling::not_modelled(text).filter(|_| found.is_none()) {
        let text = format!("`{path}`: `{}` is not modelled yet: {what}", shown(text));
        problems.add(&node.origin, text, hint);
    } else if found.is_none() {
        let hint = match spelling::did_you_mean(text, names.iter().copied()) {
            Some(question) => format!("{question} known: {known}"),
            None => hint,
        };
        let text = format!("`{path}`: `{}` is not {noun}", shown(text));
        problems.add(&node.origin, text, hint);
    }
    found
}

impl<C: Choice> Value for C {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        read_name(node, path, (C::NOUN, C::NAMES), problems).and_then(C::of_name)
    }

    fn schema() -> Json {
        json!({ "type": "string", "enum": C::NAMES })
    }
}
