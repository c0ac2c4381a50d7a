//! The level of step times alone: one factor on every duration.
//!
//! A factor common to all layouts changes no order among them, so that it corrects predictions
//! without any risk to the choice that follows from them. It is the least that a few runs can
//! teach, and what a fit of single figures has to beat.

use super::cross_validation::{self, Validation};
use super::fit::{Estimate, FitOptions, Residuals, fit};
use super::observation::Observation;
use super::priors::{Prior, Priors};
use crate::figures::{Figure, Seen};
use crate::laboratory::runs::Setup;

/// Key of the factor.
const KEY: &str = "efficiency.slowdown";
/// Standard deviation of its logarithm before any run is seen: what step times are wrong by on a
/// cluster that is known by its data sheet.
const SIGMA: f64 = 0.15;
/// What runs scatter by about their level.
const SCATTER: f64 = 0.10;

/// The factor as the runs teach it.
#[derive(Debug, Clone)]
pub struct Level {
    /// Its estimate.
    pub estimate: Estimate,
    /// How well it predicts runs that it has not seen.
    pub validation: Option<Validation>,
}

/// Fits the factor with all other figures as they are; `None` without timed runs.
pub(super) fn level(
    observations: &[&Observation],
    setup: &Setup,
    options: &FitOptions,
) -> Option<Level> {
    let parameter = Figure::named(KEY)?;
    let (lower, upper) = parameter.terms.learning?.bounds;
    let prior = Prior {
        parameter,
        median: setup.number(parameter),
        sigma: SIGMA,
        lower,
        upper,
    };
    let priors = Priors {
        setup: setup.clone(),
        list: vec![prior],
    };
    let options = FitOptions {
        time_scale: SCATTER,
        time_prior_weight: SCATTER,
        residuals: Residuals::Kept,
        ..*options
    };
    let fitted = fit(observations, &priors, &options);
    Some(Level {
        estimate: *fitted.estimates.first()?,
        validation: cross_validation::validate(Seen::InTime, observations, &priors, &options),
    })
}
