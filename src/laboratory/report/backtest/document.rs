//! A backtest as a JSON document, described in `docs/json.md`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, BacktestReport, TransferReport};
use crate::laboratory::backtest::findings::Finding;
use crate::laboratory::backtest::{
    Errors, HeldOut, Picks, Reliability, ReliabilityBin, Scope, Scores, Transfer, Verdicts,
};
use crate::report::document::{Document, rounded};

/// The answer as a document of the format `parlayout/backtest/v1`, on several lines.
#[must_use]
pub fn json(answer: &Answer) -> String {
    let document = BacktestDocument {
        schema: BacktestDocument::FORMAT,
        reports: answer.reports.iter().map(ReportDocument::new).collect(),
        transfers: answer.transfers.as_ref().map(TransfersDocument::new),
    };
    document.json()
}

impl Document for BacktestDocument {
    const FORMAT: &'static str = "parlayout/backtest/v1";
}

/// The JSON Schema of `parlayout/backtest/v1`, shipped as `docs/backtest.schema.json`.
#[must_use]
pub fn schema() -> String {
    BacktestDocument::schema()
}

/// Scores of predictions against measured runs.
#[derive(Debug, Serialize, JsonSchema)]
struct BacktestDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = BacktestDocument::FORMAT))]
    schema: &'static str,
    /// One report for each kind of prediction.
    reports: Vec<ReportDocument>,
    /// Calibrations on a few runs; null unless asked for.
    transfers: Option<TransfersDocument>,
}

/// Calibrations on a few random runs, scored on the others.
#[derive(Debug, Serialize, JsonSchema)]
struct TransfersDocument {
    /// What was done, in a sentence.
    basis: String,
    /// Sources whose runs the figures before were fitted to, those held out included.
    in_sample: Vec<String>,
    /// One entry for each source, GPU and number format.
    settings: Vec<TransferDocument>,
}

/// What calibration makes of one setting.
#[derive(Debug, Serialize, JsonSchema)]
struct TransferDocument {
    /// Name of the setting.
    setting: String,
    /// Runs with a representative speed, among which runs are drawn.
    timed: usize,
    /// Draws.
    draws: usize,
    /// Draws whose fitted speeds cross-validation accepts.
    accepted_draws: usize,
    /// Other draws whose level of speeds is accepted: one factor on every duration, which changes no
    /// ranking.
    level_draws: usize,
    /// Draws with accepted fitted speeds after which the others are ranked worse than before.
    rank_worse: usize,
    /// Before any run is seen.
    zero_shot: HeldOutDocument,
    /// After calibration.
    calibrated: HeldOutDocument,
    /// After calibration as far as it is accepted.
    accepted: HeldOutDocument,
}

/// Scores of the runs that were not drawn: means over draws; null where the runs do not tell.
#[derive(Debug, Serialize, JsonSchema)]
struct HeldOutDocument {
    /// Median error of predicted utilisation.
    mfu_error_median: Option<f64>,
    /// Rank correlation of predicted and measured utilisation.
    rank_correlation: Option<f64>,
    /// The solver's pick.
    pick: Option<f64>,
    /// Median error of predicted peak memory.
    peak_error_median: Option<f64>,
    /// Share of out-of-memory verdicts that is right.
    verdicts_right: Option<f64>,
}

/// Scores of one kind of prediction.
#[derive(Debug, Serialize, JsonSchema)]
struct ReportDocument {
    /// What tells it apart from the other reports.
    name: &'static str,
    /// What the predictions rest on, in a sentence.
    basis: String,
    /// Sources whose runs the figures were fitted to: scores on them are in sample.
    in_sample: Vec<String>,
    /// Scores of each group.
    groups: Vec<ScopeDocument>,
    /// Scores of each source.
    sources: Vec<ScopeDocument>,
    /// Scores of all runs together.
    total: ScoresDocument,
    /// Said and true risk of running out of memory, by source.
    reliability: Vec<ReliabilityDocument>,
    /// Findings of the paper, by source that has the runs.
    findings: Vec<FindingsDocument>,
    /// Runs left out, by reason.
    skipped: Vec<SkippedDocument>,
}

