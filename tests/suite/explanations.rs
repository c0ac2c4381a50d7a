//! Reasons: clashes are minimal, repairs solve, differences add up, and what a user sees of them.

mod command;
mod random;

use parlayout::axis::Assignment;
use parlayout::change::Change;
use parlayout::explain::binding::NEGLIGIBLE;
use parlayout::explain::reasons::{Reason, Reasons};
use parlayout::explain::repairs::MOST_REPAIRS;
use parlayout::explain::{Explanation, TimeLimits, explain};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::layout_argument;
use parlayout::plan::Formulation;
use parlayout::planner::Deadline;
use parlayout::planner::infeasibility::{Analysis, analyse, may_have_layout, without};
use parlayout::planner::{self, PlanOptions};
use parlayout::report::document::ExplanationDocument;
use parlayout::report::{Answer, Document, Style};
use parlayout::rules::{Rule, RuleSet};

use crate::support::{instance_files, project, snapshot};

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
        let file = format!("{}.toml", self.name);
        instance::from_text(&file, &self.text, &folder, &overrides).ok()
    }

    fn instance(&self) -> Instance {
        self.reread(&[]).expect("a valid instance")
    }

    fn explained(&self) -> Explanation {
        self.answer(None)
    }

    fn answer(&self, asked: Option<&Assignment>) -> Explanation {
        let reread = |further: &[String]| self.reread(further);
        explain(&self.instance(), asked, &reread, &TimeLimits::NONE).expect("an answer")
    }

    fn reasons(&self) -> Reasons {
        match self.explained() {
            Explanation::Infeasible(reasons) => *reasons,
            other => panic!("{}: {other:?}", self.name),
        }
    }

    /// Compares the table with a snapshot.
    fn shows(&self, snapshot_name: &str) {
        let text = ExplanationDocument::new(&self.instance(), None, &self.explained())
            .text(&Style::default());
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
        let answer = self.answer(Some(&asked));
        let document = ExplanationDocument::new(&self.instance(), Some(&asked), &answer);
        let text = document.text(&Style::default());
        check_narrow(&text);
        snapshot(&format!("explain_{snapshot_name}"), &text);
    }
}

fn names(clash: &[Reason]) -> Vec<String> {
    let reasons = clash.iter();
    reasons.map(|it| it.requirement.clone()).collect()
}

