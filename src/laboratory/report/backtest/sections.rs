//! What a backtest found, as tables of words and numbers.

use super::metrics::{Metrics, PEAKS, PICKS, TIME, UTILISATION, VERDICTS, missing, one_decimal};
use super::tables::Section;
use super::{BacktestReport, By, ErrorsOf, Width, starred};
use crate::laboratory::backtest::findings::SourceFindings;
use crate::laboratory::backtest::{Case, MechanismScores, Reliability, Scope, Scores};
use crate::report::layout_text::line;
use crate::report::table::Table;

/// The tables of the report, in order; those without rows are left out.
pub(super) fn sections(report: &BacktestReport, width: Width) -> Vec<Section> {
    let mut sections = match width {
        Width::Narrow => narrow_scores(report),
        Width::Wide => vec![summary(report)],
    };
    if report.errors == ErrorsOf::StepTime {
        sections.push(mechanisms(&report.backtest.mechanisms));
        sections.push(intervals(report));
    }
    sections.push(assumed(report));
    sections.extend(report.backtest.reliability.iter().map(reliability));
    sections.extend(report.findings.iter().map(findings));
    if width == Width::Narrow {
        sections.push(misses(&report.cases));
        sections.push(skipped(report));
    }
    sections.retain(|section| !section.table.is_empty());
    sections
}

/// One row a report with every score of all its runs.
pub(super) fn comparison(reports: &[BacktestReport]) -> Section {
    let totals = reports
        .iter()
        .map(|report| (report.name.to_owned(), &report.backtest.total));
    let risks = reports.first().map(|report| &report.backtest.risks[..]);
    summary_of(
        "predicted by",
        totals.collect(),
        risks.unwrap_or_default(),
        UTILISATION,
    )
}

/// One row a scope with every score.
fn summary(report: &BacktestReport) -> Section {
    let speed = match report.errors {
        ErrorsOf::Utilisation => UTILISATION,
        ErrorsOf::StepTime => TIME,
    };
    summary_of("runs of", scopes(report), &report.backtest.risks, speed)
        .noting([PICK_NOTE])
        .noting(left_out_note(report))
}

fn summary_of(
    first: &str,
    rows: Vec<(String, &Scores)>,
    risks: &[f64],
    speed: Metrics<Scores>,
) -> Section {
    let mut header = vec![first.to_owned()];
    let parts = [VERDICTS, speed, PEAKS];
    let titles = parts.iter().flat_map(|metrics| metrics.wide(None).0);
    header.extend(titles.chain(["groups"]).map(str::to_owned));
    for risk in risks {
        let titles = PICKS.wide(None).0.into_iter();
        header.extend(titles.map(|title| title.replace("{risk}", &risk.to_string())));
    }
    let rows = rows.into_iter().map(|(name, scores)| {
        let mut row = vec![name];
        row.extend(
            parts
                .iter()
                .flat_map(|metrics| metrics.wide(Some(scores)).1),
        );
        let groups = scores.picks.iter().flatten().next();
        row.push(groups.map_or_else(missing, |picks| picks.groups.to_string()));
        row.extend(
            scores
                .picks
                .iter()
                .flat_map(|picks| PICKS.wide(picks.as_ref()).1),
        );
        row
    });
    Section::new("Scores", header, rows)
}

/// How many runs were left out, and why.
fn left_out_note(report: &BacktestReport) -> Option<String> {
    let skipped = report.skipped.iter();
    let total: usize = skipped.clone().map(|it| it.runs).sum();
    let reasons = skipped.map(|it| format!("{} ({})", it.because, it.runs));
    let reasons: Vec<String> = reasons.collect();
    (total > 0).then(|| format!("{total} runs left out: {}.", reasons.join(", ")))
}

/// What a verdict is.
const VERDICT_NOTE: &str = "A run is said to fit if its risk is below 50 %. There is no verdict on one \
    that does not state its checkpointing or virtual stages.";

/// What a pick is.
const PICK_NOTE: &str = "Pick: measured MFU of the layout that the solver chooses among those of \
    a group, over the best measured one, mean over groups of two layouts and more; 0 where the \
    choice ran out of memory (OOM) or nothing is said to fit. Beside it the best of the solver's \
    three best, and among the layouts said to fit the rule of thumb (no checkpointing, best \
    kernels, least micro-batch, least TP x PP, least TP) and a random choice.";

/// The scopes that have a row, the total last.
fn scopes<'a>(report: &'a BacktestReport) -> Vec<(String, &'a Scores)> {
    let backtest = &report.backtest;
    let name = |scope: &Scope| match report.by {
        By::Group => scope.group.clone().unwrap_or_default(),
        By::Source => starred(&scope.source, &scope.source, &report.in_sample),
    };
    let scopes = match report.by {
        By::Group => &backtest.groups,
        By::Source => &backtest.sources,
    };
    let rows = scopes.iter().map(|scope| (name(scope), &scope.scores));
    let mut rows: Vec<(String, &Scores)> = rows.collect();
    if rows.len() != 1 {
        rows.push(("all".to_owned(), &backtest.total));
    }
    if let (By::Source, Some(of_sources)) = (report.by, &backtest.of_sources) {
        rows.push(("mean of sources".to_owned(), &of_sources.mean));
        rows.push(("median of sources".to_owned(), &of_sources.median));
    }
    rows
}

