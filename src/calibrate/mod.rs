//! Calibration: fits the cost model's physical parameters to measured runs.
//!
//! The shipped figures are log-normal priors, so that one run moves little and twenty decide
//! ([`fit`]); what remains may be learned as a [`discrepancy`].

pub mod discrepancy;
mod fit;
mod least_squares;
mod observation;
mod parameters;
mod priors;
mod simulator;

pub use fit::{Confusion, Estimate, FitOptions, Fitted, Residuals, fit};
pub use observation::{Observation, PeakStage};
pub use parameters::{PARAMETERS, Parameter, Seen, Unit};
pub use priors::{Prior, Priors};
