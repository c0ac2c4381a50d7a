//! What calibration on a few runs makes of the predictions of the others, as tables.

use super::metrics::{HELD_OUT, missing};
use super::tables::Section;
use super::{TransferReport, Width, starred};
use crate::laboratory::backtest::Transfer;

/// Each figure before, after, and after where that is accepted; `None` where the runs do not tell.
fn figures(transfer: &Transfer) -> Vec<Option<[String; 3]>> {
    let scores = [
        &transfer.zero_shot,
        &transfer.calibrated,
        &transfer.accepted,
    ];
    let cells = scores.map(|scores| HELD_OUT.narrow(Some(scores)).1);
    let figures = (0..cells[0].len()).map(|index| {
        let figures = cells.each_ref().map(|cells| cells[index].clone());
        let told = figures.iter().any(|cell| *cell != missing());
        told.then_some(figures)
    });
    figures.collect()
}

fn name(report: &TransferReport, transfer: &Transfer) -> String {
    starred(&transfer.setting, &transfer.source, &report.in_sample)
}

/// One table a figure of merit, then how often calibrations are accepted; or one wide table.
pub(super) fn sections(report: &TransferReport, width: Width) -> Vec<Section> {
    let (titles, _) = HELD_OUT.narrow(None);
    let metrics = titles.into_iter().enumerate();
    if width == Width::Wide {
        let title = "Runs that were not drawn: zero-shot / calibrated / if accepted";
        let used = metrics.filter(|(index, _)| {
            let mut transfers = report.transfers.iter();
            transfers.any(|transfer| figures(transfer)[*index].is_some())
        });
        return vec![acceptance(report, title, &used.collect::<Vec<_>>())];
    }
    let by_metric = metrics.map(|(index, title)| {
        let rows = report.transfers.iter().filter_map(|transfer| {
            let figures = figures(transfer)[index].clone()?;
            Some([vec![name(report, transfer)], figures.to_vec()].concat())
        });
        let title = format!("Runs that were not drawn: {title}");
        let header = ["runs of", "zero-shot", "calibrated", "if accepted"];
        Section::new(title, header, rows)
    });
    let title = "Speeds that cross-validation on the drawn runs accepts";
    let sections = by_metric.chain([acceptance(report, title, &[])]);
    sections
        .filter(|section| !section.table.is_empty())
        .collect()
}

/// One row a setting: some figures, zero-shot / calibrated / if accepted, and what was accepted.
fn acceptance(report: &TransferReport, title: &str, metrics: &[(usize, &'static str)]) -> Section {
    let mut header = vec!["runs of", "timed runs"];
    header.extend(metrics.iter().map(|(_, title)| title));
    header.extend(["fit / level accepted", "rank worse"]);
    let rows = report.transfers.iter().map(|transfer| {
        let mut row = vec![name(report, transfer), transfer.timed.to_string()];
        let figures = figures(transfer);
        row.extend(metrics.iter().map(|(index, _)| {
            let figures = figures[*index].as_ref();
            figures.map_or_else(missing, |figures| figures.join(" / "))
        }));
        row.push(accepted(transfer));
        row.push(transfer.rank_worse.to_string());
        row
    });
    Section::new(title, header, rows).noting([ACCEPTANCE_NOTE])
}

fn accepted(transfer: &Transfer) -> String {
    let (fit, level) = (transfer.accepted_draws, transfer.level_draws);
    format!("{fit} / {level} of {}", transfer.draws)
}

/// What acceptance can and cannot do.
const ACCEPTANCE_NOTE: &str = "Accepted: fitted figures, or else the level alone, one factor on \
    every duration, which changes no order within one setting. Rank worse: draws with accepted figures \
    after which the runs that were not drawn are ranked worse than before. A handful of runs cannot \
    rule that out.";
