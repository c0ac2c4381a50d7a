//! What a training framework fixes differently from others.

use crate::quantity::Bytes;

/// Memory and partition habits of one training framework.
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
    /// Bytes of a gradient (2 bf16, 4 fp32, 6 bf16 with an fp32 accumulator).
    pub gradient_bytes: f64,
    /// Whether every tensor-parallel rank holds all logits or its share.
    pub logits: Logits,
    /// Bytes a logit on the last stage with one tensor-parallel rank.
    pub logit_bytes: f64,
    /// Further bytes a logit with several tensor-parallel ranks.
    pub logit_bytes_gathered: f64,
    /// Multiplier of the counted activations.
    pub activation_factor: f64,
    /// Memory taken whatever the layout (context, fragmentation).
    pub fixed_memory: Bytes,
    /// Memory of each communicator with several ranks.
    pub communicator_memory: Bytes,
    /// Exponent with which host launch time and device work combine: 1 adds them, a large one
    /// takes the larger.
    pub launch_norm: f64,
    /// Multiplier of the pipeline bubble of 1F1B.
    pub bubble_factor: f64,
    /// Share of the data-parallel traffic that hides behind the backward pass.
    pub data_parallel_overlap: f64,
    /// Where the figures come from.
    pub source: String,
}

/// How a framework spreads layers over pipeline stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// The list [embedding, layers, head] is cut evenly, the remainder to the early stages.
    EmbeddingAndHead,
    /// The same number of layers on every stage.
    Equal,
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
