//! What the user sees: renders plans, evaluations, batches and catalogs, and decides nothing.
//!
//! Every function returns a `String`; only the binary prints.

pub mod batch;
pub mod catalog;
mod components;
pub mod evaluation;
#[cfg(test)]
pub(crate) mod fixture;
mod infeasible;
pub mod json;
pub mod layout_text;
mod number;
mod style;
pub mod table;
mod trust;
pub mod verdict;

pub use style::{Colour, Style};
