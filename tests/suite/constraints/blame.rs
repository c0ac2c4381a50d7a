//! Reasons where rows of the user's own are to blame, and limits of the time to find them.

use std::path::Path;
use std::time::Duration;

use parlayout::explain::reasons::Reason;
use parlayout::explain::{Explanation, TimeLimits, explain};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::plan::{Formulation, Outcome};
use parlayout::planner::{self, Deadline, PlanError, PlanOptions};
use parlayout::report::document::{ExplanationDocument, SolutionDocument};
use parlayout::report::{Answer, Style};

use super::plan;

/// A small job with rows, read again with further assignments.
fn small(sets: &[&str], further: &[String]) -> Option<Instance> {
    let text = r#"
[model]
preset = "llama-2-7b"
[cluster]
preset = "dgx-h100-80gb"
gpus = 16
[training]
sequence_length = 4096
global_batch = 64
"#;
    let mut overrides = Overrides::none();
    for set in sets
        .iter()
        .copied()
        .chain(further.iter().map(String::as_str))
    {
        overrides.set(set);
    }
    instance::from_text("small", text, Path::new(""), &overrides).ok()
}

/// Names of the requirements of each clash, and the words of every repair.
fn reasons(sets: &[&str]) -> (Vec<Vec<String>>, String) {
    let instance = small(sets, &[]).expect("a valid instance");
    let reread = |further: &[String]| small(sets, further);
    let explained = explain(&instance, None, &reread, &TimeLimits::NONE).expect("an answer");
    let text = ExplanationDocument::new(&instance, None, &explained).text(&Style::default());
    let Explanation::Infeasible(reasons) = explained else {
        panic!("{text}");
    };
    let name = |reason: &Reason| reason.requirement.clone();
    let names = |clash: &Vec<Reason>| clash.iter().map(name).collect();
    (reasons.clashes.iter().map(names).collect(), text)
}

#[test]
fn an_innocent_row_over_layers_is_not_blamed() {
    let check = |sets: &[&str], expected: &[&[&str]], innocent: &str| {
        let (clashes, text) = reasons(sets);
        assert_eq!(clashes, expected, "{text}");
        let untouched = [
            format!("drop row `{innocent}`"),
            format!("row `{innocent}` "),
            format!("constraint({innocent})"),
        ];
        for blame in untouched {
            assert!(!text.contains(&blame), "{blame}: {text}");
        }
        assert!(text.contains("1. row"), "{text}");
    };
    check(
        &[
            "constraint=[{name = \"three\", terms = {tensor_parallel = 1}, equals = 3}, \
           {name = \"long\", terms = {layers_first = 1}, equals = 100}, \
           {name = \"innocent\", terms = {checkpointed_layers = 1}, equals = 0}]",
        ],
        &[&["constraint(three)"], &["constraint(long)"]],
        "innocent",
    );
    check(
        &[
            "search.tensor_parallel=4",
            "search.data_parallel=8",
            "constraint=[{name = \"short\", terms = {layers_first = 1}, at_most = 0}, \
              {name = \"innocent\", terms = {checkpointed_layers = 1}, at_most = 0}]",
        ],
        &[
            &["constraint(short)", "layers_cover_stages"],
            &[
                "search.tensor_parallel",
                "search.data_parallel",
                "gpu_count",
            ],
        ],
        "innocent",
    );
    check(
        &[
            "search.tensor_parallel=3",
            "constraint=[{name = \"big\", terms = {layers_first = 1}, at_least = 40}, \
              {name = \"innocent\", terms = {layers_last = 1}, at_most = 20}]",
        ],
        &[
            &["constraint(big)"],
            &["search.tensor_parallel", "gpu_count"],
        ],
        "innocent",
    );
}

#[test]
fn rows_without_a_solution_in_integers_are_refuted_at_once() {
    for terms in [
        "{layers_first = 2, layers_last = 2}, equals = 7",
        "{layers_first = 1000000, layers_last = -1000000}, equals = 999999",
        "{checkpointed_layers = 2}, equals = 3",
    ] {
        let row = format!("constraint=[{{name = \"x\", terms = {terms}}}]");
        let instance = small(&[&row], &[]).expect("a valid instance");
        for formulation in [Formulation::Staged, Formulation::LayoutChoice] {
            let Outcome::Infeasible(infeasibility) = plan(&instance, formulation) else {
                panic!("{terms}");
            };
            assert_eq!(infeasibility.clashing_rules, ["constraint(x)"], "{terms}");
        }
    }
}

#[test]
fn without_time_no_reasons_are_given() {
    let instance = small(&["search.tensor_parallel=3"], &[]).expect("a valid instance");
    let limits = TimeLimits {
        whole: Deadline::after(Some(Duration::ZERO)),
        variations: None,
    };
    let explained = explain(&instance, None, &|_| None, &limits);
    assert!(
        matches!(explained, Err(PlanError::TimeOver(_))),
        "{explained:?}"
    );
    let limits = TimeLimits {
        whole: Deadline::NEVER,
        variations: Some(Duration::ZERO),
    };
    let explained = explain(&instance, None, &|_| None, &limits).expect("an answer");
    let text = ExplanationDocument::new(&instance, None, &explained).text(&Style::default());
    assert!(text.contains("search.tensor_parallel"), "{text}");
    assert!(text.contains("No repair was found in time."), "{text}");
    let options = PlanOptions {
        deadline: Deadline::after(Some(Duration::ZERO)),
        ..PlanOptions::default()
    };
    let outcome = planner::plan(&instance, &options).expect("the planner answers");
    let text = SolutionDocument::new(&instance, &outcome).text(&Style::default());
    assert!(
        text.contains("Rules that clash: not found in time"),
        "{text}"
    );
}

#[test]
fn of_many_rows_few_are_told() {
    let rows = (0..200).map(|least| {
        format!("{{name = \"r{least}\", terms = {{tensor_parallel = 1}}, at_least = {least}}}")
    });
    let rows = format!("constraint=[{}]", rows.collect::<Vec<_>>().join(", "));
    let (_, text) = reasons(&[&rows]);
    assert!(text.contains("further rows likewise"), "{text}");
    assert!(text.lines().count() < 60, "{text}");
}
