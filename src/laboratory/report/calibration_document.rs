//! A calibration as a document.

use schemars::JsonSchema;
use serde::Serialize;

use super::calibration::Subject;
use super::write_rounded;
use crate::laboratory::calibrate::{
    Calibrated, Confusion, Estimate, Fact, Level, Measure, Miss, Outlier, Score, SkippedRow,
    Speeds, Validation, Verdict,
};
use crate::report::document::{Document, Trust, rounded_probability};

/// The result of a calibration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CalibrationDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = CalibrationDocument::FORMAT))]
    schema: &'static str,
    /// The cluster whose figures were the priors.
    cluster: String,
    /// The framework whose figures were the priors.
    framework: String,
    /// Where the runs come from.
    source: String,
    /// Runs with a step time.
    step_times: usize,
    /// Runs with a peak.
    peaks: usize,
    /// Runs that ran out of memory.
    out_of_memory: usize,
    /// Speeds; null where no run tells of them.
    speeds: Option<PartDocument>,
    /// One factor on every duration in place of fitted speeds; null where no run tells of it.
    level: Option<LevelDocument>,
    /// Which speeds were adopted: `shipped`, `level` or `fitted`.
    adopted_speeds: Speeds,
    /// Memory; null where no run tells of it.
    memory: Option<PartDocument>,
    /// Every figure that the runs can see, fitted whether it was adopted or not.
    figures: Vec<FigureDocument>,
    /// Figures that every run states, taken over without a fit.
    facts: Vec<FactDocument>,
    /// Pairs of figures that the runs cannot tell apart.
    confusions: Vec<ConfusionDocument>,
    /// Runs that the fit misses by far.
    outliers: Vec<OutlierDocument>,
    /// What was read from each log.
    logs: Vec<String>,
    /// Rows that were not used.
    skipped: Vec<SkippedDocument>,
    /// How far to trust predictions with the adopted figures.
    trust: Trust,
}

/// Whether one part of the fit was adopted.
#[derive(Debug, Serialize, JsonSchema)]
struct PartDocument {
    /// `accepted`; `untested`: fewer than two distinct runs; `error_not_better`,
    /// `ranking_not_better`:
    /// on held-out runs; `implausible`: these are off by a factor of two and more.
    verdict: Verdict,
    /// What is scored: `error`, `|ln(predicted / measured)|`, or `deviance`, `sqrt(-2 ln p)` of
    /// what fitted and what did not.
    measure: Option<Measure>,
    /// Runs that were held out in turn.
    runs: Option<usize>,
    /// Runs of them that differ in what the cost model knows.
    distinct: Option<usize>,
    /// By the shipped figures.
    shipped: Option<Score>,
    /// By fits that had not seen the run.
    fitted: Option<Score>,
}

/// One factor on every duration, `efficiency.slowdown`, which changes no ranking.
#[derive(Debug, Serialize, JsonSchema)]
struct LevelDocument {
    /// The factor that was shipped.
    shipped: f64,
    /// The fitted factor.
    fitted: f64,
    /// How well factors fitted to other runs predict a run; null with fewer than two distinct runs.
    held_out: Option<Score>,
}

/// A fitted figure.
#[derive(Debug, Serialize, JsonSchema)]
struct FigureDocument {
    /// Its key in a cluster file.
    key: &'static str,
    /// Its shipped value in bytes, seconds, bytes a second, or as a number.
    shipped: f64,
    /// Its fitted value.
    fitted: f64,
    /// The move in standard deviations of the prior.
    moved: f64,
    /// Posterior over prior standard deviation.
    uncertainty: f64,
}

/// A figure that every run states.
#[derive(Debug, Serialize, JsonSchema)]
struct FactDocument {
    /// Its key in a cluster file.
    key: &'static str,
    /// Its value without the statement, in bytes a second or as a number.
    before: f64,
    /// Its value by the runs' statements.
    after: f64,
}

/// Two figures that the runs cannot tell apart.
#[derive(Debug, Serialize, JsonSchema)]
struct ConfusionDocument {
    /// Their keys.
    keys: [&'static str; 2],
    /// Their posterior correlation.
    correlation: f64,
}

/// A run that the fit misses by far.
#[derive(Debug, Serialize, JsonSchema)]
struct OutlierDocument {
    /// The file of runs; null for a log.
    file: Option<String>,
    /// Line in the file of runs; null for a log.
    line: Option<u64>,
    /// Source and run.
    run: String,
    /// `step_time` (seconds), `peak` (bytes) or `ending`.
    #[schemars(extend("enum" = ["step_time", "peak", "ending"]))]
    what: &'static str,
    /// What was measured; null for an ending.
    measured: Option<f64>,
    /// What the fit predicts; for an ending, the probability of running out of memory.
    predicted: f64,
}

/// A row that was not used.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedDocument {
    /// The file of runs; null for a log.
    file: Option<String>,
    /// Line in the file of runs; null for a log.
    line: Option<u64>,
    /// Source and run.
    run: String,
    /// Why.
    reason: String,
}

