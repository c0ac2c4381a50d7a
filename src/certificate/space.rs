//! Values of axes in a document.

use serde_json::{Map, Value};

use crate::axis::{Assignment, Axis};

/// The value of an axis with this code: a number, or the name of a named choice.
pub(crate) fn value(axis: Axis, code: u32) -> Value {
    match axis.names() {
        Some(_) => Value::from(axis.show(code)),
        None => Value::from(code),
    }
}

/// The code of a value, if the axis has it.
pub(crate) fn code(axis: Axis, value: &Value) -> Option<u32> {
    match axis.names() {
        Some(names) => {
            let name = value.as_str()?;
            let position = names.iter().position(|&known| known == name);
            position.map(|position| position as u32)
        }
        None => value
            .as_u64()
            .filter(|number| (1..=LARGEST_VALUE).contains(number))
            .map(|number| number as u32),
    }
}

/// Largest value of a numbered axis.
const LARGEST_VALUE: u64 = 1 << 20;

/// Values by axis as a map, in the order of `assignment`.
pub(crate) fn values(assignment: &Assignment) -> Map<String, Value> {
    let pairs = assignment.0.iter();
    pairs
        .map(|&(axis, code)| (axis.as_str().to_owned(), value(axis, code)))
        .collect()
}

/// The assignment that a map states; `None` where a key is no axis or a value none of its.
pub(crate) fn assignment(values: &Map<String, Value>) -> Option<Assignment> {
    let pairs = values.iter().map(|(key, value)| {
        let axis = Axis::parse(key)?;
        Some((axis, code(axis, value)?))
    });
    pairs.collect::<Option<_>>().map(Assignment)
}
