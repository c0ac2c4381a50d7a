//! What the laboratory reports: backtests and calibrations.

pub mod backtest;
mod calibration;
mod calibration_document;
mod scatter;

use serde::Serialize;
use serde_json::Value;

use crate::report::document::{rounded, write};

pub use calibration::{Subject, calibration};
pub use calibration_document::CalibrationDocument;

/// A document whose numbers are rounded to six significant digits, on several lines.
fn write_rounded(document: &impl Serialize) -> String {
    fn round(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => {
                *value = number.as_f64().map(rounded).into();
            }
            Value::Array(values) => values.iter_mut().for_each(round),
            Value::Object(object) => object.values_mut().for_each(round),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(document).expect("documents are JSON");
    round(&mut value);
    write(&value)
}
