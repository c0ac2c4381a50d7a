//! Clashes of small instances.

use std::path::Path;

use super::*;
use crate::instance::{self, Overrides};
use crate::plan::Formulation;

fn instance(sets: &[&str]) -> Instance {
    let text = r#"
[model]
preset = "llama-13b"
[cluster]
preset = "a100-80gb-one-nic"
gpus = 16
[training]
sequence_length = 2048
global_batch = 64
"#;
    let mut overrides = Overrides::none();
    for set in sets {
        overrides.set(set);
    }
    instance::from_text("small", text, Path::new(""), &overrides).expect("a valid instance")
}

fn check(sets: &[&str], expected: &[&[&str]]) {
    let analysis =
        analyse(&instance(sets), Formulation::Staged).expect("the solver gives an answer");
    let names =
        |clash: &RequirementSet| -> Vec<String> { clash.iter().map(|it| it.to_string()).collect() };
    let found: Vec<Vec<String>> = analysis.clashes.iter().map(names).collect();
    assert_eq!(found, expected, "{sets:?}");
}

#[test]
fn a_feasible_instance_has_no_clash() {
    check(&[], &[]);
    assert!(may_have_layout(&instance(&[])));
}

#[test]
fn clashes_name_what_was_listed_and_the_rule() {
    check(
        &[
            "model.heads=52",
            "search.tensor_parallel=8",
            "model.head_width=128",
        ],
        &[&["search.tensor_parallel", "heads_divisible"]],
    );
    check(
        &["search.micro_batch=5"],
        &[&["search.micro_batch", "global_batch_divisible"]],
    );
    check(
        &["cluster.memory=10 GB"],
        &[&["gpu_count", "memory_capacity"]],
    );
}
