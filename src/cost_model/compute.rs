//! Time of one layer's own work for one micro-batch.
//!
//! Source of every formula: the step times of Hagemann et al. (arXiv 2311.05610), to which the
//! efficiencies were fitted; arithmetic counts by Korthikanti et al. (arXiv 2205.05198), appendix A.

use crate::framework::OptimizerWork;
use crate::job::Job;
use crate::layout::{Combination, RmsNormKernel, Sharding};
use crate::quantity::{Bytes, BytesPerSecond, Flops, FlopsPerSecond, Seconds};
use crate::transformer::FeedForward;

use super::memory::{logit_split, sequence_split, tokens};

/// How often a layer's forward pass is paid for in each kind of work.
///
/// Backward costs two forward passes, so plain training pays `c = 3`; a fully recomputed layer
/// pays 4. Flash attention's backward costs 2.5 forward passes, as it recomputes itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Passes {
    /// Passes over matrix products and elementwise operators, `c`.
    pub work: f64,
    /// Passes of flash attention.
    pub flash: f64,
    /// Tensor-parallel collectives.
    pub collectives: f64,
}

impl Passes {
    /// Forward and backward.
    pub const TRAINING: Self = Self {
        work: 3.0,
        flash: 3.5,
        collectives: 4.0,
    };
    /// Forward, forward again, backward.
    pub const RECOMPUTED: Self = Self {
        work: 4.0,
        flash: 4.5,
        collectives: 6.0,
    };
}

/// Device-memory bandwidth that streaming kernels reach.
#[must_use]
pub fn streaming(job: &Job) -> BytesPerSecond {
    job.cluster.accelerator.memory_bandwidth * job.cluster.efficiency.memory_bandwidth
}

/// Throughput that matrix products reach, `peak eta_gemm`.
#[must_use]
pub fn gemm_throughput(job: &Job) -> FlopsPerSecond {
    job.cluster.accelerator.peak(job.workload.precision) * job.cluster.efficiency.gemm
}

/// Matrix products of a layer: `c 2 t (4 h^2 + 3 h f) / tp` FLOP.
#[must_use]
pub fn gemm(job: &Job, cell: &Combination, passes: Passes) -> Seconds {
    let weights = job.transformer.layer_weights() as f64 / f64::from(cell.tensor_parallel);
    Flops::new(passes.work * 2.0 * tokens(job, cell) * weights) / gemm_throughput(job)
}

/// Attention of a layer. Flash: `passes (4 t s h / tp) / 2` causal FLOP. Otherwise the full
/// square `c 4 t s h / tp` at the efficiency of matrix products, and the softmax traffic
/// `c/3 bytes t s a / tp`.
#[must_use]
pub fn attention(job: &Job, cell: &Combination, passes: Passes) -> Seconds {
    use crate::layout::AttentionKernel::{Flash1, Flash2, MegatronFused, Torch};
    let tp = f64::from(cell.tensor_parallel);
    let pairs = tokens(job, cell) * job.workload.sequence_length as f64 / tp;
    let square = 4.0 * pairs * job.transformer.attention_width() as f64;
    let speed = &job.framework.speed;
    let efficiency = job.cluster.efficiency.attention(cell.attention_kernel);
    let peak = job.cluster.accelerator.peak_bf16 * efficiency;
    let softmax_bytes = match cell.attention_kernel {
        Flash1 | Flash2 => return Flops::new(passes.flash * square / 2.0) / peak,
        MegatronFused => speed.softmax_bytes_fused,
        Torch => speed.softmax_bytes_torch,
    };
    let traffic = passes.work / 3.0 * softmax_bytes * pairs * job.transformer.heads as f64;
    Flops::new(passes.work * square) / peak + Bytes::new(traffic) / streaming(job)
}

/// Elementwise operators of a layer: `k_elem c/3 [48 t h / u + (24 t f + 72 t h) / tp]` bytes; a plain
/// feed-forward block has half the `24 t f`.
#[must_use]
pub fn elementwise(job: &Job, cell: &Combination, passes: Passes) -> Seconds {
    let (t, h) = (tokens(job, cell), job.transformer.hidden as f64);
    let gated = match job.transformer.feed_forward {
        FeedForward::Gated => 1.0,
        FeedForward::Plain => 0.5,
    };
    let inside = 24.0 * t * gated * job.transformer.feed_forward_width as f64 + 72.0 * t * h;
    let traffic = 48.0 * t * h / sequence_split(cell) + inside / f64::from(cell.tensor_parallel);
    Bytes::new(job.framework.speed.elementwise * passes.work / 3.0 * traffic) / streaming(job)
}

