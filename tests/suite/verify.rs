//! `verify` accepts true answers and no false ones.

use std::sync::LazyLock;

use parlayout::axis::{Axis, AxisSet};
use parlayout::instance::Instance;
use parlayout::plan::{Formulation, Infeasibility, Outcome, Plan, Proof};
use parlayout::planner::objective::{self, Goal, Objective};
use parlayout::planner::{self, Deadline, PlanOptions};
use parlayout::quantity::{Mfu, Seconds};
use parlayout::report::Document;
use parlayout::report::document::SolutionDocument;
use parlayout::verify::{self, Options, VerdictDocument, VerdictStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cli::{check, check_snapshot};
use crate::support::{cases, instances, parse, random_instance};

mod hostile;
mod tampering;

fn verify(text: &str) -> Result<VerdictDocument, verify::VerifyError> {
    let options = Options {
        deadline: Deadline::NEVER,
        progress: &|_, _| {},
    };
    verify::verify(text, &options)
}

/// Demands that an answer is accepted, and returns what was not checked.
fn accepted(text: &str) -> Vec<String> {
    match verify(text) {
        Ok(document) if document.verdict == VerdictStatus::Accepted => document.unchecked,
        other => panic!("{other:?}\n{text}"),
    }
}

/// Demands that an answer is rejected, and returns the place.
fn rejected(text: &str) -> String {
    match verify(text) {
        Ok(document) if document.verdict == VerdictStatus::Rejected => {
            document.reasons[0].place.clone()
        }
        other => panic!("{other:?}\n{text}"),
    }
}

fn shipped(name: &str) -> Instance {
    let mut all = instances();
    all.find(|instance| instance.name == name)
        .expect("it is shipped")
}

fn solved(instance: &Instance, options: &PlanOptions) -> String {
    let outcome = planner::plan(instance, options).expect("an answer");
    SolutionDocument::new(instance, &outcome)
        .diverse(options.diverse)
        .json()
}

fn solved_for(instance: &Instance, goal: &Goal) -> String {
    let answer = objective::plan_for(instance, goal, &PlanOptions::default()).expect("an answer");
    SolutionDocument::for_goal(instance, goal, &answer).json()
}

fn goal(instance: &Instance, objective: Objective) -> Goal {
    let gpus = instance.job.cluster.gpus;
    Goal {
        objective,
        deadline: None,
        at_least_mfu: None,
        steps: None,
        counts: if objective.is_over_counts() {
            objective::counts(&instance.job.cluster, 1, gpus)
        } else {
            vec![gpus]
        },
    }
}

#[test]
fn every_shipped_instance_is_accepted() {
    for instance in instances() {
        assert!(accepted(&solved(&instance, &PlanOptions::default())).is_empty());
    }
}

fn formulations() -> impl Iterator<Item = PlanOptions> {
    let both = [Formulation::Staged, Formulation::LayoutChoice];
    both.into_iter().map(|formulation| PlanOptions {
        formulation,
        ..PlanOptions::default()
    })
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn random_instances_are_accepted(instance in random_instance()) {
        for options in formulations() {
            accepted(&solved(&instance, &options));
        }
    }
}

#[test]
fn diverse_answers_are_accepted() {
    let instance = shipped("hagemann-13b-2k-64gpu");
    for options in formulations() {
        let options = PlanOptions {
            diverse: AxisSet::EMPTY.with(Axis::PipelineParallel),
            ..options
        };
        accepted(&solved(&instance, &options));
    }
}

#[test]
fn other_objectives_are_accepted() {
    let instance = shipped("hagemann-13b-2k-64gpu");
    let hours = Goal {
        steps: Some(1000),
        ..goal(&instance, Objective::GpuHours)
    };
    accepted(&solved_for(&instance, &hours));
    let fewest = Goal {
        deadline: Some(Seconds::new(60.0 + 1.0 / 3.0)),
        ..goal(&instance, Objective::FewestGpus)
    };
    accepted(&solved_for(&instance, &fewest));
    let missed = Goal {
        at_least_mfu: Some(Mfu::new(0.9)),
        ..goal(&instance, Objective::StepTime)
    };
    accepted(&solved_for(&instance, &missed));
    let too_slow = Goal {
        deadline: Some(Seconds::new(1e-3)),
        ..goal(&instance, Objective::FewestGpus)
    };
    accepted(&solved_for(&instance, &too_slow));
}

#[test]
fn a_worse_layout_or_none_is_rejected() {
    for instance in instances() {
        let outcome = planner::plan(&instance, &PlanOptions::default()).expect("an answer");
        let Outcome::Optimal(plan) = outcome else {
            continue;
        };
        for (at, other) in plan.alternatives.iter().enumerate() {
            let slower = other.prediction.step_time / plan.choice.prediction.step_time - 1.0;
            if slower < 2.0 * verify::TOLERANCE {
                continue;
            }
            let worse = Plan {
                choice: other.clone(),
                alternatives: plan.alternatives[at + 1..].to_vec(),
                safer: None,
                proof: Proof {
                    bound_mfu: other.prediction.mfu,
                    ..plan.proof.clone()
                },
            };
            let document = SolutionDocument::new(&instance, &Outcome::Optimal(worse)).json();
            assert_eq!(rejected(&document), "layout", "{}", instance.name);
            break;
        }
        let none = Outcome::Infeasible(Infeasibility {
            clashing_rules: vec!["memory_capacity".to_owned()],
            nearest: None,
            proof: Proof { ..plan.proof },
        });
        let document = SolutionDocument::new(&instance, &none).json();
        assert_eq!(rejected(&document), "status", "{}", instance.name);
    }
}

#[test]
fn a_missing_neighbour_is_rejected() {
    let instance = shipped("hagemann-13b-2k-64gpu");
    let outcome = planner::plan(&instance, &PlanOptions::default()).expect("an answer");
    let Outcome::Optimal(mut plan) = outcome else {
        panic!("{}", outcome.status());
    };
    plan.alternatives.remove(0);
    let document = SolutionDocument::new(&instance, &Outcome::Optimal(plan)).json();
    assert_eq!(rejected(&document), "alternatives[0]");
}

/// A row that asks for a longer first stage than the best layout has.
#[test]
fn constraints_over_layers_are_checked_as_far_as_they_can_be() {
    let text = std::fs::read_to_string(crate::support::project(
        "instances/llama-3.1-405b-8k-8192xh100.toml",
    ))
    .expect("it is shipped");
    let row = "constraint=[{ name = \"long\", terms = { layers_first = 1, pipeline_parallel = 1 }, at_least = 36 }]";
    let instance = parse(&text, &[row.to_owned()]);
    let document = solved(&instance, &PlanOptions::default());
    let unchecked = accepted(&document);
    assert!(
        unchecked
            .iter()
            .any(|note| note.contains("constraints over layers")),
        "{unchecked:?}"
    );
}

#[test]
fn limits_are_said() {
    let instance = shipped("hagemann-13b-2k-64gpu");
    let document = solved(&instance, &PlanOptions::default());
    let options = Options {
        deadline: Deadline::after(Some(std::time::Duration::ZERO)),
        progress: &|_, _| {},
    };
    let verdict = verify::verify(&document, &options).expect("it is an answer");
    assert_eq!(verdict.verdict, VerdictStatus::Unfinished);
    assert!(!verdict.unchecked.is_empty(), "{verdict:?}");
    let outcome = planner::plan(&instance, &PlanOptions::default()).expect("an answer");
    let Outcome::Optimal(mut plan) = outcome else {
        panic!("{}", outcome.status());
    };
    plan.proof.gap = 0.01;
    plan.proof.bound_mfu = plan.choice.prediction.mfu * 1.01;
    let feasible = SolutionDocument::new(&instance, &Outcome::Feasible(plan.clone())).json();
    assert!(accepted(&feasible)[0].contains("bound"));
    plan.proof.gap = 0.02;
    let feasible = SolutionDocument::new(&instance, &Outcome::Feasible(plan)).json();
    assert_eq!(rejected(&feasible), "proof.gap");
}

#[test]
fn the_command_says_what_it_found() {
    let folder = tempdir("verify");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the folder is writable");
        path.to_str().expect("paths are text").to_owned()
    };
    let instance = shipped("hagemann-13b-2k-64gpu");
    let document = solved(&instance, &PlanOptions::default());
    let path = write("answer.json", &document);
    let (stdout, stderr) = check(&["verify", &path], 0);
    assert!(
        stdout.starts_with("accepted: optimal\n") && stderr.is_empty(),
        "{stdout}{stderr}"
    );
    let (stdout, _) = check(&["verify", &path, "--format", "json"], 0);
    let verdict: Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!(verdict["verdict"], "accepted");
    check(&["verify", &path, "--time-limit", "0"], 4);
    let mut false_one: Value = serde_json::from_str(&document).expect("it is JSON");
    false_one["prediction"]["mfu"] = json!(0.7);
    let path = write("false.json", &false_one.to_string());
    let (stdout, _) = check(&["verify", &path], 5);
    assert!(stdout.starts_with("rejected: `prediction.mfu`"), "{stdout}");
    let (stdout, _) = check(&["verify", &path, "--format", "json"], 5);
    let verdict: Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!(verdict["reasons"][0]["place"], "prediction.mfu");
    check_snapshot("help_verify", &["verify", "--help"], 0);
}

