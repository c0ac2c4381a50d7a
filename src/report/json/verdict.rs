//! The checker's verdict as a document.

use schemars::JsonSchema;
use serde::Serialize;

use crate::verify::{Accepted, Proven, Reasons, Verdict};

use super::layout::LayoutDocument;
use super::{VERDICT, rounded, rounded_probability};

/// What the checker says of a certificate.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VerdictDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = VERDICT))]
    schema: &'static str,
    /// Whether everything in the certificate is as it has to be.
    #[schemars(extend("enum" = ["accepted", "rejected"]))]
    verdict: &'static str,
    /// What is proven; null where the certificate is rejected.
    proven: Option<ProvenDocument>,
    /// The first ten things that are wrong; empty where the certificate is accepted.
    reasons: Vec<ReasonDocument>,
    /// How many things are wrong.
    reason_count: u64,
}

/// What an accepted certificate proves.
#[derive(Debug, Serialize, JsonSchema)]
struct ProvenDocument {
    /// How the search ended.
    #[schemars(extend("enum" = ["optimal", "feasible", "infeasible", "unknown"]))]
    status: &'static str,
    /// The program whose layouts the certificate is about.
    #[schemars(extend("enum" = ["layout-choice", "staged"]))]
    formulation: &'static str,
    /// Combinations by how they are settled.
    combinations: CountsDocument,
    /// The layout; null where there is none.
    layout: Option<LayoutDocument>,
    /// Its MFU; null without a layout.
    mfu: Option<f64>,
    /// Its risk of running out of memory; null without a layout.
    oom_probability: Option<f64>,
    /// Relative distance of its step time to the bound, 0 when optimal; null without a layout.
    gap: Option<f64>,
}

/// Combinations by how they are settled.
#[derive(Debug, Serialize, JsonSchema)]
struct CountsDocument {
    /// All combinations of the space.
    total: u64,
    /// They break a rule on discrete choices.
    broken: u64,
    /// None of their layouts fits into memory.
    infeasible: u64,
    /// A bound excludes them.
    pruned: u64,
    /// Their best layout is known.
    solved: u64,
    /// A limit ended the search before they were settled.
    open: u64,
}

/// Something in a certificate that is not as it has to be.
#[derive(Debug, Serialize, JsonSchema)]
struct ReasonDocument {
    /// Where, such as `combinations.balance[3]`.
    place: String,
    /// What is wrong.
    cause: String,
}

impl VerdictDocument {
    pub(super) fn new(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Accepted(accepted) => Self {
                schema: VERDICT,
                verdict: "accepted",
                proven: Some(ProvenDocument::new(accepted)),
                reasons: Vec::new(),
                reason_count: 0,
            },
            Verdict::Rejected(reasons) => Self {
                schema: VERDICT,
                verdict: "rejected",
                proven: None,
                reasons: reason_documents(reasons),
                reason_count: reasons.count() as u64,
            },
        }
    }
}

impl ProvenDocument {
    fn new(accepted: &Accepted) -> Self {
        let counts = accepted.counts;
        let winner = accepted.winner.as_ref();
        let figure = |of: fn(&Proven) -> f64| winner.map(of);
        Self {
            status: accepted.status,
            formulation: accepted.formulation.as_str(),
            combinations: CountsDocument {
                total: counts.total,
                broken: counts.broken,
                infeasible: counts.infeasible,
                pruned: counts.pruned,
                solved: counts.solved,
                open: counts.open,
            },
            layout: winner.map(|winner| LayoutDocument::new(&winner.layout, winner.global_batch)),
            mfu: figure(|winner| rounded(winner.mfu.value())),
            oom_probability: figure(|winner| rounded_probability(winner.oom_probability)),
            gap: figure(|winner| rounded(winner.gap)),
        }
    }
}

fn reason_documents(reasons: &Reasons) -> Vec<ReasonDocument> {
    let reasons = reasons.list().iter();
    reasons
        .map(|reason| ReasonDocument {
            place: reason.place.clone(),
            cause: reason.cause.clone(),
        })
        .collect()
}
