//! Scores of the runs that a calibration has not seen.

use schemars::JsonSchema;
use serde::Serialize;

use crate::laboratory::runs::{Setup, Skip};

use super::case::Case;
use super::leave_one_out::again;
use super::pick::{contenders, pick};
use super::scores::{Errors, Verdicts, rank_of};
use crate::laboratory::by_name;
use crate::laboratory::statistics::mean;

/// Scores of the runs that were not drawn; means over draws.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct HeldOut {
    /// Median error of predicted utilisation.
    #[serde(rename = "mfu_error_median")]
    pub mfu_error: Option<f64>,
    /// Rank correlation of predicted and measured utilisation.
    #[serde(rename = "rank_correlation")]
    pub rank: Option<f64>,
    /// The solver's pick.
    pub pick: Option<f64>,
    /// Median error of predicted peak memory.
    #[serde(rename = "peak_error_median")]
    pub peak_error: Option<f64>,
    /// Share of out-of-memory verdicts that is right.
    #[serde(rename = "verdicts_right")]
    pub verdicts: Option<f64>,
}

/// What was predicted of some runs, and what was measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Predicted {
    /// Predicted and measured utilisation.
    utilisations: Vec<(f64, f64)>,
    /// Relative errors of peaks.
    peaks: Vec<f64>,
    /// The solver's pick in each group.
    picks: Vec<f64>,
    verdicts: Verdicts,
}

impl Predicted {
    /// Predicts the runs with these figures, and picks layouts at this accepted risk.
    pub(super) fn new(cases: &[&Case], setup: &Setup, max_oom_risk: f64) -> Result<Self, Skip> {
        let cases = again(cases.iter().copied(), setup)?;
        let cases: Vec<&Case> = cases.iter().collect();
        let mut picks = Vec::new();
        for (_, group) in by_name(&cases, |case| case.group.as_str()) {
            let group: Vec<&Case> = group.into_iter().copied().collect();
            let found = pick(&contenders(&group), max_oom_risk, 1);
            picks.extend(found.map(|pick| pick.solver));
        }
        let pair = |case: &&Case| Some((case.predicted_mfu(), case.timed()?));
        Ok(Self {
            utilisations: cases.iter().filter_map(pair).collect(),
            peaks: cases.iter().filter_map(|case| case.peak_error()).collect(),
            picks,
            verdicts: Verdicts::of(&cases),
        })
    }

    /// Adds other runs.
    pub(super) fn extend(&mut self, other: &Self) {
        self.utilisations.extend_from_slice(&other.utilisations);
        self.peaks.extend_from_slice(&other.peaks);
        self.picks.extend_from_slice(&other.picks);
        self.verdicts = self.verdicts.plus(other.verdicts);
    }

    /// Rank correlation of predicted and measured utilisation.
    pub(super) fn rank(&self) -> Option<f64> {
        rank_of(&self.utilisations)
    }

    fn scores(&self) -> HeldOut {
        let errors = self.utilisations.iter();
        let errors: Vec<f64> = errors
            .map(|(mine, measured)| mine / measured - 1.0)
            .collect();
        let median_error = |errors: &[f64]| Errors::of(errors).map(|errors| errors.median);
        HeldOut {
            mfu_error: median_error(&errors),
            rank: self.rank(),
            pick: mean(&self.picks),
            peak_error: median_error(&self.peaks),
            verdicts: self.verdicts.share(),
        }
    }
}

/// Means over draws of the scores of what each draw predicts.
pub(super) fn means<'a>(draws: impl Iterator<Item = &'a Predicted>) -> HeldOut {
    let scores: Vec<HeldOut> = draws.map(Predicted::scores).collect();
    let mean_of = |value: fn(&HeldOut) -> Option<f64>| {
        let values: Vec<f64> = scores.iter().filter_map(value).collect();
        mean(&values)
    };
    HeldOut {
        mfu_error: mean_of(|scores| scores.mfu_error),
        rank: mean_of(|scores| scores.rank),
        pick: mean_of(|scores| scores.pick),
        peak_error: mean_of(|scores| scores.peak_error),
        verdicts: mean_of(|scores| scores.verdicts),
    }
}
