//! A backtest as a JSON document, described in `docs/json.md`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, BacktestReport};
use crate::laboratory::backtest::findings::Finding;
use crate::laboratory::backtest::{Reliability, Scope, Scores, Transfer};
use crate::laboratory::report::write_rounded;
use crate::report::document::Document;

/// The answer as a document of the format `parlayout/backtest/v1`, on several lines.
#[must_use]
pub fn json(answer: &Answer) -> String {
    let transfers = answer.transfers.as_ref();
    BacktestDocument {
        schema: BacktestDocument::FORMAT,
        reports: answer.reports.iter().map(ReportDocument::new).collect(),
        transfers: transfers.map(|report| TransfersDocument {
            basis: &report.basis,
            in_sample: &report.in_sample,
            settings: report.transfers,
        }),
    }
    .json()
}

/// The JSON Schema of `parlayout/backtest/v1`, shipped as `docs/backtest.schema.json`.
#[must_use]
pub fn schema() -> String {
    BacktestDocument::schema()
}

/// Scores of predictions against measured runs.
#[derive(Debug, Serialize, JsonSchema)]
struct BacktestDocument<'a> {
    /// Name and version of this format.
    #[schemars(extend("const" = BacktestDocument::FORMAT))]
    schema: &'static str,
    /// One report for each kind of prediction.
    reports: Vec<ReportDocument<'a>>,
    /// Calibrations on a few runs; null unless asked for.
    transfers: Option<TransfersDocument<'a>>,
}

impl Document for BacktestDocument<'_> {
    const FORMAT: &'static str = "parlayout/backtest/v1";

    fn json(&self) -> String {
        write_rounded(self)
    }
}

/// Calibrations on a few random runs, scored on the others.
#[derive(Debug, Serialize, JsonSchema)]
struct TransfersDocument<'a> {
    /// What was done, in a sentence.
    basis: &'a str,
    /// Sources whose runs the figures before were fitted to, those held out included.
    in_sample: &'a [String],
    /// One entry for each source, GPU and number format.
    settings: &'a [Transfer],
}

/// Scores of one kind of prediction.
#[derive(Debug, Serialize, JsonSchema)]
struct ReportDocument<'a> {
    /// What tells it apart from the other reports.
    name: &'static str,
    /// What the predictions rest on, in a sentence.
    basis: &'a str,
    /// Sources whose runs the figures were fitted to: scores on them are in sample.
    in_sample: &'a [String],
    /// Scores of each group.
    groups: &'a [Scope],
    /// Scores of each source.
    sources: &'a [Scope],
    /// Scores of all runs together.
    total: &'a Scores,
    /// Said and true risk of running out of memory, by source.
    reliability: Vec<ReliabilityDocument<'a>>,
    /// Findings of the paper, by source that has the runs.
    findings: Vec<FindingsDocument<'a>>,
    /// Runs left out, by reason.
    skipped: Vec<SkippedDocument<'a>>,
}

/// Said and true risk.
#[derive(Debug, Serialize, JsonSchema)]
struct ReliabilityDocument<'a> {
    /// Where the runs come from, or `all`.
    source: &'a str,
    /// The risks.
    #[serde(flatten)]
    risks: &'a Reliability,
}

/// Findings of the paper on one source.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingsDocument<'a> {
    /// Where the runs come from.
    source: &'a str,
    /// The findings.
    findings: &'a [Finding],
}

/// Runs left out for one reason.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedDocument<'a> {
    /// The reason.
    because: &'a str,
    /// How many.
    runs: usize,
}

impl<'a> ReportDocument<'a> {
    fn new(report: &'a BacktestReport) -> Self {
        let backtest = report.backtest;
        let reliability = backtest.reliability.iter();
        let findings = report.findings.iter();
        let skipped = report.skipped.iter();
        Self {
            name: report.name,
            basis: &report.basis,
            in_sample: &report.in_sample,
            groups: &backtest.groups,
            sources: &backtest.sources,
            total: &backtest.total,
            reliability: reliability
                .map(|(source, risks)| ReliabilityDocument { source, risks })
                .collect(),
            findings: findings
                .map(|(source, findings)| FindingsDocument { source, findings })
                .collect(),
            skipped: skipped
                .map(|(because, runs)| SkippedDocument {
                    because,
                    runs: *runs,
                })
                .collect(),
        }
    }
}
