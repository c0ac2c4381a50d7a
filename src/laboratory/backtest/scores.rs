//! Figures of merit of a set of runs.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::case::Case;
use super::pick::{Pick, PickEnd};
use crate::laboratory::statistics::{mean, median, spearman};

/// Out-of-memory verdicts: a run is said to fit where its probability of running out is below one
/// half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Verdicts {
    /// Runs that trained or ran out of memory.
    pub runs: usize,
    /// Runs whose verdict is right.
    pub right: usize,
    /// Said to fit, but ran out.
    pub false_fits: usize,
    /// Said to run out, but fitted.
    pub false_ooms: usize,
}

impl Verdicts {
    /// The verdicts on the cases.
    #[must_use]
    pub fn of(cases: &[&Case]) -> Self {
        let mut verdicts = Self::default();
        for case in cases {
            let said_to_fit = case.oom_probability() < 0.5;
            verdicts.runs += 1;
            match (said_to_fit, case.ran_out_of_memory()) {
                (true, true) => verdicts.false_fits += 1,
                (false, false) => verdicts.false_ooms += 1,
                _ => verdicts.right += 1,
            }
        }
        verdicts
    }

    /// These and others.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            right: self.right + other.right,
            false_fits: self.false_fits + other.false_fits,
            false_ooms: self.false_ooms + other.false_ooms,
        }
    }

    /// Share that is right; `None` of nothing.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.right as f64 / self.runs as f64)
    }
}

/// Relative errors of one predicted quantity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Errors {
    /// Runs that have a measured value.
    pub runs: usize,
    /// Mean absolute error.
    pub mean: f64,
    /// Median absolute error.
    pub median: f64,
    /// Mean error: above 0 where predictions are too high.
    pub bias: f64,
}

impl Errors {
    /// The figures of signed relative errors; `None` of nothing.
    #[must_use]
    pub fn of(errors: &[f64]) -> Option<Self> {
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        Some(Self {
            runs: errors.len(),
            mean: mean(&absolute)?,
            median: median(&absolute)?,
            bias: mean(errors)?,
        })
    }
}

/// Means of the picks of several groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Picks {
    /// The largest accepted probability of running out of memory.
    pub max_oom_risk: f64,
    /// Groups of at least two layouts of which one trained.
    pub groups: usize,
    /// Measured utilisation of the solver's choice over the best measured one.
    pub solver: f64,
    /// The best of the solver's three best.
    pub top_three: f64,
    /// The rule of thumb with the same verdicts.
    pub rule_of_thumb: f64,
    /// Any layout said to fit.
    pub random: f64,
    /// Groups in which the solver's choice ran out of memory.
    pub ran_out_of_memory: usize,
    /// Groups of which no layout is said to fit.
    pub nothing_fits: usize,
}

impl Picks {
    /// The means; `None` of nothing.
    #[must_use]
    pub fn of(picks: &[Pick], max_oom_risk: f64) -> Option<Self> {
        let mean_of = |value: fn(&Pick) -> f64| {
            let values: Vec<f64> = picks.iter().map(value).collect();
            mean(&values)
        };
        let ended = |end: PickEnd| picks.iter().filter(|pick| pick.end == end).count();
        Some(Self {
            max_oom_risk,
            groups: picks.len(),
            solver: mean_of(|pick| pick.solver)?,
            top_three: mean_of(|pick| pick.top_three)?,
            rule_of_thumb: mean_of(|pick| pick.rule_of_thumb)?,
            random: mean_of(|pick| pick.random)?,
            ran_out_of_memory: ended(PickEnd::RanOutOfMemory),
            nothing_fits: ended(PickEnd::NothingFits),
        })
    }
}

/// Scores of a set of runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scores {
    /// Out-of-memory verdicts.
    pub verdicts: Verdicts,
    /// Predicted utilisation; `None` where no run has a representative speed.
    #[serde(rename = "mfu_error")]
    pub mfu: Option<Errors>,
    /// Spearman's rank correlation of predicted and measured utilisation, mean over groups.
    #[serde(rename = "rank_correlation_in_group")]
    pub rank_in_group: Option<f64>,
    /// The same over all runs of the set.
    #[serde(rename = "rank_correlation")]
    pub rank: Option<f64>,
    /// Predicted peak memory; `None` where no run logged it.
    #[serde(rename = "peak_memory_error")]
    pub peak: Option<Errors>,
    /// The solver's choices, one entry an accepted risk; `None` without groups.
    #[serde(serialize_with = "only_some")]
    #[schemars(with = "Vec<Picks>")]
    pub picks: Vec<Option<Picks>>,
}

/// Writes the picks that there are.
fn only_some<S: Serializer>(picks: &[Option<Picks>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(picks.iter().flatten())
}

/// A group of runs with the picks in it, one entry an accepted risk.
pub(super) struct Group<'a> {
    pub(super) cases: Vec<&'a Case<'a>>,
    pub(super) picks: Vec<Option<Pick>>,
}

impl Scores {
    /// Scores of the groups together, of which each accepted risk of `risks` has a pick.
    pub(super) fn of(groups: &[&Group], risks: &[f64]) -> Self {
        let cases: Vec<&Case> = groups
            .iter()
            .flat_map(|group| group.cases.iter().copied())
            .collect();
        let mfu: Vec<f64> = cases.iter().filter_map(|case| case.mfu_error()).collect();
        let peak: Vec<f64> = cases.iter().filter_map(|case| case.peak_error()).collect();
        let in_group: Vec<f64> = groups.iter().filter_map(|it| rank(&it.cases)).collect();
        let picks = risks.iter().enumerate().map(|(index, &risk)| {
            let picks: Vec<Pick> = groups.iter().filter_map(|it| it.picks[index]).collect();
            Picks::of(&picks, risk)
        });
        Self {
            verdicts: Verdicts::of(&cases),
            mfu: Errors::of(&mfu),
            rank_in_group: mean(&in_group),
            rank: rank(&cases),
            peak: Errors::of(&peak),
            picks: picks.collect(),
        }
    }
}

/// Pairs below which a rank correlation says nothing.
const FEWEST_PAIRS: usize = 3;

/// Rank correlation of predicted and measured utilisation, where there are pairs enough.
pub(super) fn rank_of(pairs: &[(f64, f64)]) -> Option<f64> {
    spearman(pairs).filter(|_| pairs.len() >= FEWEST_PAIRS)
}

/// Rank correlation of predicted and measured utilisation.
pub(super) fn rank(cases: &[&Case]) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = cases
        .iter()
        .filter_map(|case| Some((case.predicted_mfu(), case.timed()?)))
        .collect();
    rank_of(&pairs)
}
