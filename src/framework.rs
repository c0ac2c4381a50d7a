//! What a training framework fixes differently from others: rules, memory habits, software speed.

use crate::layout::{AttentionKernel, RmsNormKernel, SequenceParallel};
use crate::quantity::{Bytes, Seconds};

/// A profile of one training framework.
#[derive(Debug, Clone, PartialEq)]
pub struct Framework {
    /// Catalog name.
    pub name: String,
    /// How layers may be spread over pipeline stages.
    pub partition: Partition,
    /// Which layers of a stage may be checkpointed.
    pub checkpoint_rule: CheckpointRule,
    /// Whether a fused `RMSNorm` works in a checkpointed layer.
    pub fused_rmsnorm: FusedRmsNorm,
    /// The kernel that runs where a measured run states none.
    pub usual_attention: AttentionKernel,
    /// The `RMSNorm` that its speed was fitted with, and that runs where nothing else is said.
    pub usual_rmsnorm: RmsNormKernel,
    /// Whether tensor-parallel runs split the sequence where they do not say.
    pub usual_sequence_parallel: SequenceParallel,
    /// Memory habits.
    pub memory: MemoryProfile,
    /// Speed of the software.
    pub speed: SpeedProfile,
    /// Where the figures come from.
    pub source: String,
}

/// Memory habits of a framework.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryProfile {
    /// Bytes of a gradient (2 bf16, 4 fp32, 6 bf16 with an fp32 accumulator).
    pub gradient_bytes: f64,
    /// Whether every tensor-parallel rank holds all logits or its share.
    pub logits: Logits,
    /// Bytes a logit on the last stage with one tensor-parallel rank.
    pub logit_bytes: f64,
    /// Further bytes a logit with several tensor-parallel ranks that gather them.
    pub logit_bytes_gathered: f64,
    /// Bytes a token and hidden element kept between the tensor-parallel blocks of a layer: inputs of
    /// norms and blocks, residuals.
    pub hidden_bytes: f64,
    /// Of those, what every rank keeps whole in spite of sequence parallelism.
    pub gathered_bytes: f64,
    /// Bytes a token and element of query and attention output; keys and values take 4 each pair.
    pub attention_bytes: f64,
    /// Bytes a token and element that unfused norms of a layer keep, 16 in the paper's framework.
    pub norm_bytes: f64,
    /// Bytes a token and element of a gated feed-forward block, 8 when each tensor is kept once;
    /// a plain block keeps half.
    pub feed_forward_bytes: f64,
    /// Bytes a token and hidden element of buffers that are live whatever the stage.
    pub working_bytes: f64,
    /// Multiplier of the counted activations, without the attention matrix.
    pub activation_factor: f64,
    /// Memory taken whatever the layout (context, fragmentation).
    pub fixed: Bytes,
    /// Memory of each communicator with several ranks.
    pub communicator: Bytes,
    /// The stage whose peak the framework's log states.
    pub logged_peak: LoggedPeak,
}

/// Speed of a framework's software.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeedProfile {
    /// Multiplier of the counted elementwise traffic, `k_elem`.
    pub elementwise: f64,
    /// Traffic of one unfused `RMSNorm`, bytes a token and hidden element, `by_rms`.
    pub rmsnorm_bytes: f64,
    /// Softmax traffic of Megatron's fused kernel, bytes an attention element, forward and backward.
    pub softmax_bytes_fused: f64,
    /// Softmax traffic of unfused operators, bytes an attention element, forward and backward.
    pub softmax_bytes_torch: f64,
    /// Traffic of the loss, bytes a logit, `by_logit`.
    pub logit_bytes: f64,
    /// Host time a layer and micro-batch, `t_launch`.
    pub launch: Seconds,
    /// Further host time without the `RMSNorm` kernel, `t_unfused`.
    pub launch_unfused: Seconds,
    /// Share of a forward and backward pass's launches that a recomputed layer pays beyond its
    /// part of the work, `rc_launch`.
    pub launch_recompute: f64,
    /// Exponent `p` with which host time and the device's work combine, `(w^p + l^p)^(1/p)`:
    /// 1 adds them, a large one takes the longer.
    pub launch_norm: f64,
    /// Host time a stage and micro-batch, `t_mb`.
    pub micro_batch_overhead: Seconds,
    /// Host time a step, `t_step`.
    pub step_overhead: Seconds,
    /// Multiplier of the time of pipeline transfers: below 1 hidden, above 1 blocking.
    pub transfer_exposed: f64,
    /// Multiplier of a pipeline fill under 1F1B, `beta`.
    pub bubble: f64,
    /// Multiplier of a pipeline fill under the zero-bubble schedule 1p.
    pub bubble_zero_1p: f64,
    /// Multiplier of a pipeline fill under the zero-bubble schedule 2p.
    pub bubble_zero_2p: f64,
    /// Share of a fill that interleaving cannot remove: `beta (i + (1 - i) / v)`.
    pub bubble_interleaved: f64,
    /// Bytes a parameter that replicas exchange a step (4: 16-bit gradients and weights).
    pub reduction_bytes: f64,
    /// Whether replicas share the optimizer's work.
    pub optimizer_work: OptimizerWork,
    /// Bytes a parameter and micro-batch that fully sharded replicas exchange.
    pub sharded_bytes: f64,
    /// Latency of that exchange, times `log2` of the replicas.
    pub sharded_latency: Seconds,
    /// Exponent with which that exchange and a layer's work combine.
    pub sharded_norm: f64,
    /// Training's share of a bandwidth within a node that was measured beside the run.
    pub measured_intra_node: f64,
    /// Training's share of a bandwidth between nodes that was measured beside the run.
    pub measured_inter_node: f64,
    /// Time of tensor-parallel traffic across nodes over that of the network's bandwidth.
    pub tensor_parallel_across: f64,
}

/// How a framework spreads layers over pipeline stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// The list [embedding, layers, head] is cut evenly, the remainder to the early stages.
    EmbeddingAndHead,
    /// The same number of layers on every stage.
    Equal,
    /// The layers are cut evenly, the remainder to the early stages.
    Even,
    /// First and last stage freely, the same number on those between.
    FirstAndLast,
    /// Any number of layers on each stage.
    Free,
}

/// Which layers of a stage a framework can checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointRule {
    /// All layers of the network or none.
    AllOrNothing,
    /// The same number of layers on every stage, by one mode.
    SameCount,
    /// Any number on each stage, by any mixture of modes.
    Free,
}

/// Whether a framework's fused `RMSNorm` works in a checkpointed layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedRmsNorm {
    /// The kernel and checkpointing exclude each other (Hagemann et al., section 4.2).
    ExcludesCheckpointing,
    /// They work together.
    AllowsCheckpointing,
}

/// Where the logits of a tensor-parallel head live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// Each rank holds `V / tp` of them.
    Sharded,
    /// Each rank holds all `V`.
    Gathered,
}

/// The pipeline stage whose peak memory a framework's log states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedPeak {
    /// The stage with the largest peak (or all of them, of which the reader took the largest).
    FullestStage,
    /// The first stage.
    FirstStage,
}

/// Who runs the optimizer on a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptimizerWork {
    /// Every replica on all (or counted so: the paper's framework).
    Replicated,
    /// Each replica on its shard, wherever optimizer states are sharded.
    Sharded,
}
