//! A backtest: as tables for people, as Markdown, as JSON or CSV for programs, as a page with a plot.

mod csv;
mod document;
mod html;
mod sections;
mod tables;
mod transfer;

pub use csv::csv;
pub use document::{json, schema};
pub use html::page;

use crate::laboratory::backtest::findings::Finding;
use crate::laboratory::backtest::{Backtest, Case, Skipped, Transfer};
use crate::report::joined;
use crate::report::style::{Style, wrap};
use tables::Section;

/// A backtest with what is reported beside its scores.
#[derive(Debug)]
pub struct BacktestReport<'a> {
    /// What tells it apart from the other reports of an answer, in a few words.
    pub name: &'static str,
    /// What the predictions rest on, in a sentence.
    pub basis: String,
    /// Sources whose runs the figures were fitted to: marked with a star.
    pub in_sample: Vec<String>,
    /// Which scopes have a row.
    pub by: By,
    /// The runs with their predictions.
    pub cases: &'a [Case<'a>],
    /// The scores.
    pub backtest: &'a Backtest,
    /// Findings by source.
    pub findings: &'a [(String, Vec<Finding>)],
    /// Runs that could not be modelled.
    pub skipped: &'a Skipped,
}

/// A name with a star where its source is in sample.
fn starred(name: &str, source: &str, in_sample: &[String]) -> String {
    if in_sample.iter().any(|it| it == source) {
        format!("{name} *")
    } else {
        name.to_owned()
    }
}

/// Which scopes have a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Every group.
    Group,
    /// Every source.
    Source,
}

/// Calibrations on a few random runs, scored on the others.
#[derive(Debug)]
pub struct TransferReport<'a> {
    /// What was done, in a sentence.
    pub basis: String,
    /// Sources whose runs the figures before were fitted to: marked with a star.
    pub in_sample: Vec<String>,
    /// One entry a setting.
    pub transfers: &'a [Transfer],
}

/// All that one command reports.
#[derive(Debug, Default)]
pub struct Answer<'a> {
    /// One report for each kind of prediction.
    pub reports: Vec<BacktestReport<'a>>,
    /// Calibrations on a few runs.
    pub transfers: Option<TransferReport<'a>>,
}

/// A part of an answer: what it rests on, and its tables.
type Part<'a> = (&'a str, Vec<Section>);

impl Answer<'_> {
    /// The parts as narrow tables.
    fn parts(&self) -> Vec<Part<'_>> {
        let reports = self.reports.iter();
        let reports = reports.map(|report| (report.basis.as_str(), sections::sections(report)));
        let transfers = self.transfers.iter();
        let transfers = transfers.map(|report| (report.basis.as_str(), transfer::sections(report)));
        reports.chain(transfers).collect()
    }

    /// The parts as few wide tables.
    fn wide_parts(&self) -> Vec<Part<'_>> {
        let reports = self.reports.iter();
        let reports =
            reports.map(|report| (report.basis.as_str(), sections::wide_sections(report)));
        let transfers = self.transfers.iter();
        let transfers =
            transfers.map(|report| (report.basis.as_str(), transfer::wide_sections(report)));
        let comparison = (self.reports.len() > 1).then(|| {
            let section = sections::comparison(&self.reports);
            ("All runs, by each kind of prediction below.", vec![section])
        });
        comparison
            .into_iter()
            .chain(reports)
            .chain(transfers)
            .collect()
    }
}

/// The answer as tables for people, at 80 columns.
#[must_use]
pub fn text(answer: &Answer, style: &Style) -> String {
    let mut blocks = Vec::new();
    for (basis, sections) in answer.parts() {
        blocks.push(wrap(basis, 0));
        blocks.extend(sections.iter().map(|section| section.text(style)));
    }
    joined(&blocks)
}

/// The answer as Markdown; `command` is what produced it.
#[must_use]
pub fn markdown(answer: &Answer, command: &str) -> String {
    let mut blocks = vec![format!("`{command}`")];
    for (basis, sections) in answer.wide_parts() {
        blocks.push(basis.to_owned());
        blocks.extend(sections.iter().flat_map(Section::markdown));
    }
    joined(&blocks)
}
