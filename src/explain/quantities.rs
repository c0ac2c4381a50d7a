//! The least change of a quantity that gives an instance a layout.

use crate::axis::FlaggedCombination;
use crate::cost_model::memory;
use crate::instance::Instance;
use crate::planner::infeasibility::{least_shortage, may_have_layout};
use crate::planner::{Deadline, PlanError};
use crate::quantity::Bytes;
use crate::workload::Optimizer;

use super::change::Change;
use super::reasons::admissible;
use super::repairs::Quantity;

/// Changed instances that may have a layout.
type Variations = Vec<(Change, Instance)>;

/// Changes of one quantity with which the instance has a layout, in no particular order. The
/// layout of `witness` is possible with some value of it.
pub(super) fn variations(
    instance: &Instance,
    quantity: Quantity,
    (witness, deadline): (&FlaggedCombination, Deadline),
) -> Result<Variations, PlanError> {
    match quantity {
        Quantity::Gpus => gpus(instance, witness, deadline),
        Quantity::Memory => more_memory(instance, deadline),
        Quantity::Shorter => shorter_sequence(instance, deadline),
        Quantity::Optimizer => smaller_optimizer(instance, deadline),
        Quantity::GlobalBatch => global_batch(instance, witness, deadline),
        Quantity::SequenceLength => sequence_length(instance, deadline),
        Quantity::NodeSize => node_size(instance, witness, deadline),
    }
}

/// The first of the changed instances that may have a layout.
fn first(
    mut varied: impl Iterator<Item = (Change, Instance)>,
    deadline: Deadline,
) -> Result<Option<(Change, Instance)>, PlanError> {
    varied
        .find_map(
            |(change, instance)| match may_have_layout(&instance, deadline) {
                Ok(true) => Some(Ok((change, instance))),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            },
        )
        .transpose()
}

/// The smallest node that holds the tensor-parallel groups of the witness.
fn node_size(
    instance: &Instance,
    witness: &FlaggedCombination,
    deadline: Deadline,
) -> Result<Variations, PlanError> {
    let from = instance.job.cluster.gpus_per_node;
    let to = from.max(witness.combination.tensor_parallel);
    if to == from || !to.is_multiple_of(from) {
        return Ok(Vec::new());
    }
    let mut job = instance.job.clone();
    job.cluster.gpus_per_node = to;
    let larger = instance.with_job(job);
    let change = Change::NodeSize { from, to };
    let found = first([(change, larger)].into_iter(), deadline)?;
    Ok(found.into_iter().collect())
}

/// Multiples of a node tried one by one before only powers of two are.
const NODES_TRIED: u32 = 256;
/// Most GPUs tried, as a multiple of those of the job.
const MOST_TIMES_GPUS: u32 = 16;

fn gpus(
    instance: &Instance,
    witness: &FlaggedCombination,
    deadline: Deadline,
) -> Result<Variations, PlanError> {
    let (from, node) = (
        instance.job.cluster.gpus,
        instance.job.cluster.gpus_per_node,
    );
    let with_gpus = |to: u32| {
        let mut job = instance.job.clone();
        job.cluster.gpus = to;
        (Change::Gpus { from, to }, instance.with_job(job))
    };
    let sought = u32::try_from(witness.combination.gpus()).unwrap_or(u32::MAX);
    let more = more_gpus(from, node);
    let mut found: Variations = Vec::new();
    found.extend(first(more.map(with_gpus), deadline)?);
    if sought < from {
        let fewer = fewer_gpus(from, node).filter(|&to| to >= sought);
        let fewer = fewer.chain([sought]).map(with_gpus);
        found.extend(first(fewer, deadline)?);
    }
    Ok(found)
}

