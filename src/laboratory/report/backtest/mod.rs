//! A backtest: as tables for people, as Markdown, as JSON or CSV for programs, as a page with a plot.

mod csv;
mod html;
mod metrics;
mod sections;
mod tables;
mod transfer;

use schemars::JsonSchema;
use serde::Serialize;

pub use csv::csv;
pub use html::page;

use super::write_rounded;
use crate::choice::choice;
use crate::laboratory::backtest::findings::{self, SourceFindings};
use crate::laboratory::backtest::{self, Backtest, Case, Transfer};
use crate::laboratory::runs::Skipped;
use crate::report::document::Document;
use crate::report::joined;
use crate::report::style::{Style, wrap};
use tables::Section;

/// Scores of one kind of prediction.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BacktestReport<'a> {
    /// What tells it apart from the other reports.
    pub name: &'static str,
    /// What the predictions rest on, in a sentence.
    pub basis: String,
    /// Sources whose runs the figures were fitted to: scores on them are in sample.
    pub in_sample: Vec<String>,
    /// Which scopes have a row.
    #[serde(skip)]
    pub by: By,
    /// Which errors its tables show.
    #[serde(skip)]
    pub errors: ErrorsOf,
    /// The runs with their predictions.
    #[serde(skip)]
    pub cases: Vec<Case<'a>>,
    /// The scores.
    #[serde(flatten)]
    pub backtest: Backtest,
    /// Findings of the paper, by source that has the runs.
    pub findings: Vec<SourceFindings>,
    /// Runs left out, by reason.
    pub skipped: Vec<Skipped>,
}

impl<'a> BacktestReport<'a> {
    /// The scores of the cases, with layouts picked at each of the accepted risks.
    #[must_use]
    pub fn new(name: &'static str, basis: String, cases: Vec<Case<'a>>, risks: &[f64]) -> Self {
        let backtest = backtest::score(&cases, risks);
        Self {
            name,
            basis,
            in_sample: Vec::new(),
            by: match backtest.sources.len() {
                1 => By::Group,
                _ => By::Source,
            },
            errors: ErrorsOf::Utilisation,
            findings: findings::findings(&cases),
            skipped: Vec::new(),
            cases,
            backtest,
        }
    }
}

/// A name with a star where its source is in sample.
fn starred(name: &str, source: &str, in_sample: &[String]) -> String {
    if in_sample.iter().any(|it| it == source) {
        format!("{name} *")
    } else {
        name.to_owned()
    }
}

choice!(
    /// Which scopes have a row.
    By {
        /// Every group.
        Group = "group",
        /// Every source.
        Source = "source",
    }
);

/// What errors of speed are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorsOf {
    /// The utilisation, as papers state it.
    Utilisation,
    /// The step time, with its stated interval.
    StepTime,
}

/// Calibrations on a few random runs, scored on the others.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TransferReport {
    /// What was done, in a sentence.
    pub basis: String,
    /// Sources whose runs the figures before were fitted to, those held out included.
    pub in_sample: Vec<String>,
    /// One entry for each source, GPU and number format.
    #[serde(rename = "settings")]
    pub transfers: Vec<Transfer>,
}

/// Scores of predictions against measured runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer<'a> {
    /// Name and version of this format.
    #[schemars(extend("const" = Answer::FORMAT))]
    schema: &'static str,
    /// One report for each kind of prediction.
    reports: Vec<BacktestReport<'a>>,
    /// Calibrations on a few runs; null unless asked for.
    transfers: Option<TransferReport>,
}

impl Document for Answer<'_> {
    const FORMAT: &'static str = "parlayout/backtest/v1";

    fn json(&self) -> String {
        write_rounded(self)
    }
}

/// How wide tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// Many tables for 80 columns.
    Narrow,
    /// Few tables.
    Wide,
}

impl<'a> Answer<'a> {
    /// All that one command reports.
    #[must_use]
    pub fn new(reports: Vec<BacktestReport<'a>>, transfers: Option<TransferReport>) -> Self {
        Self {
            schema: Self::FORMAT,
            reports,
            transfers,
        }
    }

    /// The parts: what each rests on, and its tables.
    fn parts(&self, width: Width) -> Vec<(&str, Vec<Section>)> {
        let mut parts = Vec::new();
        if width == Width::Wide && self.reports.len() > 1 {
            let section = sections::comparison(&self.reports);
            parts.push(("All runs, by each kind of prediction below.", vec![section]));
        }
        let reports = self.reports.iter();
        parts.extend(reports.map(|it| (&it.basis[..], sections::sections(it, width))));
        let transfers = self.transfers.iter();
        parts.extend(transfers.map(|it| (&it.basis[..], transfer::sections(it, width))));
        parts
    }

    /// The answer as tables for people, at 80 columns.
    #[must_use]
    pub fn text(&self, style: &Style) -> String {
        let mut blocks = Vec::new();
        for (basis, sections) in self.parts(Width::Narrow) {
            blocks.push(wrap(basis, 0));
            blocks.extend(sections.iter().map(|section| section.text(style)));
        }
        joined(&blocks)
    }

    /// The answer as Markdown; `command` is what produced it.
    #[must_use]
    pub fn markdown(&self, command: &str) -> String {
        let mut blocks = vec![format!("`{command}`")];
        for (basis, sections) in self.parts(Width::Wide) {
            blocks.push(basis.to_owned());
            blocks.extend(sections.iter().flat_map(Section::markdown));
        }
        joined(&blocks)
    }
}
