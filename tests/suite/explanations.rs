//! Reasons: clashes are minimal, repairs solve, differences add up, and what a user sees of them.

use std::path::Path;
use std::process::Command;

use parlayout::explain::change::Change;
use parlayout::explain::reasons::{Reasons, Resolution};
use parlayout::explain::repairs::MOST_REPAIRS;
use parlayout::explain::why_not::{Verdict, why_not};
use parlayout::explain::{Explanation, explain};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::layout_argument;
use parlayout::plan::Formulation;
use parlayout::planner::infeasibility::{
    Analysis, RequirementSet, analyse, may_have_layout, without,
};
use parlayout::planner::{self, PlanOptions};
use parlayout::report::{Style, explanation, json};
use proptest::prelude::*;

use crate::support::{instance_files, parse, project, random_text, snapshot};

/// A file of `instances/` with some of its keys set, and how to set more.
struct Case {
    text: String,
    name: &'static str,
    sets: Vec<String>,
}

impl Case {
    fn new(name: &'static str, sets: &[&str]) -> Self {
        let path = project("instances").join(format!("{name}.toml"));
        Self {
            text: std::fs::read_to_string(path).expect("the project ships the instance"),
            name,
            sets: sets.iter().map(ToString::to_string).collect(),
        }
    }

    fn reread(&self, further: &[String]) -> Option<Instance> {
        let mut overrides = Overrides::none();
        for assignment in self.sets.iter().chain(further) {
            overrides.set(assignment);
        }
        let folder = project("instances");
        instance::from_text(self.name, &self.text, &folder, &overrides).ok()
    }

    fn instance(&self) -> Instance {
        self.reread(&[]).expect("a valid instance")
    }

    fn explained(&self) -> Explanation {
        explain(&self.instance(), &|further| self.reread(further)).expect("an answer")
    }

    fn reasons(&self) -> Reasons {
        match self.explained() {
            Explanation::Infeasible(reasons) => *reasons,
            Explanation::Feasible(binding) => panic!("{}: {binding:?}", self.name),
        }
    }

    /// Compares the table with a snapshot.
    fn shows(&self, snapshot_name: &str) {
        let text = explanation::explanation(&self.instance(), &self.explained(), &Style::default());
        check_narrow(&text);
        let arguments: Vec<String> = self
            .sets
            .iter()
            .map(|set| format!(" --set {set}"))
            .collect();
        let shown = format!(
            "$ parlayout explain instances/{}.toml{}\n{text}",
            self.name,
            arguments.concat()
        );
        snapshot(&format!("explain_{snapshot_name}"), &shown);
    }

    fn asks(&self, asked: &str, snapshot_name: &str) {
        let asked = layout_argument::parse_assignment(asked).expect("known axes");
        let answer =
            why_not(&self.instance(), &asked, &|further| self.reread(further)).expect("an answer");
        let text = explanation::why_not(&self.instance(), &answer, &Style::default());
        check_narrow(&text);
        snapshot(&format!("explain_{snapshot_name}"), &text);
    }
}

