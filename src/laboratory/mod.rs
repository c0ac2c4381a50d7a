//! The laboratory: measured runs, what they teach the cost model, and how right its predictions
//! have been. The product (instances, solving, explanations) knows nothing of it.

pub mod backtest;
pub mod calibrate;
pub mod logs;
pub mod report;
pub mod runs;
