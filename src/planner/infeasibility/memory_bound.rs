//! A lower bound of the memory that a combination needs, also where some of its axes are open.
//!
//! With `P` bytes of state and `C` of activations a layer and micro-batch, each at their leanest, no
//! distribution of `L` layers over `S` stages has a peak below the mean of the stages,
//! `(L (P + C) + vocabulary) / S + fixed`; and where the micro-batches `f_s` in flight are known, none
//! fits into `capacity` unless `sum_s (capacity - fixed) / (P + f_s C) >= L`. In real numbers, before
//! anything is rounded up.

use crate::axis::{Axis, AxisSet};
use crate::cost_model::memory::{self, StateBytes};
use crate::cost_model::rank::Rank;
use crate::cost_model::{LayerMemory, head};
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{
    AttentionKernel, Combination, RmsNormKernel, Schedule, SequenceParallel, Sharding,
};
use crate::transformer::{Embeddings, LayerKind};

/// Bytes of the unit of memory.
const KIB: f64 = 1024.0;
/// More than the error of the sums.
const SLACK: f64 = 1.0 + 1e-9;

/// A combination that needs no more memory than any with the same degrees, sharding and micro-batch.
pub(super) fn leanest(values: &[Vec<u32>; Axis::COUNT], combination: &Combination) -> Combination {
    let kernels = [
        AttentionKernel::Flash2,
        AttentionKernel::Flash3,
        AttentionKernel::Cudnn,
        AttentionKernel::Flash1,
        AttentionKernel::MegatronFused,
    ];
    let listed = &values[Axis::AttentionKernel as usize];
    let mut kernels = kernels.into_iter();
    Combination {
        attention_kernel: kernels
            .find(|&kernel| listed.contains(&(kernel as u32)))
            .unwrap_or(AttentionKernel::Torch),
        rmsnorm_kernel: RmsNormKernel::Fused,
        virtual_stages: 1,
        schedule: Schedule::OneForwardOneBackward,
        sequence_parallel: SequenceParallel::On,
        ..*combination
    }
}

/// Whether the combinations that share the axes of a [`leanest`] one that are not `open` may fit into
/// `capacity` KiB: none does if not.
pub(super) fn may_fit(
    instance: &Instance,
    values: &[Vec<u32>; Axis::COUNT],
    lean: &Combination,
    open: AxisSet,
    capacity: i64,
) -> bool {
    let mut lean = *lean;
    let of = |axis: Axis| values[axis as usize].iter().copied();
    if open.contains(Axis::ContextParallel) {
        lean.context_parallel = of(Axis::ContextParallel).max().unwrap_or(1);
    }
    if open.contains(Axis::DataParallel) {
        lean.data_parallel = of(Axis::DataParallel).max().unwrap_or(1);
    }
    if open.contains(Axis::MicroBatch) {
        lean.micro_batch = of(Axis::MicroBatch).min().unwrap_or(1);
    }
    let capacity = capacity as f64 * KIB * SLACK;
    let fits = |one: Combination| layers_may_fit(&instance.job, &one, open, capacity);
    if !open.contains(Axis::Sharding) {
        return fits(lean);
    }
    let mut shardings = of(Axis::Sharding).map(|code| Sharding::ALL[code as usize]);
    shardings.any(|sharding| fits(Combination { sharding, ..lean }))
}

/// Whether the layers may fit, with what is open at its leanest.
fn layers_may_fit(job: &Job, cell: &Combination, open: AxisSet, capacity: f64) -> bool {
    let network = &job.transformer;
    if network.experts.is_some() {
        return true;
    }
    let (tp, stages) = (f64::from(cell.tensor_parallel), cell.pipeline_parallel);
    let layers = f64::from(network.layers);
    let rank = Rank::new(job, cell);
    let state = StateBytes::new(&rank, rank.replicas()).total();
    let each = network.layer_weights() as f64 / tp * state;
    let matrices = match network.embeddings {
        Embeddings::Tied if stages == 1 => 1.0,
        Embeddings::Tied | Embeddings::Untied => 2.0,
    };
    let matrix = network.embedding_weights() as f64 / tp;
    let vocabulary = matrices * matrix * state + head::saved(&rank).value();
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
    let left = capacity - fixed;
    let held = (1..=u64::from(stages)).map(|behind| {
        let in_flight = behind.min(micro_batches) as f64;
        left / (each + in_flight * kept)
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
    let chunked = |virtual_stages: u32| {
        let cell = Combination {
            virtual_stages,
            ..*cell
        };
        memory::buffers(&Rank::new(job, &cell), layer)
    };
    let fixed = memory::fixed(&rank) + chunked(1).min(chunked(2));
    (fixed - job.framework.memory.communicator * saved).value()
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