/// Lines are narrow, but for commands, which are never broken.
fn check_narrow(text: &str) {
    for line in text.lines().filter(|line| !line.contains("--set")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

fn is_solved(instance: &Instance) -> bool {
    let outcome = planner::plan(instance, &PlanOptions::default()).expect("an answer");
    outcome.plan().is_some()
}

/// Corrections solve, nothing smaller does, and every clash has one of each.
fn check_analysis(instance: &Instance, analysis: &Analysis) {
    assert!(!analysis.clashes.is_empty(), "{instance:?}");
    let clash = analysis
        .clashes
        .iter()
        .fold(RequirementSet::EMPTY, |all, clash| all.union(*clash));
    for correction in &analysis.corrections {
        let (dropped, witness) = (correction.dropped, &correction.witness);
        let names: Vec<String> = dropped.iter().map(|it| it.to_string()).collect();
        assert!(
            is_solved(&without(instance, dropped, witness)),
            "{}: without {names:?} there is no layout",
            instance.name
        );
        for requirement in dropped.iter() {
            let fewer = dropped.without(requirement);
            assert!(
                !may_have_layout(&without(instance, fewer, witness)),
                "{}: {requirement} of {names:?} need not be dropped",
                instance.name
            );
        }
        if analysis.corrections[0].dropped.len() > 1 {
            for one in &analysis.clashes[..1] {
                assert!(dropped.iter().any(|it| one.contains(it)), "{names:?}");
            }
        }
    }
    // Minimal: without any one of its requirements, a correction leaves the clash.
    for requirement in clash.iter() {
        let own = analysis
            .clashes
            .iter()
            .find(|clash| clash.contains(requirement));
        let own = own.expect("a requirement of one of the clashes");
        let resolves = analysis.corrections.iter().any(|correction| {
            let shared = correction.dropped.iter().filter(|it| own.contains(*it));
            shared.eq([requirement])
        });
        assert!(resolves, "{}: {requirement}", instance.name);
    }
}

/// Where one clash is named, dropping any one of its requirements makes the instance feasible:
/// solved again. Every repair solves as it is typed.
fn check_reasons(case: &Case) -> Reasons {
    let instance = case.instance();
    assert!(!is_solved(&instance), "{}", case.name);
    let analysis = analyse(&instance, Formulation::Staged).expect("an answer");
    check_analysis(&instance, &analysis);
    let reasons = case.reasons();
    if reasons.resolution == Resolution::AnyOne {
        assert_eq!(reasons.clashes.len(), 1, "{}", case.name);
        for reason in &reasons.clashes[0].reasons {
            let alone = RequirementSet::EMPTY.with(reason.requirement);
            let correction = analysis.corrections.iter().find(|it| it.dropped == alone);
            let witness = correction.expect("each is a correction").witness;
            assert!(
                is_solved(&without(&instance, alone, &witness)),
                "{}: without {} there is no layout",
                case.name,
                reason.requirement
            );
        }
    }
    assert!(reasons.repairs.len() <= MOST_REPAIRS);
    let mut cost = 0.0;
    for repair in &reasons.repairs {
        let assignments: Vec<String> = repair.assignments().collect();
        let changed = case.reread(&assignments).expect("a valid instance");
        let outcome = planner::plan(&changed, &PlanOptions::default()).expect("an answer");
        let plan = outcome
            .plan()
            .unwrap_or_else(|| panic!("{assignments:?} does not repair"));
        assert_eq!(plan.choice, repair.evaluated, "{assignments:?}");
        assert!(repair.cost() >= cost, "{assignments:?}");
        cost = repair.cost();
    }
    reasons
}

#[test]
fn shipped_infeasible_instances_are_explained() {
    let mut found = Vec::new();
    for path in instance_files() {
        let instance = instance::read(&path, &Overrides::none()).expect("shipped files are valid");
        if !may_have_layout(&instance) {
            found.push(instance.name);
        }
    }
    assert_eq!(
        found,
        ["llama-65b-2k-16gpu-24gb", "llama-65b-8k-128gpu-24gb"]
    );
    for name in ["llama-65b-2k-16gpu-24gb", "llama-65b-8k-128gpu-24gb"] {
        let case = Case::new(name, &[]);
        let reasons = check_reasons(&case);
        assert_eq!(reasons.resolution, Resolution::AnyOne, "{name}");
        assert!(reasons.repairs.len() >= 2, "{name}");
        case.shows(name);
    }
}

/// What people run into, by structure rather than memory.
#[test]
fn structural_clashes_are_explained() {
    // 52 heads and tensor parallelism of 8.
    let heads = Case::new("hagemann-30b-2k-64gpu", &["search.tensor_parallel=8"]);
    // Micro-batches of 5 out of 64 sequences.
    let batch = Case::new(
        "llama-3.1-8b-8k-8xh100",
        &[
            "cluster.gpus=16",
            "training.global_batch=64",
            "search.tensor_parallel=4",
            "search.micro_batch=5",
        ],
    );
    // Six stages of two chunks and three micro-batches.
    let interleaving = Case::new(
        "qwen3-8b-16k-16xh200",
        &[
            "cluster.gpus=48",
            "training.global_batch=24",
            "search.tensor_parallel=1",
            "search.pipeline_parallel=6",
            "search.data_parallel=8",
            "search.micro_batch=1",
            "search.virtual_stages=2",
        ],
    );
    // Degrees that do not multiply to the GPUs.
    let degrees = Case::new(
        "llama-3.1-70b-8k-64xh100",
        &[
            "search.tensor_parallel=8",
            "search.pipeline_parallel=4",
            "search.data_parallel=4",
            "search.context_parallel=1",
        ],
    );
    // Thirty layers on four equal stages.
    let layers = Case::new(
        "llama-3.1-8b-8k-8xh100",
        &[
            "model.layers=30",
            "framework.partition=equal",
            "search.pipeline_parallel=4",
            "search.virtual_stages=1",
        ],
    );
    let cases = [
        (heads, "heads", "search.tensor_parallel, heads_divisible"),
        (
            batch,
            "micro_batch_5",
            "search.micro_batch, global_batch_divisible",
        ),
        (
            interleaving,
            "interleaving",
            "search.pipeline_parallel, search.data_parallel, search.virtual_stages, \
             interleaving_micro_batches",
        ),
        (
            degrees,
            "degrees",
            "search.tensor_parallel, search.pipeline_parallel, search.data_parallel, \
             search.context_parallel, gpu_count",
        ),
        (
            layers,
            "layers",
            "search.pipeline_parallel, layers_cover_stages",
        ),
    ];
    for (case, name, expected) in cases {
        let reasons = check_reasons(&case);
        let clash = &reasons.clashes[0].reasons;
        let names: Vec<String> = clash.iter().map(|it| it.requirement.to_string()).collect();
        assert_eq!(names.join(", "), expected, "{name}");
        assert!(!reasons.repairs.is_empty(), "{name}");
        case.shows(name);
    }
}

#[test]
fn several_clashes_are_told_apart() {
    let case = Case::new("llama-65b-2k-16gpu-24gb", &["search.micro_batch=5"]);
    let reasons = check_reasons(&case);
    assert_eq!(reasons.resolution, Resolution::Several);
    assert_eq!(reasons.clashes.len(), 2);
    case.shows("two_clashes");
}

#[test]
fn rows_and_forbidden_combinations_clash_too() {
    let sets = [
        "search.tensor_parallel=[1, 2]",
        "search.forbid=[{tensor_parallel = 1}]",
        "constraint=[{name = \"few\", terms = {tensor_parallel = 1}, at_most = 1}]",
    ];
    let case = Case::new("hagemann-13b-2k-64gpu", &sets);
    let reasons = check_reasons(&case);
    let names: Vec<String> = (reasons.clashes[0].reasons.iter())
        .map(|it| it.requirement.to_string())
        .collect();
    assert_eq!(names, ["forbidden(0)", "constraint(0)"]);
    case.shows("own_rules");
    let sets = ["constraint=[{name = \"last\", terms = {layers_last = 1}, at_least = 30}]"];
    let deep = Case::new(
        "hagemann-13b-2k-64gpu",
        &[sets[0], "search.pipeline_parallel=2"],
    );
    let reasons = deep.reasons();
    let names: Vec<String> = (reasons.clashes[0].reasons.iter())
        .map(|it| it.requirement.to_string())
        .collect();
    assert!(names.contains(&"constraint(0)".to_owned()), "{names:?}");
    for repair in &reasons.repairs {
        let assignments: Vec<String> = repair.assignments().collect();
        assert!(is_solved(&deep.reread(&assignments).expect("valid")));
    }
}

/// The amounts are the least: one step less does not do.
#[test]
fn amounts_are_the_least() {
    let case = Case::new("llama-65b-2k-16gpu-24gb", &[]);
    let mut checked = 0;
    for repair in case.reasons().repairs {
        let less: Vec<String> = match repair.changes.as_slice() {
            [Change::Memory { to, .. }] => {
                vec![format!("cluster.memory={:.1} GB", to.value() / 1e9 - 0.1)]
            }
            [Change::Gpus { from, to }] => (from + 8..*to)
                .step_by(8)
                .map(|gpus| format!("cluster.gpus={gpus}"))
                .collect(),
            _ => continue,
        };
        assert!(!less.is_empty());
        for assignment in less {
            let instance = case.reread(&[assignment.clone()]).expect("valid");
            assert!(!is_solved(&instance), "{assignment}");
        }
        checked += 1;
    }
    assert_eq!(checked, 2, "memory and GPUs");
}

#[test]
fn what_binds_is_found_by_solving_again() {
    let case = Case::new("hagemann-65b-2k-128gpu", &[]);
    let Explanation::Feasible(binding) = case.explained() else {
        panic!("the instance has a layout");
    };
    let best = binding.plan.choice.prediction.mfu;
    assert!(binding.effects.iter().any(|effect| effect.binds()));
    for effect in &binding.effects {
        // Dropping a limit never costs anything, but for rounding.
        let without = effect.without.prediction.mfu;
        assert!(without.value() > best.value() - 1e-4, "{}", effect.limit);
    }
    case.shows("binding");
    Case::new("llama-3.1-405b-8k-8192xh100", &[]).shows("binding_405b");
}

#[test]
fn why_not_shows_where_the_time_goes() {
    let case = Case::new("llama-65b-2k-128gpu-40gb", &[]);
    case.asks("tensor_parallel=8", "why_not_tensor_parallel");
    case.asks(
        "tensor_parallel=1,pipeline_parallel=2",
        "why_not_impossible",
    );
    let paper = Case::new("hagemann-13b-2k-64gpu", &[]);
    paper.asks("virtual_stages=2", "why_not_unlisted");
    let best = planner::plan(&paper.instance(), &PlanOptions::default()).expect("an answer");
    let best = &best.plan().expect("a layout").choice.layout.cell;
    let chosen = format!("tensor_parallel={}", best.tensor_parallel);
    let asked = layout_argument::parse_assignment(&chosen).expect("known");
    let answer = why_not(&paper.instance(), &asked, &|_| None).expect("an answer");
    assert!(matches!(answer.verdict, Verdict::Chosen(_)));
    let text = json::why_not(&paper.instance(), &answer);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["why_not"]["verdict"], "chosen");
}

#[test]
fn a_choice_without_any_layout_is_said_so() {
    let case = Case::new("llama-65b-2k-16gpu-24gb", &[]);
    let asked = layout_argument::parse_assignment("tensor_parallel=8").expect("known");
    let answer =
        why_not(&case.instance(), &asked, &|further| case.reread(further)).expect("an answer");
    assert!(matches!(answer.verdict, Verdict::NothingPossible(_)));
}

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
    assert_eq!(document["resolution"], "any-one");
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
        vec!["diff", paper, "instances/llama-65b-2k-16gpu-24gb.toml"],
        vec!["diff", "README.md", paper],
        vec!["diff", "docs/solution.schema.json", paper],
    ] {
        run(&wrong, 2);
    }
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

