//! Figures of merit of a set of runs.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::case::Case;
use super::intervals;
use super::pick::Pick;
use crate::laboratory::by_name;
use crate::laboratory::statistics::{mean, median, spearman};

/// Out-of-memory verdicts: a run is said to fit where its probability of running out is below one
/// half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Verdicts {
    /// Runs that trained or ran out of memory and state what decides their memory.
    pub runs: usize,
    /// Runs whose verdict is right.
    pub right: usize,
    /// Said to fit, but ran out.
    pub false_fits: usize,
    /// Said to run out, but fitted.
    pub false_ooms: usize,
    /// Runs without a verdict: they do not state checkpointing or virtual stages.
    pub none: usize,
}

impl Verdicts {
    /// The verdicts on the cases.
    #[must_use]
    pub fn of(cases: &[&Case]) -> Self {
        let mut verdicts = Self::default();
        for case in cases {
            let Some(probability) = case.oom_probability() else {
                verdicts.none += 1;
                continue;
            };
            verdicts.runs += 1;
            match (probability < 0.5, case.ran_out_of_memory()) {
                (true, true) => verdicts.false_fits += 1,
                (false, false) => verdicts.false_ooms += 1,
                _ => verdicts.right += 1,
            }
        }
        verdicts
    }

    /// Adds those on other runs.
    pub(super) fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.right += other.right;
        self.false_fits += other.false_fits;
        self.false_ooms += other.false_ooms;
        self.none += other.none;
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
    /// Standard deviation of the errors.
    pub spread: f64,
}

impl Errors {
    /// The figures of signed relative errors; `None` of nothing.
    #[must_use]
    pub fn of(errors: &[f64]) -> Option<Self> {
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let bias = mean(errors.iter().copied())?;
        Some(Self {
            runs: errors.len(),
            mean: mean(absolute.iter().copied())?,
            median: median(&absolute)?,
            bias,
            spread: mean(errors.iter().map(|error| (error - bias).powi(2)))?.sqrt(),
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
        let mean_of = |value: fn(&Pick) -> f64| mean(picks.iter().map(value));
        let solvers = || picks.iter().map(|pick| pick.solver);
        Some(Self {
            max_oom_risk,
            groups: picks.len(),
            solver: mean_of(|pick| pick.solver.unwrap_or(0.0))?,
            top_three: mean_of(|pick| pick.top_three)?,
            rule_of_thumb: mean_of(|pick| pick.rule_of_thumb)?,
            random: mean_of(|pick| pick.random)?,
            ran_out_of_memory: solvers().flatten().filter(|&share| share <= 0.0).count(),
            nothing_fits: solvers().filter(Option::is_none).count(),
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
    /// Predicted step time, of the same runs.
    #[serde(rename = "time_error")]
    pub time: Option<Errors>,
    /// Share of those runs that are within the stated 80 % interval.
    pub within_interval: Option<f64>,
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
        let all = Sample::of(&cases);
        let in_group = groups
            .iter()
            .filter_map(|it| Sample::of(&layouts(&it.cases)).rank());
        let picks = risks.iter().enumerate().map(|(index, &risk)| {
            let picks: Vec<Pick> = groups.iter().filter_map(|it| it.picks[index]).collect();
            Picks::of(&picks, risk)
        });
        Self {
            verdicts: all.verdicts,
            mfu: all.mfu(),
            time: all.time(),
            within_interval: intervals::share_within(&cases),
            rank_in_group: mean(in_group),
            rank: all.rank(),
            peak: all.peak(),
            picks: picks.collect(),
        }
    }
}

/// One case a layout: measured figures of runs alike are the same.
fn layouts<'a>(cases: &[&'a Case<'a>]) -> Vec<&'a Case<'a>> {
    let timed: Vec<&Case> = cases
        .iter()
        .copied()
        .filter(|case| case.timed().is_some())
        .collect();
    let by_layout = by_name(&timed, |case| case.layout_number);
    by_layout.iter().map(|(_, alike)| *alike[0]).collect()
}

/// Pairs below which a rank correlation says nothing.
const FEWEST_PAIRS: usize = 3;

/// What was predicted of some runs, and what was measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    /// Predicted and measured utilisation.
    utilisations: Vec<(f64, f64)>,
    /// Relative errors of peaks.
    peaks: Vec<f64>,
    pub(super) verdicts: Verdicts,
    /// The solver's pick in each group, where it is asked.
    pub(super) picks: Vec<f64>,
}

impl Sample {
    pub(super) fn of(cases: &[&Case]) -> Self {
        let pairs = cases
            .iter()
            .filter_map(|case| Some((case.predicted_mfu(), case.timed()?)));
        Self {
            utilisations: pairs.collect(),
            peaks: cases.iter().filter_map(|case| case.peak_error()).collect(),
            verdicts: Verdicts::of(cases),
            picks: Vec::new(),
        }
    }

    /// Adds other runs.
    pub(super) fn extend(&mut self, other: &Self) {
        self.utilisations.extend_from_slice(&other.utilisations);
        self.peaks.extend_from_slice(&other.peaks);
        self.picks.extend_from_slice(&other.picks);
        self.verdicts.add(other.verdicts);
    }

    /// Rank correlation of predicted and measured utilisation, where there are pairs enough.
    pub(super) fn rank(&self) -> Option<f64> {
        spearman(&self.utilisations).filter(|_| self.utilisations.len() >= FEWEST_PAIRS)
    }

    /// Errors of predicted utilisation.
    pub(super) fn mfu(&self) -> Option<Errors> {
        let pairs = self.utilisations.iter();
        let errors = pairs.map(|(predicted, measured)| predicted / measured - 1.0);
        Errors::of(&errors.collect::<Vec<_>>())
    }

    /// Errors of predicted step times.
    fn time(&self) -> Option<Errors> {
        let pairs = self.utilisations.iter();
        let errors = pairs.map(|(predicted, measured)| measured / predicted - 1.0);
        Errors::of(&errors.collect::<Vec<_>>())
    }

    /// Errors of predicted peaks.
    pub(super) fn peak(&self) -> Option<Errors> {
        Errors::of(&self.peaks)
    }
}