/// More GPUs than `from`: within a node every number, then whole nodes.
fn more_gpus(from: u32, node: u32) -> impl Iterator<Item = u32> {
    let within = from.saturating_add(1)..node.max(from.saturating_add(1));
    let nodes = from / node + 1;
    let one_by_one = nodes..nodes.saturating_add(NODES_TRIED);
    let doubling = (0..32)
        .filter_map(|exponent| 1_u32.checked_shl(exponent))
        .filter(move |&count| count > nodes.saturating_add(NODES_TRIED));
    let most = u64::from(from) * u64::from(MOST_TIMES_GPUS);
    within
        .chain(
            one_by_one
                .chain(doubling)
                .map(move |count| count.saturating_mul(node)),
        )
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

/// The least memory of a GPU with which a layout fits, and the least risk with today's.
fn more_memory(instance: &Instance, deadline: Deadline) -> Result<Variations, PlanError> {
    let Some(shortage) = least_shortage(instance, deadline)? else {
        return Ok(Vec::new());
    };
    let cluster = &instance.job.cluster;
    let (from, error) = (
        cluster.accelerator.usable_memory,
        cluster.calibration.memory,
    );
    let limit = admissible(instance);
    let needed = limit + shortage;
    // Capacities are rounded down to whole KiB.
    let usable = (needed + Bytes::new(1024.0)).value() * (from / limit);
    let to = Bytes::new((usable / MEMORY_STEP).ceil() * MEMORY_STEP);
    let mut larger = instance.clone();
    larger.job.cluster.accelerator.usable_memory = to;
    let mut found = vec![(Change::Memory { from, to }, larger)];
    let risk = memory::oom_probability(needed, from, error);
    let to = (risk * 100.0).ceil() / 100.0;
    if to <= LARGEST_RISK && to > instance.max_oom_risk {
        let from = instance.max_oom_risk;
        let braver = Instance {
            max_oom_risk: to,
            ..instance.clone()
        };
        found.push((Change::OomRisk { from, to }, braver));
    }
    Ok(found)
}

/// Tokens of the step in which a sequence is shortened.
const SEQUENCE_STEP: u64 = 128;

/// A sequence short enough, found by bisection over multiples of [`SEQUENCE_STEP`].
fn shorter_sequence(instance: &Instance, deadline: Deadline) -> Result<Variations, PlanError> {
    let from = instance.job.workload.sequence_length;
    let step = SEQUENCE_STEP.min((from / 16).max(1));
    let with_length = |steps: u64| {
        let mut job = instance.job.clone();
        job.workload.sequence_length = steps * step;
        instance.with_job(job)
    };
    let (mut fits, mut fails) = (1, from.div_ceil(step));
    if fails <= 1 || !may_have_layout(&with_length(fits), deadline)? {
        return Ok(Vec::new());
    }
    while fits + 1 < fails {
        let middle = fits.midpoint(fails);
        if may_have_layout(&with_length(middle), deadline)? {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    let to = fits * step;
    Ok(vec![(
        Change::SequenceLength { from, to },
        with_length(fits),
    )])
}

fn smaller_optimizer(instance: &Instance, deadline: Deadline) -> Result<Variations, PlanError> {
    if instance.job.workload.optimizer != Optimizer::Adam {
        return Ok(Vec::new());
    }
    let mut smaller = instance.clone();
    smaller.job.workload.optimizer = Optimizer::AdamBf16;
    let found = first([(Change::SmallerOptimizer, smaller)].into_iter(), deadline)?;
    Ok(found.into_iter().collect())
}

/// Batches tried one by one on each side.
const BATCHES_TRIED: u64 = 512;

/// The nearest smaller and the nearest larger global batch with a layout.
fn global_batch(
    instance: &Instance,
    witness: &FlaggedCombination,
    deadline: Deadline,
) -> Result<Variations, PlanError> {
    let from = instance.job.workload.global_batch;
    let with_batch = |to: u64| {
        let mut job = instance.job.clone();
        job.workload.global_batch = to;
        (Change::GlobalBatch { from, to }, instance.with_job(job))
    };
    let cell = &witness.combination;
    let mut unit = u64::from(cell.data_parallel) * u64::from(cell.micro_batch);
    if cell.virtual_stages > 1 {
        unit *= u64::from(cell.pipeline_parallel);
    }
    let below = (from.saturating_sub(BATCHES_TRIED).max(1)..from).rev();
    let below = below.chain([from / unit * unit].into_iter().filter(|&to| to > 0));
    let above = (from + 1..=from + BATCHES_TRIED).chain([(from / unit + 1) * unit]);
    let mut found = Vec::new();
    found.extend(first(below.map(with_batch), deadline)?);
    found.extend(first(above.map(with_batch), deadline)?);
    Ok(found)
}

/// The nearest shorter and the nearest longer sequence with a layout.
fn sequence_length(instance: &Instance, deadline: Deadline) -> Result<Variations, PlanError> {
    let from = instance.job.workload.sequence_length;
    let with_length = |to: u64| {
        let mut job = instance.job.clone();
        job.workload.sequence_length = to;
        (Change::SequenceLength { from, to }, instance.with_job(job))
    };
    let steps = from / SEQUENCE_STEP;
    let shorter = (1..=steps).rev().map(|count| count * SEQUENCE_STEP);
    let longer = (steps + 1..=steps + 64).map(|count| count * SEQUENCE_STEP);
    let mut found = Vec::new();
    let shorter = shorter.filter(|&to| to < from).take(64);
    found.extend(first(shorter.map(with_length), deadline)?);
    found.extend(first(longer.map(with_length), deadline)?);
    Ok(found)
}
