//! The next best, diverse layouts, and what is best over several numbers of GPUs.

use std::collections::HashSet;

use parlayout::axis::{Assignment, Axis, AxisSet, FlaggedCombination};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::layout::{Checkpointing, Layout};
use parlayout::plan::{Evaluated, Formulation, Outcome, Plan};
use parlayout::planner::objective::{self, Goal, Objective, counts, on};
use parlayout::planner::{self, PlanOptions};
use parlayout::quantity::{Mfu, Seconds};
use proptest::prelude::*;

use crate::cli::{check, check_snapshot};
use crate::support::{project, random_instance};

fn shipped(name: &str) -> Instance {
    let path = project("instances").join(name);
    instance::read(&path, &Overrides::none()).expect("shipped files are valid")
}

fn candidate(layout: &Layout) -> FlaggedCombination {
    FlaggedCombination {
        combination: layout.combination,
        checkpointing: Checkpointing::None,
    }
}

/// The axes that `staged` decides for the whole job.
fn cell_axes() -> impl Iterator<Item = Axis> {
    let axes = Axis::ALL.into_iter();
    axes.filter(|&axis| axis != Axis::Checkpointing)
}

/// The instance without the combinations that have the layout's values on these axes.
fn without(instance: &Instance, layout: &Layout, axes: impl Iterator<Item = Axis>) -> Instance {
    let values = axes.map(|axis| (axis, candidate(layout).code(axis)));
    let mut other = instance.clone();
    other.space.forbidden.push(Assignment(values.collect()));
    other
}

fn plan(instance: &Instance, options: &PlanOptions) -> Option<Plan> {
    match planner::plan(instance, options).expect("the planner answers") {
        Outcome::Optimal(plan) => Some(plan),
        Outcome::Infeasible(_) => None,
        other => panic!("{}", other.status()),
    }
}

/// Every layout of the answer is the best once those before it are ruled out.
fn each_is_the_next_best(instance: &Instance, diverse: AxisSet) {
    let options = PlanOptions {
        alternatives: 4,
        diverse,
        ..PlanOptions::default()
    };
    let Some(found) = plan(instance, &options) else {
        return;
    };
    let single = PlanOptions {
        alternatives: 0,
        ..PlanOptions::default()
    };
    let mut rest = instance.clone();
    let layouts: Vec<&Evaluated> = std::iter::once(&found.choice)
        .chain(&found.alternatives)
        .collect();
    for evaluated in &layouts {
        let best = plan(&rest, &single).expect("another one is listed").choice;
        let (listed, best) = (evaluated.prediction.mfu, best.prediction.mfu);
        assert!((listed / best - 1.0).abs() < 1e-6, "{listed:?} {best:?}");
        let axes: Vec<Axis> = if diverse.is_empty() {
            cell_axes().collect()
        } else {
            diverse.iter().collect()
        };
        rest = without(&rest, &evaluated.layout, axes.into_iter());
    }
    if layouts.len() < 5 {
        assert_eq!(plan(&rest, &single), None, "no further layout exists");
    }
}

proptest! {
    #![proptest_config(crate::support::cases(30))]

    #[test]
    fn alternatives_are_the_next_best(instance in random_instance()) {
        each_is_the_next_best(&instance, AxisSet::EMPTY);
        let degrees = AxisSet::EMPTY.with(Axis::TensorParallel).with(Axis::PipelineParallel);
        each_is_the_next_best(&instance, degrees);
        each_is_the_next_best(&instance, AxisSet::EMPTY.with(Axis::MicroBatch));
    }
}

#[test]
fn diverse_layouts_differ_in_the_axis_in_both_programs() {
    let instance = shipped("hagemann-65b-2k-64gpu.toml");
    for formulation in [Formulation::Staged, Formulation::LayoutChoice] {
        let options = PlanOptions {
            alternatives: 9,
            diverse: AxisSet::EMPTY.with(Axis::TensorParallel),
            formulation,
            ..PlanOptions::default()
        };
        let found = plan(&instance, &options).expect("feasible");
        let degrees: Vec<u32> = std::iter::once(&found.choice)
            .chain(&found.alternatives)
            .map(|evaluated| evaluated.layout.combination.tensor_parallel)
            .collect();
        let distinct: HashSet<u32> = degrees.iter().copied().collect();
        assert!(
            degrees.len() > 1 && degrees.len() == distinct.len(),
            "{degrees:?}"
        );
    }
}

