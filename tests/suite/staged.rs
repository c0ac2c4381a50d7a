//! The staged program against the layout choice and against exact enumeration, on random jobs.

use std::time::Duration;

use formulations::solve::{self, SolverOptions};
use formulations::staged::optimum_within;
use parlayout::framework::{CheckpointRule, Partition};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::plan::{Extent, Formulation, Outcome};
use parlayout::planner::cost_table::CostTable;
use parlayout::planner::{self, Deadline, PlanOptions, groups};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rayon::prelude::*;

use crate::support::{instances, random_instance};

/// Random jobs, the same on every machine.
fn random_jobs(count: usize) -> Vec<Instance> {
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let jobs = random_instance();
    (0..count)
        .map(|_| {
            jobs.new_tree(&mut runner)
                .expect("a job can be drawn")
                .current()
        })
        .collect()
}

fn plan(instance: &Instance, formulation: Formulation) -> Outcome {
    let options = PlanOptions {
        formulation,
        alternatives: 0,
        ..PlanOptions::default()
    };
    planner::plan(instance, &options).expect("the planner answers")
}

/// The proven best utilisation in parts per billion; `None` if infeasible.
fn proven(instance: &Instance, formulation: Formulation) -> Option<i64> {
    let outcome = plan(instance, formulation);
    match outcome {
        Outcome::Optimal(plan) => Some(plan.proof.bound_parts),
        Outcome::Infeasible(_) => None,
        other => panic!("{}: {other:?}", instance.name),
    }
}

/// The best objective over every way to use every choice, each by its own dynamic program.
fn oracle(instance: &Instance) -> Option<i64> {
    let table = CostTable::new(instance, Formulation::Staged);
    let choices = groups::choices(&table);
    let variants = choices
        .iter()
        .flat_map(|choice| groups::variants(&table, choice));
    let mut best = None;
    for variant in variants {
        let limit = best.unwrap_or(i64::MAX);
        let plan = optimum_within(&variant.group, 0, &table.layers, limit, Deadline::NEVER);
        let plan = plan.expect("there is no limit");
        best = plan.map(|plan| plan.objective).or(best);
    }
    Some(table.quantum.parts_per_billion(&instance.job, best?))
}

/// The framework cuts and checkpoints just as the layout choice does.
fn is_rigid(instance: &Instance) -> bool {
    let framework = &instance.job.framework;
    let cut = !matches!(
        framework.partition,
        Partition::Free | Partition::FirstAndLast
    );
    cut && framework.checkpoint_rule == CheckpointRule::AllOrNothing
}

#[test]
fn two_thousand_random_jobs_agree() {
    let jobs = random_jobs(2_000);
    let rigid = jobs.par_iter().map(|instance| {
        let staged = proven(instance, Formulation::Staged);
        assert_eq!(staged, oracle(instance), "{instance:?}");
        let choice = proven(instance, Formulation::LayoutChoice);
        assert!(
            choice <= staged,
            "{instance:?}\n{choice:?} beats {staged:?}"
        );
        if is_rigid(instance) {
            assert_eq!(choice, staged, "{instance:?}");
        }
        (is_rigid(instance), staged.is_some())
    });
    let rigid: Vec<(bool, bool)> = rigid.collect();
    // Both kinds of framework and both answers are among the jobs.
    for wanted in [(true, true), (true, false), (false, true), (false, false)] {
        let count = rigid.iter().filter(|&&kind| kind == wanted).count();
        assert!(count > 50, "{wanted:?}: {count}");
    }
}

#[test]
fn the_layout_choice_never_beats_the_staged_program() {
    for instance in instances() {
        let (staged, choice) = (
            proven(&instance, Formulation::Staged),
            proven(&instance, Formulation::LayoutChoice),
        );
        assert!(
            choice <= staged,
            "{}: {choice:?} beats {staged:?}",
            instance.name
        );
    }
}

