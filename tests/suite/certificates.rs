//! Certificates: written for every answer, accepted as they are, rejected when anything is changed.

use std::time::Duration;

use parlayout::certificate::certify;
use parlayout::instance::Instance;
use parlayout::plan::{Formulation, Outcome};
use parlayout::planner::{self, PlanOptions};
use parlayout::verify::{Accepted, Verdict, verify};
use proptest::prelude::*;

use crate::constraints::shipped;
use crate::support::instances;

mod commands;
mod forbidden;
mod hostile;
mod random;
mod tampering;

const FORMULATIONS: [Formulation; 2] = [Formulation::Staged, Formulation::LayoutChoice];

fn solved(instance: &Instance, options: &PlanOptions) -> Outcome {
    planner::plan(instance, options).expect("the planner answers")
}

fn certificate(instance: &Instance, outcome: &Outcome) -> String {
    let certificate = certify(instance, outcome).expect("the space is small enough");
    certificate.to_text()
}

/// The verdict on the certificate of an instance's answer, which has to be right.
fn accepted(instance: &Instance, options: &PlanOptions) -> Accepted {
    let outcome = solved(instance, options);
    let text = certificate(instance, &outcome);
    match verify(&text).expect("certificates are JSON") {
        Verdict::Accepted(accepted) => {
            assert_eq!(accepted.status, outcome.status(), "{}", instance.name);
            let layout = accepted.winner.as_ref().map(|winner| &winner.layout);
            let chosen = outcome.plan().map(|plan| &plan.choice.layout);
            assert_eq!(layout, chosen, "{}", instance.name);
            accepted
        }
        Verdict::Rejected(reasons) => panic!("{}: {reasons:?}", instance.name),
    }
}

fn options(formulation: Formulation) -> PlanOptions {
    PlanOptions {
        formulation,
        ..PlanOptions::default()
    }
}

#[test]
fn certificates_of_the_instances_are_accepted() {
    for instance in instances() {
        for formulation in FORMULATIONS {
            let counts = accepted(&instance, &options(formulation)).counts;
            let settled = counts.infeasible + counts.pruned + counts.solved;
            assert_eq!(counts.broken + settled, counts.total, "{}", instance.name);
            assert_eq!(counts.open, 0, "{}", instance.name);
        }
    }
}

#[test]
fn certificates_of_stopped_searches_are_accepted() {
    let mut statuses = Vec::new();
    for instance in instances() {
        let stopped = PlanOptions {
            time_limit: Some(Duration::ZERO),
            ..options(Formulation::Staged)
        };
        let accepted = accepted(&instance, &stopped);
        if accepted.status == "feasible" {
            let gap = accepted.winner.map(|winner| winner.gap);
            let gap = gap.expect("a feasible answer has a layout");
            assert!((0.0..0.2).contains(&gap), "{}: {gap}", instance.name);
        }
        statuses.push(accepted.status);
    }
    statuses.sort_unstable();
    statuses.dedup();
    assert!(statuses.contains(&"feasible"), "{statuses:?}");
}

#[test]
fn rows_that_shape_the_answer_are_stated_and_others_left_out() {
    let rows = [
        "name = \"light_ends\"\nterms = { layers_first = 1, layers_last = 1 }\nat_most = 6",
        "name = \"modest\"\nterms = { tensor_parallel = 2, pipeline_parallel = 1 }\nat_most = 32",
        "name = \"idle\"\nterms = { micro_batch = 1 }\nat_most = 1000",
    ];
    let instance = shipped("llama-3.1-405b-8k-8192xh100.toml", &rows);
    let outcome = solved(&instance, &PlanOptions::default());
    let certificate = certify(&instance, &outcome).expect("the space is small enough");
    let stated = certificate.constraints.iter().map(|row| row.right);
    assert_eq!(stated.collect::<Vec<i64>>(), [6, 32]);
    accepted(&instance, &PlanOptions::default());
}

#[test]
fn the_same_answer_has_the_same_certificate() {
    let instance = instances().next().expect("there are instances");
    let once = certificate(&instance, &solved(&instance, &PlanOptions::default()));
    let twice = certificate(&instance, &solved(&instance, &PlanOptions::default()));
    assert_eq!(once, twice);
}
