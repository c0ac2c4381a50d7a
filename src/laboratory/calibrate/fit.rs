//! Maximum a posteriori fit of the parameters to measured runs.

use nalgebra::DMatrix;

use super::discrepancy;
use super::least_squares::{self, Minimum, soft};
use super::observation::Observation;
use super::priors::{Prior, Priors};
use super::simulator::Simulator;
use crate::cluster::{Cluster, MemoryError};
use crate::cost_model::memory;
use crate::figures::Seen;
use crate::framework::Framework;
use crate::laboratory::runs::Status;
use crate::quantity::{Bytes, Seconds};

/// How a fit weighs its evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// Error of a step time beyond which a run pulls only linearly, `c`.
    pub time_scale: f64,
    /// The same of a peak.
    pub memory_scale: f64,
    /// Error of a step time that one prior standard deviation outweighs.
    pub time_prior_weight: f64,
    /// The same of a peak.
    pub memory_prior_weight: f64,
    /// Whether to learn residuals after the fit.
    pub residuals: Residuals,
}

/// What happens to what the fitted formulas still miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residuals {
    /// Nothing, and what the cluster has learned before is dropped: it belongs to other figures.
    Ignored,
    /// Nothing, and what the cluster has learned before stays.
    Kept,
    /// A Gaussian process learns it.
    Learned,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            time_scale: 0.03,
            memory_scale: 0.05,
            time_prior_weight: 0.03,
            memory_prior_weight: 0.1,
            residuals: Residuals::Ignored,
        }
    }
}

/// A parameter after a fit.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    /// The parameter with its prior.
    pub prior: Prior,
    /// Its fitted value.
    pub value: f64,
    /// Posterior over prior standard deviation: near 1 the runs say nothing of the parameter.
    pub uncertainty: f64,
}

impl Estimate {
    /// How many prior standard deviations the value moved.
    #[must_use]
    pub fn moved(&self) -> f64 {
        self.prior.sigmas(self.value)
    }
}

/// Two parameters that the runs cannot tell apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confusion {
    /// Key of the first.
    pub one: &'static str,
    /// Key of the second.
    pub other: &'static str,
    /// Posterior correlation.
    pub correlation: f64,
}

/// The result of a fit.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The cluster with fitted figures.
    pub cluster: Cluster,
    /// The framework with fitted figures.
    pub framework: Framework,
    /// Every parameter that the runs can see.
    pub estimates: Vec<Estimate>,
    /// Parameters that the runs cannot tell apart.
    pub confusions: Vec<Confusion>,
}

/// Fits the parameters of `priors` to the runs: the maximum of the posterior with log-normal
/// priors, a soft-L1 loss, and hard bounds. Only parameters that the runs can see move.
///
/// Step times and memory share no parameter and are fitted one after the other. A run that ran out
/// of memory says that its fullest stage did not fit, one without a peak that it did.
///
/// ```
/// use parlayout::laboratory::calibrate::{self, FitOptions, Observation, Priors};
/// use parlayout::catalog;
///
/// let machine = catalog::machine("dgx-a100-80gb")?;
/// let framework = machine.framework(Some("megatron-lm"))?;
/// let priors = Priors::shipped(&machine.cluster, &framework);
/// let observations: Vec<Observation> = Vec::new(); // Observation::new(&run, …) for each run
/// let fitted = calibrate::fit(
///     &observations.iter().collect::<Vec<_>>(),
///     &machine.cluster,
///     &framework,
///     &priors,
///     &FitOptions::default(),
/// );
/// assert_eq!(fitted.cluster, machine.cluster);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn fit(
    observations: &[&Observation],
    cluster: &Cluster,
    framework: &Framework,
    priors: &Priors,
    options: &FitOptions,
) -> Fitted {
    let mut fitted = Fitted {
        cluster: Cluster {
            discrepancy: match options.residuals {
                Residuals::Kept => cluster.discrepancy.clone(),
                Residuals::Ignored | Residuals::Learned => None,
            },
            ..cluster.clone()
        },
        framework: framework.clone(),
        estimates: Vec::new(),
        confusions: Vec::new(),
    };
    for prior in &priors.list {
        let median = prior.value(0.0);
        let (cluster, framework) = (&mut fitted.cluster, &mut fitted.framework);
        prior.parameter.set(cluster, framework, median);
    }
    fit_times(observations, &mut fitted, priors, options);
    fit_memory(observations, &mut fitted, priors, options);
    if options.residuals == Residuals::Learned {
        let learned = discrepancy::learn(observations, &fitted.cluster, &fitted.framework);
        fitted.cluster.discrepancy = learned;
    }
    fitted
}