/// LLaMA 65B at 2k on 128 GPUs: uneven stages with their own checkpointing against the best even
/// cut with one flag.
#[test]
fn uneven_stages_pay_where_memory_is_scarce() {
    let gain = |name: &str| {
        let instance = instances()
            .find(|instance| instance.name == name)
            .expect("shipped");
        let value = |formulation| proven(&instance, formulation).map(|parts| parts as f64);
        match (value(Formulation::Staged), value(Formulation::LayoutChoice)) {
            (Some(staged), Some(choice)) => staged / choice - 1.0,
            other => panic!("{name}: {other:?}"),
        }
    };
    assert!(gain("llama-65b-2k-128gpu-40gb") >= 0.03);
    assert!(gain("llama-65b-2k-128gpu-24gb") >= 0.08);
    let scarce = instances().find(|instance| instance.name == "llama-65b-8k-128gpu-24gb");
    assert_eq!(proven(&scarce.expect("shipped"), Formulation::Staged), None);
}

/// Whenever the time is over, what is said holds: the bound is not below the best layout's utilisation.
#[test]
fn a_time_limit_bounds_the_listing_too() {
    let mut overrides = Overrides::none();
    for (flag, value) in [
        ("model", "megatron-1t"),
        ("cluster", "dgx-h100-80gb"),
        ("gpus", "65520"),
        ("sequence-length", "8192"),
        ("global-batch", "65520"),
    ] {
        overrides.flag(flag, value);
    }
    overrides.set("search.schedule=[\"1f1b\", \"zb-1p\", \"zb-2p\"]");
    overrides.set("search.attention_kernel=[\"torch\", \"flash-attention-2\"]");
    overrides.set("search.rmsnorm_kernel=[false, true]");
    let instance = instance::from_flags(&overrides).expect("a valid job");
    for formulation in [Formulation::Staged, Formulation::LayoutChoice] {
        let within = |time_limit: Option<Duration>| {
            let options = PlanOptions {
                formulation,
                deadline: Deadline::after(time_limit),
                ..PlanOptions::default()
            };
            planner::plan(&instance, &options).expect("the planner answers")
        };
        let best = within(None);
        let best = best.plan().expect("there is a layout");
        let best = best.choice.prediction.mfu.value();
        for milliseconds in [0, 30, 300] {
            let outcome = within(Some(Duration::from_millis(milliseconds)));
            let proof = outcome.proof();
            assert!(milliseconds > 0 || proof.extent == Extent::Cut);
            let Some(plan) = outcome.plan() else {
                assert_eq!(outcome.status().as_str(), "unknown");
                continue;
            };
            let found = plan.choice.prediction.mfu.value();
            assert!(found <= best + 1e-9, "{found} {best}");
            assert!(proof.bound_mfu.value() >= best - 1e-9, "{proof:?}");
            let optimal = matches!(outcome, Outcome::Optimal(_));
            assert!(!optimal || proof.extent == Extent::Whole, "{proof:?}");
        }
    }
}

/// The program that is written is the one that was solved: its rows show memory and rules, and its optimum
/// is the step time.
#[test]
fn the_written_program_gives_the_step_time() {
    for (name, rule) in [
        ("llama-65b-2k-128gpu-24gb", " gpu_count: "),
        (
            "hagemann-13b-2k-64gpu",
            " rmsnorm_kernel_excludes_checkpointing: ",
        ),
    ] {
        let instance = instances()
            .find(|instance| instance.name == name)
            .expect("shipped");
        let options = PlanOptions::default();
        let (model, _) = planner::staged::written_program(&instance, &options).expect("solved");
        let model = model.expect("there is time");
        let solved = solve::solve(&model, &SolverOptions::default()).expect("HiGHS answers");
        let milliseconds = solved.solution().expect("feasible").objective;
        let outcome = planner::plan(&instance, &options).expect("the planner answers");
        let plan = outcome.plan().expect("feasible");
        let step_time = plan.choice.prediction.step_time.value();
        assert!(
            (milliseconds / 1e3 / step_time - 1.0).abs() < 1e-5,
            "{name}: {milliseconds} ms, {step_time} s"
        );
        let text = model.to_string();
        for row in [rule, " link_tensor_parallel(2): "] {
            assert!(text.contains(row), "{name}: no row {row}");
        }
        if name.contains("24gb") {
            let memory = text
                .lines()
                .filter(|it| it.starts_with(" memory_capacity("));
            assert!(
                memory.clone().count() >= 7 && text.contains("recomputed("),
                "{text}"
            );
        }
    }
}
