//! `parlayout backtest --leave-out`: runs are predicted by what others teach, and by nothing else.

use parlayout::laboratory::backtest::{self, Backtest, LeaveOut};
use parlayout::laboratory::runs::{self, RunSetups, RunsFile};

use crate::backtest::run;
use crate::support::{project, snapshot};

const RUNS: &str = "tests/data/leave-out.csv";

/// The scores with what is left out, of runs whose step times of one source take `factor` times as long.
fn scored(by: LeaveOut, slowed: &str, factor: f64) -> Backtest {
    let mut file = runs::read(&project(RUNS)).expect("the invented runs are readable");
    let slow = file.runs.iter_mut().filter(|run| run.source == slowed);
    for time in slow.filter_map(|run| run.step_time.as_mut()) {
        *time *= factor;
    }
    let files: [RunsFile; 1] = [file];
    let setups = RunSetups::new(None, None)
        .expect("no framework is named")
        .from_data_sheets();
    let (cases, _) = backtest::cases(&files, |run| setups.model(run));
    let timed = backtest::timed_sources(&cases);
    let predicted = backtest::leave_out(&timed, &setups, by, |_| {}).expect("all are modelled");
    backtest::score(&predicted, &[0.05])
}

/// Mean of predicted over measured step time.
fn ratio(backtest: &Backtest, source: &str) -> f64 {
    let mut sources = backtest.sources.iter();
    let scope = sources.find(|scope| scope.source == source);
    let scope = scope.expect("it has four step times");
    1.0 + scope.scores.time.expect("it is timed").bias
}

#[test]
fn what_is_left_out_teaches_nothing() {
    for by in [LeaveOut::Source, LeaveOut::Framework, LeaveOut::Gpu] {
        let (before, after) = (scored(by, "", 1.0), scored(by, "beads", 2.0));
        let [one, other] = [&before, &after].map(|it| ratio(it, "beads"));
        assert!((one / other - 2.0).abs() < 1e-9, "{by}: {one} {other}");
    }
}

#[test]
fn the_others_teach() {
    let before = scored(LeaveOut::Source, "", 1.0);
    let slower = scored(LeaveOut::Source, "slide-rule", 1.3);
    let moved = |source: &str| ratio(&slower, source) / ratio(&before, source);
    // Under the same framework, on another generation of GPUs.
    assert!(moved("abacus") > 1.01, "{}", moved("abacus"));
    assert!(moved("abacus") > moved("beads"), "{}", moved("beads"));
    let framework = |slowed: &str, factor| scored(LeaveOut::Framework, slowed, factor);
    let unmoved = ratio(&framework("slide-rule", 1.3), "abacus");
    assert!((unmoved - ratio(&framework("", 1.0), "abacus")).abs() < 1e-9);
}

#[test]
fn the_table_names_sources_mechanisms_and_intervals() {
    let arguments = [RUNS, "--leave-out", "source"];
    let markdown = [&arguments[..], &["--format", "markdown"]].concat();
    let (stdout, stderr) = run(&markdown, 0);
    snapshot("backtest_leave_out", &stdout);
    assert_eq!(stderr, "", "no progress but on a terminal");
    assert_eq!(run(&markdown, 0).0, stdout, "it is deterministic");
    let (text, _) = run(&arguments, 0);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn what_cannot_be_left_out_is_refused() {
    let check = |arguments: &[&str], part: &str| {
        let (_, stderr) = run(&[&[RUNS], arguments].concat(), 2);
        assert!(stderr.contains(part), "{stderr}");
    };
    check(
        &["--leave-out", "layer"],
        "possible values: source, framework, gpu, group",
    );
    let given = ["--leave-out", "source", "--cluster", "dgx-a100-80gb"];
    check(&given, "omit `--cluster` and `--framework`");
    check(
        &["--leave-out", "gpu", "--priors", "shipped"],
        "add `--leave-out group`",
    );
    let (_, stderr) = run(&["tests/data/backtest.csv", "--leave-out", "source"], 0);
    assert_eq!(stderr, "");
}
