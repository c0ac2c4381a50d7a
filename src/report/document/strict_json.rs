//! JSON in which no key is written twice.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::ReadError;
use crate::reading::join;

/// What the message of a duplicate key starts with; the rest is its path.
const TWICE: &str = "written twice: ";

/// The value of a text. The parser limits how deep values nest.
pub(crate) fn parse(text: &str) -> Result<Value, ReadError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { path: "" }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| {
        let message = error.to_string();
        match message.strip_prefix(TWICE) {
            Some(rest) => {
                let place = rest.split(" at line ").next().unwrap_or(rest);
                ReadError::Twice(place.to_owned())
            }
            None => ReadError::NoJson(error),
        }
    })
}

/// Reads the value at a path.
struct Strict<'a> {
    path: &'a str,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let mut path = format!("{}[0]", self.path);
        while let Some(item) = items.next_element_seed(Strict { path: &path })? {
            list.push(item);
            path = format!("{}[{}]", self.path, list.len());
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = join(self.path, &key);
            if map.contains_key(&key) {
                return Err(Error::custom(format!("{TWICE}{path}")));
            }
            let value = entries.next_value_seed(Strict { path: &path })?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_stand_once() {
        let check = |text: &str, expected: &str| match parse(text) {
            Ok(value) => assert_eq!(value.to_string(), expected),
            Err(ReadError::Twice(place)) => assert_eq!(place, expected, "{text}"),
            Err(error) => assert!(error.to_string().contains(expected), "{error}"),
        };
        check(r#"{"a": [1, 2.5, null]}"#, r#"{"a":[1,2.5,null]}"#);
        check(r#"{"a": 1, "b": {"c": 1, "c": 1}}"#, "b.c");
        check(r#"{"a": [0, {"b": 1, "b": 2}]}"#, "a[1].b");
        check(r#"{"a": 1"#, "not JSON");
        check("{} {}", "not JSON");
        check(&"[".repeat(100_000), "recursion limit");
    }
}
