//! What a backtest found, as tables of words and numbers.

use super::tables::Section;
use super::{BacktestReport, By, starred};
use crate::laboratory::backtest::findings::Finding;
use crate::laboratory::backtest::{Case, Errors, Picks, Reliability, Scope, Scores};
use crate::report::layout_text::line;
use crate::report::table::Table;

/// Every table of the report, in order; those without rows are left out.
pub(super) fn sections(report: &BacktestReport) -> Vec<Section> {
    let rows = Rows::new(report);
    let mut sections = vec![verdicts(&rows), utilisation(&rows), peaks(&rows)];
    sections.extend((0..report.backtest.risks.len()).map(|index| picks(&rows, index)));
    let tables = &report.backtest.reliability;
    sections.extend(tables.iter().map(|(name, it)| reliability(name, it)));
    let by_source = report.findings.iter();
    sections.extend(by_source.map(|(source, it)| findings(source, it)));
    sections.push(misses(report.cases));
    sections.push(skipped(report));
    sections.retain(|section| !section.table.is_empty());
    sections
}

/// The report in few wide tables, where there is room for them.
pub(super) fn wide_sections(report: &BacktestReport) -> Vec<Section> {
    let mut sections = vec![summary(report)];
    let tables = &report.backtest.reliability;
    sections.extend(tables.iter().map(|(name, it)| reliability(name, it)));
    let by_source = report.findings.iter();
    sections.extend(by_source.map(|(source, it)| findings(source, it)));
    sections
}

/// One row a report with every score of all its runs.
pub(super) fn comparison(reports: &[BacktestReport]) -> Section {
    let rows = reports.iter().map(|report| {
        let mut row = vec![report.name.to_owned()];
        row.extend(summary_row(&report.backtest.total));
        row
    });
    let risks = reports.first().map(|report| &report.backtest.risks[..]);
    let header = summary_header("predicted by", risks.unwrap_or_default());
    Section::new("Scores", header, rows)
}

/// One row a scope with every score.
fn summary(report: &BacktestReport) -> Section {
    let header = summary_header("runs of", &report.backtest.risks);
    let rows = Rows::new(report).with(|scores| Some(summary_row(scores)));
    Section::new("Scores", header, rows)
        .noting([PICK_NOTE])
        .noting(left_out_note(report))
}

fn summary_header(first: &str, risks: &[f64]) -> Vec<String> {
    let mut header = [
        first,
        "verdicts",
        "right %",
        "false fits / OOMs",
        "timed",
        "MFU error %, mean",
        "median",
        "bias",
        "rank in group",
        "rank",
        "peak error %, median",
        "groups",
    ]
    .map(str::to_owned)
    .to_vec();
    for risk in risks {
        header.push(format!("pick at risk {risk}"));
        header.extend(["top 3", "thumb", "random", "OOM / none fits"].map(str::to_owned));
    }
    header
}

/// How many runs were left out, and why.
fn left_out_note(report: &BacktestReport) -> Option<String> {
    let skipped = report.skipped;
    let total: usize = skipped.iter().map(|(_, runs)| runs).sum();
    let reasons: Vec<String> = skipped
        .iter()
        .map(|(reason, runs)| format!("{reason} ({runs})"))
        .collect();
    (total > 0).then(|| format!("{total} runs left out: {}.", reasons.join(", ")))
}

