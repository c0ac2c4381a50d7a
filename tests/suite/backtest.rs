//! `parlayout backtest` on a few invented runs.

use std::path::PathBuf;
use std::process::Command;

use parlayout::laboratory::backtest::{self, Case, contenders, pick};
use parlayout::laboratory::runs::{self, RunSetups, RunsFile};

use crate::support::{project, snapshot};

const RUNS: &str = "tests/data/backtest.csv";

/// Runs the command and demands an exit code.
pub(crate) fn run(arguments: &[&str], code: i32) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .arg("backtest")
        .args(arguments)
        .current_dir(project(""))
        .output()
        .expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{stderr}");
    (stdout, stderr)
}

#[test]
fn scores_are_printed_in_every_format() {
    for format in ["table", "markdown", "csv", "json"] {
        let (stdout, _) = run(&[RUNS, "--format", format], 0);
        snapshot(&format!("backtest_{format}"), &stdout);
    }
}

#[test]
fn tables_fit_a_terminal() {
    let arguments: [&[&str]; 3] = [
        &[RUNS, "--by", "group"],
        &[RUNS, "--leave-one-out", "--priors", "shipped"],
        &[RUNS, "--calibrate-on", "3", "--draws", "2"],
    ];
    for arguments in arguments {
        let (stdout, _) = run(arguments, 0);
        for line in stdout.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn fits_are_scored_on_what_they_have_not_seen() {
    let (stdout, _) = run(
        &[
            RUNS,
            "--leave-one-out",
            "--priors",
            "shipped",
            "--format",
            "markdown",
        ],
        0,
    );
    snapshot("backtest_leave_one_out", &stdout);
    let draws = ["--calibrate-on", "3", "--draws", "4", "--seed", "2"];
    let (stdout, _) = run(&[&[RUNS, "--format", "json"], &draws[..]].concat(), 0);
    snapshot("backtest_draws", &stdout);
    let (again, _) = run(&[&[RUNS, "--format", "json"], &draws[..]].concat(), 0);
    assert_eq!(stdout, again, "the same seed draws the same runs");
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let check = |arguments: &[&str], part: &str| {
        let (_, stderr) = run(&[&[RUNS], arguments].concat(), 2);
        assert!(stderr.contains(part), "{stderr}");
        assert!(stderr.contains("hint: "), "{stderr}");
    };
    check(&["--max-oom-risk", "1"], "not between 0 and 1");
    check(&["--calibrate-on", "30"], "enough runs with a speed");
    check(&["--calibrate-on", "3", "--format", "csv"], "has no rows");
    check(&["--cluster", "abacus"], "no cluster `abacus`");
}

#[test]
fn the_page_stands_alone() {
    let folder = std::env::temp_dir().join(format!("parlayout-backtest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    let path: PathBuf = folder.join("page.html");
    run(&[RUNS, "--html", &path.to_string_lossy()], 0);
    let page = std::fs::read_to_string(&path).expect("the page is written");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let outside = ["<script", "<link", "src=", "href=", "url("];
    for part in outside {
        assert!(!page.contains(part), "{part}");
    }
    // 12 runs have a representative speed, two sources stand in the legend.
    assert_eq!(page.matches("<circle").count(), 12 + 2);
    assert!(page.contains("abacus &lt;b&gt;"), "names are escaped");
}

fn file() -> RunsFile {
    runs::read(&project(RUNS)).expect("the invented runs are readable")
}

fn cases(files: &[RunsFile]) -> Vec<Case<'_>> {
    let setups = RunSetups::new(None, None).expect("no framework is named");
    backtest::cases(files, |run| setups.model(run)).0
}

/// The cases of the source `ours`.
fn ours<'a>(cases: &'a [Case<'a>]) -> Vec<&'a Case<'a>> {
    let cases = cases.iter();
    cases.filter(|case| case.run.source == "ours").collect()
}

#[test]
fn runs_that_are_alike_count_as_their_mean() {
    let files = [file()];
    let cases = cases(&files);
    let ours = ours(&cases);
    let found = contenders(&ours);
    // Runs 1 and 2 are alike, 8 has no representative speed, 9 ended otherwise.
    let names: Vec<&str> = found.iter().map(|it| it.case.run.run.as_str()).collect();
    assert_eq!(names, ["1", "3", "4", "5", "6", "7"]);
    assert!((found[0].measured - 0.55).abs() < 1e-12);
    assert!(found[1].measured.abs() < 1e-12, "it ran out of memory");
    assert_eq!(ours.iter().filter_map(|case| case.timed()).count(), 6);
}

#[test]
fn picks_are_judged_by_what_was_measured() {
    let files = [file()];
    let cases = cases(&files);
    let ours = ours(&cases);
    let picked = pick(&contenders(&ours), 0.05, 3).expect("two layouts");
    // Micro-batch 2 on one GPU is predicted fastest and ran out of memory.
    assert!(picked.solver.expect("some fit").abs() < 1e-12);
    assert!((picked.top_three - 1.0).abs() < 1e-12);
    assert!((picked.rule_of_thumb - 1.0).abs() < 1e-12);
    let shares = (0.55 + 0.0 + 0.47 + 0.49 + 0.53 + 0.44) / 6.0 / 0.55;
    assert!((picked.random - shares).abs() < 1e-12);
}