fn goal(instance: &Instance, objective: Objective) -> Goal {
    let cluster = &instance.job.cluster;
    Goal {
        objective,
        deadline: None,
        at_least_mfu: None,
        steps: None,
        counts: counts(cluster, 1, cluster.gpus),
    }
}

fn answer(instance: &Instance, goal: &Goal) -> objective::Answer {
    objective::plan_for(instance, goal, &PlanOptions::default()).expect("an answer")
}

/// The fastest layout on each number of GPUs, by the planner.
fn fastest(instance: &Instance, gpus: u32) -> Option<Evaluated> {
    let options = PlanOptions {
        alternatives: 0,
        ..PlanOptions::default()
    };
    plan(&on(instance, gpus), &options).map(|plan| plan.choice)
}

#[test]
fn utilisation_and_step_time_choose_the_same_layout() {
    let instance = shipped("hagemann-30b-2k-64gpu.toml");
    let chosen = |objective: Objective| {
        let goal = Goal {
            counts: vec![64],
            ..goal(&instance, objective)
        };
        let answer = answer(&instance, &goal);
        answer.outcome.plan().expect("feasible").choice.clone()
    };
    assert_eq!(chosen(Objective::Mfu), chosen(Objective::StepTime));
    assert_eq!(Some(chosen(Objective::Mfu)), fastest(&instance, 64));
}

#[test]
fn gpu_hours_are_least_over_every_number() {
    let instance = shipped("hagemann-13b-8k-64gpu.toml");
    let goal = Goal {
        deadline: Some(Seconds::new(100.0)),
        ..goal(&instance, Objective::GpuHours)
    };
    let answer = answer(&instance, &goal);
    let least = goal.counts.iter().filter_map(|&gpus| {
        let step = fastest(&instance, gpus)?.prediction.step_time;
        (step.value() <= 100.0).then_some((step * f64::from(gpus), gpus))
    });
    let least = least.min_by(|a, b| a.0.value().total_cmp(&b.0.value()));
    let (_, gpus) = least.expect("some number meets the deadline");
    assert_eq!(answer.instance.job.cluster.gpus, gpus);
    assert_eq!(answer.counts.len(), goal.counts.len());
    assert_eq!(answer.outcome.status().as_str(), "optimal");
    for count in &answer.counts {
        if count.best.is_none() {
            let least = count.least_step_time;
            assert!(least.value() > 100.0);
            let step = fastest(&instance, count.gpus).map(|best| best.prediction.step_time);
            assert!(step.is_none_or(|step| step >= least), "{step:?} {least:?}");
        }
    }
}

#[test]
fn no_smaller_number_than_the_fewest_meets_the_demands() {
    let instance = shipped("hagemann-65b-2k-128gpu.toml");
    let goal = Goal {
        deadline: Some(Seconds::new(150.0)),
        at_least_mfu: Some(Mfu::new(0.5)),
        ..goal(&instance, Objective::FewestGpus)
    };
    let answer = answer(&instance, &goal);
    let chosen = answer.instance.job.cluster.gpus;
    let meets = |gpus: u32| fastest(&instance, gpus).is_some_and(|best| goal.is_met(&best));
    assert!(meets(chosen));
    for &gpus in goal.counts.iter().filter(|&&gpus| gpus < chosen) {
        assert!(!meets(gpus), "{gpus}");
    }
}

#[test]
fn the_run_is_what_the_deadline_is_for() {
    let instance = shipped("hagemann-13b-2k-64gpu.toml");
    let mut goal = goal(&instance, Objective::FewestGpus);
    goal.deadline = Some(Seconds::new(29_000.0));
    goal.steps = Some(1000);
    assert_eq!(goal.longest_step(), Some(Seconds::new(29.0)));
    let outcome = answer(&instance, &goal).outcome;
    let Outcome::Infeasible(why) = outcome else {
        panic!("64 GPUs take a little longer than 29 s");
    };
    assert_eq!(why.clashing_rules, ["deadline"]);
    let nearest = why.nearest.expect("64 GPUs are near");
    assert_eq!(nearest.violations.len(), 1);
    goal.deadline = Some(Seconds::new(31_000.0));
    assert_eq!(
        answer(&instance, &goal).outcome.status().as_str(),
        "optimal"
    );
}

