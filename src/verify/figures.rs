//! Compares a document with the one that is written anew.

use serde_json::Value;

use super::answer::Answer;
use super::{Rejected, Stop};
use crate::reading::join;

/// Requires that the answer's document is the one that follows from its layouts, but for the value of
/// one key.
pub(super) fn compare(stated: &Value, answer: &Answer, except: Option<&str>) -> Result<(), Stop> {
    let mut recomputed = answer.document();
    if let Some(key) = except
        && !stated[key].is_null()
        && !recomputed[key].is_null()
    {
        recomputed[key] = stated[key].clone();
    }
    match difference(stated, &recomputed, "") {
        None => Ok(()),
        Some(rejected) => Err(rejected.into()),
    }
}

/// The first difference of two values.
fn difference(stated: &Value, recomputed: &Value, path: &str) -> Option<Rejected> {
    match (stated, recomputed) {
        (Value::Object(own), Value::Object(other)) => {
            let missing = other.keys().find(|&key| !own.contains_key(key));
            if let Some(key) = missing {
                return Some(Rejected::new(join(path, key), "the key is missing"));
            }
            own.iter().find_map(|(key, value)| {
                let path = join(path, key);
                match other.get(key) {
                    Some(other) => difference(value, other, &path),
                    None => Some(Rejected::new(path, "there is no such key")),
                }
            })
        }
        (Value::Array(own), Value::Array(other)) if own.len() == other.len() => {
            let pairs = own.iter().zip(other).enumerate();
            let mut differences = pairs
                .filter_map(|(at, (own, other))| difference(own, other, &format!("{path}[{at}]")));
            differences.next()
        }
        _ if is_equal(stated, recomputed) => None,
        _ => Some(Rejected {
            stated: Some(shown(stated)),
            recomputed: Some(shown(recomputed)),
            ..Rejected::new(
                path,
                "it is not what follows from the layout and the instance",
            )
        }),
    }
}

/// Whether two values are the same, numbers however they are spelled.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other
        || match (one.as_f64(), other.as_f64()) {
            (Some(number), Some(of_other)) if one.is_f64() || other.is_f64() => {
                number.total_cmp(&of_other).is_eq()
            }
            _ => false,
        }
}

/// A value in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        scalar => crate::reading::shown(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let check = |stated: Value, recomputed: Value, place: Option<&str>| {
            let found = difference(&stated, &recomputed, "");
            assert_eq!(
                found.as_ref().map(|it| it.place.as_str()),
                place,
                "{found:?}"
            );
        };
        check(json!({"a": 1, "b": 2}), json!({"b": 2.0, "a": 1}), None);
        check(json!({"a": [1, 2]}), json!({"a": [1, 3]}), Some("a[1]"));
        check(json!({"a": [1, 2]}), json!({"a": [1]}), Some("a"));
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), Some("b"));
        check(json!({"a": 1, "b": 2}), json!({"a": 1}), Some("b"));
        check(json!({"a": "1"}), json!({"a": 1}), Some("a"));
        check(
            json!({"a": 0.1}),
            json!({"a": 0.100_000_000_000_000_02}),
            Some("a"),
        );
    }
}
