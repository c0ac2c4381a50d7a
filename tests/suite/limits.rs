//! Time limits: whenever the time is over, every loop goes home at once, and what is said holds.

use std::path::Path;
use std::time::{Duration, Instant};

use formulations::staged::plan_of;
use parlayout::axis::AxisSet;
use parlayout::explain::{TimeLimits, explain};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::plan::{CutShort, Formulation, Outcome};
use parlayout::planner::cost_table::CostTable;
use parlayout::planner::groups;
use parlayout::planner::objective::{self, Goal, Objective};
use parlayout::planner::screening::{ChoiceBound, screen};
use parlayout::planner::staged::{Excluding, encode};
use parlayout::planner::{self, Deadline, PlanError, PlanOptions, Pruning};
use parlayout::price::{self, Sought};
use parlayout::rules;
use parlayout::verify::{self, Options, VerdictStatus};
use parlayout::{Document, SolutionDocument};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::{cases, instances, parse, project, random_text};

fn options(deadline: Deadline) -> PlanOptions {
    PlanOptions {
        deadline,
        ..PlanOptions::default()
    }
}

/// Most looks at the clock after the end: each loop that is open sees it once.
const LATE: u64 = 60;

/// Ends a search at some of its steps, from the first to the last. `attempt` says whether it was cut short.
fn at_any_step(mut attempt: impl FnMut(Deadline) -> bool) {
    let mut most = 0;
    loop {
        let (deadline, looks) = Deadline::after_looks(most);
        let is_cut = attempt(deadline);
        let late = looks.taken().saturating_sub(most);
        assert!(late <= LATE, "{late} looks after an end at {most}");
        if late == 0 {
            assert!(!is_cut, "nothing ended it");
            return;
        }
        most = (most + 1).max(most * 5 / 4);
    }
}

/// The outcome at an end is no better than the best, and its bound is none below.
fn check_honest(instance: &Instance, best: &Outcome, outcome: &Outcome) {
    let mfu = |outcome: &Outcome| outcome.plan().map(|it| it.choice.prediction.mfu.value());
    let best = mfu(best);
    match outcome {
        Outcome::Optimal(_) => {
            let (found, best) = (mfu(outcome), best.expect("there is one"));
            assert!((found.expect("a plan") / best - 1.0).abs() < 1e-9);
        }
        Outcome::Infeasible(_) => assert_eq!(best, None),
        Outcome::Feasible(plan) => {
            let best = best.expect("there is one");
            assert!(plan.choice.prediction.mfu.value() <= best * (1.0 + 1e-9));
            assert!(plan.proof.bound_mfu.value() >= best * (1.0 - 1e-3));
            assert!(rules::violations(instance, &plan.choice.layout).is_empty());
            assert!(!plan.proof.cut_short.is_empty());
        }
        Outcome::Unknown(proof) => assert!(!proof.cut_short.is_empty()),
    }
}

#[test]
fn an_end_at_any_step_leaves_an_honest_answer() {
    let mut runner = TestRunner::new(cases(1));
    for _ in 0..12 {
        let text = random_text()
            .new_tree(&mut runner)
            .expect("a text")
            .current();
        let instance = parse(&text, &[]);
        let best = planner::plan(&instance, &PlanOptions::default()).expect("it answers");
        at_any_step(|deadline| {
            let outcome = planner::plan(&instance, &options(deadline)).expect("it answers");
            check_honest(&instance, &best, &outcome);
            !outcome.proof().cut_short.is_empty()
        });
    }
}