#[test]
fn what_a_user_lists_holds_on_every_number() {
    let instance = shipped("hagemann-13b-2k-64gpu.toml");
    let other = on(&instance, 96);
    let (before, after) = (&instance.space, &other.space);
    assert_eq!(
        before.values(Axis::PipelineParallel),
        after.values(Axis::PipelineParallel)
    );
    assert!(after.values(Axis::DataParallel).contains(&96));
    assert!(!before.values(Axis::DataParallel).contains(&96));
    assert_eq!(before.forbidden, after.forbidden);
}

const PAPER: &str = "instances/hagemann-13b-8k-64gpu.toml";

#[test]
fn the_chosen_number_stands_beside_its_neighbours() {
    let arguments = [
        "solve",
        PAPER,
        "--objective",
        "gpu-hours",
        "--tokens",
        "1T",
        "--deadline",
        "1000d",
    ];
    check_snapshot("objective_gpu_hours", &arguments, 0);
    let missed = [
        "solve",
        PAPER,
        "--objective",
        "fewest-gpus",
        "--deadline",
        "20s",
    ];
    check_snapshot("objective_missed", &missed, 3);
}

#[test]
fn documents_name_the_objective_and_every_number() {
    let arguments = [
        "solve",
        PAPER,
        "--objective",
        "gpu-hours",
        "--steps",
        "1000",
        "--at-least-mfu",
        "0.3",
        "--format",
        "json",
    ];
    let (text, _) = check(&arguments, 0);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let objective = &document["objective"];
    assert_eq!(objective["name"], "gpu-hours");
    assert_eq!(objective["gpus"], document["job"]["gpus"]);
    let counts = objective["counts"].as_array().expect("a list");
    assert_eq!(
        counts.len() as u64,
        objective["counts_tried"].as_u64().expect("a count")
    );
    let hours = |count: &serde_json::Value| count["gpu_hours"].as_f64();
    let chosen = counts
        .iter()
        .find(|count| count["gpus"] == objective["gpus"]);
    let least = chosen.and_then(hours).expect("it is solved");
    assert!(counts.iter().filter_map(hours).all(|other| other >= least));
    let neighbour = &document["alternatives"][0];
    let mfu = |of: &serde_json::Value| of["prediction"]["mfu"].as_f64().expect("a share");
    let distance = neighbour["mfu_distance"].as_f64().expect("a distance");
    assert!((mfu(neighbour) - mfu(&document) - distance).abs() < 1e-9);
    let (text, _) = check(&["solve", PAPER, "--format", "json"], 0);
    let plain: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(plain["objective"].is_null());
}

#[test]
fn demands_that_make_no_sense_are_refused() {
    for (name, more) in [
        ("objective_range", &["--gpus-to", "8"][..]),
        ("objective_no_unit", &["--deadline", "30"]),
        ("objective_both", &["--steps", "3", "--tokens", "3B"]),
        (
            "objective_empty_range",
            &["--objective", "gpu-hours", "--gpus-from", "65"],
        ),
        ("objective_mfu", &["--at-least-mfu", "40"]),
        ("diverse_unknown", &["--diverse", "tensor_paralel"]),
        ("diverse_checkpointing", &["--diverse", "checkpointing"]),
        ("top_none", &["--top", "0"]),
    ] {
        let arguments: Vec<&str> = ["solve", PAPER].iter().chain(more).copied().collect();
        check_snapshot(name, &arguments, 2);
    }
}

/// Where flags alone describe the job, its title has the chosen number of GPUs.
#[test]
fn a_title_names_the_gpus_of_the_answer() {
    let job = "solve --model llama-3.1-8b --cluster dgx-h100-80gb --gpus 8 --sequence-length 8192 \
               --global-batch 64 --objective fewest-gpus --gpus-to 64 --deadline 3s --format json";
    let (text, _) = check(&job.split_whitespace().collect::<Vec<_>>(), 0);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let gpus = document["job"]["gpus"].as_u64().expect("a number");
    assert!(gpus > 8, "{gpus}");
    let title = format!("llama-3.1-8b on {gpus} GPUs of dgx-h100-80gb");
    assert_eq!(document["instance"], title.as_str());
}
