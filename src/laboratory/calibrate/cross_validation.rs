//! Whether a fit predicts runs that it has not seen better than the shipped figures do.
//!
//! Leave one out up to five distinct runs, else five folds. Runs alike in all that the cost model
//! knows stay together, so that none is predicted from its copy.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::fit::{FitOptions, censored, fit};
use super::observation::Observation;
use super::priors::Priors;
use crate::choice::choice;
use crate::cost_model::flops;
use crate::figures::Seen;
use crate::laboratory::runs::Setup;
use crate::laboratory::statistics::{mean, median, spearman};
use crate::quantity::{Bytes, Seconds};

/// Most folds.
const FOLDS: usize = 5;

choice!(
    /// What a score is the mean of.
    Measure {
        /// `|ln(predicted / measured)|`.
        Error = "error",
        /// `sqrt(-2 ln p)`, `p` the predicted probability of what happened: fitted or not.
        Deviance = "deviance",
    }
);

/// How well a set of runs is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Score {
    /// Mean of the measure.
    pub mean_error: f64,
    /// Its median.
    pub median_error: f64,
    /// Spearman's rank correlation of predicted and measured MFU; `None` where it has no meaning
    /// (memory, or fewer than two distinct values).
    #[serde(rename = "rank_correlation")]
    pub rank: Option<f64>,
}

/// Scores of the same runs by the shipped figures and by fits that did not see them.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// What is scored.
    pub measure: Measure,
    /// Runs that were scored.
    pub runs: usize,
    /// Runs that differ in what the cost model knows.
    pub distinct: usize,
    /// By the shipped figures.
    pub before: Score,
    /// By fits to the other folds.
    pub after: Score,
    /// Root mean square of those.
    pub spread: f64,
}

choice!(
    /// Whether a fit takes the place of the shipped figures.
    Verdict {
        /// It does.
        Accepted = "accepted",
        /// Fewer than two distinct runs: nothing can be held out.
        Untested = "untested",
        /// Runs that it has not seen are not predicted better.
        ErrorNotBetter = "error_not_better",
        /// It does not rank runs that it has not seen better.
        RankingNotBetter = "ranking_not_better",
        /// Even so runs are off by a factor of two and more: something else is wrong, such as a unit.
        Implausible = "implausible",
    }
);

/// Error of a logarithm, a factor of two, beyond which no physical parameter is to blame.
const IMPLAUSIBLE: f64 = std::f64::consts::LN_2;

/// Rank correlation that a fit of single figures has to gain: ten runs cannot tell less from luck.
const RANK_GAIN: f64 = 0.01;
/// Level and memory must bring the error below this share of the shipped figures'.
const NEEDED_GAIN: f64 = 0.95;
/// Mean deviance that a fit to endings has to gain: below, all of them were foretold already.
const NOTICEABLE: f64 = 0.01;

impl Validation {
    /// The rule for speeds: less error than the shipped figures and than the `level` alone, and a
    /// better ranking. The level corrects the error at no risk to the ranking; what puts the
    /// ranking at risk has to improve it.
    #[must_use]
    pub fn speeds_verdict(&self, level: Option<&Self>) -> Verdict {
        if self.is_implausible() {
            return Verdict::Implausible;
        }
        let simple = level.map_or(f64::INFINITY, |level| level.after.mean_error);
        if self.after.mean_error >= simple.min(self.before.mean_error) {
            return Verdict::ErrorNotBetter;
        }
        match (self.before.rank, self.after.rank) {
            (Some(before), Some(after)) if after < before + RANK_GAIN => Verdict::RankingNotBetter,
            (Some(_), None) => Verdict::RankingNotBetter,
            _ => Verdict::Accepted,
        }
    }

    /// The rule for the level and for memory: less error.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (before, after) = (self.before.mean_error, self.after.mean_error);
        let noticeable = self.measure == Measure::Error || before - after > NOTICEABLE;
        if self.is_implausible() {
            Verdict::Implausible
        } else if after < NEEDED_GAIN * before && noticeable {
            Verdict::Accepted
        } else {
            Verdict::ErrorNotBetter
        }
    }

    fn is_implausible(&self) -> bool {
        self.measure == Measure::Error && self.after.mean_error > IMPLAUSIBLE
    }
}

/// Which runs are held out together.
struct Folds {
    /// Number of each run's kind: runs alike in all that the cost model knows are of one.
    kinds: Vec<usize>,
    /// Kinds.
    distinct: usize,
}

impl Folds {
    fn of(&self, run: usize) -> usize {
        self.kinds[run] % FOLDS
    }

    /// Kinds among these runs.
    fn distinct_of(&self, runs: &[usize]) -> usize {
        let kinds: BTreeSet<usize> = runs.iter().map(|&run| self.kinds[run]).collect();
        kinds.len()
    }
}

fn folds(runs: &[&Observation]) -> Folds {
    let mut distinct: Vec<&Observation> = Vec::new();
    let mut kinds = Vec::with_capacity(runs.len());
    for run in runs {
        let known = distinct.iter().position(|other| other.is_alike(run));
        kinds.push(known.unwrap_or(distinct.len()));
        if known.is_none() {
            distinct.push(run);
        }
    }
    Folds {
        kinds,
        distinct: distinct.len(),
    }
}

/// Rank correlation of the means over runs of one kind: among those an order is chance.
fn rank_of_kinds(folds: &Folds, pairs: &[(f64, f64)]) -> Option<f64> {
    let mut sums = vec![(0.0, 0.0, 0.0); folds.distinct];
    for (&kind, (predicted, measured)) in folds.kinds.iter().zip(pairs) {
        sums[kind].0 += predicted;
        sums[kind].1 += measured;
        sums[kind].2 += 1.0;
    }
    let means = sums.into_iter();
    let means = means.map(|(predicted, measured, runs)| (predicted / runs, measured / runs));
    spearman(&means.collect::<Vec<_>>())
}

