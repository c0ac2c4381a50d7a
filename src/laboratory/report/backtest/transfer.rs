//! What calibration on a few runs makes of the predictions of the others, as tables.

use super::sections::{missing, one_decimal, percent, share};
use super::tables::Section;
use super::{TransferReport, starred};
use crate::laboratory::backtest::{HeldOut, Transfer};

/// One figure of merit.
struct Metric {
    title: &'static str,
    value: fn(&HeldOut) -> Option<f64>,
    show: fn(f64) -> String,
}

const METRICS: [Metric; 5] = [
    Metric {
        title: "median error of MFU, %",
        value: |scores| scores.mfu_error,
        show: percent,
    },
    Metric {
        title: "rank correlation of MFU",
        value: |scores| scores.rank,
        show: share,
    },
    Metric {
        title: "pick",
        value: |scores| scores.pick,
        show: share,
    },
    Metric {
        title: "median error of peak memory, %",
        value: |scores| scores.peak_error,
        show: percent,
    },
    Metric {
        title: "out-of-memory verdicts right, %",
        value: |scores| scores.verdicts,
        show: one_decimal,
    },
];

impl Metric {
    /// Before, after, and after where that is accepted; `None` where the runs do not tell.
    fn figures(&self, transfer: &Transfer) -> Option<[String; 3]> {
        let scores = [
            &transfer.zero_shot,
            &transfer.calibrated,
            &transfer.accepted,
        ];
        let values = scores.map(self.value);
        values
            .iter()
            .any(Option::is_some)
            .then(|| values.map(|value| value.map_or_else(missing, self.show)))
    }
}

fn name(report: &TransferReport, transfer: &Transfer) -> String {
    starred(&transfer.setting, &transfer.source, &report.in_sample)
}

/// One table a figure of merit, then how often calibrations are accepted.
pub(super) fn sections(report: &TransferReport) -> Vec<Section> {
    let by_metric = METRICS.iter().map(|metric| {
        let rows = report.transfers.iter().filter_map(|transfer| {
            let figures = metric.figures(transfer)?;
            Some([vec![name(report, transfer)], figures.to_vec()].concat())
        });
        let title = format!("Runs that were not drawn: {}", metric.title);
        let header = ["runs of", "zero-shot", "calibrated", "if accepted"];
        Section::new(title, header, rows)
    });
    let mut sections: Vec<Section> = by_metric.chain([acceptance(report)]).collect();
    sections.retain(|section| !section.table.is_empty());
    sections
}

fn acceptance(report: &TransferReport) -> Section {
    let rows = report.transfers.iter().map(|transfer| {
        vec![
            name(report, transfer),
            transfer.timed.to_string(),
            accepted(transfer),
            transfer.rank_worse.to_string(),
        ]
    });
    let title = "Speeds that cross-validation on the drawn runs accepts";
    let header = [
        "runs of",
        "timed runs",
        "fit / level accepted",
        "rank worse",
    ];
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

/// One row a setting with all figures: zero-shot / calibrated / if accepted.
pub(super) fn wide_sections(report: &TransferReport) -> Vec<Section> {
    let used: Vec<&Metric> = METRICS
        .iter()
        .filter(|metric| {
            report
                .transfers
                .iter()
                .any(|it| metric.figures(it).is_some())
        })
        .collect();
    let mut header = vec!["runs of", "timed runs"];
    header.extend(used.iter().map(|metric| metric.title));
    header.extend(["fit / level accepted", "rank worse"]);
    let rows = report.transfers.iter().map(|transfer| {
        let mut row = vec![name(report, transfer), transfer.timed.to_string()];
        row.extend(used.iter().map(|metric| {
            let figures = metric.figures(transfer);
            figures.map_or_else(missing, |figures| figures.join(" / "))
        }));
        row.push(accepted(transfer));
        row.push(transfer.rank_worse.to_string());
        row
    });
    let title = "Runs that were not drawn: zero-shot / calibrated / if accepted";
    vec![Section::new(title, header, rows).noting([ACCEPTANCE_NOTE])]
}
