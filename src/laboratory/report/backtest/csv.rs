//! A backtest as comma-separated values: one row a scope and accepted risk.

use super::metrics::{PEAKS, PICKS, TIME, UTILISATION, VERDICTS};
use super::{Answer, BacktestReport};
use crate::laboratory::backtest::{Picks, Scores};
use crate::report::document::rounded;
use crate::report::{csv_number, csv_of};

/// The scores of every group, every source and all runs, then means and medians of sources, for each report. Shares
/// go from 0 to 1; what does not apply is empty.
#[must_use]
pub fn csv(answer: &Answer) -> String {
    let mut header = vec!["predicted_by", "scope", "source", "group"];
    header.extend(figures(None, None).0);
    csv_of(&header, answer.reports.iter().flat_map(rows))
}

/// Columns and values.
fn figures(
    scores: Option<&Scores>,
    picks: Option<&Picks>,
) -> (Vec<&'static str>, Vec<Option<f64>>) {
    let parts = [VERDICTS, UTILISATION, PEAKS].map(|metrics| metrics.csv(scores));
    let parts = parts
        .into_iter()
        .chain([PICKS.csv(picks), TIME.csv(scores)]);
    parts
        .flat_map(|(names, values)| names.into_iter().zip(values))
        .unzip()
}

fn rows(report: &BacktestReport) -> Vec<Vec<String>> {
    let backtest = &report.backtest;
    let groups = backtest.groups.iter().map(|scope| ("group", scope));
    let sources = backtest.sources.iter().map(|scope| ("source", scope));
    let mut rows = Vec::new();
    for (kind, scope) in groups.chain(sources) {
        let group = scope.group.as_deref().unwrap_or_default();
        let names = [report.name, kind, &scope.source, group];
        rows.extend(scope_rows(names, &scope.scores));
    }
    rows.extend(scope_rows([report.name, "all", "", ""], &backtest.total));
    if let Some(of_sources) = &backtest.of_sources {
        let names = |scope| [report.name, scope, "", ""];
        rows.extend(scope_rows(names("mean of sources"), &of_sources.mean));
        rows.extend(scope_rows(names("median of sources"), &of_sources.median));
    }
    rows
}

/// One row for each accepted risk.
fn scope_rows(names: [&str; 4], scores: &Scores) -> Vec<Vec<String>> {
    let row = |picks: &Option<Picks>| {
        let (_, values) = figures(Some(scores), picks.as_ref());
        let values = values
            .into_iter()
            .map(|value| csv_number(value.map(rounded)));
        names.into_iter().map(str::to_owned).chain(values).collect()
    };
    scores.picks.iter().map(row).collect()
}