/// Cross-validates step times; or memory: the error of peaks where at least two distinct runs state
/// one, else the deviance of which runs fit. `None` with fewer than two distinct runs that tell of it.
#[must_use]
pub fn validate(
    seen: Seen,
    observations: &[&Observation],
    priors: &Priors,
    options: &FitOptions,
) -> Option<Validation> {
    let runs = observations.iter().copied().filter(|run| run.tells(seen));
    let runs: Vec<&Observation> = runs.collect();
    let folds = folds(&runs);
    if folds.distinct < 2 {
        return None;
    }
    // All runs teach; those with a measured value, if there are enough, are scored.
    let own = priors.only(seen);
    let fits = (0..FOLDS.min(folds.distinct)).map(|fold| {
        let others = (0..runs.len()).filter(|&run| folds.of(run) != fold);
        let others: Vec<&Observation> = others.map(|run| runs[run]).collect();
        fit(&others, &own, options).setup
    });
    let fits: Vec<Setup> = fits.collect();
    let all: Vec<usize> = (0..runs.len()).collect();
    let measured = all.iter().copied();
    let measured: Vec<usize> = measured
        .filter(|&run| runs[run].measured(seen).is_some())
        .collect();
    let (measure, scored) = if folds.distinct_of(&measured) >= 2 {
        (Measure::Error, measured)
    } else {
        (Measure::Deviance, all)
    };
    let score = |fits: &[Setup]| {
        let (mut errors, mut utilisations) = (Vec::new(), Vec::new());
        for &index in &scored {
            let run = runs[index];
            let job = run.job(fits.get(folds.of(index)).unwrap_or(&priors.setup));
            let [predicted, fullest] = run.predicted(seen, &job);
            let measured = run.measured(seen).filter(|_| measure == Measure::Error);
            errors.push(match measured {
                Some(measured) => (predicted / measured).ln(),
                None => censored(run.status, Bytes::new(fullest), &priors.setup.cluster),
            });
            if let (Seen::InTime, Some(measured)) = (seen, measured) {
                let both = [predicted, measured].map(Seconds::new);
                let both = both.map(|time| flops::utilisation(&job, time).value());
                utilisations.push(both.into());
            }
        }
        let rank = (seen == Seen::InTime).then(|| rank_of_kinds(&folds, &utilisations));
        (score(&errors, rank.flatten()), spread(&errors))
    };
    let (before, _) = score(&[]);
    let (after, spread) = score(&fits);
    Some(Validation {
        measure,
        runs: scored.len(),
        distinct: folds.distinct_of(&scored),
        before,
        after,
        spread,
    })
}

fn score(errors: &[f64], rank: Option<f64>) -> Score {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    Score {
        mean_error: mean(sizes.iter().copied()).unwrap_or_default(),
        median_error: median(&sizes).unwrap_or_default(),
        rank,
    }
}

fn spread(errors: &[f64]) -> f64 {
    let squares = errors.iter().map(|error| error * error);
    mean(squares).unwrap_or_default().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validation(before: (f64, Option<f64>), after: (f64, Option<f64>)) -> Validation {
        let score = |(mean_error, rank): (f64, Option<f64>)| Score {
            mean_error,
            median_error: mean_error,
            rank,
        };
        Validation {
            measure: Measure::Error,
            runs: 10,
            distinct: 10,
            before: score(before),
            after: score(after),
            spread: 0.1,
        }
    }

    #[test]
    fn speeds_must_gain_accuracy_and_ranking() {
        let check = |before, after, level, expected| {
            let level = validation(before, (level, before.1));
            let verdict = validation(before, after).speeds_verdict(Some(&level));
            assert_eq!(verdict, expected);
        };
        let (accepted, no_better, no_rank) = (
            Verdict::Accepted,
            Verdict::ErrorNotBetter,
            Verdict::RankingNotBetter,
        );
        check((0.10, Some(0.9)), (0.07, Some(0.92)), 0.08, accepted);
        check((0.10, Some(0.9)), (0.07, Some(0.92)), 0.07, no_better);
        check((0.10, Some(0.9)), (0.10, Some(0.92)), 0.11, no_better);
        check((0.10, Some(0.9)), (0.07, Some(0.905)), 0.08, no_rank);
        check((0.10, Some(0.9)), (0.01, None), 0.08, no_rank);
        check((0.10, None), (0.01, None), 0.08, accepted);
    }

    #[test]
    fn the_level_must_gain_accuracy() {
        let verdict = |after| validation((0.10, Some(0.9)), (after, Some(0.9))).verdict();
        assert_eq!(verdict(0.09), Verdict::Accepted);
        assert_eq!(verdict(0.096), Verdict::ErrorNotBetter);
    }

    #[test]
    fn memory_must_gain() {
        let check = |before, after, expected| {
            let validation = validation((before, None), (after, None));
            assert_eq!(validation.verdict(), expected);
        };
        check(0.10, 0.09, Verdict::Accepted);
        check(0.10, 0.096, Verdict::ErrorNotBetter);
        check(0.10, 0.10, Verdict::ErrorNotBetter);
        check(3.0, 1.0, Verdict::Implausible);
    }

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        let score = score(&[-0.1, 0.3, 0.2, -0.4], None);
        assert!((score.mean_error - 0.25).abs() < 1e-12);
        assert!((score.median_error - 0.25).abs() < 1e-12);
        assert!((spread(&[0.3, -0.4]) - 0.125_f64.sqrt()).abs() < 1e-12);
    }
}
