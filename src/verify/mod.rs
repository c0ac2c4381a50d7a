//! Checks a certificate by computing everything that it states anew.
//!
//! The checker shares the cost model, the rounding to whole units ([`crate::planner::quantise`]) and
//! the types of an instance with the planner, and nothing else: it lists the combinations in its own
//! loops (`space`), has its own arithmetic of rules (`rules`) and cuts (`cut`), its own search for the
//! least recomputation (`recompute`) and the least memory (`spread`), derives its own bounds (`bounds`)
//! and finds the best layout of a combination by its own dynamic program (`optimum`). What it takes
//! from the document is the instance and the layout that is claimed to be best; every other number
//! there has to be the one that it finds itself.

mod bounds;
pub(crate) mod budget;
pub(crate) mod canonical;
mod check;
mod cut;
mod decimal;
mod effect;
mod examples;
pub(crate) mod header;
mod optimum;
mod permission;
mod place;
mod problem;
mod reason;
mod recompute;
mod rows;
mod rules;
pub(crate) mod runs;
pub(crate) mod slack;
pub(crate) mod space;
mod spread;
pub(crate) mod statement;
mod tables;
pub(crate) mod winner;

use serde::de::IgnoredAny;
use serde_json::error::Category;

use crate::certificate::document::Certificate;
use crate::layout::Layout;
use crate::plan::Formulation;
use crate::quantity::Mfu;

pub use reason::{Reason, Reasons};

/// What the checker says of a certificate.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Everything in it is as it has to be.
    Accepted(Accepted),
    /// Something is not.
    Rejected(Reasons),
}

/// What an accepted certificate proves.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// How the search ended: `optimal`, `feasible`, `infeasible` or `unknown`.
    pub status: &'static str,
    /// The program whose layouts it is about.
    pub formulation: Formulation,
    /// How the combinations are settled.
    pub counts: Counts,
    /// The layout, where there is one.
    pub winner: Option<Proven>,
}

/// A layout with what was proven of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// The layout.
    pub layout: Layout,
    /// Sequences of a step.
    pub global_batch: u64,
    /// Its utilisation, by whole units of time.
    pub mfu: Mfu,
    /// Probability that a GPU runs out of memory, rounded to parts per billion.
    pub oom_probability: f64,
    /// Relative distance of its step time to the bound: 0 when optimal.
    pub gap: f64,
}

/// Combinations by how they are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// All.
    pub total: u64,
    /// They break a rule on discrete choices.
    pub broken: u64,
    /// No layout fits into memory and keeps the rows of the user's own.
    pub infeasible: u64,
    /// A bound excludes them.
    pub pruned: u64,
    /// Their best layout is known.
    pub solved: u64,
    /// A limit ended the search before they were settled.
    pub open: u64,
}

/// The text is no document at all.
#[derive(Debug, thiserror::Error)]
#[error("not a JSON document: {0}")]
pub struct Unreadable(serde_json::Error);

/// Checks the text of a certificate.
///
/// # Errors
///
/// When the text is not JSON. Any other document that is not a right certificate is rejected.
pub fn verify(text: &str) -> Result<Verdict, Unreadable> {
    let certificate = match serde_json::from_str::<Certificate>(text) {
        Ok(certificate) => certificate,
        Err(error) => {
            // What follows the first wrong value may be no JSON. If it is, the error is about the
            // shape, even where it reads as one of syntax: in lists that are too long.
            serde_json::from_str::<IgnoredAny>(text).map_err(Unreadable)?;
            return Ok(Verdict::Rejected(misshapen(text, &error)));
        }
    };
    if let Some(place) = place::negative_zero(text) {
        let mut reasons = Reasons::default();
        reasons.add(place, "is a negative zero: 0 has no sign");
        return Ok(Verdict::Rejected(reasons));
    }
    Ok(match check::check(&certificate) {
        Ok(accepted) => Verdict::Accepted(accepted),
        Err(reasons) => Verdict::Rejected(reasons),
    })
}

/// Where a document, which is JSON, does not have the shape of a certificate.
fn misshapen(text: &str, error: &serde_json::Error) -> Reasons {
    let mut reasons = Reasons::default();
    let place = place::of_error(text, error.line(), error.column());
    let cause = if error.classify() == Category::Data {
        let cause = crate::instance::error::shown(&error.to_string());
        format!("does not have the shape of a certificate: {cause}")
    } else {
        "is more than a certificate has there".to_owned()
    };
    reasons.add(place, cause);
    reasons
}
