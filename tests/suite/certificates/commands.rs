//! `solve --certificate` and `verify` as a user runs them.

use std::path::PathBuf;

use crate::cli::{check, check_snapshot};
use crate::support::snapshot;

const PAPER: &str = "instances/hagemann-13b-2k-64gpu.toml";
const INFEASIBLE: &str = "instances/llama-65b-8k-128gpu-24gb.toml";

/// A file in the folder of temporary files.
fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("parlayout-{}-{name}", std::process::id()))
}

/// Writes the certificate of an instance with some changes, and returns what `verify` prints.
fn verdict(name: &str, (instance, code): (&str, i32), changes: &[(&str, &str)]) -> String {
    let path = file(name);
    let shown = path.display().to_string();
    check(&["solve", instance, "--certificate", &shown], code);
    let mut text = std::fs::read_to_string(&path).expect("it was written");
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    std::fs::write(&path, text).expect("the folder is writable");
    let code = if changes.is_empty() { 0 } else { 5 };
    let table = check(&["verify", &shown], code).0;
    let json = check(&["verify", &shown, "--format", "json"], code).0;
    std::fs::remove_file(&path).expect("it is there");
    format!("{table}\n{json}")
}

#[test]
fn an_accepted_certificate_says_what_is_proven() {
    snapshot("verdict_accepted", &verdict("accepted", (PAPER, 0), &[]));
    let text = verdict("infeasible", (INFEASIBLE, 3), &[]);
    snapshot("verdict_infeasible", &text);
}

#[test]
fn a_rejected_certificate_says_where_it_is_wrong() {
    let changes = [
        (
            "\"global_batch_divisible\",\"axes\":[\"data_parallel\",\"micro_batch\"],\"amounts\":[0",
            "\"global_batch_divisible\",\"axes\":[\"data_parallel\",\"micro_batch\"],\"amounts\":[1",
        ),
        ("\"transformer.heads\":40", "\"transformer.heads\":80"),
    ];
    snapshot(
        "verdict_rejected",
        &verdict("rejected", (PAPER, 0), &changes),
    );
    let changes = [("\"status\":\"infeasible\"", "\"status\":\"optimal\"")];
    let text = verdict("other-status", (INFEASIBLE, 3), &changes);
    assert!(
        text.starts_with("rejected: `winner` has to be there"),
        "{text}"
    );
}

#[test]
fn what_a_certificate_does_not_prove_is_refused() {
    let path = file("refused");
    let path = path.display().to_string();
    for (name, goal) in [
        ("certificate_counts", ["--objective", "gpu-hours"]),
        ("certificate_deadline", ["--deadline", "30s"]),
    ] {
        let arguments = [
            "solve",
            PAPER,
            "--certificate",
            "proof.json",
            goal[0],
            goal[1],
        ];
        check_snapshot(name, &arguments, 2);
    }
    assert!(!crate::support::project("proof.json").exists());
    // The least step time is the highest utilisation.
    check(
        &[
            "solve",
            PAPER,
            "--certificate",
            &path,
            "--objective",
            "step-time",
        ],
        0,
    );
    check(&["verify", &path], 0);
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn what_cannot_be_read_is_no_verdict() {
    check(&["verify", "no-such-file.json"], 2);
    check(&["verify", PAPER], 2);
}