fn narrow_scores(report: &BacktestReport) -> Vec<Section> {
    let rows = scopes(report);
    let scores = |title: &str, metrics: Metrics<Scores>| {
        let rows = rows.iter().map(|(name, scores)| (name, Some(*scores)));
        narrow(title, &metrics, rows)
    };
    let speed = match report.errors {
        ErrorsOf::Utilisation => (
            "Predicted MFU: relative errors in %, and rank correlation with the measured",
            UTILISATION,
        ),
        ErrorsOf::StepTime => (
            "Predicted step time: relative errors in %, and rank correlation of MFU",
            TIME,
        ),
    };
    let mut sections = vec![
        scores("Out-of-memory verdicts", VERDICTS).noting([VERDICT_NOTE]),
        scores(speed.0, speed.1),
        scores("Predicted peak memory: relative errors in %", PEAKS),
    ];
    for (index, risk) in report.backtest.risks.iter().enumerate() {
        let picks = rows
            .iter()
            .map(|(name, scores)| (name, scores.picks[index].as_ref()));
        let title = format!("The pick at an accepted OOM risk of {risk}");
        sections.push(narrow(&title, &PICKS, picks).noting([PICK_NOTE]));
    }
    sections
}

/// One row a scope that has runs of which the first figure counts.
fn narrow<'a, T: 'static>(
    title: &str,
    metrics: &Metrics<T>,
    rows: impl Iterator<Item = (&'a String, Option<&'a T>)>,
) -> Section {
    let header = std::iter::once("runs of").chain(metrics.narrow(None).0);
    let rows = rows.filter_map(|(name, of)| {
        let (_, mut row) = metrics.narrow(of);
        let counted = row[0] != missing() && row[0] != "0";
        row.insert(0, name.clone());
        counted.then_some(row)
    });
    Section::new(title, header, rows)
}

/// Errors by mechanism, means of sources.
fn mechanisms(mechanisms: &[MechanismScores]) -> Section {
    let header = ["runs with", "sources"]
        .into_iter()
        .chain(TIME.narrow(None).0);
    let rows = mechanisms.iter().map(|it| {
        let cells = TIME.narrow(Some(&it.scores)).1;
        [vec![it.mechanism.to_owned(), it.sources.to_string()], cells].concat()
    });
    Section::new(
        "Errors of step times in %, by mechanism: means of sources",
        header,
        rows,
    )
}

/// Whether the stated intervals hold 80 % of runs.
fn intervals(report: &BacktestReport) -> Section {
    let header = [
        "known of runs like these",
        "said, %",
        "runs",
        "sources",
        "within, %",
        "80 % were in",
    ];
    let rows = report.backtest.intervals.iter().map(|it| {
        vec![
            it.evidence.to_string(),
            format!("±{:.0}", it.half_width * 100.0),
            it.runs.to_string(),
            it.sources.to_string(),
            one_decimal(it.within),
            format!("±{:.0}", it.held * 100.0),
        ]
    });
    Section::new(
        "Stated intervals of step times: 80 % of runs should be within",
        header,
        rows,
    )
}

/// What the runs of each source were predicted with.
fn assumed(report: &BacktestReport) -> Section {
    let header = ["runs of", "cluster", "its figures", "framework", "runs"];
    let rows = report.backtest.assumed.iter().map(|it| {
        vec![
            it.source.clone(),
            it.cluster.clone(),
            it.figures.to_string(),
            it.framework.clone(),
            it.runs.to_string(),
        ]
    });
    let table = Table::new(header).right(4..);
    Section::of("Assumed clusters and frameworks", table, rows)
}

fn reliability(reliability: &Reliability) -> Section {
    let header = ["said about %", "runs", "said %", "was %"];
    let rows = reliability.bins.iter().map(|bin| {
        vec![
            format!("{:.0}", bin.nominal * 100.0),
            bin.runs.to_string(),
            bin.said.map_or_else(missing, one_decimal),
            bin.was.map_or_else(missing, one_decimal),
        ]
    });
    let source = &reliability.source;
    let title = format!("Risk of running out of memory, said and true: {source}");
    let brier = reliability.brier;
    Section::of(title, Table::new(header).right(..), rows)
        .noting(brier.map(|brier| format!("Brier score {brier:.4}.")))
}

fn findings(SourceFindings { source, findings }: &SourceFindings) -> Section {
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
    Section::of(title, Table::new(header), rows)
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
    Section::of("Worst misses", Table::new(header), rows)
}

fn skipped(report: &BacktestReport) -> Section {
    let rows = report.skipped.iter();
    let rows = rows.map(|it| vec![it.because.clone(), it.runs.to_string()]);
    Section::new("Runs left out", ["because", "runs"], rows)
}
