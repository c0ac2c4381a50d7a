//! Memory of one layer, of the stage extras and of what a framework takes besides.
//!
//! Source: Korthikanti et al. (arXiv 2205.05198), equations 1 to 4, adapted to LLaMA's layers
//! and fitted to the out-of-memory verdicts of Hagemann et al. (arXiv 2311.05610).

use crate::cluster::MemoryError;
use crate::framework::Logits;
use crate::job::Job;
use crate::layout::{
    AttentionKernel, Combination, Recompute, RmsNormKernel, SequenceParallel, Sharding,
};
use crate::quantity::Bytes;
use crate::transformer::FeedForward;

/// Bytes a parameter on one GPU: weights, gradients, optimizer states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateBytes {
    /// Weights in the format of the matrix products.
    pub weights: f64,
    /// Gradients.
    pub gradients: f64,
    /// Master weights and moments.
    pub optimizer: f64,
}

/// Bytes of a weight in a 16-bit format; fp8 products keep 16-bit weights as well.
pub const WEIGHT_BYTES: f64 = 2.0;

/// Ranks among which each part of the state is split.
fn shards(job: &Job, cell: &Combination) -> f64 {
    let replicas = f64::from(cell.data_parallel) * f64::from(cell.context_parallel);
    if cell.sharding == Sharding::Hybrid {
        replicas
            .min((f64::from(job.cluster.gpus_per_node) / f64::from(cell.tensor_parallel)).max(1.0))
    } else {
        replicas
    }
}

/// State bytes a parameter: `2 + g + o / dp` with ZeRO-1 (Rajbhandari et al., arXiv 1910.02054,
/// section 5), `g` gradient bytes of the framework, `o` the optimizer's.
#[must_use]
pub fn state_bytes(job: &Job, cell: &Combination) -> StateBytes {
    let shards = shards(job, cell);
    let split = |from: Sharding| if cell.sharding >= from { shards } else { 1.0 };
    StateBytes {
        weights: WEIGHT_BYTES / split(Sharding::Parameters),
        gradients: job.framework.memory.gradient_bytes / split(Sharding::Gradients),
        optimizer: job.workload.optimizer.bytes_per_parameter() / split(Sharding::OptimizerStates),
    }
}

/// Tokens of a micro-batch on one rank, `t = b s / cp`.
#[must_use]
pub fn tokens(job: &Job, cell: &Combination) -> f64 {
    f64::from(cell.micro_batch) * job.workload.sequence_length as f64
        / f64::from(cell.context_parallel)
}

/// `u`: the ranks among which the parts outside the tensor-parallel blocks are split.
#[must_use]
pub fn sequence_split(cell: &Combination) -> f64 {
    match cell.sequence_parallel {
        SequenceParallel::On => f64::from(cell.tensor_parallel),
        SequenceParallel::Off => 1.0,
    }
}

/// Activations that one layer keeps for one micro-batch, by part.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LayerActivations {
    /// Inputs of norms and blocks, residuals.
    between_blocks: f64,
    /// Query, key, value, attention output.
    attention: f64,
    /// Inner activations of the feed-forward block.
    feed_forward: f64,
    /// The attention matrix, without flash attention.
    attention_core: f64,
}

impl LayerActivations {
    const fn total(&self) -> f64 {
        self.between_blocks + self.attention + self.feed_forward + self.attention_core
    }
}

/// `m (t h [12/u + 4 (1 - 1/u) + 16/u without the RMSNorm kernel] + t (12 h + 8 f) / tp) + k t s a / tp`,
/// `k` = 0 flash attention, 6 Megatron's fused softmax, 8 plain operators; `m` is the framework's
/// activation factor, 1 in the paper's. The bytes are those of the paper's framework; others state
/// their own ([`MemoryProfile`]).
///
/// [`MemoryProfile`]: crate::framework::MemoryProfile
///
/// With grouped queries the four bytes an element of keys and values shrink to `kv_heads / a`; a
/// plain feed-forward block keeps `4 f` instead of `8 f`.
fn layer_activations(job: &Job, cell: &Combination) -> LayerActivations {
    let network = &job.transformer;
    let (t, u) = (tokens(job, cell), sequence_split(cell));
    let tp = f64::from(cell.tensor_parallel);
    let habits = &job.framework.memory;
    let unfused = match cell.rmsnorm_kernel {
        RmsNormKernel::Fused => 0.0,
        RmsNormKernel::Unfused => habits.norm_bytes / u,
    };
    let matrix_bytes = match cell.attention_kernel {
        AttentionKernel::Flash1 | AttentionKernel::Flash2 => 0.0,
        AttentionKernel::MegatronFused => 6.0,
        AttentionKernel::Torch => 8.0,
    };
    let inner_bytes = match network.feed_forward {
        FeedForward::Gated => habits.feed_forward_bytes,
        FeedForward::Plain => habits.feed_forward_bytes / 2.0,
    };
    let groups = network.key_value_width() as f64;
    let factor = habits.activation_factor;
    LayerActivations {
        between_blocks: factor
            * t
            * network.hidden as f64
            * (habits.hidden_bytes / u + habits.gathered_bytes * (1.0 - 1.0 / u) + unfused),
        attention: factor
            * t
            * (habits.attention_bytes * network.attention_width() as f64 + 4.0 * groups)
            / tp,
        feed_forward: factor * t * inner_bytes * network.feed_forward_width as f64 / tp,
        attention_core: matrix_bytes
            * t
            * job.workload.sequence_length as f64
            * network.heads as f64
            / tp,
    }
}