fn fit_times(
    observations: &[&Observation],
    fitted: &mut Fitted,
    priors: &Priors,
    options: &FitOptions,
) {
    let timed = observations
        .iter()
        .copied()
        .filter(|run| run.step_time.is_some());
    let mut simulator = Simulator::new(timed, &fitted.cluster, &fitted.framework);
    let values = |simulator: &Simulator| {
        let times = simulator.times().into_iter();
        times.map(Seconds::value).collect()
    };
    let priors = simulator.visible(&priors.only(Seen::InTime).list, values);
    let weight = options.time_prior_weight;
    let minimum = least_squares::minimise(priors.len(), weight, |at, residuals| {
        simulator.set(&priors, at);
        let runs = simulator.observations().iter().zip(simulator.times());
        residuals.extend(runs.filter_map(|(run, predicted)| {
            let error = (predicted / run.step_time?).ln();
            Some(soft(error, options.time_scale))
        }));
    });
    fitted.take(&priors, &minimum, weight);
}

fn fit_memory(
    observations: &[&Observation],
    fitted: &mut Fitted,
    priors: &Priors,
    options: &FitOptions,
) {
    let known = observations
        .iter()
        .copied()
        .filter(|run| run.status != Status::Other);
    let mut simulator = Simulator::new(known, &fitted.cluster, &fitted.framework);
    let values = |simulator: &Simulator| {
        let peaks = simulator.peaks().into_iter();
        peaks
            .flat_map(|(measured, fullest)| [measured.value(), fullest.value()])
            .collect()
    };
    let priors = simulator.visible(&priors.only(Seen::InMemory).list, values);
    let capacity = fitted.cluster.accelerator.usable_memory;
    let error = fitted.cluster.calibration.memory;
    let weight = options.memory_prior_weight;
    let minimum = least_squares::minimise(priors.len(), weight, |at, residuals| {
        simulator.set(&priors, at);
        let runs = simulator.observations().iter().zip(simulator.peaks());
        residuals.extend(runs.map(|(run, (measured, fullest))| match run.peak {
            Some(peak) => soft((measured / peak).ln(), options.memory_scale),
            None => censored(run.status, fullest, capacity, error) * weight,
        }));
    });
    fitted.take(&priors, &minimum, weight);
}

/// Share of runs that end otherwise than their memory says: a wrong row, a broken node.
const MISTAKEN: f64 = 0.01;

/// `sqrt(-2 ln p)`, `p` the probability that the run ended as it did: a residual in standard
/// deviations. `p` lies between 0.01 and 0.99, so that a wrong row pulls no harder than it must.
pub(super) fn censored(status: Status, peak: Bytes, capacity: Bytes, error: MemoryError) -> f64 {
    let ran_out = memory::oom_probability(peak, capacity, error);
    let as_it_did = match status {
        Status::OutOfMemory => ran_out,
        Status::Ok | Status::Other | Status::Unstated => 1.0 - ran_out,
    };
    (-2.0 * (MISTAKEN + (1.0 - 2.0 * MISTAKEN) * as_it_did).ln()).sqrt()
}

impl Fitted {
    /// Takes over the parameters at a minimum, and how well they are known there.
    fn take(&mut self, priors: &[Prior], minimum: &Minimum, weight: f64) {
        let covariance = posterior(&minimum.jacobian, weight);
        for (index, (prior, &at)) in priors.iter().zip(&minimum.at).enumerate() {
            let value = prior.value(at);
            let (cluster, framework) = (&mut self.cluster, &mut self.framework);
            prior.parameter.set(cluster, framework, value);
            self.estimates.push(Estimate {
                prior: *prior,
                value,
                uncertainty: covariance[(index, index)].sqrt(),
            });
        }
        self.confusions.extend(confusions(priors, &covariance));
    }
}

/// Posterior covariance in prior standard deviations by the Gauss-Newton Hessian,
/// `weight^2 (J' J)^-1`: the prior's rows of `J` make it regular.
fn posterior(jacobian: &DMatrix<f64>, weight: f64) -> DMatrix<f64> {
    let hessian = jacobian.transpose() * jacobian;
    let unknowns = hessian.nrows();
    match hessian.cholesky() {
        Some(factor) => factor.inverse() * weight.powi(2),
        None => DMatrix::identity(unknowns, unknowns),
    }
}

/// Correlation beyond which two parameters cannot be told apart.
const INDISTINGUISHABLE: f64 = 0.95;

fn confusions(priors: &[Prior], covariance: &DMatrix<f64>) -> Vec<Confusion> {
    let mut list = Vec::new();
    for row in 0..priors.len() {
        for column in row + 1..priors.len() {
            let variances = covariance[(row, row)] * covariance[(column, column)];
            let correlation = covariance[(row, column)] / variances.sqrt();
            if correlation.abs() > INDISTINGUISHABLE {
                list.push(Confusion {
                    one: priors[row].parameter.key,
                    other: priors[column].parameter.key,
                    correlation,
                });
            }
        }
    }
    list
}
