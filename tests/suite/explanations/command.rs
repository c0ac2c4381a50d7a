//! `explain` and `diff` as a user runs them.

use std::path::Path;
use std::process::Command;

use super::check_narrow;
use crate::support::{project, snapshot};

/// Runs the binary in the project's folder.
fn run(arguments: &[&str], code: i32) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .args(arguments)
        .current_dir(project(""))
        .output()
        .expect("the binary runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{text}{errors}"
    );
    if text.is_empty() { errors } else { text }
}

#[test]
fn exit_codes_are_those_of_solve() {
    run(&["explain", "instances/hagemann-13b-2k-64gpu.toml"], 0);
    let infeasible = "instances/llama-65b-2k-16gpu-24gb.toml";
    let text = run(&["explain", infeasible, "--format", "json"], 3);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["schema"], "parlayout/explanation/v1");
    assert_eq!(document["clashes"][0][0]["requirement"], "gpu_count");
    assert_eq!(document["clashes"][0][0]["enough"], true);
    let set = document["repairs"][0]["changes"][0]["set"].as_str();
    run(&["solve", infeasible, "--set", set.expect("text")], 0);
    run(
        &["explain", infeasible, "--why-not", "tensor_parallel=8"],
        3,
    );
    run(&["explain", infeasible, "--why-not", "tensor=8"], 2);
    run(&["explain", "instances/absent.toml"], 2);
}

#[test]
fn layouts_are_set_side_by_side() {
    let (one, other) = (
        "instances/llama-65b-2k-128gpu-24gb.toml",
        "instances/llama-65b-2k-128gpu-40gb.toml",
    );
    let text = run(&["diff", one, other], 0);
    check_narrow(&text);
    snapshot("diff_two_instances", &text);
    let paper = "instances/hagemann-13b-2k-64gpu.toml";
    let layout = "tensor_parallel=2,micro_batch=1";
    let text = run(&["diff", paper, "--layout", layout], 0);
    check_narrow(&text);
    snapshot("diff_given_layout", &text);
    let alike = run(&["diff", paper, paper], 0);
    assert!(alike.contains("costs nothing"), "{alike}");
    assert!(!alike.contains("step time,"), "{alike}");
    for wrong in [
        vec!["diff", paper],
        vec!["diff", one, other, "--layout", layout],
        vec!["diff", "README.md", paper],
        vec!["diff", "docs/solution.schema.json", paper],
    ] {
        run(&wrong, 2);
    }
    run(
        &["diff", paper, "instances/llama-65b-2k-16gpu-24gb.toml"],
        3,
    );
    run(&["diff", paper, paper, "--time-limit", "0"], 4);
}

/// A document says the same as the instance that it came from.
#[test]
fn documents_can_be_compared() {
    let paper = "instances/hagemann-13b-2k-64gpu.toml";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let solution = folder.join("explanations-solution.json");
    std::fs::write(&solution, run(&["solve", paper, "--format", "json"], 0)).expect("writable");
    let solution = solution.to_string_lossy();
    let text = run(&["diff", &solution, paper, "--format", "json"], 0);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["schema"], "parlayout/comparison/v1");
    assert_eq!(document["left"]["layout"], document["right"]["layout"]);
    assert_eq!(document["left"]["gpus"], 64);
    for term in document["time"].as_array().expect("terms") {
        let difference = term["difference_s"].as_f64().expect("a number");
        assert!(difference.abs() < 1e-3, "{term}");
    }
}
