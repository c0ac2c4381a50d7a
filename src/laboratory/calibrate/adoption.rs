//! From a fit to the figures that are written: what is taken over, what stays as shipped.

use schemars::JsonSchema;
use serde::Serialize;

use super::cross_validation::{self, Measure, Validation, Verdict};
use super::fit::{FitOptions, Fitted, fit};
use super::level::{Level, level};
use super::observation::Observation;
use super::outliers::{Outlier, outliers};
use super::priors::Priors;
use super::stated::{self, Common, Fact};
use crate::catalog;
use crate::choice::choice;
use crate::cluster::{CalibrationKind, MemoryError};
use crate::figures::Seen;
use crate::laboratory::runs::{Setup, Status};

use super::comparison::{Compared, compared};
use super::seen_to_fit;

/// When fitted figures take the place of the shipped ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// Where cross-validation shows that they are better.
    Tested,
    /// Always.
    Always,
}

choice!(
    /// Which speeds are in use.
    Speeds {
        /// The shipped ones.
        Shipped = "shipped",
        /// The shipped ones times one factor on every duration.
        Level = "level",
        /// The fitted ones.
        Fitted = "fitted",
    }
);

choice!(
    /// Which memory figures are in use.
    MemoryFigures {
        /// The shipped ones.
        Shipped = "shipped",
        /// The fitted ones.
        Fitted = "fitted",
    }
);

/// Evidence of a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Evidence {
    /// Runs with a step time.
    pub step_times: usize,
    /// Runs with a peak.
    pub peaks: usize,
    /// Runs that ran out of memory.
    pub out_of_memory: usize,
}

/// Speeds, or memory.
#[derive(Debug, Clone)]
pub struct Part {
    /// Whether fitted figures were adopted; `None` where no run tells of them.
    pub verdict: Option<Verdict>,
    /// Its cross-validation.
    pub validation: Option<Validation>,
}

/// A calibration with all that led to it.
#[derive(Debug, Clone)]
pub struct Calibrated {
    /// The runs that it rests on.
    pub evidence: Evidence,
    /// The fit to all runs, whether it is adopted or not.
    pub fitted: Fitted,
    /// Cluster and framework before.
    pub shipped: Setup,
    /// Cluster and framework to use.
    pub setup: Setup,
    /// One factor on every duration in place of the fit; `None` without timed runs.
    pub level: Option<Level>,
    /// The speeds that were adopted.
    pub speeds: Speeds,
    /// The memory figures that were adopted.
    pub memory_figures: MemoryFigures,
    /// By how much, as a logarithm, the admissible peak of a combination rose at most, so that runs seen to
    /// fit are accepted; 0 where they are anyway.
    pub memory_raised: f64,
    /// Step times.
    pub time: Part,
    /// Memory.
    pub memory: Part,
    /// What every run states for itself.
    pub stated: Common,
    /// Figures that every run states, taken over without a fit.
    pub facts: Vec<Fact>,
    /// Runs that the fit misses by far.
    pub outliers: Vec<Outlier>,
    /// Every run, predicted before and after.
    pub runs: Vec<Compared>,
}

