//! Changes of one value that make an answer false are found.
//!
//! What is left out is what can change without making an answer false: the names and texts that say
//! how the instance was typed, the solver's name, the program's name (an answer may be best in both), an
//! `optimal` that becomes the weaker `feasible`, and the last of the numbers of GPUs, which need not
//! have been tried.

use super::*;

/// Pointers to all values without parts, but for those that say nothing of the answer.
pub(super) fn places(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let entries = map.iter();
            entries
                .flat_map(|(key, value)| places(value, &format!("{path}/{key}")))
                .collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .flat_map(|(at, value)| places(value, &format!("{path}/{at}")))
                .collect()
        }
        _ => vec![path.to_owned()],
    }
}

fn matters(place: &str) -> bool {
    let free = [
        "/instance",
        "/warnings",
        "/resolved_instance",
        "/proof/solver",
        "/proof/tolerance",
        "/proof/formulation",
    ];
    free.iter().all(|free| !place.starts_with(free))
}

/// A generator of numbers, the same on every machine.
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % count
    }
}

/// Six significant digits, as documents have.
fn rounded(number: f64) -> f64 {
    format!("{number:.5e}").parse().expect("it is a number")
}

/// Another value of the same kind, mostly near the first.
fn other(value: &Value, draws: &mut Draws) -> Value {
    const NAMES: [&str; 16] = [
        "infeasible",
        "unknown",
        "optimal",
        "whole",
        "cut",
        "zero-0",
        "zero-1",
        "zero-2",
        "zero-3",
        "flash-attention-1",
        "flash-attention-2",
        "1f1b",
        "zb-1p",
        "staged",
        "layout-choice",
        "gpu_count",
    ];
    match value {
        Value::Bool(on) => json!(!on),
        Value::Null => json!(draws.below(3)),
        Value::String(text) => {
            let name = NAMES[draws.below(NAMES.len())];
            if name == text {
                json!("none")
            } else {
                json!(name)
            }
        }
        Value::Number(number) => match number.as_i64() {
            Some(integer) if !number.is_f64() => {
                let steps = [1, -1, 2, integer, -integer / 2 - 1];
                json!(integer + steps[draws.below(steps.len())].max(1 - integer.abs() * 2))
            }
            _ => {
                let number = number.as_f64().expect("JSON has numbers alone");
                let factors = [1.000_02, 0.999_98, 1.01, 0.5, 2.0];
                let changed = rounded(number * factors[draws.below(factors.len())]);
                json!(if changed.to_bits() == number.to_bits() {
                    number + 1e-5
                } else {
                    changed
                })
            }
        },
        Value::Array(_) | Value::Object(_) => Value::Null,
    }
}

#[test]
fn two_thousand_changes_are_found() {
    let mut draws = Draws(20_231_109);
    let documents: Vec<Value> = ANSWERS
        .iter()
        .map(|text| serde_json::from_str(text).expect("it is JSON"))
        .collect();
    for text in ANSWERS.iter() {
        accepted(text);
    }
    let mut tried = 0;
    while tried < 2000 {
        let document = &documents[draws.below(documents.len())];
        let places = places(document, "");
        let place = &places[draws.below(places.len())];
        let value = document.pointer(place).expect("the place is known");
        let changed = other(value, &mut draws);
        let last = document["objective"]["asked"]["gpus"].as_array();
        let last = last.map(|list| format!("/objective/asked/gpus/{}", list.len() - 1));
        if !matters(place) || changed == *value || last.as_ref() == Some(place) {
            continue;
        }
        tried += 1;
        let mut tampered = document.clone();
        *tampered.pointer_mut(place).expect("the place is known") = changed.clone();
        let verdict = verify(&tampered.to_string());
        assert!(
            !verdict.is_ok_and(|document| document.verdict == VerdictStatus::Accepted),
            "{place}: {value} became {changed}"
        );
    }
}
