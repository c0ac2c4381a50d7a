//! What a change of the job would buy: the same wishes, solved again with more memory, more nodes, a
//! faster network, other kernels or fewer of the framework's limits.
//!
//! Prices come from solving and not from dual values: those of the memory rows promise gains that
//! are not there, since a layout jumps from one combination to another.

mod front;
mod needs;
mod proposal;

pub use front::{Front, FrontKind, MORE_GPUS, Point, Sought, front};
pub use proposal::Proposal;

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::instance::Instance;
use crate::plan::Evaluated;
use crate::planner::{self, Best, PlanError, PlanOptions, Progress};

/// What changes of an instance would buy.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceList {
    /// The best layout of the instance as it is.
    pub today: Best,
    /// The changes that were solved, those that gain most tokens a second first, then in the order
    /// in which they are proposed; those without a layout last.
    pub offers: Vec<Offer>,
    /// Changes that the instance leaves no room for.
    pub idle: Vec<Idle>,
}

/// A change that does not apply to the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Idle {
    /// Which change.
    pub change: String,
    /// The change in words.
    pub description: String,
    /// Why there is nothing to change.
    pub reason: String,
}

/// A change and the best layout with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// What changes.
    pub change: Proposal,
    /// GPUs of the changed job.
    pub gpus: u32,
    /// Sequences of a step of the changed job.
    pub global_batch: u64,
    /// The best layout of the changed job.
    pub best: Best,
}

impl Offer {
    /// Training tokens a second over all GPUs.
    #[must_use]
    pub fn tokens_per_second(&self) -> Option<f64> {
        self.best
            .layout()
            .map(|evaluated| tokens_per_second(evaluated, self.gpus))
    }
}

/// Solves the instance with what is proposed.
fn offer(instance: &Instance, change: Proposal, options: &PlanOptions) -> Result<Offer, PlanError> {
    let after = change.apply(instance);
    Ok(Offer {
        change,
        gpus: after.job.cluster.gpus,
        global_batch: after.job.workload.global_batch,
        best: planner::best(&after, options)?,
    })
}

/// Training tokens a second over so many GPUs.
#[must_use]
pub fn tokens_per_second(evaluated: &Evaluated, gpus: u32) -> f64 {
    evaluated.prediction.tokens_per_second_per_gpu * f64::from(gpus)
}

/// Solves the instance and each change of it, side by side.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn price(
    instance: &Instance,
    options: &PlanOptions,
    progress: &Progress,
) -> Result<PriceList, PlanError> {
    let of_today = PlanOptions {
        deadline: options.deadline.part(2),
        ..*options
    };
    let today = planner::best(instance, &of_today)?;
    let mut changed = Vec::new();
    let mut idle = Vec::new();
    for (proposal, reason) in proposal::proposals(instance) {
        match reason {
            None => changed.push(proposal),
            Some(reason) => idle.push(Idle {
                change: proposal.key().to_owned(),
                description: proposal.to_string(),
                reason: reason.to_owned(),
            }),
        }
    }
    let (all, done) = (changed.len(), AtomicUsize::new(0));
    let solve = |proposal: Proposal| {
        let offer = offer(instance, proposal, options);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
        offer
    };
    let offers: Result<Vec<Offer>, PlanError> = changed.into_par_iter().map(solve).collect();
    let mut offers = offers?;
    if today == Best::Infeasible {
        offers.extend(needs::offers(instance, options)?);
    }
    let speed = |offer: &Offer| offer.tokens_per_second().unwrap_or(-1.0);
    // The sort is stable: equal gains keep their order.
    offers.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    Ok(PriceList {
        today,
        offers,
        idle,
    })
}