/// A random job that is likely to be infeasible: little memory, or values that clash.
fn random_case() -> impl Strategy<Value = (String, Vec<String>)> {
    let pin = |key: &'static str, values: &'static [u32]| {
        proptest::option::weighted(0.3, proptest::sample::select(values))
            .prop_map(move |value| value.map(|value| format!("{key}={value}")))
    };
    (
        random_text(),
        pin("search.tensor_parallel", &[1, 3, 5, 8]),
        pin("search.pipeline_parallel", &[1, 2, 4, 7]),
        pin("search.micro_batch", &[1, 3, 4]),
        pin("search.data_parallel", &[1, 2, 8]),
        proptest::option::weighted(0.7, 1_u32..12),
    )
        .prop_map(|(text, tensor, pipeline, batch, data, memory)| {
            let memory = memory.map(|gigabytes| format!("cluster.memory={gigabytes} GB"));
            let sets = [tensor, pipeline, batch, data, memory];
            (text, sets.into_iter().flatten().collect())
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The walk and the planner agree on what is feasible; corrections solve, and nothing smaller
    /// does; every repair solves.
    #[test]
    fn random_clashes_are_minimal((text, sets) in random_case()) {
        let instance = parse(&text, &sets);
        let options = PlanOptions { alternatives: 0, ..PlanOptions::default() };
        let best = planner::best(&instance, &options).expect("an answer").into_layout();
        prop_assert_eq!(may_have_layout(&instance), best.is_some());
        if best.is_some() {
            return Ok(());
        }
        let analysis = analyse(&instance, Formulation::Staged).expect("an answer");
        check_analysis(&instance, &analysis);
        let reread = |further: &[String]| {
            Some(parse(&text, &[sets.clone(), further.to_vec()].concat()))
        };
        let Explanation::Infeasible(reasons) = explain(&instance, &reread).expect("an answer")
        else {
            return Err(TestCaseError::fail("an infeasible instance has a plan"));
        };
        for repair in &reasons.repairs {
            let assignments: Vec<String> = repair.assignments().collect();
            let changed = reread(&assignments).expect("valid");
            prop_assert!(is_solved(&changed), "{assignments:?}");
        }
    }
}