/// A part of the runs.
#[derive(Debug, Serialize, JsonSchema)]
struct ScopeDocument {
    /// Where the runs come from.
    source: String,
    /// The group; null where the scope is a whole source.
    group: Option<String>,
    /// Its scores.
    #[serde(flatten)]
    scores: ScoresDocument,
}

/// Scores of a part of the runs.
#[derive(Debug, Serialize, JsonSchema)]
struct ScoresDocument {
    /// Out-of-memory verdicts.
    verdicts: VerdictsDocument,
    /// Relative errors of predicted utilisation; null without a representative speed.
    mfu_error: Option<ErrorsDocument>,
    /// Mean over groups of Spearman's correlation of predicted and measured utilisation.
    rank_correlation_in_group: Option<f64>,
    /// The same over all runs of the part.
    rank_correlation: Option<f64>,
    /// Relative errors of predicted peak memory; null where no run logged it.
    peak_memory_error: Option<ErrorsDocument>,
    /// The solver's choices, one entry an accepted risk; empty without groups.
    picks: Vec<PicksDocument>,
}

/// Out-of-memory verdicts.
#[derive(Debug, Serialize, JsonSchema)]
struct VerdictsDocument {
    /// Runs that trained or ran out of memory.
    runs: usize,
    /// Runs whose verdict is right.
    right: usize,
    /// Said to fit, but ran out.
    false_fits: usize,
    /// Said to run out, but fitted.
    false_ooms: usize,
}

/// Relative errors (shares).
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorsDocument {
    /// Runs with a measured value.
    runs: usize,
    /// Mean absolute error.
    mean: f64,
    /// Median absolute error.
    median: f64,
    /// Mean error; above 0 where predictions are too high.
    bias: f64,
}

/// Measured utilisation of choices over the best measured of the group, mean over groups.
#[derive(Debug, Serialize, JsonSchema)]
struct PicksDocument {
    /// Largest accepted probability of running out of memory.
    max_oom_risk: f64,
    /// Groups of two layouts and more.
    groups: usize,
    /// The solver's choice.
    solver: f64,
    /// The best of its three best.
    top_three: f64,
    /// The rule of thumb.
    rule_of_thumb: f64,
    /// Any layout said to fit.
    random: f64,
    /// Groups in which the solver's choice ran out of memory.
    ran_out_of_memory: usize,
    /// Groups of which no layout is said to fit.
    nothing_fits: usize,
}

/// Said and true risk.
#[derive(Debug, Serialize, JsonSchema)]
struct ReliabilityDocument {
    /// Where the runs come from, or `all`.
    source: String,
    /// Brier score; null without runs.
    brier: Option<f64>,
    /// What is said to be about 0, 5, 50, 95 and 100 %.
    bins: Vec<BinDocument>,
}

/// The runs whose said risk is nearest to that of this bin.
#[derive(Debug, Serialize, JsonSchema)]
struct BinDocument {
    /// The bin's risk.
    nominal: f64,
    /// Runs.
    runs: usize,
    /// Mean of what was said; null without runs.
    said: Option<f64>,
    /// Share that ran out of memory; null without runs.
    was: Option<f64>,
}

/// Findings of the paper on one source.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingsDocument {
    /// Where the runs come from.
    source: String,
    /// The findings.
    findings: Vec<FindingDocument>,
}

/// One finding.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingDocument {
    /// Its letter.
    letter: char,
    /// What the paper says.
    claim: &'static str,
    /// What the runs say; null where they cannot.
    measured: Option<String>,
    /// What the cost model says.
    predicted: String,
    /// `yes`, `no` or `predicted only`.
    #[schemars(extend("enum" = ["yes", "no", "predicted only"]))]
    reproduced: &'static str,
}

/// Runs left out for one reason.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedDocument {
    /// The reason.
    because: String,
    /// How many.
    runs: usize,
}

impl ReportDocument {
    fn new(report: &BacktestReport) -> Self {
        let backtest = report.backtest;
        let findings = report.findings.iter();
        let skipped = report.skipped.iter();
        Self {
            name: report.name,
            basis: report.basis.clone(),
            in_sample: report.in_sample.clone(),
            groups: backtest.groups.iter().map(ScopeDocument::new).collect(),
            sources: backtest.sources.iter().map(ScopeDocument::new).collect(),
            total: ScoresDocument::new(&backtest.total),
            reliability: backtest
                .reliability
                .iter()
                .map(|(source, table)| ReliabilityDocument::new(source, table))
                .collect(),
            findings: findings
                .map(|(source, findings)| FindingsDocument {
                    source: source.clone(),
                    findings: findings.iter().map(FindingDocument::new).collect(),
                })
                .collect(),
            skipped: skipped
                .map(|(because, runs)| SkippedDocument {
                    because: because.clone(),
                    runs: *runs,
                })
                .collect(),
        }
    }
}