fn summary_row(scores: &Scores) -> Vec<String> {
    let verdicts = &scores.verdicts;
    let mut row = vec![
        verdicts.runs.to_string(),
        verdicts.share().map_or_else(missing, percent),
        format!("{} / {}", verdicts.false_fits, verdicts.false_ooms),
    ];
    let errors = scores.mfu.as_ref().map(error_figures);
    row.extend(errors.unwrap_or_else(|| vec![missing(); 4]));
    row.push(scores.rank_in_group.map_or_else(missing, share));
    row.push(scores.rank.map_or_else(missing, share));
    let peak = scores.peak.map(|errors| percent(errors.median));
    row.push(peak.unwrap_or_else(missing));
    let groups = scores.picks.iter().flatten().next();
    row.push(groups.map_or_else(missing, |picks| picks.groups.to_string()));
    for picks in &scores.picks {
        let figures = picks.as_ref().map(|picks| {
            let mut figures = pick_figures(picks).to_vec();
            figures.push(format!(
                "{} / {}",
                picks.ran_out_of_memory, picks.nothing_fits
            ));
            figures
        });
        row.extend(figures.unwrap_or_else(|| vec![missing(); 5]));
    }
    row
}

/// What a pick is.
const PICK_NOTE: &str = "Pick: measured MFU of the layout that the solver chooses among those of \
    a group, over the best measured one, mean over groups of two layouts and more; 0 where the \
    choice ran out of memory (OOM) or nothing is said to fit. Beside it the best of the solver's \
    three best, and among the layouts said to fit the rule of thumb (no checkpointing, best \
    kernels, least micro-batch, least TP x PP, least TP) and a random choice.";

/// The scopes that have a row, the total last.
struct Rows<'a>(Vec<(String, &'a Scores)>);

impl<'a> Rows<'a> {
    fn new(report: &BacktestReport<'a>) -> Self {
        let backtest = report.backtest;
        let name = |scope: &Scope| match report.by {
            By::Group => scope.group.clone().unwrap_or_default(),
            By::Source => starred(&scope.source, &scope.source, &report.in_sample),
        };
        let scopes = match report.by {
            By::Group => &backtest.groups,
            By::Source => &backtest.sources,
        };
        let mut rows: Vec<(String, &Scores)> = scopes
            .iter()
            .map(|scope| (name(scope), &scope.scores))
            .collect();
        if rows.len() != 1 {
            rows.push(("all".to_owned(), &backtest.total));
        }
        Self(rows)
    }

    /// A row for every scope that has figures.
    fn with(&self, figures: impl Fn(&Scores) -> Option<Vec<String>>) -> Vec<Vec<String>> {
        let rows = self.0.iter().filter_map(|(name, scores)| {
            let mut row = vec![name.clone()];
            row.extend(figures(scores)?);
            Some(row)
        });
        rows.collect()
    }
}

fn verdicts(rows: &Rows) -> Section {
    let header = ["runs of", "runs", "right %", "false fits", "false OOMs"];
    let rows = rows.with(|scores| {
        let verdicts = &scores.verdicts;
        Some(vec![
            verdicts.runs.to_string(),
            percent(verdicts.share()?),
            verdicts.false_fits.to_string(),
            verdicts.false_ooms.to_string(),
        ])
    });
    Section::new("Out-of-memory verdicts", header, rows)
        .noting(["A run is said to fit if its risk is below 50 %."])
}

/// Runs, mean, median and bias.
fn error_figures(errors: &Errors) -> Vec<String> {
    vec![
        errors.runs.to_string(),
        percent(errors.mean),
        percent(errors.median),
        signed_percent(errors.bias),
    ]
}

fn utilisation(rows: &Rows) -> Section {
    let header = [
        "runs of",
        "runs",
        "mean",
        "median",
        "bias",
        "rank in group",
        "rank",
    ];
    let rows = rows.with(|scores| {
        let mut figures = error_figures(&scores.mfu?);
        figures.push(scores.rank_in_group.map_or_else(missing, share));
        figures.push(scores.rank.map_or_else(missing, share));
        Some(figures)
    });
    let title = "Predicted MFU: relative errors in %, and rank correlation with the measured";
    Section::new(title, header, rows)
}

fn peaks(rows: &Rows) -> Section {
    let header = ["runs of", "runs", "mean", "median", "bias"];
    let rows = rows.with(|scores| Some(error_figures(&scores.peak?)));
    Section::new("Predicted peak memory: relative errors in %", header, rows)
}

