//! Snapshots of the documents, and the shipped schemas.

use std::path::Path;

use serde_json::Value;

use super::*;
use crate::report::fixture;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("documents are JSON")
}

#[test]
fn a_plan_is_a_solution() {
    let outcome = Outcome::Optimal(fixture::llama_13b_plan());
    fixture::assert_snapshot(
        "json_solution_13b",
        &solution(&fixture::llama_13b(), &outcome),
    );
}

#[test]
fn the_keys_of_the_first_version_stay() {
    let outcome = Outcome::Feasible(fixture::llama_405b_plan());
    let document = parse(&solution(&fixture::llama_405b(), &outcome));
    assert_eq!(document["schema"], SOLUTION);
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
    let text = solution(&fixture::llama_13b(), &Outcome::Infeasible(infeasibility));
    fixture::assert_snapshot("json_infeasible", &text);
    let unknown = Outcome::Unknown(fixture::proof(f64::INFINITY));
    let document = parse(&solution(&fixture::llama_13b(), &unknown));
    for key in ["layout", "prediction", "infeasibility", "safer"] {
        assert_eq!(document[key], Value::Null, "{key}");
    }
    assert_eq!(document["proof"]["bound_mfu"], Value::Null);
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
        &evaluation(&fixture::llama_13b(), &evaluated, &violations),
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
    let document = parse(&solution(&fixture::llama_405b(), &outcome));
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

/// Compares a shipped schema with the code; with `PARLAYOUT_WRITE_SCHEMA=1`, writes it.
fn check_shipped(file: &str, schema: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(file);
    if std::env::var_os("PARLAYOUT_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, schema).expect("docs/ is writable");
    }
    let shipped = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        shipped == schema,
        "docs/{file} is not the schema of the code: run the tests with PARLAYOUT_WRITE_SCHEMA=1"
    );
}

#[test]
fn the_shipped_schemas_are_current() {
    check_shipped("solution.schema.json", &solution_schema());
    check_shipped("evaluation.schema.json", &evaluation_schema());
    check_shipped("backtest.schema.json", &crate::report::backtest::schema());
    check_shipped("calibration.schema.json", &calibration_schema());
    check_shipped("explanation.schema.json", &explanation_schema());
    check_shipped("comparison.schema.json", &comparison_schema());
    check_shipped("price.schema.json", &price_schema());
    check_shipped("pareto.schema.json", &pareto_schema());
    check_shipped("verdict.schema.json", &verdict_schema());
}
