//! Snapshots of the documents.

use serde_json::Value;

use super::*;
use crate::fixture;
use crate::plan::{Infeasibility, Nearest, Outcome, Violation};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("documents are JSON")
}

#[test]
fn a_plan_is_a_solution() {
    let outcome = Outcome::Optimal(fixture::llama_13b_plan());
    fixture::assert_snapshot(
        "json_solution_13b",
        &SolutionDocument::new(&fixture::llama_13b(), &outcome).json(),
    );
}

#[test]
fn the_keys_of_the_first_version_stay() {
    let outcome = Outcome::Feasible(fixture::llama_405b_plan());
    let document = parse(&SolutionDocument::new(&fixture::llama_405b(), &outcome).json());
    assert_eq!(document["schema"], SolutionDocument::FORMAT);
    assert_eq!(document["status"], "feasible");
    assert_eq!(document["layout"]["sequence_parallel"], true);
    assert_eq!(document["layout"]["rmsnorm_kernel"], true);
    assert_eq!(document["layout"]["stages"][0]["checkpointed_layers"], 3);
    assert_eq!(document["layout"]["stages"][0]["recomputed"]["full"], 3);
    assert_eq!(document["prediction"]["step_time_s"], 123.4);
    assert_eq!(document["proof"]["gap"], 0.0123);
}

#[test]
fn without_a_plan_layout_and_prediction_are_null() {
    let infeasibility = Infeasibility {
        clashing_rules: vec!["memory_capacity".to_owned()],
        nearest: Some(Nearest {
            candidate: crate::axis::FlaggedCombination {
                combination: fixture::llama_13b_layout().combination,
                checkpointing: crate::layout::Checkpointing::Full,
            },
            evaluated: None,
            violations: vec![Violation {
                rule: "memory_capacity(0)".to_owned(),
                message: "82.3 GiB of 79.2 GiB".to_owned(),
            }],
        }),
        proof: fixture::proof(0.0),
    };
    let outcome = Outcome::Infeasible(infeasibility);
    let text = SolutionDocument::new(&fixture::llama_13b(), &outcome).json();
    fixture::assert_snapshot("json_infeasible", &text);
    let unknown = Outcome::Unknown(fixture::proof(f64::INFINITY));
    let document = parse(&SolutionDocument::new(&fixture::llama_13b(), &unknown).json());
    for key in ["layout", "prediction", "infeasibility", "safer"] {
        assert_eq!(document[key], Value::Null, "{key}");
    }
    assert_eq!(document["proof"]["bound_mfu"], Value::Null);
}

/// What was written can be read, and is the same; nothing twice, nothing missing.
#[test]
fn documents_can_be_read_again() {
    let mut outcome = fixture::llama_13b_plan();
    outcome.alternatives.push(fixture::llama_405b_plan().choice);
    let written = SolutionDocument::new(&fixture::llama_13b(), &Outcome::Optimal(outcome));
    let text = written.json();
    let read = SolutionDocument::read(&text).expect("what was written can be read");
    assert_eq!(read, written);
    assert_eq!(read.json(), text);
    let choice = fixture::llama_13b_plan().choice;
    let read = read.layout.expect("there is a layout").layout();
    assert_eq!(read, choice.layout);
    for (from, to) in [
        ("\"mfu\": 0.70512,", "\"mfu\": 0.70512, \"mfu\": 0.8,"),
        (
            "\"tensor_parallel\": 1,",
            "\"tensor_parallel\": 1, \"tensor_parallel\": 2,",
        ),
        ("\"tensor_parallel\": 1,", ""),
        ("solution/v1", "evaluation/v1"),
        ("\"zero-1\"", "\"zero-9\""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert!(SolutionDocument::read(&changed).is_err(), "{to}");
    }
}

#[test]
fn an_evaluation_names_broken_rules() {
    let violations = [Violation {
        rule: "heads_divisible".to_owned(),
        message: "52 heads do not divide by 8".to_owned(),
    }];
    let evaluated = fixture::llama_13b_plan().choice;
    fixture::assert_snapshot(
        "json_evaluation",
        &EvaluationDocument::new(&fixture::llama_13b(), &evaluated, &violations).json(),
    );
}

#[test]
fn numbers_have_six_digits() {
    assert_eq!(rounded(26.530_012_345).to_string(), "26.53");
    assert_eq!(rounded(0.705_123_456).to_string(), "0.705123");
    assert_eq!(rounded(0.0).to_string(), "0");
    assert_eq!(rounded_probability(3.7e-12).to_string(), "0");
}

/// A component may never be missing from a document.
#[test]
fn components_sum_to_their_total() {
    let outcome = Outcome::Optimal(fixture::llama_405b_plan());
    let document = parse(&SolutionDocument::new(&fixture::llama_405b(), &outcome).json());
    let sum = |value: &Value, total: &str| -> f64 {
        let object = value.as_object().expect("an object of components");
        object
            .iter()
            .filter(|(key, _)| *key != total)
            .map(|(_, number)| number.as_f64().expect("a number"))
            .sum()
    };
    let prediction = &document["prediction"];
    let step_time = prediction["step_time_s"].as_f64().expect("a number");
    assert!((sum(&prediction["time"], "") - step_time).abs() < 1e-3);
    let stage = &prediction["memory"]["stages"][0];
    let peak = stage["peak_gib"].as_f64().expect("a number");
    assert!((sum(stage, "peak_gib") - peak).abs() < 1e-3);
}