/// The solver's choice and what it is compared with.
fn pick_figures(picks: &Picks) -> [String; 4] {
    [
        picks.solver,
        picks.top_three,
        picks.rule_of_thumb,
        picks.random,
    ]
    .map(share)
}

fn picks(rows: &Rows, index: usize) -> Section {
    let mut all = rows.0.iter();
    let picks = all.find_map(|(_, scores)| scores.picks[index]);
    let risk = picks.map_or(0.0, |picks| picks.max_oom_risk);
    let title = format!("The pick at an accepted OOM risk of {risk}");
    let header = [
        "runs of", "groups", "solver", "top 3", "thumb", "random", "OOM", "none",
    ];
    let rows = rows.with(|scores| {
        let picks = scores.picks[index]?;
        let mut figures = vec![picks.groups.to_string()];
        figures.extend(pick_figures(&picks));
        figures.push(picks.ran_out_of_memory.to_string());
        figures.push(picks.nothing_fits.to_string());
        Some(figures)
    });
    Section::new(title, header, rows).noting([PICK_NOTE])
}

fn reliability(name: &str, reliability: &Reliability) -> Section {
    let header = ["said about %", "runs", "said %", "was %"];
    let rows = reliability.bins.iter().map(|bin| {
        vec![
            format!("{:.0}", bin.nominal * 100.0),
            bin.runs.to_string(),
            bin.said.map_or_else(missing, one_decimal),
            bin.was.map_or_else(missing, one_decimal),
        ]
    });
    let title = format!("Risk of running out of memory, said and true: {name}");
    let brier = reliability.brier;
    Section::of(title, Table::new(header).right(..), rows)
        .noting(brier.map(|brier| format!("Brier score {brier:.4}.")))
}

fn findings(source: &str, findings: &[Finding]) -> Section {
    let header = ["", "finding", "measured", "predicted", "reproduced"];
    let rows = findings.iter().map(|finding| {
        vec![
            finding.letter.to_string(),
            finding.claim.to_owned(),
            finding.measured.clone().unwrap_or_else(missing),
            finding.predicted.clone(),
            finding.reproduced.as_str().to_owned(),
        ]
    });
    let title = format!("Findings of the paper on {source}");
    Section::of(title, Table::new(header), rows).in_blocks()
}

/// Misses that are named.
const NAMED_MISSES: usize = 8;

/// The layouts whose utilisation is predicted worst.
fn misses(cases: &[Case]) -> Section {
    let mut errors: Vec<(f64, &Case)> = cases
        .iter()
        .filter_map(|case| Some((case.mfu_error()?, case)))
        .collect();
    errors.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    errors.dedup_by_key(|(_, case)| case.layout_number);
    let rows = errors.iter().take(NAMED_MISSES).map(|(error, case)| {
        vec![
            format!("{:+.0} %", error * 100.0),
            format!("{} run {}", case.group, case.run.run),
            line(&case.modelled.layout),
            format!(
                "{} measured, {} predicted",
                case.timed().map_or_else(missing, one_decimal),
                one_decimal(case.predicted_mfu())
            ),
        ]
    });
    let header = ["error", "run", "layout", "MFU, %"];
    Section::of("Worst misses", Table::new(header), rows).in_blocks()
}

fn skipped(report: &BacktestReport) -> Section {
    let rows = report.skipped.iter();
    let rows = rows.map(|(reason, count)| vec![reason.clone(), count.to_string()]);
    Section::new("Runs left out", ["because", "runs"], rows)
}

/// What does not apply.
pub(super) fn missing() -> String {
    "-".to_owned()
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// With its sign, and no negative zero.
fn signed_percent(share: f64) -> String {
    let rounded = (share * 1e4).round() / 100.0 + 0.0;
    format!("{rounded:+.2}")
}

pub(super) fn one_decimal(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

pub(super) fn share(share: f64) -> String {
    format!("{share:.3}")
}
