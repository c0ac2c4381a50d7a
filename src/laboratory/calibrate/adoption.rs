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
use crate::cluster::{CalibrationKind, Cluster, MemoryError};
use crate::figures::Seen;
use crate::framework::Framework;
use crate::laboratory::runs::Status;

/// When fitted figures take the place of the shipped ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// Where cross-validation shows that they are better.
    Tested,
    /// Always.
    Always,
}

/// Which speeds are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Speeds {
    /// The shipped ones.
    Shipped,
    /// The shipped ones times one factor on every duration.
    Level,
    /// The fitted ones.
    Fitted,
}

/// Evidence of a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Runs with a step time.
    pub timed: usize,
    /// Runs with a peak.
    pub peaks: usize,
    /// Runs that ran out of memory.
    pub out_of_memory: usize,
}

/// A calibration with all that led to it.
#[derive(Debug, Clone)]
pub struct Calibrated {
    /// The runs that it rests on.
    pub evidence: Evidence,
    /// The fit to all runs, whether it is adopted or not.
    pub fitted: Fitted,
    /// The cluster to use.
    pub cluster: Cluster,
    /// The framework to use.
    pub framework: Framework,
    /// One factor on every duration in place of the fit; `None` without timed runs.
    pub level: Option<Level>,
    /// The speeds that were adopted.
    pub speeds: Speeds,
    /// How the shipped speeds were obtained.
    pub base: CalibrationKind,
    /// Cross-validation of step times.
    pub time: Option<Validation>,
    /// Whether fitted speeds were adopted; `None` without timed runs.
    pub time_verdict: Option<Verdict>,
    /// Cross-validation of memory.
    pub memory: Option<Validation>,
    /// Whether fitted memory figures were adopted; `None` without runs that tell of memory.
    pub memory_verdict: Option<Verdict>,
    /// What every run states for itself.
    pub stated: Common,
    /// Figures that every run states, taken over without a fit.
    pub facts: Vec<Fact>,
    /// Runs that the fit misses by far.
    pub outliers: Vec<Outlier>,
}

/// Fits, cross-validates and decides what to adopt. `source` names the runs.
#[must_use]
pub fn calibrate(
    observations: &[&Observation],
    cluster: &Cluster,
    framework: &Framework,
    options: &FitOptions,
    adoption: Adoption,
    source: &str,
) -> Calibrated {
    let priors = Priors::shipped(cluster, framework);
    calibrate_from(
        &priors,
        observations,
        cluster,
        framework,
        options,
        adoption,
        source,
    )
}

/// The same from other priors than the shipped ones.
#[must_use]
pub fn calibrate_from(
    priors: &Priors,
    observations: &[&Observation],
    cluster: &Cluster,
    framework: &Framework,
    options: &FitOptions,
    adoption: Adoption,
    source: &str,
) -> Calibrated {
    let fitted = fit(observations, cluster, framework, priors, options);
    let time = cross_validation::times(observations, cluster, framework, priors, options);
    let level = level(observations, cluster, framework, options);
    let memory = cross_validation::memory(observations, cluster, framework, priors, options);
    let evidence = evidence(observations);
    let sees = |seen: Seen| {
        let mut estimates = fitted.estimates.iter();
        estimates.any(|estimate| estimate.prior.parameter.is_seen(seen))
    };
    let mut calibrated = Calibrated {
        evidence,
        cluster: cluster.clone(),
        framework: framework.clone(),
        time_verdict: sees(Seen::InTime).then(|| {
            let level = level.as_ref().and_then(|level| level.validation.as_ref());
            time.as_ref()
                .map_or(Verdict::Untested, |time| time.time_verdict(level))
        }),
        memory_verdict: sees(Seen::InMemory).then(|| {
            memory
                .as_ref()
                .map_or(Verdict::Untested, Validation::memory_verdict)
        }),
        outliers: outliers(observations, &fitted.cluster, &fitted.framework),
        fitted,
        level,
        speeds: Speeds::Shipped,
        base: cluster.calibration.kind,
        time,
        memory,
        stated: stated::by_all(observations),
        facts: Vec::new(),
    };
    calibrated.adopt(adoption, source);
    calibrated
}

fn evidence(observations: &[&Observation]) -> Evidence {
    let count = |holds: &dyn Fn(&Observation) -> bool| {
        let runs = observations.iter();
        runs.filter(|run| holds(run)).count()
    };
    Evidence {
        timed: count(&|run| run.step_time.is_some()),
        peaks: count(&|run| run.peak.is_some()),
        out_of_memory: count(&|run| run.status == Status::OutOfMemory),
    }
}

