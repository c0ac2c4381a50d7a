//! Calibration: fits the cost model's physical parameters to measured runs.
//!
//! The shipped figures are log-normal priors, so that one run moves little and twenty decide
//! (`fit`); [`cross_validation`] tells whether the result predicts better than what was shipped,
//! and better than a mere [`Level`], and [`calibrate`] takes over what does. What the formulas still miss may be learned as a
//! [`discrepancy`].

mod adoption;
mod comparison;
pub mod cross_validation;
pub mod discrepancy;
mod fit;
mod least_squares;
mod level;
mod observation;
mod outliers;
mod pool;
mod priors;
mod rows;
mod seen_to_fit;
mod simulator;
mod stated;

pub use adoption::{
    Adoption, Calibrated, Evidence, MemoryFigures, Part, Speeds, calibrate, memory_error,
};
pub use comparison::{Compared, Measured, Predicted};
pub use cross_validation::{Measure, Score, Validation, Verdict};
pub use fit::{Confusion, Estimate, FitOptions, Fitted, Residuals, fit};
pub use level::Level;
pub use observation::Observation;
pub use outliers::{Missed, Outlier};
pub use pool::{Levers, Pool, PooledRun};
pub use priors::{Prior, Priors};
pub use rows::{SkippedRow, observe};
pub use stated::{Common, Fact};