#[test]
fn explanations_prices_and_goals_end_at_any_step() {
    let shipped = ["llama-65b-2k-16gpu-24gb", "hagemann-13b-2k-64gpu"];
    for instance in instances().filter(|it| shipped.contains(&it.name.as_str())) {
        let again = |_: &[String]| None;
        at_any_step(|whole| {
            let limits = TimeLimits {
                whole,
                variations: None,
            };
            match explain(&instance, None, &again, &limits) {
                Ok(_) => false,
                Err(PlanError::TimeOver(_)) => true,
                Err(error) => panic!("{error}"),
            }
        });
        let (deadline, _) = Deadline::after_looks(40);
        let prices = price::price(&instance, &options(deadline), &|_, _| ()).expect("it answers");
        assert!(prices.offers.iter().any(|offer| !offer.best.is_proven()));
        let (deadline, _) = Deadline::after_looks(40);
        let front = price::front(&instance, &Sought::Memory, &options(deadline), &|_, _| ());
        assert!(front.expect("it answers").unproven > 0);
        let goal = Goal {
            objective: Objective::GpuHours,
            deadline: None,
            at_least_mfu: None,
            steps: None,
            counts: (1..=8).map(|nodes| nodes * 8).collect(),
        };
        let (deadline, _) = Deadline::after_looks(40);
        let answer = objective::plan_for(&instance, &goal, &options(deadline));
        let status = answer.expect("it answers").outcome.status().as_str();
        assert!(["feasible", "unknown"].contains(&status), "{status}");
    }
}

#[test]
fn an_answer_that_was_cut_short_can_be_verified() {
    let path = project("instances/llama-65b-2k-128gpu-24gb.toml");
    let instance = Instance::read(&path).expect("shipped");
    let mut cut = Vec::new();
    for most in [2, 5, 10, 20, 40, 80, 160, 320, 640, 1280] {
        let (deadline, _) = Deadline::after_looks(most);
        let outcome = planner::plan(&instance, &options(deadline)).expect("it answers");
        cut.extend(outcome.proof().cut_short.clone());
        let text = SolutionDocument::new(&instance, &outcome).json();
        let options = Options {
            deadline: Deadline::NEVER,
            progress: &|_, _| (),
        };
        let verdict = verify::verify(&text, &options).expect("it is an answer");
        assert!(
            verdict.verdict == VerdictStatus::Accepted,
            "{most}: {verdict:?}"
        );
    }
    for part in [CutShort::Screening, CutShort::Program, CutShort::NextBest] {
        assert!(cut.contains(&part), "{part:?} is never cut short: {cut:?}");
    }
}

/// Jobs whose spaces and programs take long: many layers, many GPUs, many values an axis.
fn slow_text() -> impl Strategy<Value = String> {
    let network = (100_u32..1000, 0_usize..3, 0_usize..4);
    let machine = (8_u32..16, 20_u32..90, 0_usize..3);
    (network, machine, 0_usize..4, any::<u16>()).prop_map(
        |((layers, width, framework), (exponent, memory, cluster), rows, wide)| {
            let hidden = [2048, 5120, 12_288][width];
            let framework = ["megatron-lm", "nanotron", "unrestricted", "aleph-alpha-scaling"][framework];
            let cluster = ["dgx-a100-80gb", "dgx-h100-80gb", "a100-80gb-one-nic"][cluster];
            let values = |bit: u32, most: u32| {
                let values: Vec<u32> = (1..=if wide >> bit & 1 == 1 { most } else { 4 }).collect();
                format!("{values:?}")
            };
            let rows: Vec<String> = (0..rows)
                .map(|row| {
                    format!(
                        "[[constraint]]\nname = \"r{row}\"\nat_most = {}\nterms = {{\"layers[{row}]\" = 1, \
                         \"layers[{}]\" = 2}}\n",
                        layers / 4,
                        row + 1
                    )
                })
                .collect();
            format!(
                "[model]\nlayers = {layers}\nhidden = {hidden}\nheads = {}\n\
                 feed_forward_width = {}\nvocabulary = 32000\n[cluster]\npreset = \"{cluster}\"\n\
                 gpus = {}\nmemory = \"{memory} GB\"\n[framework]\npreset = \"{framework}\"\n\
                 [training]\nsequence_length = 8192\nglobal_batch = 65536\n{}[search]\n\
                 pipeline_parallel = {}\nmicro_batch = {}\nvirtual_stages = {}\n\
                 context_parallel = {}\n",
                hidden / 128,
                hidden * 4,
                1_u32 << exponent,
                rows.concat(),
                values(0, 512),
                values(1, 300),
                values(2, 300),
                values(3, 300),
            )
        },
    )
}