impl Calibrated {
    /// Takes over what is accepted, and states how far to trust it.
    pub fn adopt(&mut self, adoption: Adoption, source: &str) {
        let adopted = |verdict: Option<Verdict>| {
            verdict
                .is_some_and(|verdict| verdict == Verdict::Accepted || adoption == Adoption::Always)
        };
        // Of a data sheet's speeds even one run knows more.
        let from_data_sheet = self.base == CalibrationKind::DataSheet;
        self.speeds = match self.level_verdict() {
            _ if adopted(self.time_verdict) => Speeds::Fitted,
            Some(Verdict::Accepted) => Speeds::Level,
            Some(Verdict::Untested) if from_data_sheet => Speeds::Level,
            _ => Speeds::Shipped,
        };
        let memory = adopted(self.memory_verdict);
        self.take_level();
        for estimate in &self.fitted.estimates {
            let parameter = estimate.prior.parameter;
            let taken = if parameter.is_seen(Seen::InMemory) {
                memory
            } else {
                self.speeds == Speeds::Fitted
            };
            if taken {
                let (cluster, framework) = (&mut self.cluster, &mut self.framework);
                parameter.set(cluster, framework, estimate.value);
            }
        }
        let (cluster, framework) = (&mut self.cluster, &mut self.framework);
        self.facts = stated::take_over(&self.stated, cluster, framework);
        if self.speeds == Speeds::Fitted {
            self.cluster.discrepancy = self.fitted.cluster.discrepancy.clone();
        }
        self.state_trust(memory, source);
    }

    /// Whether the level is better than the shipped figures; `None` without timed runs.
    #[must_use]
    pub fn level_verdict(&self) -> Option<Verdict> {
        let validation = &self.level.as_ref()?.validation;
        Some(
            validation
                .as_ref()
                .map_or(Verdict::Untested, Validation::level_verdict),
        )
    }

    /// Sets the factor on every duration: the level's where that is adopted, else the shipped one.
    fn take_level(&mut self) {
        let Some(Level { estimate, .. }) = &self.level else {
            return;
        };
        let value = match self.speeds {
            Speeds::Level => estimate.value,
            Speeds::Shipped | Speeds::Fitted => estimate.prior.median,
        };
        let (cluster, framework) = (&mut self.cluster, &mut self.framework);
        estimate.prior.parameter.set(cluster, framework, value);
    }

    fn state_trust(&mut self, memory: bool, source: &str) {
        let calibration = &mut self.cluster.calibration;
        let level = self.level.as_ref();
        // Where the shipped figures stay, their error on these runs is known now.
        let score = match self.speeds {
            Speeds::Shipped => self.time.as_ref().map(|time| time.before),
            Speeds::Level => level
                .and_then(|level| level.validation.as_ref())
                .map(|validation| validation.after),
            Speeds::Fitted => self.time.as_ref().map(|time| time.after),
        };
        // Of rows that are wrong nothing follows, not even an error.
        let plausible = self.time_verdict != Some(Verdict::Implausible);
        if let (Some(score), Some(time), true) = (score, &self.time, plausible) {
            calibration.time_error =
                time_error(calibration.time_error, score.mean_error, time.distinct);
        }
        if self.speeds != Speeds::Shipped && self.time.is_some() {
            calibration.kind = CalibrationKind::Measured;
        }
        // Runs that tell only of fitting or not were weighed by the error that was shipped.
        if memory && self.evidence.peaks > 0 {
            calibration.memory = memory_error(self.memory.as_ref(), self.evidence.peaks);
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

/// Runs that the error believed before counts as.
const BELIEVED_RUNS: f64 = 5.0;

/// The typical error after `n` distinct runs were off by `error`: `sqrt((error^2 n + before^2 5) /
/// (n + 5))`. A few runs, mostly alike, tell less of others than their own error says.
fn time_error(before: f64, error: f64, distinct: usize) -> f64 {
    let runs = distinct as f64;
    let variance = (error.powi(2) * runs + before.powi(2) * BELIEVED_RUNS) / (runs + BELIEVED_RUNS);
    rounded(variance.sqrt())
}

/// Error of the logarithm of a peak before any is measured.
const USUAL_SPREAD: f64 = 0.16;
/// Peaks that the usual spread counts as.
const USUAL_PEAKS: f64 = 5.0;
/// Scale of a logistic distribution over its standard deviation, `sqrt(3) / pi`.
const LOGISTIC: f64 = 0.55;
/// Least scale: repeats of one run differ by as much.
const LEAST_SCALE: f64 = 0.024;

/// The memory error after a fit to `n` peaks whose held-out errors spread by `e`: shift 0, scale
/// `max(0.024, 0.55 sqrt((e^2 n + 0.16^2 5) / (n + 5)))`, a standard deviation shrunk towards what
/// is usual without calibration.
#[must_use]
pub fn memory_error(validation: Option<&Validation>, peaks: usize) -> MemoryError {
    let (peaks, spread) = match validation {
        Some(validation) if validation.measure == Measure::Error => {
            (peaks as f64, validation.spread)
        }
        _ => (0.0, 0.0),
    };
    let usual = USUAL_SPREAD.powi(2) * USUAL_PEAKS;
    let variance = (spread.powi(2) * peaks + usual) / (peaks + USUAL_PEAKS);
    MemoryError {
        shift: 0.0,
        scale: rounded(LEAST_SCALE.max(LOGISTIC * variance.sqrt())),
    }
}

/// Three decimals: what is known of an error.
fn rounded(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}
