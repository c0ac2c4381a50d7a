//! Forbidden combinations: each of them that is stated has an effect of its own.

use parlayout::instance::{self, Overrides};
use serde_json::{Value, json};

use super::tampering::{Step, tampered_at};
use super::*;

/// A small job with a search and rows of its own.
fn job(search: &str) -> Instance {
    let text = format!(
        r#"
[model]
preset = "llama-2-7b"
[cluster]
preset = "a100-80gb-one-nic"
gpus = 16
[training]
sequence_length = 4096
global_batch = 64
[limits]
max_oom_risk = 0.03
[search]
tensor_parallel = [1, 2, 4]
virtual_stages = [1, 2]
micro_batch = [1, 2]
sharding = ["zero-1"]
rmsnorm_kernel = ["unfused"]
{search}"#
    );
    let folder = std::path::Path::new("");
    instance::from_text("forbidden", &text, folder, &Overrides::none())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn document(search: &str, formulation: Formulation) -> Value {
    let instance = job(search);
    accepted(&instance, &options(formulation));
    let text = certificate(&instance, &solved(&instance, &options(formulation)));
    serde_json::from_str(&text).expect("a certificate is JSON")
}

/// The values of each forbidden combination that is stated.
fn stated(document: &Value) -> Vec<Value> {
    let forbidden = document["forbidden"].as_array().expect("a list");
    let values = forbidden.iter().map(|entry| entry["values"].clone());
    values.collect()
}

/// Where a changed document is wrong.
fn place(document: &Value) -> String {
    match verify(&document.to_string()) {
        Ok(Verdict::Rejected(reasons)) => reasons.list()[0].place.clone(),
        other => panic!("{other:?}"),
    }
}

/// Some that contain each other, that overlap, that a row covers in part, and that leave out flags.
const MANY: &str = r#"
[[search.forbid]]
tensor_parallel = 1
micro_batch = 2
[[search.forbid]]
tensor_parallel = 2
pipeline_parallel = 4
[[search.forbid]]
pipeline_parallel = 4
micro_batch = 1
[[search.forbid]]
micro_batch = 1
context_parallel = 2
[[search.forbid]]
pipeline_parallel = 4
checkpointing = "full"
[[constraint]]
name = "few"
terms = { pipeline_parallel = 1, tensor_parallel = 2 }
at_least = 4
"#;

#[test]
fn no_change_of_forbidden_combinations_is_accepted() {
    for formulation in FORMULATIONS {
        let document = document(MANY, formulation);
        assert_eq!(stated(&document).len(), 5, "{document}");
        for key in ["forbidden", "constraints"] {
            let missed = tampered_at(&document, &vec![Step::Key(key.to_owned())]);
            assert!(missed.is_empty(), "{formulation:?} {}", missed.join("\n"));
        }
    }
}

#[test]
fn what_a_row_or_an_earlier_entry_excludes_is_not_stated_again() {
    let covered_by_row = r#"
[[search.forbid]]
tensor_parallel = 1
pipeline_parallel = 1
[[constraint]]
name = "few"
terms = { pipeline_parallel = 1, tensor_parallel = 2 }
at_least = 6
"#;
    let covered_by_entry = r"
[[search.forbid]]
tensor_parallel = 1
[[search.forbid]]
tensor_parallel = 1
micro_batch = 2
";
    for formulation in FORMULATIONS {
        let mut by_row = document(covered_by_row, formulation);
        assert_eq!(stated(&by_row), Vec::<Value>::new());
        let values = json!({"tensor_parallel": 1, "pipeline_parallel": 1});
        by_row["forbidden"] = json!([{"values": values, "excludes": 20, "first": 0}]);
        assert_eq!(place(&by_row), "forbidden[0]");

        let mut by_entry = document(covered_by_entry, formulation);
        assert_eq!(stated(&by_entry), [json!({"tensor_parallel": 1})]);
        let values = json!({"tensor_parallel": 1, "micro_batch": 2});
        let entries = by_entry["forbidden"].as_array_mut().expect("a list");
        entries.push(json!({"values": values, "excludes": 41, "first": 0}));
        assert_eq!(place(&by_entry), "forbidden[1]");
    }
}

#[test]
fn values_that_make_no_difference_are_left_out() {
    let every_layout = "
[[search.forbid]]
tensor_parallel = 1
sharding = \"zero-1\"
";
    let mut document = document(every_layout, Formulation::Staged);
    assert_eq!(stated(&document), [json!({"tensor_parallel": 1})]);
    document["forbidden"][0]["values"]["sharding"] = json!("zero-1");
    assert_eq!(place(&document), "forbidden[0].values.sharding");
}

/// The program `staged` counts combinations that differ in the flag as one.
#[test]
fn forbidden_flags_count() {
    let flag = "
[[search.forbid]]
tensor_parallel = 4
checkpointing = \"full\"
";
    let document = document(flag, Formulation::Staged);
    let mut without = document.clone();
    without["forbidden"] = json!([]);
    assert_eq!(place(&without), "combinations.permitted");
    let mut other = document;
    other["forbidden"][0]["values"]["checkpointing"] = json!("feed-forward");
    assert_eq!(place(&other), "forbidden[0].first");
}
