//! From work to time on one GPU.
//!
//! Source: the step times of Hagemann et al. (arXiv 2311.05610), to which the efficiencies were fitted.

use super::block::Work;
use super::components::TimeComponent;
use super::rank::{ExpertShare, Rank, Replicas};
use crate::framework::OptimizerWork;
use crate::job::Job;
use crate::layout::RmsNormKernel;
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};

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
    /// Passes over tensor-parallel collectives.
    pub collectives: f64,
    /// Forward passes of whole layers that recomputation adds.
    pub recomputed: f64,
}

impl Passes {
    /// Forward and backward.
    pub const TRAINING: Self = Self {
        work: 3.0,
        flash: 3.5,
        collectives: 2.0,
        recomputed: 0.0,
    };
    /// Forward, forward again, backward.
    pub const RECOMPUTED: Self = Self {
        work: 4.0,
        flash: 4.5,
        collectives: 3.0,
        recomputed: 1.0,
    };
    /// One forward pass of a part of a layer.
    pub const AGAIN: Self = Self {
        work: 1.0,
        flash: 1.0,
        collectives: 1.0,
        recomputed: 0.0,
    };

    /// Whether gradients of weights are among them.
    #[must_use]
    pub fn trains(self) -> bool {
        self.work > 1.0
    }

    /// The share that they are of the forward and backward pass of training.
    pub(super) const fn share(self) -> f64 {
        self.work / 3.0
    }
}

/// Device-memory bandwidth that streaming kernels reach.
#[must_use]
pub fn streaming(job: &Job) -> BytesPerSecond {
    job.cluster.accelerator.memory_bandwidth * job.cluster.efficiency.memory_bandwidth
}

/// Throughput that matrix products of the layers reach, `peak eta_gemm`, in 8 bits `peak eta_gemm eta_8`.
#[must_use]
pub fn gemm_throughput(job: &Job) -> FlopsPerSecond {
    let (gpu, efficiency) = (&job.cluster.accelerator, &job.cluster.efficiency);
    let peak = gpu.peak(job.workload.precision);
    let is_narrow = peak > gpu.peak_bf16;
    peak * (efficiency.gemm * if is_narrow { efficiency.fp8 } else { 1.0 })
}

/// Throughput of matrix products that stay in 16 bits whatever the layers' precision, as the output
/// layer's do (Transformer Engine and torchao convert linear layers of blocks only).
#[must_use]
pub fn wide_gemm_throughput(job: &Job) -> FlopsPerSecond {
    job.cluster.accelerator.peak_bf16 * job.cluster.efficiency.gemm
}

/// Time of the GPU's own work, by component: FLOP over what the kernel reaches of the peak, traffic
/// over [`streaming`]'s bandwidth, that of elementwise operators times `k_elem`.
#[must_use]
pub fn device(rank: &Rank<'_>, work: &Work, passes: Passes) -> [(TimeComponent, Seconds); 4] {
    let (job, kernel) = (rank.job, rank.combination.attention_kernel);
    let reached = job.cluster.accelerator.peak_bf16 * job.cluster.efficiency.attention(kernel);
    let attention_passes = if kernel.is_flash() {
        passes.flash
    } else {
        passes.work
    };
    let streamed = |traffic: Bytes| traffic * passes.share() / streaming(job);
    [
        (
            TimeComponent::Gemm,
            work.products * passes.work / gemm_throughput(job),
        ),
        (
            TimeComponent::Attention,
            work.attention * attention_passes / reached + streamed(work.softmax),
        ),
        (
            TimeComponent::Elementwise,
            streamed(work.elementwise * job.framework.speed.elementwise),
        ),
        (TimeComponent::RmsNorm, streamed(work.norms)),
    ]
}

/// Host time of launching `work`:
/// `host launches (c/3 + rc_launch [recomputed]) (t_launch + t_unfused [no RMSNorm kernel])`.
#[must_use]
pub fn launch(rank: &Rank<'_>, work: &Work, passes: Passes) -> Seconds {
    let speed = &rank.job.framework.speed;
    let unfused = match rank.combination.rmsnorm_kernel {
        RmsNormKernel::Fused => Seconds::ZERO,
        RmsNormKernel::Unfused => speed.launch_unfused,
    };
    let further = passes.recomputed * speed.launch_recompute;
    let host = rank.job.cluster.efficiency.host;
    (speed.launch + unfused) * ((passes.share() + further) * work.launches * host)
}

/// Host time of launching a layer's experts beyond that of a dense block:
/// `host (c/3 + rc_launch [recomputed]) (t_experts + t_expert E / ep)`.
#[must_use]
pub fn launch_experts(rank: &Rank<'_>, share: &ExpertShare, passes: Passes) -> Seconds {
    let speed = &rank.job.framework.speed;
    let further = passes.recomputed * speed.launch_recompute;
    let each = speed.launch_experts + speed.launch_expert * share.local;
    each * ((passes.share() + further) * rank.job.cluster.efficiency.host)
}

/// Bytes a parameter that pass through device memory in the optimizer: two moments and the master
/// copy are read and written, gradient and weight once.
const OPTIMIZER_TRAFFIC: f64 = 20.0;

/// Optimizer time a parameter, over the replicas where they share the work.
#[must_use]
pub fn optimizer(rank: &Rank<'_>, replicas: Replicas) -> Seconds {
    let (job, state) = (rank.job, rank.combination.sharding.state());
    let shared = state.weights.splits()
        || state.optimizer.splits() && job.framework.speed.optimizer_work == OptimizerWork::Sharded;
    let split = if shared { replicas.all } else { 1.0 };
    Bytes::new(OPTIMIZER_TRAFFIC / split) / streaming(job)
}
