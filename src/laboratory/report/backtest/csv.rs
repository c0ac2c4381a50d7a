//! A backtest as comma-separated values: one row a scope and accepted risk.

use super::{Answer, BacktestReport};
use crate::laboratory::backtest::{Errors, Picks, Scores};
use crate::report::document::rounded;
use crate::report::{csv_number, csv_of};

/// The columns.
const HEADER: [&str; 25] = [
    "predicted_by",
    "scope",
    "source",
    "group",
    "verdict_runs",
    "verdicts_right",
    "false_fits",
    "false_ooms",
    "mfu_runs",
    "mfu_error_mean",
    "mfu_error_median",
    "mfu_bias",
    "rank_correlation_in_group",
    "rank_correlation",
    "peak_runs",
    "peak_error_mean",
    "peak_error_median",
    "max_oom_risk",
    "pick_groups",
    "pick",
    "pick_top_three",
    "rule_of_thumb",
    "random",
    "pick_ran_out_of_memory",
    "pick_nothing_fits",
];

/// The scores of every group, every source and all runs, in this order, for each report. Shares
/// go from 0 to 1; what does not apply is empty.
#[must_use]
pub fn csv(answer: &Answer) -> String {
    csv_of(&HEADER, answer.reports.iter().flat_map(rows))
}

fn rows(report: &BacktestReport) -> Vec<Vec<String>> {
    let backtest = report.backtest;
    let groups = backtest.groups.iter().map(|scope| ("group", scope));
    let sources = backtest.sources.iter().map(|scope| ("source", scope));
    let mut rows = Vec::new();
    for (kind, scope) in groups.chain(sources) {
        let group = scope.group.as_deref().unwrap_or_default();
        let names = [report.name, kind, &scope.source, group];
        rows.extend(scope_rows(names, &scope.scores));
    }
    rows.extend(scope_rows([report.name, "all", "", ""], &backtest.total));
    rows
}

/// One row for each accepted risk.
fn scope_rows(names: [&str; 4], scores: &Scores) -> Vec<Vec<String>> {
    let verdicts = &scores.verdicts;
    let mut figures: Vec<String> = names.map(str::to_owned).to_vec();
    figures.extend(
        [
            verdicts.runs,
            verdicts.right,
            verdicts.false_fits,
            verdicts.false_ooms,
        ]
        .map(|count| count.to_string()),
    );
    figures.extend(error_fields(scores.mfu));
    figures.push(rounded_number(scores.mfu.map(|errors| errors.bias)));
    figures.push(rounded_number(scores.rank_in_group));
    figures.push(rounded_number(scores.rank));
    figures.extend(error_fields(scores.peak));
    let with_picks = |picks: &Option<Picks>| {
        let mut row = figures.clone();
        row.extend(pick_fields(picks.as_ref()));
        row
    };
    scores.picks.iter().map(with_picks).collect()
}

fn error_fields(errors: Option<Errors>) -> [String; 3] {
    [
        errors.map_or_else(String::new, |errors| errors.runs.to_string()),
        rounded_number(errors.map(|errors| errors.mean)),
        rounded_number(errors.map(|errors| errors.median)),
    ]
}

fn pick_fields(picks: Option<&Picks>) -> [String; 8] {
    let Some(picks) = picks else {
        return Default::default();
    };
    [
        picks.max_oom_risk.to_string(),
        picks.groups.to_string(),
        rounded(picks.solver).to_string(),
        rounded(picks.top_three).to_string(),
        rounded(picks.rule_of_thumb).to_string(),
        rounded(picks.random).to_string(),
        picks.ran_out_of_memory.to_string(),
        picks.nothing_fits.to_string(),
    ]
}

fn rounded_number(value: Option<f64>) -> String {
    csv_number(value.map(rounded))
}
