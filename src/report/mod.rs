//! What the user sees: renders plans, evaluations, batches and catalogs, and decides nothing.
//!
//! Every function returns a `String`; only the binary prints.

pub mod backtest;
pub mod batch;
pub mod calibration;
pub mod catalog;
pub mod comparison;
mod components;
pub mod counts;
pub mod evaluation;
pub mod explanation;
#[cfg(test)]
pub(crate) mod fixture;
mod infeasible;
pub mod json;
pub mod layout_text;
mod number;
pub mod pareto;
mod plot;
pub mod price;
pub mod scatter;
mod style;
pub mod table;
mod trust;
pub mod verdict;

pub use style::{Colour, Style, shell_word};
