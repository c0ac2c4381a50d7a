//! Maximum a posteriori fit of the parameters to measured runs.

use nalgebra::DMatrix;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::discrepancy;
use super::least_squares::{self, EXACT, Minimum, soft};
use super::observation::Observation;
use super::priors::{Prior, Priors};
use super::simulator::Simulator;
use crate::cluster::Cluster;
use crate::cost_model::memory;
use crate::figures::{Figure, Seen};
use crate::laboratory::runs::{Setup, Status};
use crate::quantity::Bytes;
use crate::report::document::rounded_probability;

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
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Estimate {
    /// The parameter with its prior.
    #[serde(skip)]
    pub prior: Prior,
    /// Its key in a cluster file.
    pub key: &'static str,
    /// Its shipped value in bytes, seconds, bytes a second, or as a number.
    pub shipped: f64,
    /// Its fitted value.
    pub fitted: f64,
    /// The move in standard deviations of the prior.
    #[serde(serialize_with = "six_decimals")]
    pub moved: f64,
    /// Posterior over prior standard deviation: near 1 the runs say nothing of the parameter.
    #[serde(serialize_with = "six_decimals")]
    pub uncertainty: f64,
}

/// Two parameters that the runs cannot tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Confusion {
    /// Their keys.
    pub keys: [&'static str; 2],
    /// Their posterior correlation.
    #[serde(serialize_with = "six_decimals")]
    pub correlation: f64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn six_decimals<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rounded_probability(*number))
}

/// Writes the key of a figure.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn key<S: Serializer>(figure: &&Figure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(figure.key)
}

/// The result of a fit.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// Cluster and framework with fitted figures.
    pub setup: Setup,
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
/// use parlayout::laboratory::runs::Setup;
/// use parlayout::catalog;
///
/// let machine = catalog::machine("dgx-a100-80gb")?;
/// let setup = Setup {
///     framework: machine.framework(Some("megatron-lm"))?,
///     cluster: machine.cluster,
/// };
/// let observations: Vec<Observation> = Vec::new(); // Observation::new(&run, …) for each run
/// let fitted = calibrate::fit(
///     &observations.iter().collect::<Vec<_>>(),
///     &Priors::shipped(&setup),
///     &FitOptions::default(),
/// );
/// assert_eq!(fitted.setup, setup);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn fit(observations: &[&Observation], priors: &Priors, options: &FitOptions) -> Fitted {
    let mut fitted = Fitted {
        setup: priors.setup.clone(),
        estimates: Vec::new(),
        confusions: Vec::new(),
    };
    if options.residuals != Residuals::Kept {
        fitted.setup.cluster.discrepancy = None;
    }
    for prior in &priors.list {
        fitted.setup.set(prior.parameter, prior.value(0.0));
    }
    fit_part(Seen::InTime, observations, &mut fitted, priors, options);
    fit_part(Seen::InMemory, observations, &mut fitted, priors, options);
    if options.residuals == Residuals::Learned {
        fitted.setup.cluster.discrepancy = discrepancy::learn(observations, &fitted.setup);
    }
    fitted
}

/// Fits what is seen in step times, or in memory.
fn fit_part(
    seen: Seen,
    observations: &[&Observation],
    fitted: &mut Fitted,
    priors: &Priors,
    options: &FitOptions,
) {
    let (scale, weight) = match seen {
        Seen::InTime => (options.time_scale, options.time_prior_weight),
        Seen::InMemory => (options.memory_scale, options.memory_prior_weight),
    };
    let runs = observations.iter().copied().filter(|run| run.tells(seen));
    let mut simulator = Simulator::new(runs, &fitted.setup);
    let priors = simulator.visible(&priors.only(seen).list, seen);
    let cluster = &fitted.setup.cluster;
    let minimum = least_squares::minimise(priors.len(), weight, EXACT, |at, residuals| {
        simulator.set(&priors, at);
        let predicted = simulator.predicted(seen).into_iter();
        residuals.extend(
            predicted.map(|(run, [predicted, fullest])| match run.measured(seen) {
                Some(measured) => soft((predicted / measured).ln(), scale),
                None => censored(run.status, Bytes::new(fullest), cluster) * weight,
            }),
        );
    });
    fitted.take(&priors, &minimum, weight);
}

/// Share of runs that end otherwise than their memory says: a wrong row, a broken node.
const MISTAKEN: f64 = 0.01;

/// `sqrt(-2 ln p)`, `p` the probability that the run ended as it did: a residual in standard
/// deviations. `p` lies between 0.01 and 0.99, so that a wrong row pulls no harder than it must.
pub(super) fn censored(status: Status, peak: Bytes, cluster: &Cluster) -> f64 {
    let (capacity, error) = (
        cluster.accelerator.usable_memory,
        cluster.calibration.memory,
    );
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
            let fitted = prior.value(at);
            self.setup.set(prior.parameter, fitted);
            self.estimates.push(Estimate {
                prior: *prior,
                key: prior.parameter.key,
                shipped: prior.median,
                fitted,
                moved: prior.sigmas(fitted),
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
                    keys: [row, column].map(|index| priors[index].parameter.key),
                    correlation,
                });
            }
        }
    }
    list
}