/// Lines are narrow, but for commands, which are never broken.
fn check_narrow(text: &str) {
    for line in text.lines().filter(|line| !line.contains("--set")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

fn is_solved(instance: &Instance) -> bool {
    let best = planner::best(instance, &PlanOptions::default()).expect("an answer");
    best.layout().is_some()
}

/// Corrections solve, nothing smaller does, and every clash has one of each.
fn check_analysis(instance: &Instance, analysis: &Analysis) {
    assert!(!analysis.clashes.is_empty(), "{instance:?}");
    let clash = analysis
        .clashes
        .iter()
        .fold(RuleSet::EMPTY, |all, clash| all.union(*clash));
    for correction in &analysis.corrections {
        let (dropped, witness) = (correction.dropped, &correction.witness);
        let names: Vec<String> = dropped.iter().map(|it| it.name(instance)).collect();
        assert!(
            is_solved(&without(instance, dropped, witness)),
            "{}: without {names:?} there is no layout",
            instance.name
        );
        // With another number of GPUs other degrees are possible than those that were walked.
        let resized = dropped.contains(Rule::GpuCount) && dropped.len() > 1;
        for requirement in dropped.iter().filter(|_| !resized) {
            let fewer = dropped.without(RuleSet::EMPTY.with(requirement));
            assert!(
                !may_have_layout(&without(instance, fewer, witness), Deadline::NEVER)
                    .expect("no limit"),
                "{}: {} of {names:?} need not be dropped",
                instance.name,
                requirement.name(instance)
            );
        }
        for one in &analysis.clashes {
            assert!(dropped.iter().any(|it| one.contains(it)), "{names:?}");
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
        assert!(resolves, "{}: {requirement:?}", instance.name);
    }
}

/// Where one clash is named, dropping any one of its requirements makes the instance feasible:
/// solved again. Every repair solves as it is typed.
fn check_reasons(case: &Case) -> Reasons {
    let instance = case.instance();
    assert!(!is_solved(&instance), "{}", case.name);
    let analysis = analyse(&instance, Formulation::Staged, Deadline::NEVER).expect("an answer");
    check_analysis(&instance, &analysis);
    let reasons = case.reasons();
    for reason in reasons.clashes.iter().flatten().filter(|it| it.enough) {
        let is_alone = |dropped: RuleSet| {
            let names = dropped.iter().map(|it| it.name(&instance));
            names.eq([reason.requirement.clone()])
        };
        let mut corrections = analysis.corrections.iter();
        let correction = corrections.find(|it| is_alone(it.dropped));
        let correction = correction.expect("each is a correction");
        assert!(
            is_solved(&without(&instance, correction.dropped, &correction.witness)),
            "{}: without {} there is no layout",
            case.name,
            reason.requirement
        );
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
        if !may_have_layout(&instance, Deadline::NEVER).expect("no limit") {
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
        assert_eq!(reasons.clashes.len(), 1, "{name}");
        assert!(reasons.clashes[0][0].enough, "{name}");
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
            "search.tensor_parallel, search.pipeline_parallel, search.data_parallel, gpu_count",
        ),
        (
            layers,
            "layers",
            "search.pipeline_parallel, search.virtual_stages, layers_cover_stages",
        ),
    ];
    for (case, name, expected) in cases {
        let reasons = check_reasons(&case);
        assert_eq!(names(&reasons.clashes[0]).join(", "), expected, "{name}");
        assert!(reasons.clashes[0].iter().all(|it| it.enough), "{name}");
        assert!(!reasons.repairs.is_empty(), "{name}");
        case.shows(name);
    }
}

#[test]
fn several_clashes_are_told_apart() {
    let case = Case::new("llama-65b-2k-16gpu-24gb", &["search.micro_batch=5"]);
    let reasons = check_reasons(&case);
    assert!(!reasons.clashes[0][0].enough);
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
    let own = names(&reasons.clashes[0]);
    assert_eq!(own, ["forbidden(0)", "constraint(few)"]);
    case.shows("own_rules");
    let sets = ["constraint=[{name = \"last\", terms = {layers_last = 1}, at_least = 30}]"];
    let deep = Case::new(
        "hagemann-13b-2k-64gpu",
        &[sets[0], "search.pipeline_parallel=2"],
    );
    let reasons = deep.reasons();
    let own = names(&reasons.clashes[0]);
    assert!(own.contains(&"constraint(last)".to_owned()), "{own:?}");
    for repair in &reasons.repairs {
        let assignments: Vec<String> = repair.assignments().collect();
        assert!(is_solved(&deep.reread(&assignments).expect("valid")));
    }
}

/// Rows are moved or dropped and keep the others; a moved row is moved no further than it must.
#[test]
fn rows_and_nodes_are_repaired() {
    let rows = "constraint=[{name = \"ends\", terms = {\"layers[1]\" = 1}, at_least = 0}, \
                {name = \"huge\", terms = {tensor_parallel = 1, micro_batch = 2, \
                \"sharding=zero-1\" = 1}, at_least = 30}]";
    let case = Case::new("hagemann-13b-2k-64gpu", &[rows]);
    let reasons = case.reasons();
    let moved = reasons
        .repairs
        .iter()
        .find_map(|repair| match repair.changes.as_slice() {
            [Change::Rows { changed, rows }] => Some((changed.first()?.right?, rows.clone())),
            _ => None,
        });
    let (side, rows) = moved.expect("the row can be moved");
    assert_eq!(rows.len(), 2);
    assert!(side.to < side.from, "{side:?}");
    for (right, expected) in [(side.to, true), (side.to + 1, false)] {
        let mut instance = case.instance();
        instance.space.constraints[1].right = right;
        assert_eq!(is_solved(&instance), expected, "{right}");
    }
    for repair in &reasons.repairs {
        let assignments: Vec<String> = repair.assignments().collect();
        assert!(
            is_solved(&case.reread(&assignments).expect("valid")),
            "{assignments:?}"
        );
    }
    case.shows("rows");
    let domains = Case::new(
        "gpt-3-175b-2k-128xh100",
        &[
            "search.tensor_parallel=16",
            "framework.tensor_parallel_reach=nvlink-domain",
        ],
    );
    let reasons = check_reasons(&domains);
    let is_wider = |change: &Change| change.assignment().ends_with("reach=anywhere");
    assert!(
        reasons
            .repairs
            .iter()
            .any(|repair| repair.changes.iter().any(is_wider))
    );
    domains.shows("domains");
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
            let instance = case
                .reread(std::slice::from_ref(&assignment))
                .expect("valid");
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
    assert!(binding.effects.iter().any(|it| it.gain > NEGLIGIBLE));
    for effect in &binding.effects {
        // Dropping a limit never costs anything, but for rounding.
        let without = effect.without.prediction.mfu;
        assert!(without.value() > best.value() - 1e-4, "{}", effect.name);
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
    let interleaves = "framework.axes.virtual_stages=[1,2]";
    let paper = Case::new("hagemann-13b-2k-64gpu", &[interleaves]);
    paper.asks("virtual_stages=2", "why_not_unlisted");
    let best = planner::plan(&paper.instance(), &PlanOptions::default()).expect("an answer");
    let best = &best.plan().expect("a layout").choice.layout.combination;
    let chosen = format!("tensor_parallel={}", best.tensor_parallel);
    let asked = layout_argument::parse_assignment(&chosen).expect("known");
    let answer = paper.answer(Some(&asked));
    assert!(matches!(answer, Explanation::Chosen(_)));
    let text = ExplanationDocument::new(&paper.instance(), Some(&asked), &answer).json();
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["why_not"]["verdict"], "chosen");
}

#[test]
fn a_choice_without_any_layout_is_said_so() {
    let case = Case::new("llama-65b-2k-16gpu-24gb", &[]);
    let asked = layout_argument::parse_assignment("tensor_parallel=8").expect("known");
    let answer = case.answer(Some(&asked));
    assert!(matches!(answer, Explanation::Infeasible(_)));
}