/// The two norms of a layer without the kernel: `c/3 2 by_rms t h / u` bytes; with the kernel
/// their time is part of the elementwise operators.
#[must_use]
pub fn rmsnorm(job: &Job, cell: &Combination, passes: Passes) -> Seconds {
    match cell.rmsnorm_kernel {
        RmsNormKernel::Fused => Seconds::ZERO,
        RmsNormKernel::Unfused => {
            let elements = tokens(job, cell) * job.transformer.hidden as f64 / sequence_split(cell);
            let traffic = passes.work / 3.0 * 2.0 * job.framework.speed.rmsnorm_bytes * elements;
            Bytes::new(traffic) / streaming(job)
        }
    }
}

/// Host time of a layer and micro-batch:
/// `(c/3 + rc_launch [recomputed]) (t_launch + t_unfused [no RMSNorm kernel])`.
#[must_use]
pub fn launch(job: &Job, cell: &Combination, passes: Passes) -> Seconds {
    let speed = &job.framework.speed;
    let unfused = match cell.rmsnorm_kernel {
        RmsNormKernel::Fused => Seconds::ZERO,
        RmsNormKernel::Unfused => speed.launch_unfused,
    };
    let further = if passes == Passes::RECOMPUTED {
        speed.launch_recompute
    } else {
        0.0
    };
    (speed.launch + unfused) * (passes.work / 3.0 + further)
}

/// Output layer and loss of a micro-batch on the last stage, without its collective:
/// `6 t h V / tp` FLOP and `by_logit t V` bytes, the latter over `tp` where logits stay sharded.
#[must_use]
pub fn head(job: &Job, cell: &Combination) -> Seconds {
    let logits = tokens(job, cell) * job.transformer.vocabulary as f64;
    let work = 6.0 * logits * job.transformer.hidden as f64 / f64::from(cell.tensor_parallel);
    let traffic = job.framework.speed.logit_bytes * logits / logit_split(job, cell);
    Flops::new(work) / gemm_throughput(job) + Bytes::new(traffic) / streaming(job)
}

/// Optimizer time a parameter: 20 bytes pass through device memory (two moments and the master copy
/// are read and written, gradient and weight once), over the replicas where they share the work.
#[must_use]
pub fn optimizer(job: &Job, cell: &Combination) -> Seconds {
    let shared = job.framework.speed.optimizer_work == OptimizerWork::Sharded
        && cell.sharding >= Sharding::OptimizerStates
        || cell.sharding >= Sharding::Parameters;
    let replicas = f64::from(cell.data_parallel) * f64::from(cell.context_parallel);
    let split = if shared { replicas } else { 1.0 };
    Bytes::new(20.0 / split) / streaming(job)
}

/// Extra time of recomputing the feed-forward block of a layer: its first products
/// (`2 t (matrices - 1) h f / tp` FLOP), a third of its elementwise traffic, and a sixth of the
/// launches of a forward and backward pass.
#[must_use]
pub fn feed_forward_again(job: &Job, cell: &Combination) -> Seconds {
    let network = &job.transformer;
    let tp = f64::from(cell.tensor_parallel);
    let (t, f) = (tokens(job, cell), network.feed_forward_width as f64);
    let products = (network.feed_forward.matrices() - 1) as f64;
    let work = 2.0 * t * products * network.hidden as f64 * f / tp;
    let traffic = job.framework.speed.elementwise * 8.0 * t * f / tp;
    Flops::new(work) / gemm_throughput(job)
        + Bytes::new(traffic) / streaming(job)
        + launch(job, cell, Passes::TRAINING) / 6.0
}

/// Extra time of recomputing softmax and dropout of attention in a layer: one forward pass of
/// attention itself. Flash attention recomputes itself already, so the mode saves nothing there.
#[must_use]
pub fn attention_core_again(job: &Job, cell: &Combination) -> Seconds {
    attention(job, cell, Passes::RECOMPUTED) - attention(job, cell, Passes::TRAINING)
}