impl TransfersDocument {
    fn new(report: &TransferReport) -> Self {
        Self {
            basis: report.basis.clone(),
            in_sample: report.in_sample.clone(),
            settings: report.transfers.iter().map(TransferDocument::new).collect(),
        }
    }
}

impl TransferDocument {
    fn new(transfer: &Transfer) -> Self {
        Self {
            setting: transfer.setting.clone(),
            timed: transfer.timed,
            draws: transfer.draws,
            accepted_draws: transfer.accepted_draws,
            level_draws: transfer.level_draws,
            rank_worse: transfer.rank_worse,
            zero_shot: HeldOutDocument::new(&transfer.zero_shot),
            calibrated: HeldOutDocument::new(&transfer.calibrated),
            accepted: HeldOutDocument::new(&transfer.accepted),
        }
    }
}

impl HeldOutDocument {
    fn new(scores: &HeldOut) -> Self {
        Self {
            mfu_error_median: scores.mfu_error.map(rounded),
            rank_correlation: scores.rank.map(rounded),
            pick: scores.pick.map(rounded),
            peak_error_median: scores.peak_error.map(rounded),
            verdicts_right: scores.verdicts.map(rounded),
        }
    }
}

impl ScopeDocument {
    fn new(scope: &Scope) -> Self {
        Self {
            source: scope.source.clone(),
            group: Some(scope.group.clone()).filter(|group| !group.is_empty()),
            scores: ScoresDocument::new(&scope.scores),
        }
    }
}

impl ScoresDocument {
    fn new(scores: &Scores) -> Self {
        let picks = scores.picks.iter().flatten();
        Self {
            verdicts: VerdictsDocument::new(scores.verdicts),
            mfu_error: scores.mfu.map(ErrorsDocument::new),
            rank_correlation_in_group: scores.rank_in_group.map(rounded),
            rank_correlation: scores.rank.map(rounded),
            peak_memory_error: scores.peak.map(ErrorsDocument::new),
            picks: picks.map(PicksDocument::new).collect(),
        }
    }
}

impl VerdictsDocument {
    const fn new(verdicts: Verdicts) -> Self {
        Self {
            runs: verdicts.runs,
            right: verdicts.right,
            false_fits: verdicts.false_fits,
            false_ooms: verdicts.false_ooms,
        }
    }
}

impl ErrorsDocument {
    fn new(errors: Errors) -> Self {
        Self {
            runs: errors.runs,
            mean: rounded(errors.mean),
            median: rounded(errors.median),
            bias: rounded(errors.bias),
        }
    }
}

impl PicksDocument {
    fn new(picks: &Picks) -> Self {
        Self {
            max_oom_risk: picks.max_oom_risk,
            groups: picks.groups,
            solver: rounded(picks.solver),
            top_three: rounded(picks.top_three),
            rule_of_thumb: rounded(picks.rule_of_thumb),
            random: rounded(picks.random),
            ran_out_of_memory: picks.ran_out_of_memory,
            nothing_fits: picks.nothing_fits,
        }
    }
}

impl ReliabilityDocument {
    fn new(source: &str, table: &Reliability) -> Self {
        Self {
            source: source.to_owned(),
            brier: table.brier.map(rounded),
            bins: table.bins.iter().map(BinDocument::new).collect(),
        }
    }
}

impl BinDocument {
    fn new(bin: &ReliabilityBin) -> Self {
        Self {
            nominal: bin.nominal,
            runs: bin.runs,
            said: bin.said.map(rounded),
            was: bin.was.map(rounded),
        }
    }
}

impl FindingDocument {
    fn new(finding: &Finding) -> Self {
        Self {
            letter: finding.letter,
            claim: finding.claim,
            measured: finding.measured.clone(),
            predicted: finding.predicted.clone(),
            reproduced: finding.reproduced.as_str(),
        }
    }
}
