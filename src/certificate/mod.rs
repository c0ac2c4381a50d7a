//! Certificates: everything that is needed to check an answer without trusting the solver.
//!
//! A certificate is one JSON document (`docs/certificate.md`). It states the instance, by how much
//! every combination of values breaks every rule, how each combination that breaks none is settled,
//! and the layout with what it costs. [`certify`] writes it with the figures of the planner and of the
//! program; [`crate::verify`] computes every number of it anew, in its own way.

mod bottleneck;
pub(crate) mod constraint;
pub(crate) mod costs;
pub mod document;
pub mod format;
pub(crate) mod job;
pub(crate) mod learned;
pub(crate) mod parameters;
mod rows;
mod rules;
mod settle;
pub(crate) mod space;
mod stated_costs;
mod writer;

pub use document::Certificate;
pub use format::SCHEMA;
pub use writer::{CertifyError, certify};
