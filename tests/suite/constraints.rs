//! Rows of the user's own: obeyed by both programs, found by the checker, refused where they cannot
//! be kept.

use std::fmt::Write as _;
use std::path::Path;

use parlayout::axis::{Axis, FlaggedCombination};
use parlayout::cost_model::{self, Costs};
use parlayout::explain::{TimeLimits, explain};
use parlayout::framework::CheckpointRule;
use parlayout::instance::{self, InputError, Instance, Overrides};
use parlayout::layout::{Combination, Layout, Stage};
use parlayout::plan::{Formulation, Outcome};
use parlayout::planner::{self, PlanOptions, staged};
use parlayout::quantity::Mfu;
use parlayout::report::batch::{self, BatchRow};
use parlayout::report::document::{ExplanationDocument, SolutionDocument};
use parlayout::report::{Answer, Document, Style};
use parlayout::rules;
use proptest::prelude::*;

use crate::exhaustive::agrees_with_brute_force;
use crate::support::{project, snapshot};

mod blame;

fn plan(instance: &Instance, formulation: Formulation) -> Outcome {
    let options = PlanOptions {
        formulation,
        ..PlanOptions::default()
    };
    planner::plan(instance, &options).expect("the planner answers")
}

/// The best utilisation over every cut and every checkpointing that the framework takes.
fn brute_force(instance: &Instance) -> Option<Mfu> {
    let mut best = None;
    let mut codes = [0; Axis::COUNT];
    visit_cells(instance, 0, &mut codes, &mut best);
    best
}

fn visit_cells(
    instance: &Instance,
    depth: usize,
    codes: &mut [u32; Axis::COUNT],
    best: &mut Option<Mfu>,
) {
    let Some(&axis) = Axis::ALL.get(depth) else {
        let cell = FlaggedCombination::from_codes(codes).combination;
        if cell.gpus() == u64::from(instance.job.cluster.gpus) {
            visit_cuts(instance, &cell, &mut Vec::new(), best);
        }
        return;
    };
    let values = if axis == Axis::Checkpointing {
        &[0]
    } else {
        instance.space.values(axis)
    };
    for &code in values {
        codes[axis as usize] = code;
        visit_cells(instance, depth + 1, codes, best);
    }
}

fn visit_cuts(instance: &Instance, cell: &Combination, cut: &mut Vec<u32>, best: &mut Option<Mfu>) {
    let left = instance.job.transformer.layers - cut.iter().sum::<u32>();
    if cut.len() == cell.pipeline_parallel as usize {
        if left == 0 {
            visit_counts(instance, cell, cut, &mut Vec::new(), best);
        }
        return;
    }
    for own in 1..=left {
        cut.push(own);
        visit_cuts(instance, cell, cut, best);
        cut.pop();
    }
}

