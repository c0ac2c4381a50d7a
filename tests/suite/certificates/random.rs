//! Certificates of random jobs: accepted as they are, rejected when anything is changed.

use std::fmt::Write as _;

use parlayout::cluster::Discrepancy;
use parlayout::instance::{self, Overrides};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rayon::prelude::*;
use serde_json::Value;

use super::tampering::{Path, changes_at, places_by_kind, replaced, shown};
use super::*;
use crate::constraints::random_row;
use crate::support::{cases, random_text};

/// What a job has beyond its figures, and how its search ends.
#[derive(Debug, Clone)]
struct Case {
    text: String,
    formulation: Formulation,
    /// Rows of its own.
    rows: Vec<String>,
    /// Forbidden combinations.
    forbidden: Vec<String>,
    /// Of each run its place, and its weight.
    runs: Vec<([f64; 8], f64)>,
    stopped: bool,
}

/// Values of some axes that may not come together.
fn random_forbidden() -> impl Strategy<Value = String> {
    const VALUES: [&str; 9] = [
        "tensor_parallel = 1",
        "pipeline_parallel = 1",
        "context_parallel = 2",
        "micro_batch = 1",
        "micro_batch = 2",
        "checkpointing = \"none\"",
        "checkpointing = \"full\"",
        "sharding = \"zero-1\"",
        "sequence_parallel = \"on\"",
    ];
    // Two values of one axis are refused.
    let distinct = |values: &Vec<&str>| {
        let axes = values.iter().map(|value| value.split(' ').next());
        axes.collect::<std::collections::BTreeSet<_>>().len() == values.len()
    };
    let values = prop::sample::subsequence(VALUES.to_vec(), 1..4);
    let values = values.prop_filter("an axis has one value", distinct);
    values.prop_map(|values| values.join("\n"))
}

fn case() -> impl Strategy<Value = Case> {
    let rows = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec(random_row(), 1..3),
    ];
    let forbidden = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec(random_forbidden(), 1..4),
    ];
    let place = [0_u8..5, 0..4, 0..3, 0..12, 0..2, 0..2, 0..3, 0..2];
    let run = (place, -0.5..0.5_f64)
        .prop_map(|(place, weight)| (place.map(f64::from), (weight * 1000.0).round() / 1000.0));
    let runs = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec(run, 1..4),
    ];
    let stopped = prop_oneof![5 => Just(false), 1 => Just(true)];
    (
        random_text(),
        any::<bool>(),
        (rows, forbidden),
        runs,
        stopped,
    )
        .prop_map(|(text, staged, (rows, forbidden), runs, stopped)| Case {
            text,
            formulation: FORMULATIONS[usize::from(!staged)],
            rows,
            forbidden,
            runs,
            stopped,
        })
}

/// The instance, unless a row is refused.
fn instance_of(case: &Case) -> Option<Instance> {
    let mut text = case.text.clone();
    for forbidden in &case.forbidden {
        writeln!(text, "[[search.forbid]]\n{forbidden}").expect("text grows");
    }
    for (index, row) in case.rows.iter().enumerate() {
        writeln!(text, "[[constraint]]\nname = \"row_{index}\"\n{row}").expect("text grows");
    }
    let read = instance::from_text(
        "random",
        &text,
        std::path::Path::new(""),
        &Overrides::none(),
    );
    let mut instance = read.ok()?;
    let job = &mut instance.job;
    if !case.runs.is_empty() {
        let hidden = 3.0 * (job.transformer.hidden as f64).log2();
        let sequence = (job.workload.sequence_length as f64).log2();
        let gpus = 0.5 * f64::from(job.cluster.gpus).log2();
        let runs = case.runs.iter();
        let points = runs.map(|([pp, tp, b, m, again, fused, attention, sp], _)| {
            let (m, fused, sp) = (0.5 * m, 0.5 * fused, 0.3 * sp);
            [
                hidden, sequence, *pp, *tp, *b, m, gpus, *again, fused, *attention, sp,
            ]
        });
        job.cluster.discrepancy = Some(Discrepancy {
            points: points.collect(),
            weights: case.runs.iter().map(|run| run.1).collect(),
            amplitude: 0.3,
            length_scale: 2.5,
            noise: 0.02,
        });
    }
    Some(instance)
}

fn options_of(case: &Case) -> PlanOptions {
    PlanOptions {
        time_limit: case.stopped.then_some(Duration::ZERO),
        ..options(case.formulation)
    }
}

/// Changes that are tried of each certificate.
const CHANGES: usize = 12;

/// How many random jobs: more where the environment says so.
fn count() -> u32 {
    let more = std::env::var("PARLAYOUT_RANDOM_CERTIFICATES");
    more.ok().and_then(|count| count.parse().ok()).unwrap_or(96)
}

/// A case, and numbers that choose the changes.
type Drawn = (Case, Vec<[usize; 3]>);

/// The cases, the same on every machine.
fn drawn() -> Vec<Drawn> {
    let numbers = prop::collection::vec(any::<[usize; 3]>(), CHANGES);
    let strategy = (case(), numbers);
    let mut runner = TestRunner::new(cases(1));
    let trees = (0..count()).map(|_| strategy.new_tree(&mut runner).expect("nothing is rejected"));
    trees.map(|tree| tree.current()).collect()
}

/// What is wrong with the certificate of a case, or accepted though it was changed.
fn wrong((case, chosen): &Drawn) -> Vec<String> {
    let Some(instance) = instance_of(case) else {
        return Vec::new();
    };
    let outcome = solved(&instance, &options_of(case));
    let text = match certify(&instance, &outcome) {
        Ok(certificate) => certificate.to_text(),
        Err(error) => return vec![format!("{error}: {case:?}")],
    };
    if let Verdict::Rejected(reasons) = verify(&text).expect("certificates are JSON") {
        return vec![format!("rejected: {reasons:?} {case:?}")];
    }
    let document: Value = serde_json::from_str(&text).expect("a certificate is JSON");
    let kinds: Vec<Vec<Path>> = places_by_kind(&document).into_values().collect();
    let mut missed = Vec::new();
    for &[kind, place, change] in chosen {
        let places = &kinds[kind % kinds.len()];
        let path = &places[place % places.len()];
        let changes = changes_at(&document, path);
        if changes.is_empty() {
            continue;
        }
        let changed = &changes[change % changes.len()];
        if matches!(
            verify(&replaced(&document, path, changed)),
            Ok(Verdict::Accepted(_))
        ) {
            let kept = changed
                .as_object()
                .map(|fields| fields.keys().collect::<Vec<_>>());
            missed.push(format!(
                "{} -> {changed} {kept:?}: {case:?}\n{text}",
                shown(path)
            ));
        }
    }
    missed
}

#[test]
fn certificates_of_random_jobs_are_accepted_and_their_changes_are_not() {
    let wrong: Vec<String> = drawn().par_iter().flat_map_iter(wrong).collect();
    assert!(wrong.is_empty(), "{} {}", wrong.len(), wrong.join("\n"));
}