/// Processor time of this thread; where the system does not tell, the time of the wall.
fn processor_time(start: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let own = text.split(' ').next().and_then(|own| own.parse().ok());
    own.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// On a machine that is busy with other things the limit comes after less work: what is measured here is
/// the work after it.
#[test]
fn slow_jobs_keep_their_limits() {
    let limit = Duration::from_millis(100);
    let mut runner = TestRunner::new(cases(1));
    let mut cut = 0;
    for number in 0..50 {
        let text = slow_text().new_tree(&mut runner).expect("a text").current();
        let read = instance::from_text("slow", &text, Path::new(""), &Overrides::none());
        let instance = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let clock = Instant::now();
        let start = processor_time(clock);
        let outcome = planner::plan(&instance, &options(Deadline::after(Some(limit))));
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let taken = processor_time(clock).saturating_sub(start);
        cut += usize::from(!outcome.proof().cut_short.is_empty());
        // Twice what is promised: cores that are shared are slower.
        let most = 2 * (limit * 3 / 2).max(limit + Duration::from_millis(200));
        let status = outcome.status();
        let job: String = text.chars().take(400).collect();
        assert!(taken <= most, "{number}: {taken:?} ({status})\n{job}");
    }
    assert!(cut > 25, "only {cut} of the jobs are slow");
}

/// What the program is built of after the end is one choice with a plan, however many there are: an answer is
/// known, and the work does not grow.
#[test]
fn what_follows_the_end_does_not_grow_with_the_space() {
    let text = "[model]\nlayers = 1000\nhidden = 12288\nheads = 96\nfeed_forward_width = 49152\n\
                vocabulary = 32000\n[cluster]\npreset = \"dgx-a100-80gb\"\ngpus = 1024\n[training]\n\
                sequence_length = 2048\nglobal_batch = 2048\n";
    let instance = parse(text, &[]);
    let table = CostTable::new(&instance, Formulation::Staged);
    // Over when all have a first bound and some have been looked at more closely.
    let (end, _) = Deadline::after_looks(table.units.len() as u64 / 16 + 200);
    let mut screening = screen(&table, 4, AxisSet::EMPTY, Pruning::ByBounds, end);
    let encoded = encode(&table, &mut screening, Excluding::Shown, end);
    let groups = &encoded.data.groups;
    let unreached = |bound: &&ChoiceBound| matches!(bound, ChoiceBound::Unreached(_));
    let left = screening.bounds.iter().filter(unreached).count();
    assert!(left > 10_000, "{left} choices are left");
    assert!(
        (1..=2000).contains(&groups.len()),
        "{} groups",
        groups.len()
    );
    // The groups of a choice share the stages that are alike.
    let mut stages: Vec<_> = groups.iter().map(|group| group.stages.as_ptr()).collect();
    stages.sort_unstable();
    stages.dedup();
    assert!(stages.len() <= 4, "{} lists of stages", stages.len());
    assert!(encoded.data.excluded.is_empty());
    let quick = groups::quick(&table, &screening.choices[0]);
    assert!(quick.is_none_or(|quick| quick.layers.iter().sum::<i64>() == 1000));
}

/// A quick plan is one of the variants that it names, and as good as is said.
#[test]
fn quick_plans_are_plans() {
    let mut checked = 0;
    for instance in instances() {
        let table = CostTable::new(&instance, Formulation::Staged);
        for choice in groups::choices(&table).iter().step_by(97) {
            let Some(quick) = groups::quick(&table, choice) else {
                continue;
            };
            let variant = &groups::variants(&table, choice)[quick.variant];
            let plan = plan_of(&variant.group, 0, &table.layers, &quick.layers);
            let objective = plan.expect("it fits").objective;
            assert!(objective <= quick.objective, "{}", instance.name);
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked}");
}

#[test]
fn long_pipelines_of_many_micro_batches_are_still_numbers() {
    let text = "[model]\nlayers = 1000\nhidden = 8192\nheads = 64\nvocabulary = 32000\n\
                feed_forward_width = 28672\n[cluster]\npreset = \"dgx-h100-80gb\"\ngpus = 1024\n\
                [training]\nsequence_length = 4096\nglobal_batch = 1048576\n[search]\n\
                tensor_parallel = [1]\npipeline_parallel = [256, 512]\ncontext_parallel = [1]\n\
                virtual_stages = [1]\nmicro_batch = [1]\n";
    let instance = parse(text, &[]);
    let outcome = planner::plan(&instance, &PlanOptions::default());
    assert!(outcome.is_ok(), "{outcome:?}");
}
