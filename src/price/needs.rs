//! What makes an infeasible instance feasible: the least memory, the fewest nodes.

use super::{Offer, Proposal, offer};
use crate::instance::Instance;
use crate::planner::objective::{self, Goal, Objective};
use crate::planner::{PlanError, PlanOptions, TimeOver};
use crate::quantity::Bytes;

/// Memory is found to a tenth of a gigabyte.
const STEP: f64 = 1e8;
/// Most memory that is tried, as a multiple of what a GPU has.
const MOST_MEMORY: f64 = 64.0;
/// Most GPUs that are tried, as a multiple of the job's.
const MOST_GPUS: u32 = 16;

/// The least memory and the fewest nodes with which there is a layout, where that helps.
pub(super) fn offers(instance: &Instance, options: &PlanOptions) -> Result<Vec<Offer>, PlanError> {
    let (memory, nodes) = rayon::join(
        || least_memory(instance, options),
        || fewest_nodes(instance, options),
    );
    let memory = match memory {
        Err(PlanError::TimeOver(_)) => None,
        found => found?,
    };
    Ok(memory.into_iter().chain(nodes?).collect())
}

/// With more memory there are no fewer layouts, so the least is found by bisection.
fn least_memory(instance: &Instance, options: &PlanOptions) -> Result<Option<Offer>, PlanError> {
    let solve = |steps: u64| -> Result<Option<Offer>, PlanError> {
        let proposal = Proposal::memory(instance, Bytes::new(steps as f64 * STEP));
        let proposal = proposal.called("least-memory", "the least that fits");
        let offer = offer(instance, proposal, options)?;
        if !offer.best.is_proven() {
            return Err(TimeOver.into());
        }
        Ok(Some(offer).filter(|offer| offer.best.layout().is_some()))
    };
    let memory = instance.job.cluster.accelerator.usable_memory.value();
    let (mut below, mut enough) = (0, (memory * MOST_MEMORY / STEP).ceil() as u64);
    let Some(mut offer) = solve(enough)? else {
        return Ok(None);
    };
    while enough - below > 1 {
        let middle = below.midpoint(enough);
        match solve(middle)? {
            Some(found) => (enough, offer) = (middle, found),
            None => below = middle,
        }
    }
    Ok(Some(offer))
}

/// Whole nodes, some side by side, until there is a layout.
fn fewest_nodes(instance: &Instance, options: &PlanOptions) -> Result<Option<Offer>, PlanError> {
    let cluster = &instance.job.cluster;
    let node = cluster.gpus_per_node;
    let goal = Goal {
        objective: Objective::FewestGpus,
        deadline: None,
        at_least_mfu: None,
        steps: None,
        counts: objective::counts(
            cluster,
            cluster.gpus.next_multiple_of(node) + node,
            cluster.gpus.next_multiple_of(node) * MOST_GPUS,
        ),
    };
    let counts = objective::solve_ascending(instance, &goal, options)?;
    let found = counts
        .into_iter()
        .find(|count| count.fastest().is_some_and(|best| goal.is_met(best)));
    Ok(found.and_then(|count| {
        let more = (count.gpus - cluster.gpus).div_ceil(node);
        let best = count.best?;
        best.layout().is_some().then_some(Offer {
            change: Proposal::nodes(instance, more).called("fewest-nodes", "the fewest that fit"),
            gpus: count.gpus,
            global_batch: instance.job.workload.global_batch,
            best,
        })
    }))
}