impl Document for CalibrationDocument {
    const FORMAT: &'static str = "parlayout/calibration/v1";

    fn json(&self) -> String {
        write_rounded(self)
    }
}

impl CalibrationDocument {
    /// The result.
    #[must_use]
    pub fn new(subject: &Subject, calibrated: &Calibrated) -> Self {
        let fitted = &calibrated.fitted;
        Self {
            schema: Self::FORMAT,
            cluster: subject.cluster.to_owned(),
            framework: subject.framework.to_owned(),
            source: subject.source.to_owned(),
            step_times: calibrated.evidence.timed,
            peaks: calibrated.evidence.peaks,
            out_of_memory: calibrated.evidence.out_of_memory,
            speeds: part(calibrated.time_verdict, calibrated.time.as_ref()),
            level: calibrated.level.as_ref().map(LevelDocument::new),
            adopted_speeds: calibrated.speeds,
            memory: part(calibrated.memory_verdict, calibrated.memory.as_ref()),
            figures: fitted.estimates.iter().map(FigureDocument::new).collect(),
            facts: calibrated.facts.iter().map(FactDocument::new).collect(),
            confusions: fitted
                .confusions
                .iter()
                .map(ConfusionDocument::new)
                .collect(),
            outliers: calibrated
                .outliers
                .iter()
                .map(OutlierDocument::new)
                .collect(),
            logs: subject.logs.to_vec(),
            skipped: subject.skipped.iter().map(SkippedDocument::new).collect(),
            trust: Trust::new(&calibrated.cluster.calibration),
        }
    }
}

fn part(verdict: Option<Verdict>, validation: Option<&Validation>) -> Option<PartDocument> {
    Some(PartDocument {
        verdict: verdict?,
        measure: validation.map(|it| it.measure),
        runs: validation.map(|it| it.runs),
        distinct: validation.map(|it| it.distinct),
        shipped: validation.map(|it| it.before),
        fitted: validation.map(|it| it.after),
    })
}

impl LevelDocument {
    fn new(level: &Level) -> Self {
        let validation = level.validation.as_ref();
        Self {
            shipped: level.estimate.prior.median,
            fitted: level.estimate.value,
            held_out: validation.map(|validation| validation.after),
        }
    }
}

impl FigureDocument {
    fn new(estimate: &Estimate) -> Self {
        Self {
            key: estimate.prior.parameter.key,
            shipped: estimate.prior.median,
            fitted: estimate.value,
            moved: rounded_probability(estimate.moved()),
            uncertainty: rounded_probability(estimate.uncertainty),
        }
    }
}

impl FactDocument {
    fn new(fact: &Fact) -> Self {
        Self {
            key: fact.parameter.key,
            before: fact.before,
            after: fact.after,
        }
    }
}

impl ConfusionDocument {
    fn new(confusion: &Confusion) -> Self {
        Self {
            keys: [confusion.one, confusion.other],
            correlation: rounded_probability(confusion.correlation),
        }
    }
}

impl OutlierDocument {
    fn new(outlier: &Outlier) -> Self {
        let (what, measured, predicted) = match outlier.miss {
            Miss::Time {
                measured,
                predicted,
            } => ("step_time", Some(measured.value()), predicted.value()),
            Miss::Peak {
                measured,
                predicted,
            } => ("peak", Some(measured.value()), predicted.value()),
            Miss::Ending { oom_probability } => ("ending", None, oom_probability),
        };
        Self {
            file: Some(outlier.file.clone()).filter(|file| !file.is_empty()),
            line: Some(outlier.line).filter(|&line| line > 0),
            run: outlier.name.clone(),
            what,
            measured,
            predicted,
        }
    }
}

impl SkippedDocument {
    fn new(row: &SkippedRow) -> Self {
        Self {
            file: Some(row.file.clone()).filter(|file| !file.is_empty()),
            line: Some(row.line).filter(|&line| line > 0),
            run: row.name.clone(),
            reason: row.reason.clone(),
        }
    }
}