/// Fits, cross-validates and decides what to adopt. `source` names the runs.
#[must_use]
pub fn calibrate(
    observations: &[&Observation],
    priors: &Priors,
    options: &FitOptions,
    adoption: Adoption,
    source: &str,
) -> Calibrated {
    let fitted = fit(observations, priors, options);
    let level = level(observations, &priors.setup, options);
    let level_alone = level.as_ref().and_then(|level| level.validation.as_ref());
    let part = |seen: Seen| {
        let validation = cross_validation::validate(seen, observations, priors, options);
        let mut estimates = fitted.estimates.iter();
        let is_seen = estimates.any(|estimate| estimate.prior.parameter.is_seen(seen));
        let verdict = is_seen.then(|| match (&validation, seen) {
            (None, _) => Verdict::Untested,
            (Some(validation), Seen::InTime) => validation.speeds_verdict(level_alone),
            (Some(validation), Seen::InMemory) => validation.verdict(),
        });
        Part {
            verdict,
            validation,
        }
    };
    let count = |holds: fn(&Observation) -> bool| {
        let runs = observations.iter();
        runs.filter(|run| holds(run)).count()
    };
    let mut calibrated = Calibrated {
        evidence: Evidence {
            step_times: count(|run| run.step_time.is_some()),
            peaks: count(|run| run.peak.is_some()),
            out_of_memory: count(|run| run.status == Status::OutOfMemory),
        },
        shipped: priors.setup.clone(),
        setup: priors.setup.clone(),
        time: part(Seen::InTime),
        memory: part(Seen::InMemory),
        outliers: outliers(observations, &fitted.setup),
        fitted,
        level,
        speeds: Speeds::Shipped,
        memory_figures: MemoryFigures::Shipped,
        memory_raised: 0.0,
        stated: stated::by_all(observations),
        facts: Vec::new(),
        runs: Vec::new(),
    };
    calibrated.adopt(observations, adoption, source);
    calibrated
}

impl Calibrated {
    /// Takes over what is accepted of the fit to these runs, and states how far to trust it.
    pub fn adopt(&mut self, observations: &[&Observation], adoption: Adoption, source: &str) {
        let adopted = |part: &Part| match part.verdict {
            Some(verdict) => verdict == Verdict::Accepted || adoption == Adoption::Always,
            None => false,
        };
        self.setup = self.shipped.clone();
        // Of a data sheet's speeds even one run knows more.
        let from_data_sheet = self.shipped.cluster.calibration.kind == CalibrationKind::DataSheet;
        self.speeds = match self.level_verdict() {
            _ if adopted(&self.time) => Speeds::Fitted,
            Some(Verdict::Accepted) => Speeds::Level,
            Some(Verdict::Untested) if from_data_sheet => Speeds::Level,
            _ => Speeds::Shipped,
        };
        if let Some(Level { estimate, .. }) = &self.level
            && self.speeds == Speeds::Level
        {
            self.setup.set(estimate.prior.parameter, estimate.fitted);
        }
        if self.speeds == Speeds::Fitted {
            self.take_fitted(Seen::InTime);
            let learned = &self.fitted.setup.cluster.discrepancy;
            self.setup.cluster.discrepancy.clone_from(learned);
        }
        self.facts = stated::take_over(&self.stated, &mut self.setup);
        self.memory_figures = if adopted(&self.memory) || self.memory_belongs(observations) {
            MemoryFigures::Fitted
        } else {
            MemoryFigures::Shipped
        };
        if self.memory_figures == MemoryFigures::Fitted {
            self.take_fitted(Seen::InMemory);
            stated::take_over(&self.stated, &mut self.setup);
        }
        self.state_trust(source);
        self.memory_raised = seen_to_fit::record(observations, &mut self.setup);
        self.runs = compared(observations, &self.shipped, &self.setup);
    }

    fn take_fitted(&mut self, seen: Seen) {
        for estimate in &self.fitted.estimates {
            let parameter = estimate.prior.parameter;
            if parameter.is_seen(seen) {
                self.setup.set(parameter, estimate.fitted);
            }
        }
    }

    /// Whether memory figures that nothing tested have to be taken: they were fitted beside a stated
    /// figure that is taken over and may offset it, or the shipped ones condemn a run seen to fit.
    fn memory_belongs(&self, observations: &[&Observation]) -> bool {
        let offsets = |fact: &Fact| fact.parameter.is_seen(Seen::InMemory);
        self.memory.verdict == Some(Verdict::Untested)
            && (self.facts.iter().any(offsets)
                || seen_to_fit::condemns_any(observations, &self.setup))
    }

