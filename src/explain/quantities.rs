//! The least change of a figure of the job that gives an instance a layout.

use crate::axis::FlaggedCombination;
use crate::change::Change;
use crate::cost_model::memory;
use crate::instance::Instance;
use crate::planner::infeasibility::{least_shortage, may_have_layout};
use crate::planner::{Deadline, PlanError};
use crate::quantity::Bytes;
use crate::rules::{self, Figure};
use crate::workload::Optimizer;

use super::nearest_that_holds;

/// Changes of one figure with which the instance has a layout, in no particular order. The layout
/// of `witness` is possible with some value of it. For want of more memory other figures are changed
/// too.
pub(super) fn variations(
    instance: &Instance,
    figure: Figure,
    (witness, deadline): (&FlaggedCombination, Deadline),
) -> Result<Vec<Change>, PlanError> {
    let first = |changes: &mut dyn Iterator<Item = Change>| first(instance, changes, deadline);
    let of_witness = &witness.combination;
    let found = match figure {
        Figure::Gpus => {
            let (from, node) = (
                instance.job.cluster.gpus,
                instance.job.cluster.gpus_per_node,
            );
            let change = |to: u32| Change::Gpus { from, to };
            let sought = u32::try_from(of_witness.gpus()).unwrap_or(u32::MAX);
            let fewer = fewer_gpus(from, node).filter(|&to| to >= sought);
            let fewer = fewer.chain([sought]).filter(|&to| to < from);
            [
                first(&mut more_gpus(from, node).map(change))?,
                first(&mut fewer.map(change))?,
            ]
        }
        Figure::GlobalBatch => {
            let from = instance.job.workload.global_batch;
            let change = |to| Change::GlobalBatch { from, to };
            let mut unit = u64::from(of_witness.data_parallel) * u64::from(of_witness.micro_batch);
            if of_witness.virtual_stages > 1 {
                unit *= u64::from(of_witness.pipeline_parallel);
            }
            let below = (from.saturating_sub(BATCHES_TRIED).max(1)..from).rev();
            let below = below.chain([from / unit * unit]).filter(|&to| to > 0);
            let above = (from + 1..=from + BATCHES_TRIED).chain([(from / unit + 1) * unit]);
            [
                first(&mut below.map(change))?,
                first(&mut above.map(change))?,
            ]
        }
        Figure::SequenceLength => {
            let from = instance.job.workload.sequence_length;
            let change = |steps| Change::SequenceLength {
                from,
                to: steps * SEQUENCE_STEP,
            };
            let steps = from / SEQUENCE_STEP;
            let shorter = (1..=steps).rev();
            let shorter = shorter.filter(|count| count * SEQUENCE_STEP < from);
            [
                first(&mut shorter.take(SEQUENCES_TRIED).map(change))?,
                first(&mut (steps + 1..).take(SEQUENCES_TRIED).map(change))?,
            ]
        }
        Figure::Memory => return memory(instance, deadline),
    };
    Ok(found.into_iter().flatten().collect())
}

/// The first of the changes with which there may be a layout.
fn first(
    instance: &Instance,
    changes: &mut dyn Iterator<Item = Change>,
    deadline: Deadline,
) -> Result<Option<Change>, PlanError> {
    for change in changes {
        if may_have_layout(&change.apply(instance), deadline)? {
            return Ok(Some(change));
        }
    }
    Ok(None)
}

/// Batches tried one by one on each side.
const BATCHES_TRIED: u64 = 512;
/// Tokens of the step in which a sequence is changed.
const SEQUENCE_STEP: u64 = 128;
/// Sequence lengths tried on each side.
const SEQUENCES_TRIED: usize = 64;
/// Multiples of a node tried one by one before only powers of two are.
const NODES_TRIED: u32 = 256;
/// Most GPUs tried, as a multiple of those of the job.
const MOST_TIMES_GPUS: u32 = 16;

/// More GPUs than `from`: within a node every number, then whole nodes.
fn more_gpus(from: u32, node: u32) -> impl Iterator<Item = u32> {
    let within = from.saturating_add(1)..node.max(from.saturating_add(1));
    let nodes = from / node + 1;
    let one_by_one = nodes..nodes.saturating_add(NODES_TRIED);
    let doubling = (0..32)
        .map(|exponent| 1_u32 << exponent)
        .filter(move |&count| count > nodes.saturating_add(NODES_TRIED));
    let most = u64::from(from) * u64::from(MOST_TIMES_GPUS);
    let whole = one_by_one.chain(doubling);
    within
        .chain(whole.map(move |count| count.saturating_mul(node)))
        .filter(move |&gpus| u64::from(gpus) <= most.max(u64::from(node)))
}

/// Fewer GPUs than `from`: whole nodes, then within a node every number.
fn fewer_gpus(from: u32, node: u32) -> impl Iterator<Item = u32> {
    let nodes = (from - 1) / node;
    let whole = (nodes.saturating_sub(NODES_TRIED)..=nodes).rev();
    let within = (1..node.min(from)).rev();
    whole
        .map(move |count| count * node)
        .filter(|&gpus| gpus > 0)
        .chain(within)
}

/// Bytes of the step in which memory is asked for.
const MEMORY_STEP: f64 = 1e8;
/// Largest risk that a repair proposes to accept.
const LARGEST_RISK: f64 = 0.5;

/// The least memory of a GPU with which a layout fits, the least risk with today's, smaller optimizer
/// states, and a sequence that is short enough.
fn memory(instance: &Instance, deadline: Deadline) -> Result<Vec<Change>, PlanError> {
    let Some(shortage) = least_shortage(instance, deadline)? else {
        return Ok(Vec::new());
    };
    let cluster = &instance.job.cluster;
    let from = cluster.accelerator.usable_memory;
    let limit = rules::admissible(instance);
    let needed = limit + shortage;
    // Capacities are rounded down to whole KiB.
    let usable = (needed + Bytes::new(1024.0)).value() * (from / limit);
    let to = Bytes::new((usable / MEMORY_STEP).ceil() * MEMORY_STEP);
    let mut found = vec![Change::Memory { from, to }];
    let risk = memory::oom_probability(needed, from, cluster.calibration.memory);
    let (from, to) = (instance.max_oom_risk, (risk * 100.0).ceil() / 100.0);
    if to <= LARGEST_RISK && to > from {
        found.push(Change::OomRisk { from, to });
    }
    let optimizer = instance.job.workload.optimizer;
    let smaller = (optimizer == Optimizer::Adam).then_some(Change::SmallerOptimizer);
    found.extend(first(instance, &mut smaller.into_iter(), deadline)?);
    found.extend(shorter_sequence(instance, deadline)?);
    Ok(found)
}

/// A sequence short enough, found by bisection over multiples of [`SEQUENCE_STEP`].
fn shorter_sequence(instance: &Instance, deadline: Deadline) -> Result<Option<Change>, PlanError> {
    let from = instance.job.workload.sequence_length;
    let step = SEQUENCE_STEP.min((from / 16).max(1));
    let change = |steps: i64| Change::SequenceLength {
        from,
        to: steps as u64 * step,
    };
    let fits = |steps| may_have_layout(&change(steps).apply(instance), deadline);
    let most = from.div_ceil(step) as i64;
    if most <= 1 || !fits(1)? {
        return Ok(None);
    }
    nearest_that_holds(most, 1, fits).map(|steps| Some(change(steps)))
}
