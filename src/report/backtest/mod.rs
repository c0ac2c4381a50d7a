//! A backtest: as tables for people, as Markdown, as JSON or CSV for programs, as a page with a plot.

mod csv;
mod document;
mod html;
mod sections;
mod tables;

pub use csv::csv;
pub use document::{BACKTEST, json, schema};
pub use html::page;
pub(crate) use tables::escaped;

use super::style::{Meaning, Style, wrap};
use crate::backtest::findings::Finding;
use crate::backtest::{Backtest, Case, Skipped};

/// A backtest with what is reported beside its scores.
#[derive(Debug)]
pub struct BacktestReport<'a> {
    /// What the predictions rest on, in a sentence.
    pub basis: String,
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

/// Which scopes have a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Every group.
    Group,
    /// Every source.
    Source,
}

/// The report as tables for people, at 80 columns.
#[must_use]
pub fn text(report: &BacktestReport, style: &Style) -> String {
    let mut text = wrap(&report.basis, 0);
    text.push('\n');
    for section in sections::sections(report) {
        text.push('\n');
        text.push_str(&style.paint(Meaning::Heading, &section.title));
        text.push('\n');
        text.push_str(&tables::text(&section));
        text.push('\n');
        for note in &section.notes {
            text.push_str(&wrap(note, 0));
            text.push('\n');
        }
    }
    text
}

/// The reports as Markdown; `command` is what produced them.
#[must_use]
pub fn markdown(reports: &[BacktestReport], command: &str) -> String {
    let texts = reports.iter().map(markdown_of);
    format!("`{command}`\n\n{}", texts.collect::<Vec<_>>().join("\n"))
}

fn markdown_of(report: &BacktestReport) -> String {
    let mut text = format!("{}\n", report.basis);
    for section in sections::wide_sections(report) {
        text.push_str(&format!("\n**{}**\n\n", section.title));
        text.push_str(&tables::markdown(&section));
        for note in &section.notes {
            text.push_str(&format!("\n{note}\n"));
        }
    }
    text
}
