//! A lower limit of the memory that a combination needs, also where some of its axes are open.
//!
//! With `P` bytes of state and `C` of activations a layer and micro-batch, each at their leanest, no
//! distribution of `L` layers over `S` stages has a peak below the mean of the stages,
//! `(L (P + C) + vocabulary) / S + fixed`; and where the micro-batches `f_s` in flight are known, none
//! fits into `capacity` unless `sum_s (capacity - fixed) / (P + f_s C) >= L`. In real numbers, before
//! anything is rounded up.

use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::cost_model::memory::{self, StateBytes};
use crate::cost_model::rank::Rank;
use crate::cost_model::{LayerMemory, head};
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{Combination, SequenceParallel, Sharding};
use crate::transformer::LayerKind;

use super::broken;
use super::universe::Universe;

/// Bytes of the unit of memory.
const KIB: f64 = 1024.0;
/// More than the error of the sums.
const SLACK: f64 = 1.0 + 1e-9;

/// Whether the combinations that share the axes that are not `open` may fit into `capacity` KiB: none
/// does if not.
pub(super) fn may_fit(
    instance: &Instance,
    universe: &Universe,
    candidate: &FlaggedCombination,
    open: AxisSet,
    capacity: i64,
) -> bool {
    let mut cell = broken::leanest(universe, &candidate.combination);
    let largest = |axis: Axis| universe.values(axis).iter().copied().max().unwrap_or(1);
    if open.contains(Axis::ContextParallel) {
        cell.context_parallel = largest(Axis::ContextParallel);
    }
    if open.contains(Axis::DataParallel) {
        cell.data_parallel = largest(Axis::DataParallel);
    }
    if open.contains(Axis::MicroBatch) {
        let values = universe.values(Axis::MicroBatch).iter().copied();
        cell.micro_batch = values.min().unwrap_or(1);
    }
    let capacity = capacity as f64 * KIB * SLACK;
    let fits = |cell: Combination| has_room(&instance.job, &cell, open, capacity);
    if !open.contains(Axis::Sharding) {
        return fits(cell);
    }
    let shardings = universe.values(Axis::Sharding).iter();
    let mut shardings = shardings.map(|&code| Sharding::ALL[code as usize]);
    shardings.any(|sharding| fits(Combination { sharding, ..cell }))
}

/// Whether the layers may have room, with what is open at its leanest.
fn has_room(job: &Job, cell: &Combination, open: AxisSet, capacity: f64) -> bool {
    let network = &job.transformer;
    let (tp, stages) = (f64::from(cell.tensor_parallel), cell.pipeline_parallel);
    let layers = f64::from(network.layers);
    let rank = Rank::new(job, cell);
    let state = StateBytes::new(&rank).total();
    let each = network.layer_weights() as f64 / tp * state;
    let vocabulary =
        2.0 * network.embedding_weights() as f64 / tp * state + head::saved(&rank).value();
    let fixed = fixed(job, cell, open);
    let kept = least_kept(job, cell);
    let mean = (layers * (each + kept) + vocabulary) / f64::from(stages) + fixed;
    if mean > capacity {
        return false;
    }
    if open.contains(Axis::DataParallel) || open.contains(Axis::MicroBatch) {
        return true;
    }
    let micro_batches = cell.micro_batches(job.workload.global_batch).max(1);
    let room = capacity - fixed;
    let held = (1..=u64::from(stages)).map(|left| {
        let in_flight = left.min(micro_batches) as f64;
        room / (each + in_flight * kept)
    });
    held.sum::<f64>() >= layers
}

/// Memory whatever the layers. What is open may have one rank, which needs no buffers.
fn fixed(job: &Job, cell: &Combination, open: AxisSet) -> f64 {
    let may_be_one = [
        open.contains(Axis::DataParallel) && cell.data_parallel > 1,
        open.contains(Axis::ContextParallel) && cell.context_parallel > 1,
    ];
    let saved = may_be_one.into_iter().filter(|&it| it).count() as f64;
    let rank = Rank::new(job, cell);
    let layer = job.transformer.layer_weights() as f64 / rank.tensor_parallel;
    let fixed = memory::fixed(&rank, layer) - job.framework.memory.communicator * saved;
    fixed.value()
}

/// The least that a layer keeps of a micro-batch, by any way to recompute it.
fn least_kept(job: &Job, cell: &Combination) -> f64 {
    let kept = |sequence_parallel: SequenceParallel| {
        let cell = Combination {
            sequence_parallel,
            ..*cell
        };
        let layer = LayerMemory::new(&Rank::new(job, &cell), LayerKind::DENSE);
        let modes = layer.kept.iter().map(|kept| kept.value());
        modes.fold(layer.activations.value(), f64::min)
    };
    kept(SequenceParallel::On).min(kept(SequenceParallel::Off))
}