    /// Whether the level is better than the shipped figures; `None` without timed runs.
    #[must_use]
    pub fn level_verdict(&self) -> Option<Verdict> {
        let validation = self.level.as_ref()?.validation.as_ref();
        Some(validation.map_or(Verdict::Untested, Validation::verdict))
    }

    fn state_trust(&mut self, source: &str) {
        let memory = self.memory_figures == MemoryFigures::Fitted;
        let Setup { cluster, framework } = &mut self.setup;
        let before = catalog::time_trust(cluster, framework).error;
        let calibration = &mut cluster.calibration;
        let level = self.level.as_ref();
        let time = self.time.validation.as_ref();
        // Where the shipped figures stay, their error on these runs is known now.
        let score = match self.speeds {
            Speeds::Shipped => time.map(|time| time.before),
            Speeds::Level => level
                .and_then(|level| level.validation.as_ref())
                .map(|validation| validation.after),
            Speeds::Fitted => time.map(|time| time.after),
        };
        // Of rows that are wrong nothing follows, not even an error.
        let plausible = self.time.verdict != Some(Verdict::Implausible);
        if let (Some(score), Some(time), true) = (score, time, plausible) {
            let error = shrunk(before, score.mean_error, time.distinct);
            calibration.time_error = Some(rounded(error));
        }
        if self.speeds != Speeds::Shipped && time.is_some() {
            calibration.kind = CalibrationKind::Measured;
            calibration.framework = Some(framework.name.clone());
        }
        // Runs that tell only of fitting or not were weighed by the error that was shipped.
        if memory && self.evidence.peaks > 0 {
            let validation = self.memory.validation.as_ref();
            calibration.memory = memory_error(validation, self.evidence.peaks);
        }
        let base = &calibration.source;
        let fitted = match (self.speeds, memory) {
            (Speeds::Fitted, true) => "speeds and memory",
            (Speeds::Fitted, false) => "speeds",
            (Speeds::Level, true) => "level of speeds and memory",
            (Speeds::Level, false) => "level of speeds",
            (Speeds::Shipped, true) => "memory",
            (Speeds::Shipped, false) => {
                calibration.source = format!("{base}; kept after a trial against {source}");
                return;
            }
        };
        calibration.source = format!("{fitted} fitted to {source}; before: {base}");
    }
}

/// Runs that an error believed before counts as.
const BELIEVED_RUNS: f64 = 5.0;

/// The error to expect after `n` distinct runs were off by `error`: `sqrt((error^2 n + before^2 5) /
/// (n + 5))`. A few runs, mostly alike, tell less of others than their own error says.
fn shrunk(before: f64, error: f64, runs: usize) -> f64 {
    let runs = runs as f64;
    let variance = (error.powi(2) * runs + before.powi(2) * BELIEVED_RUNS) / (runs + BELIEVED_RUNS);
    variance.sqrt()
}

/// Error of the logarithm of a peak before any is measured.
const USUAL_SPREAD: f64 = 0.16;
/// Scale of a logistic distribution over its standard deviation, `sqrt(3) / pi`.
const LOGISTIC: f64 = 0.55;
/// Least scale: repeats of one run differ by as much.
const LEAST_SCALE: f64 = 0.024;

/// The memory error after a fit to peaks whose held-out errors spread by `e`: shift 0, scale
/// `max(0.024, 0.55 e')`, where `e'` is `e` shrunk towards what is usual without calibration.
#[must_use]
pub fn memory_error(validation: Option<&Validation>, peaks: usize) -> MemoryError {
    let scored = validation.filter(|validation| validation.measure == Measure::Error);
    let spread = scored.map_or(USUAL_SPREAD, |validation| {
        shrunk(USUAL_SPREAD, validation.spread, peaks)
    });
    MemoryError {
        shift: 0.0,
        scale: rounded(LEAST_SCALE.max(LOGISTIC * spread)),
    }
}

/// Three decimals: what is known of an error.
fn rounded(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}
