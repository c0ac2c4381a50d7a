//! The checker's verdict as a document.

use schemars::JsonSchema;
use serde::Serialize;

use super::layout::LayoutDocument;
use super::{rounded, schema_of, write};
use crate::verify::{Extent, Named, Verdict};

/// Name and version of the verdict on an answer.
pub const VERDICT: &str = "parlayout/verdict/v1";

/// The verdict on an answer as a document of the format [`VERDICT`], on several lines.
#[must_use]
pub fn verdict(verdict: &Verdict) -> String {
    write(&VerdictDocument::new(verdict))
}

/// The JSON Schema of [`VERDICT`], shipped as `docs/verdict.schema.json`.
#[must_use]
pub fn verdict_schema() -> String {
    schema_of::<VerdictDocument>(VERDICT)
}

/// What the checker says of an answer.
#[derive(Debug, Serialize, JsonSchema)]
struct VerdictDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = VERDICT))]
    schema: &'static str,
    /// `accepted`: all that was checked is true. `unfinished`: the time limit ended the search;
    /// rules and figures are true. `rejected`: something is false.
    #[schemars(extend("enum" = ["accepted", "unfinished", "rejected"]))]
    verdict: &'static str,
    /// The status of the answer; null where it is rejected.
    #[schemars(extend("enum" = ["optimal", "feasible", "infeasible", "unknown", null]))]
    status: Option<&'static str>,
    /// The program that the answer is of; null where it is rejected.
    #[schemars(extend("enum" = ["layout-choice", "staged", null]))]
    formulation: Option<&'static str>,
    /// The chosen layout; null where there is none, and where the answer is rejected.
    layout: Option<LayoutFigures>,
    /// The extent of the search, over all numbers of GPUs; null where nothing was to be searched.
    searched: Option<SearchedDocument>,
    /// What was not checked, and why.
    unchecked: Vec<String>,
    /// The first thing that is wrong; null where the answer is accepted.
    reason: Option<ReasonDocument>,
}

/// A layout with its speed.
#[derive(Debug, Serialize, JsonSchema)]
struct LayoutFigures {
    /// The layout.
    #[serde(flatten)]
    layout: LayoutDocument,
    /// Its model FLOP utilisation.
    mfu: f64,
    /// Its step time, in seconds.
    step_time_s: f64,
}

/// How much was searched.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchedDocument {
    /// Combinations of the space.
    combinations: u64,
    /// They break a rule on discrete choices.
    broken: u64,
    /// A simple bound excludes them, given what the search itself has found.
    passed_over: u64,
    /// Their best layout was computed, or that they have none.
    searched: u64,
}

/// Something in an answer that is not as it has to be.
#[derive(Debug, Serialize, JsonSchema)]
struct ReasonDocument {
    /// Where in the answer, such as `prediction.mfu`.
    place: String,
    /// What is wrong.
    cause: String,
    /// The value in the answer; null where not one value is wrong.
    stated: Option<String>,
    /// What it has to be; null where not one value is wrong.
    recomputed: Option<String>,
    /// A layout that is better than the answer says is possible; null where it is not about that.
    better: Option<LayoutFigures>,
}

impl VerdictDocument {
    fn new(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Accepted(accepted) => Self {
                schema: VERDICT,
                verdict: if accepted.is_cut {
                    "unfinished"
                } else {
                    "accepted"
                },
                status: Some(accepted.status),
                formulation: Some(accepted.formulation.as_str()),
                layout: accepted.layout.as_ref().map(LayoutFigures::new),
                searched: accepted.searched.map(SearchedDocument::new),
                unchecked: accepted.unchecked.clone(),
                reason: None,
            },
            Verdict::Rejected(rejected) => Self {
                schema: VERDICT,
                verdict: "rejected",
                status: None,
                formulation: None,
                layout: None,
                searched: None,
                unchecked: Vec::new(),
                reason: Some(ReasonDocument {
                    place: rejected.place.clone(),
                    cause: rejected.cause.clone(),
                    stated: rejected.stated.clone(),
                    recomputed: rejected.recomputed.clone(),
                    better: rejected.better.as_ref().map(LayoutFigures::new),
                }),
            },
        }
    }
}

impl LayoutFigures {
    fn new(named: &Named) -> Self {
        let prediction = &named.evaluated.prediction;
        Self {
            layout: LayoutDocument::new(&named.evaluated.layout, named.global_batch),
            mfu: rounded(prediction.mfu.value()),
            step_time_s: rounded(prediction.step_time.value()),
        }
    }
}

impl SearchedDocument {
    const fn new(extent: Extent) -> Self {
        Self {
            combinations: extent.combinations,
            broken: extent.broken,
            passed_over: extent.passed_over,
            searched: extent.searched,
        }
    }
}
