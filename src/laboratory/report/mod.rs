//! What the laboratory reports: backtests and calibrations.

pub mod backtest;
mod calibration;
mod calibration_document;
mod scatter;

pub use calibration::{Subject, calibration};
pub use calibration_document::CalibrationDocument;