fn tempdir(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    folder
}

/// Answers of many kinds.
static ANSWERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let small = shipped("hagemann-13b-2k-64gpu");
    let tight = shipped("llama-65b-2k-128gpu-24gb");
    let mut answers = Vec::new();
    for options in formulations() {
        answers.push(solved(&small, &options));
        answers.push(solved(&tight, &options));
    }
    answers.push(solved(
        &shipped("hagemann-30b-2k-64gpu"),
        &PlanOptions::default(),
    ));
    answers.push(solved(
        &shipped("llama-65b-2k-16gpu-24gb"),
        &PlanOptions::default(),
    ));
    let diverse = PlanOptions {
        diverse: AxisSet::EMPTY.with(Axis::MicroBatch),
        ..PlanOptions::default()
    };
    answers.push(solved(&shipped("llama-3.1-8b-8k-8xh100"), &diverse));
    let fewest = Goal {
        deadline: Some(Seconds::new(60.0)),
        ..goal(&small, Objective::FewestGpus)
    };
    answers.push(solved_for(&small, &fewest));
    let hours = Goal {
        steps: Some(1000),
        ..goal(&small, Objective::GpuHours)
    };
    answers.push(solved_for(&small, &hours));
    let missed = Goal {
        at_least_mfu: Some(Mfu::new(0.9)),
        ..goal(&small, Objective::Mfu)
    };
    answers.push(solved_for(&small, &missed));
    answers
});