/// What one layer keeps for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerMemory {
    /// Activations kept without recomputation, `A`.
    pub activations: Bytes,
    /// Activations kept under each mode of [`Recompute::ALL`], `C`.
    pub kept: [Bytes; 3],
    /// Memory of the one layer that each mode recomputes at a time, `W`.
    pub workspace: [Bytes; 3],
}

/// Activations of one layer and micro-batch, kept and recomputed. A fully checkpointed layer
/// keeps its input, `2 t h / u`, and needs one layer's worth while it recomputes.
#[must_use]
pub fn layer(job: &Job, cell: &Combination) -> LayerMemory {
    let parts = layer_activations(job, cell);
    let input = 2.0 * tokens(job, cell) * job.transformer.hidden as f64 / sequence_split(cell);
    let dropped = |mode: Recompute| match mode {
        Recompute::Full => parts.total(),
        Recompute::FeedForward => parts.feed_forward,
        Recompute::AttentionCore => parts.attention_core,
    };
    let modes = [
        Recompute::Full,
        Recompute::FeedForward,
        Recompute::AttentionCore,
    ];
    LayerMemory {
        activations: Bytes::new(parts.total()),
        kept: modes.map(|mode| match mode {
            Recompute::Full => Bytes::new(input),
            _ => Bytes::new(parts.total() - dropped(mode)),
        }),
        workspace: modes.map(|mode| Bytes::new(dropped(mode))),
    }
}

/// Logits, their softmax and gradients on the last stage: `(18 + 6 [tp > 1]) t V` bytes in a
/// framework that gathers them, that divided by `tp` in one that keeps them sharded.
#[must_use]
pub fn logits(job: &Job, cell: &Combination) -> Bytes {
    let habits = &job.framework.memory;
    let split = logit_split(job, cell);
    let gathers = cell.tensor_parallel > 1 && habits.logits == Logits::Gathered;
    let gathered = if gathers {
        habits.logit_bytes_gathered
    } else {
        0.0
    };
    let elements = tokens(job, cell) * job.transformer.vocabulary as f64;
    Bytes::new((habits.logit_bytes + gathered) * elements / split)
}

/// Tensor-parallel ranks among which the logits are split.
#[must_use]
pub fn logit_split(job: &Job, cell: &Combination) -> f64 {
    match job.framework.memory.logits {
        Logits::Gathered => 1.0,
        Logits::Sharded => f64::from(cell.tensor_parallel),
    }
}

/// What the framework takes whatever the layers: a constant, `w t h` bytes of working buffers, buffers of each communicator with
/// several ranks, and with ZeRO-3 the gathered weights of two layers (the one that computes and
/// the one that is fetched).
#[must_use]
pub fn fixed(job: &Job, cell: &Combination) -> Bytes {
    let degrees = [
        cell.tensor_parallel,
        cell.pipeline_parallel,
        cell.data_parallel,
        cell.context_parallel,
    ];
    let communicators = degrees.iter().filter(|&&degree| degree > 1).count() as f64;
    let working =
        job.framework.memory.working_bytes * tokens(job, cell) * job.transformer.hidden as f64;
    let gathered = match cell.sharding {
        Sharding::Parameters | Sharding::Hybrid => {
            2.0 * WEIGHT_BYTES * job.transformer.layer_weights() as f64
                / f64::from(cell.tensor_parallel)
        }
        Sharding::None | Sharding::OptimizerStates | Sharding::Gradients => 0.0,
    };
    job.framework.memory.fixed
        + job.framework.memory.communicator * communicators
        + Bytes::new(gathered + working)
}

/// Probability that a GPU with `capacity` runs out of memory at a predicted `peak`: logistic in
/// `ln(peak / capacity)`, `1 / (1 + exp(-(ln(peak / capacity) - shift) / scale))`.
#[must_use]
pub fn oom_probability(peak: Bytes, capacity: Bytes, error: MemoryError) -> f64 {
    1.0 / (1.0 + (-((peak / capacity).ln() - error.shift) / error.scale).exp())
}

/// The largest peak whose probability of running out of memory is at most `risk`: the inverse of
/// [`oom_probability`].
#[must_use]
pub fn admissible_peak(capacity: Bytes, error: MemoryError, risk: f64) -> Bytes {
    capacity * (error.shift + error.scale * (risk / (1.0 - risk)).ln()).exp()
}
