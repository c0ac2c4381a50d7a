//! Scores of the runs that a calibration has not seen.

use schemars::JsonSchema;
use serde::Serialize;

use crate::laboratory::runs::{Setup, Skip};

use super::case::Case;
use super::leave_one_out::again;
use super::pick::{contenders, pick};
use super::scores::Sample;
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

/// Predicts the runs with these figures, and picks layouts at this accepted risk.
pub(super) fn predicted(cases: &[&Case], setup: &Setup, max_oom_risk: f64) -> Result<Sample, Skip> {
    let cases = again(cases.iter().copied(), setup)?;
    let cases: Vec<&Case> = cases.iter().collect();
    let mut sample = Sample::of(&cases);
    for (_, group) in by_name(&cases, |case| case.group.as_str()) {
        let group: Vec<&Case> = group.into_iter().copied().collect();
        let found = pick(&contenders(&group), max_oom_risk, 1);
        sample
            .picks
            .extend(found.map(|pick| pick.solver.unwrap_or(0.0)));
    }
    Ok(sample)
}

impl HeldOut {
    fn of(sample: &Sample) -> Self {
        Self {
            mfu_error: sample.mfu().map(|errors| errors.median),
            rank: sample.rank(),
            pick: mean(sample.picks.iter().copied()),
            peak_error: sample.peak().map(|errors| errors.median),
            verdicts: sample.verdicts.share(),
        }
    }
}

/// Means over draws of the scores of what each draw predicts.
pub(super) fn means<'a>(draws: impl Iterator<Item = &'a Sample>) -> HeldOut {
    let scores: Vec<HeldOut> = draws.map(HeldOut::of).collect();
    let mean_of = |value: fn(&HeldOut) -> Option<f64>| mean(scores.iter().filter_map(value));
    HeldOut {
        mfu_error: mean_of(|scores| scores.mfu_error),
        rank: mean_of(|scores| scores.rank),
        pick: mean_of(|scores| scores.pick),
        peak_error: mean_of(|scores| scores.peak_error),
        verdicts: mean_of(|scores| scores.verdicts),
    }
}
