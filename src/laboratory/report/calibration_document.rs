//! A calibration as a document.

use schemars::JsonSchema;
use serde::Serialize;

use super::calibration::Subject;
use super::write_rounded;
use crate::laboratory::calibrate::{
    Calibrated, Compared, Confusion, Estimate, Evidence, Fact, Measure, MemoryFigures, Outlier,
    Part, Score, SkippedRow, Speeds, Verdict,
};
use crate::report::document::{Document, Trust};

/// The result of a calibration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CalibrationDocument<'a> {
    /// Name and version of this format.
    #[schemars(extend("const" = CalibrationDocument::FORMAT))]
    schema: &'static str,
    /// The cluster whose figures were the priors.
    cluster: &'a str,
    /// The framework whose figures were the priors.
    framework: &'a str,
    /// Where the runs come from.
    source: &'a str,
    /// What the runs state.
    #[serde(flatten)]
    evidence: Evidence,
    /// Speeds; null where no run tells of them.
    speeds: Option<PartDocument>,
    /// One factor on every duration in place of fitted speeds; null where no run tells of it.
    level: Option<LevelDocument>,
    /// Which speeds were adopted: `shipped`, `level` or `fitted`.
    adopted_speeds: Speeds,
    /// Memory; null where no run tells of it.
    memory: Option<PartDocument>,
    /// Which memory figures were adopted: `shipped` or `fitted`.
    adopted_memory: MemoryFigures,
    /// By how much the admissible peak rose, as a logarithm, so that runs seen to fit are accepted.
    admissible_peak_raised: f64,
    /// Every figure that the runs can see, fitted whether it was adopted or not.
    figures: &'a [Estimate],
    /// Figures that every run states, taken over without a fit.
    facts: &'a [Fact],
    /// Pairs of figures that the runs cannot tell apart.
    confusions: &'a [Confusion],
    /// Every run that was used: measured, and predicted before and after.
    runs: &'a [Compared],
    /// Runs that the fit misses by far.
    outliers: &'a [Outlier],
    /// What was read from each log.
    logs: &'a [String],
    /// Rows that were not used.
    skipped: &'a [SkippedRow],
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

impl Document for CalibrationDocument<'_> {
    const FORMAT: &'static str = "parlayout/calibration/v1";

    fn json(&self) -> String {
        write_rounded(self)
    }
}

impl<'a> CalibrationDocument<'a> {
    /// The result.
    #[must_use]
    pub fn new(subject: &Subject<'a>, calibrated: &'a Calibrated) -> Self {
        let level = calibrated.level.as_ref().map(|level| LevelDocument {
            shipped: level.estimate.shipped,
            fitted: level.estimate.fitted,
            held_out: level.validation.as_ref().map(|validation| validation.after),
        });
        Self {
            schema: Self::FORMAT,
            cluster: subject.cluster,
            framework: subject.framework,
            source: subject.source,
            evidence: calibrated.evidence,
            speeds: part(&calibrated.time),
            level,
            adopted_speeds: calibrated.speeds,
            memory: part(&calibrated.memory),
            adopted_memory: calibrated.memory_figures,
            admissible_peak_raised: calibrated.memory_raised,
            runs: &calibrated.runs,
            figures: &calibrated.fitted.estimates,
            facts: &calibrated.facts,
            confusions: &calibrated.fitted.confusions,
            outliers: &calibrated.outliers,
            logs: subject.logs,
            skipped: subject.skipped,
            trust: Trust::new(&calibrated.setup.cluster, &calibrated.setup.framework),
        }
    }
}

fn part(part: &Part) -> Option<PartDocument> {
    let validation = part.validation.as_ref();
    Some(PartDocument {
        verdict: part.verdict?,
        measure: validation.map(|it| it.measure),
        runs: validation.map(|it| it.runs),
        distinct: validation.map(|it| it.distinct),
        shipped: validation.map(|it| it.before),
        fitted: validation.map(|it| it.after),
    })
}