fn visit_counts(
    instance: &Instance,
    cell: &Combination,
    cut: &[u32],
    counts: &mut Vec<u32>,
    best: &mut Option<Mfu>,
) {
    if counts.len() < cut.len() {
        for count in 0..=cut[counts.len()] {
            counts.push(count);
            visit_counts(instance, cell, cut, counts, best);
            counts.pop();
        }
        return;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let all = counts.iter().sum::<u32>();
    let permitted = match instance.job.framework.checkpoint_rule {
        CheckpointRule::AllOrNothing => all == 0 || all == instance.job.transformer.layers,
        CheckpointRule::SameCount => cut.iter().zip(&*counts).all(|(n, k)| *k == most.min(*n)),
        CheckpointRule::Free => true,
    };
    if !permitted {
        return;
    }
    let stages = cut.iter().zip(counts).map(|(&layers, &mut count)| Stage {
        layers,
        recomputed: [count, 0, 0, 0],
    });
    let layout = Layout {
        combination: *cell,
        stages: stages.collect(),
    };
    if rules::violations(instance, &layout).is_empty() {
        let costs = Costs::new(&instance.job, cell);
        let mfu = cost_model::evaluate(&instance.job, &costs, &layout.stages).mfu;
        *best = Some(best.map_or(mfu, |best| best.max(mfu)));
    }
}

/// Rounding to whole quanta may exchange layouts that differ by less than this.
const ROUNDING: f64 = 1e-5;

fn staged_agrees_with_brute_force(instance: &Instance) -> Result<(), TestCaseError> {
    let outcome = plan(instance, Formulation::Staged);
    let staged = outcome.plan().map(|plan| plan.choice.prediction.mfu);
    match (staged, brute_force(instance)) {
        (None, None) => prop_assert_eq!(outcome.status().as_str(), "infeasible"),
        (Some(found), Some(best)) => {
            prop_assert!((found / best - 1.0).abs() < ROUNDING, "{found:?} {best:?}");
        }
        (found, best) => prop_assert!(false, "{found:?}, but brute force {best:?}"),
    }
    let choice = plan(instance, Formulation::LayoutChoice);
    if let Some(choice) = choice.plan().map(|plan| plan.choice.prediction.mfu) {
        let staged = staged.expect("a cut of the framework is one of all");
        prop_assert!(choice.value() <= staged.value() * (1.0 + ROUNDING));
    }
    Ok(())
}

const FRAMEWORKS: [&str; 5] = [
    "unrestricted",
    "megatron-lm",
    "nanotron",
    "aleph-alpha-scaling",
    "first-and-last",
];

fn instance_text(
    (layers, gpus, memory): (u32, u32, u32),
    (framework, flags): (usize, bool),
    rows: &[String],
) -> String {
    let framework = match FRAMEWORKS[framework] {
        "first-and-last" => "preset = \"unrestricted\"\npartition = \"first-and-last\"".to_owned(),
        name => format!("preset = \"{name}\""),
    };
    let mut text = format!(
        "[model]\nlayers = {layers}\nhidden = 2048\nheads = 16\nfeed_forward_width = 8192\n\
         vocabulary = 64000\n[cluster]\npreset = \"dgx-a100-80gb\"\ngpus = {gpus}\n\
         memory = \"{memory} GB\"\n[training]\nsequence_length = 4096\nglobal_batch = 32\n\
         [framework]\n{framework}\n[search]\nmicro_batch = [1, 2, 4]\ncontext_parallel = 1\n\
         virtual_stages = 1\nsharding = \"zero-1\"\nsequence_parallel = false\n\
         checkpointing = {}\n",
        if flags {
            "[\"none\", \"full\"]"
        } else {
            "\"none\""
        }
    );
    for (index, row) in rows.iter().enumerate() {
        writeln!(text, "[[constraint]]\nname = \"row_{index}\"\n{row}").expect("text grows");
    }
    text
}

fn read(text: &str) -> Result<Instance, InputError> {
    instance::from_text("job.toml", text, Path::new(""), &Overrides::none())
}

/// A row with one or two terms that some layouts keep and others break.
pub(crate) fn random_row() -> impl Strategy<Value = String> {
    let names = [
        "tensor_parallel",
        "pipeline_parallel",
        "data_parallel",
        "micro_batch",
        "micro_batches",
        "layers_first",
        "layers_last",
        "\"layers[1]\"",
        "checkpointed_layers",
        "\"micro_batch=2\"",
    ];
    let term = (0..names.len(), prop_oneof![1..4_i64, -2..0_i64]);
    let sense = prop_oneof![Just("at_most"), Just("at_least"), Just("equals")];
    (term.clone(), term, any::<bool>(), sense, -3..12_i64).prop_map(
        move |((first, a), (second, b), both, sense, right)| {
            let other = if both && second != first {
                format!(", {} = {b}", names[second])
            } else {
                String::new()
            };
            format!(
                "terms = {{ {} = {a}{other} }}\n{sense} = {right}",
                names[first]
            )
        },
    )
}

proptest! {
    #![proptest_config(crate::support::cases(200))]

    #[test]
    fn random_rows_agree_with_brute_force(
        job in (2_u32..6, prop_oneof![Just(1_u32), Just(2), Just(4), Just(8)], 3_u32..40),
        framework in (0..FRAMEWORKS.len(), any::<bool>()),
        rows in proptest::collection::vec(random_row(), 1..3),
    ) {
        // Rows that a program cannot keep are refused.
        let Ok(instance) = read(&instance_text(job, framework, &rows)) else {
            return Ok(());
        };
        staged_agrees_with_brute_force(&instance)?;
        agrees_with_brute_force(&instance);
    }
}

pub(crate) fn shipped(file: &str, rows: &[&str]) -> Instance {
    let path = project("instances").join(file);
    let mut text = std::fs::read_to_string(&path).expect("shipped");
    for row in rows {
        write!(text, "\n[[constraint]]\n{row}").expect("text grows");
    }
    let folder = project("instances");
    instance::from_text(file, &text, &folder, &Overrides::none())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn rows_shape_a_large_plan() {
    let file = "llama-3.1-405b-8k-8192xh100.toml";
    let instance = shipped(
        file,
        &[
            "name = \"light_ends\"\nterms = { layers_first = 1, layers_last = 1 }\nat_most = 6",
            "name = \"modest\"\nterms = { tensor_parallel = 2, pipeline_parallel = 1 }\nat_most = 32",
            "name = \"rare\"\nterms = { \"sequence_parallel=on\" = 1 }\nequals = 1",
        ],
    );
    let outcome = plan(&instance, Formulation::Staged);
    let plan = outcome.plan().expect("feasible");
    assert_eq!(outcome.status().as_str(), "optimal");
    for layout in std::iter::once(&plan.choice).chain(&plan.alternatives) {
        let (layout, stages) = (&layout.layout, &layout.layout.stages);
        let ends = stages.first().expect("a stage").layers + stages.last().expect("one").layers;
        assert!(ends <= 6, "{layout:?}");
        assert!(
            2 * layout.combination.tensor_parallel + layout.combination.pipeline_parallel <= 32
        );
    }
}

#[test]
fn the_checker_names_the_row() {
    let instance = shipped(
        "hagemann-13b-2k-64gpu.toml",
        &["name = \"no_pipeline\"\nterms = { pipeline_parallel = 1 }\nat_most = 1"],
    );
    let outcome = plan(&instance, Formulation::Staged);
    let best = &outcome.plan().expect("feasible").choice.layout;
    assert_eq!(best.combination.pipeline_parallel, 1);
    let mut other = best.clone();
    other.combination.pipeline_parallel = 2;
    other.combination.data_parallel /= 2;
    other.stages = [20, 20]
        .map(|layers| Stage {
            layers,
            recomputed: [0; 4],
        })
        .to_vec();
    let broken = rules::violations(&instance, &other);
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!(broken[0].rule, "constraint(no_pipeline)");
    assert_eq!(
        broken[0].message,
        "pipeline_parallel is 2, and has to be at most 1"
    );
}

#[test]
fn the_written_program_has_the_row() {
    let instance = shipped(
        "hagemann-13b-2k-64gpu.toml",
        &["name = \"small\"\nterms = { tensor_parallel = 1, layers_first = 2 }\nat_most = 60"],
    );
    for formulation in [Formulation::Staged, Formulation::LayoutChoice] {
        let options = PlanOptions {
            formulation,
            ..PlanOptions::default()
        };
        let written = staged::written_program(&instance, &options).expect("it can be solved");
        let text = written.0.expect("there is time").to_string();
        assert!(text.contains("constraint(small):"), "{text}");
        assert!(text.contains("<= 60"), "{text}");
    }
}

#[test]
fn a_row_that_nothing_keeps_is_named() {
    let instance = shipped(
        "hagemann-13b-2k-64gpu.toml",
        &["name = \"huge\"\nterms = { tensor_parallel = 1 }\nat_least = 3"],
    );
    for formulation in [Formulation::Staged, Formulation::LayoutChoice] {
        let Outcome::Infeasible(why) = plan(&instance, formulation) else {
            panic!("no listed degree is as large");
        };
        assert_eq!(
            why.clashing_rules,
            ["search.tensor_parallel", "constraint(huge)"]
        );
    }
}

#[test]
fn every_output_names_the_row_that_clashes() {
    // A row over layers comes first: it must not be taken for the one that clashes.
    let instance = shipped(
        "hagemann-13b-2k-64gpu.toml",
        &[
            "name = \"short\"\nterms = { layers_first = 1 }\nat_most = 40",
            "name = \"huge\"\nterms = { tensor_parallel = 1 }\nat_least = 3",
        ],
    );
    let outcome = plan(&instance, Formulation::Staged);
    let explained = explain(&instance, None, &|_| None, &TimeLimits::NONE).expect("an answer");
    let style = Style::default();
    let outputs = [
        SolutionDocument::new(&instance, &outcome).text(&style),
        SolutionDocument::new(&instance, &outcome).json(),
        ExplanationDocument::new(&instance, None, &explained).text(&style),
        ExplanationDocument::new(&instance, None, &explained).json(),
        batch::json_line(&BatchRow::solved("a.toml", "c0ffee", &outcome)),
    ];
    for output in outputs {
        assert!(output.contains("constraint(huge)"), "{output}");
        assert!(!output.contains("constraint(0)"), "{output}");
        assert!(!output.contains("constraint(1)"), "{output}");
        assert!(!output.contains("constraint(short)"), "{output}");
    }
}

#[test]
fn bad_rows_are_refused_with_a_remedy() {
    let good = "name = \"row\"\nterms = { tensor_parallel = 1 }\nat_most = 4";
    let cases = [
        ("no list", "constraint = 3\n".to_owned()),
        ("no name", good.replace("name = \"row\"", "")),
        ("a name with blanks", good.replace("\"row\"", "\"my row\"")),
        (
            "no terms",
            good.replace("terms = { tensor_parallel = 1 }", ""),
        ),
        ("no right side", good.replace("at_most = 4", "")),
        ("two right sides", format!("{good}\nequals = 4")),
        ("a fraction", good.replace("= 1 }", "= 0.5 }")),
        (
            "a number too large",
            good.replace("at_most = 4", "at_most = 9999999999999"),
        ),
        (
            "a misspelt term",
            good.replace("tensor_parallel", "tensor_paralel"),
        ),
        ("a misspelt key", good.replace("at_most", "atmost")),
        (
            "an axis of names",
            good.replace("tensor_parallel", "sharding"),
        ),
        (
            "checkpointing",
            good.replace("tensor_parallel", "checkpointing"),
        ),
        (
            "a value that is none",
            good.replace("tensor_parallel", "\"sharding=zero-9\""),
        ),
        (
            "a stage that is none",
            good.replace("tensor_parallel", "\"layers[99]\""),
        ),
        (
            "a term twice",
            good.replace("= 1 }", "= 1, layers_first = 1, \"layers[0]\" = 2 }"),
        ),
        ("a name twice", format!("{good}\n[[constraint]]\n{good}")),
        (
            "an unknown column",
            good.replace("tensor_parallel", "stages"),
        ),
        (
            "several ways to checkpoint",
            good.replace("tensor_parallel", "checkpointed_layers"),
        ),
        (
            "checkpointing from below",
            good.replace("tensor_parallel", "checkpointed_layers")
                .replace("at_most", "at_least"),
        ),
    ];
    let mut shown = String::new();
    for (title, row) in cases {
        let start = "[model]\npreset = \"llama-13b\"\n[cluster]\npreset = \"dgx-a100-80gb\"\n\
                     gpus = 64\n[training]\nsequence_length = 2048\nglobal_batch = 512\n\
                     [framework]\npreset = \"unrestricted\"\n";
        let text = if row.starts_with("constraint") {
            format!("{row}{start}")
        } else {
            format!("{start}[[constraint]]\n{row}\n")
        };
        let error = read(&text).expect_err(title);
        assert!(error.to_string().contains("\nhint: "), "{title}: {error}");
        writeln!(shown, "# {title}\nerror: {error}").expect("text grows");
    }
    snapshot("errors_in_constraints", &shown);
}
