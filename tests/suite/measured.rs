//! The cost model and the solver against the measured runs that the project ships.
//!
//! The runs are optional (`data/README.md`): without them the tests that need them say so and pass.

use parlayout::laboratory::backtest::{self, Case, contenders};
use parlayout::laboratory::runs::{self, RunSetups, RunsFile};
use parlayout::planner::given_layouts::{self, GivenLayout, MemoryCheck};

use crate::readme;
use crate::support::project;

/// The shipped files of runs; `None` where one is missing.
fn shipped() -> Option<Vec<RunsFile>> {
    let paths = ["data/hagemann-2023.csv", "data/other-runs.csv"].map(project);
    if let Some(missing) = paths.iter().find(|path| !path.exists()) {
        eprintln!("skipped: `{}` is not there", missing.display());
        return None;
    }
    let files = paths
        .iter()
        .map(|path| runs::read(path).unwrap_or_else(|error| panic!("{error}")));
    Some(files.collect())
}

fn given<'a>(case: &'a Case) -> GivenLayout<'a> {
    GivenLayout {
        job: &case.modelled.job,
        layout: &case.modelled.layout,
        vocabulary: case.modelled.vocabulary,
        step_time: case.modelled.prediction.step_time,
        memory: MemoryCheck::Checked,
    }
}

/// The three fastest that fit, by sorting predictions.
fn sorted(group: &[&Case], risk: f64) -> Vec<f64> {
    let fitting = group
        .iter()
        .filter(|case| case.modelled.prediction.oom_probability <= risk);
    let mut speeds: Vec<f64> = fitting.map(|case| case.predicted_mfu()).collect();
    speeds.sort_by(|a, b| b.total_cmp(a));
    speeds.truncate(3);
    speeds
}

#[test]
fn the_program_picks_what_sorting_picks() {
    let Some(files) = shipped() else { return };
    let setups = RunSetups::new(None, None).expect("no framework is named");
    let (cases, _) = backtest::cases(&files, |run| setups.model(run));
    let mut groups: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in &cases {
        match groups.iter_mut().find(|(name, _)| *name == case.group) {
            Some((_, members)) => members.push(case),
            None => groups.push((&case.group, vec![case])),
        }
    }
    let mut solved = 0;
    for (name, members) in &groups {
        let tried: Vec<&Case> = contenders(members).iter().map(|it| it.case).collect();
        if tried.len() < 2 {
            continue;
        }
        for risk in [0.5, 0.05] {
            let layouts: Vec<GivenLayout> = tried.iter().map(|case| given(case)).collect();
            let chosen = given_layouts::best(&layouts, risk, 3);
            let expected = sorted(&tried, risk);
            assert_eq!(chosen.len(), expected.len(), "{name} at {risk}");
            for (&index, fastest) in chosen.iter().zip(&expected) {
                let speed = tried[index].predicted_mfu();
                // Fills are counted in twentieths in the program.
                assert!(
                    (speed / fastest - 1.0).abs() < 1e-3,
                    "{name} at {risk}: {speed} is not {fastest}"
                );
            }
            solved += 1;
        }
    }
    assert!(solved > 100, "{solved} groups were solved");
}

/// Median of the errors of peaks and verdicts of the shipped runs, by source: figures of memory are counted
/// from what frameworks keep, so that no source may be far off.
#[test]
fn memory_of_the_shipped_runs_is_as_measured() {
    let Some(files) = shipped() else { return };
    let setups = RunSetups::new(None, None).expect("no framework is named");
    let (cases, _) = backtest::cases(&files, |run| setups.model(run));
    let median = |source: &str| {
        let own = cases.iter().filter(|case| case.run.source == source);
        let mut errors: Vec<f64> = own
            .filter_map(|case| Some(case.peak_error()?.abs()))
            .collect();
        assert!(errors.len() > 10, "{source}");
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    for (source, most) in [
        ("ZeroBubble-ICLR24", 0.03),
        ("VocabularyParallelism", 0.03),
        ("torchtitan", 0.04),
        ("Megatron-LM-CI", 0.05),
        ("nanotron-ultrascale", 0.11),
    ] {
        assert!(median(source) < most, "{source}: {}", median(source));
    }
    let mut counts = [0, 0];
    for case in &cases {
        if let Some(said) = case.oom_probability() {
            counts[usize::from((said > 0.5) == case.ran_out_of_memory())] += 1;
        }
    }
    let [wrong, right] = counts;
    assert!(
        right * 100 >= (right + wrong) * 98,
        "{wrong} wrong, {right} right"
    );
}

#[test]
fn the_scoreboard_shows_what_the_program_prints() {
    readme::check("docs/SCOREBOARD.md");
}
