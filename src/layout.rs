//! A parallel layout: what the program chooses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;

/// The discrete choices that hold for the whole job.
///
/// A [`Layout`] adds, for each pipeline stage, the number of layers and how many of them are
/// checkpointed. Variants that the cost model cannot tell apart from another are not produced
/// (sequence parallelism without tensor parallelism, say).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Combination {
    /// Tensor-parallel degree, `tp`.
    pub tensor_parallel: u32,
    /// Pipeline stages, `pp`.
    pub pipeline_parallel: u32,
    /// Data-parallel replicas, `dp`.
    pub data_parallel: u32,
    /// Context-parallel degree: the ranks that share one sequence, `cp`.
    pub context_parallel: u32,
    /// Expert-parallel degree: the ranks that share the experts of a layer, `ep`; 1 for dense networks.
    pub expert_parallel: u32,
    /// Expert-tensor-parallel degree: the ranks that share each expert, `etp`.
    #[serde(default = "one")]
    pub expert_tensor_parallel: u32,
    /// Model chunks a pipeline rank, `v`; more than 1 is an interleaved schedule.
    pub virtual_stages: u32,
    /// Sequences of a micro-batch, `b`.
    pub micro_batch: u32,
    /// Whether activations outside the tensor-parallel blocks are split along the sequence.
    #[serde(with = "switch")]
    #[schemars(with = "bool")]
    pub sequence_parallel: SequenceParallel,
    /// What data-parallel ranks split among themselves.
    pub sharding: Sharding,
    /// Implementation of attention.
    pub attention_kernel: AttentionKernel,
    /// Whether one fused kernel computes `RMSNorm`.
    #[serde(with = "switch")]
    #[schemars(with = "bool")]
    pub rmsnorm_kernel: RmsNormKernel,
    /// Order of forward and backward passes in the pipeline.
    pub schedule: Schedule,
}

const fn one() -> u32 {
    1
}

impl Combination {
    /// GPUs that the degrees multiply to (expert parallelism folds onto the same ranks).
    #[must_use]
    pub const fn gpus(&self) -> u64 {
        self.tensor_parallel as u64
            * self.pipeline_parallel as u64
            * self.data_parallel as u64
            * self.context_parallel as u64
    }

    /// Ranks of one pipeline stage, `tp cp dp`: experts are spread over them anew (parallel folding,
    /// Liu et al., arXiv 2504.14960).
    #[must_use]
    pub const fn stage_ranks(&self) -> u64 {
        self.tensor_parallel as u64 * self.data_parallel as u64 * self.context_parallel as u64
    }

    /// Ranks that share all experts of a layer, `ep etp`.
    #[must_use]
    pub const fn expert_ranks(&self) -> u64 {
        self.expert_parallel as u64 * self.expert_tensor_parallel as u64
    }

    /// Micro-batches of one step, `M = global_batch / (dp b)`; rounded down if uneven.
    #[must_use]
    pub const fn micro_batches(&self, global_batch: u64) -> u64 {
        global_batch / (self.data_parallel as u64 * self.micro_batch as u64)
    }
}

/// A complete layout.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    /// The choices that hold for the whole job.
    pub combination: Combination,
    /// One entry a pipeline stage, first to last.
    pub stages: Vec<Stage>,
}

impl Layout {
    /// The mode by which layers are checkpointed, as one flag for all of them; the first of
    /// [`Recompute::ALL`] where several are mixed.
    #[must_use]
    pub fn checkpointing(&self) -> Checkpointing {
        let used = |mode: Recompute| {
            let stages = &self.stages;
            stages
                .iter()
                .any(|stage| stage.recomputed[mode as usize] > 0)
        };
        let mode = Recompute::ALL.iter().copied().find(|&mode| used(mode));
        mode.map_or(Checkpointing::None, Recompute::of_every_layer)
    }

    /// Every flag that describes some layer.
    #[must_use]
    pub fn flags(&self) -> Vec<Checkpointing> {
        let used = |flag: &Checkpointing| {
            self.stages.iter().any(|stage| match flag.recompute() {
                None => stage.checkpointed_layers() < stage.layers,
                Some(mode) => stage.recomputed[mode as usize] > 0,
            })
        };
        Checkpointing::ALL.iter().copied().filter(used).collect()
    }
}

/// Layers of one pipeline stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Stage {
    /// Transformer layers, over all virtual stages of the rank.
    pub layers: u32,
    /// Layers whose activations are recomputed, by mode in the order of [`Recompute::ALL`].
    pub recomputed: [u32; Recompute::COUNT],
}

impl Stage {
    /// Checkpointed layers over all modes.
    #[must_use]
    pub fn checkpointed_layers(&self) -> u32 {
        self.recomputed.iter().sum()
    }
}

choice!(
    /// Sequence parallelism (Korthikanti et al., arXiv 2205.05198).
    SequenceParallel, "a kind of sequence parallelism" {
        /// Every tensor-parallel rank holds the whole sequence between its blocks.
        Off = "off",
        /// Norms and residuals are split along the sequence among the tensor-parallel ranks.
        On = "on",
    }
);

choice!(
    /// What data-parallel ranks split among themselves (Rajbhandari et al., arXiv 1910.02054).
    Sharding {
        /// Everything is replicated (plain data parallelism).
        None = "zero-0",
        /// Optimizer states.
        OptimizerStates = "zero-1",
        /// Optimizer states and gradients.
        Gradients = "zero-2",
        /// Optimizer states, gradients and weights (`FSDP`).
        Parameters = "zero-3",
        /// Weights within an `NVLink` domain, replicas across domains (`HSDP`).
        Hybrid = "hsdp",
    }
);

/// The ranks among which a part of the training state is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShardGroup {
    /// One: every rank holds all of it.
    Whole,
    /// The data- and context-parallel ranks of one `NVLink` domain.
    Domain,
    /// All data- and context-parallel ranks.
    Replicas,
}

impl ShardGroup {
    /// Whether ranks hold less than all.
    #[must_use]
    pub const fn splits(self) -> bool {
        !matches!(self, Self::Whole)
    }
}

/// What is split among which ranks, beyond tensor and pipeline parallelism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateSharding {
    /// Master weights and moments.
    pub optimizer: ShardGroup,
    /// Gradients, which are then scattered in every micro-batch.
    pub gradients: ShardGroup,
    /// Weights, which are then gathered for every micro-batch.
    pub weights: ShardGroup,
}

impl Sharding {
    /// What it splits, and among which ranks.
    #[must_use]
    pub const fn state(self) -> StateSharding {
        use ShardGroup::{Domain, Replicas, Whole};
        let (optimizer, gradients, weights) = match self {
            Self::None => (Whole, Whole, Whole),
            Self::OptimizerStates => (Replicas, Whole, Whole),
            Self::Gradients => (Replicas, Replicas, Whole),
            Self::Parameters => (Replicas, Replicas, Replicas),
            Self::Hybrid => (Domain, Domain, Domain),
        };
        StateSharding {
            optimizer,
            gradients,
            weights,
        }
    }
}

choice!(
    /// Implementation of attention.
    AttentionKernel, "an attention kernel" {
        /// Unfused PyTorch operators.
        Torch = "torch",
        /// Megatron-LM's fused softmax.
        MegatronFused = "megatron-fused",
        /// FlashAttention 1.
        Flash1 = "flash-attention-1",
        /// FlashAttention 2.
        Flash2 = "flash-attention-2",
        /// FlashAttention 3, written for Hopper.
        Flash3 = "flash-attention-3",
        /// cuDNN's fused attention, which Transformer Engine runs on Hopper and Blackwell.
        Cudnn = "cudnn",
    }
);

impl AttentionKernel {
    /// Whether the kernel keeps the attention matrix out of memory.
    #[must_use]
    pub const fn is_flash(self) -> bool {
        !matches!(self, Self::Torch | Self::MegatronFused)
    }
}

choice!(
    /// Implementation of `RMSNorm`.
    RmsNormKernel, "an RMSNorm" {
        /// Unfused PyTorch operators.
        Unfused = "unfused",
        /// One fused kernel, which keeps 16 bytes a token and hidden element less.
        Fused = "fused",
    }
);

/// A choice of two as `true` and `false` in JSON.
mod switch {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T, S>(choice: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Copy + Into<bool>,
        S: Serializer,
    {
        serializer.serialize_bool((*choice).into())
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: From<bool>,
        D: Deserializer<'de>,
    {
        bool::deserialize(deserializer).map(T::from)
    }
}

macro_rules! two_way {
    ($name:ident, $off:ident, $on:ident) => {
        impl From<bool> for $name {
            fn from(on: bool) -> Self {
                if on { Self::$on } else { Self::$off }
            }
        }

        impl From<$name> for bool {
            fn from(choice: $name) -> Self {
                choice == $name::$on
            }
        }
    };
}

two_way!(SequenceParallel, Off, On);
two_way!(RmsNormKernel, Unfused, Fused);

choice!(
    /// Order of forward and backward passes in the pipeline.
    Schedule {
        /// One forward, one backward (interleaved where `virtual_stages` is above 1).
        OneForwardOneBackward = "1f1b",
        /// Zero bubble with the memory of 1F1B (Qi et al., arXiv 2401.10241).
        ZeroBubble1p = "zb-1p",
        /// Zero bubble with twice that memory.
        ZeroBubble2p = "zb-2p",
        /// All forward passes, then all backward passes.
        AllForwardAllBackward = "afab",
    }
);

choice!(
    /// What a checkpointed layer recomputes in the backward pass.
    Recompute {
        /// The whole layer: only its input is kept.
        Full = "full",
        /// The feed-forward block: its inner activations are not kept.
        FeedForward = "feed-forward",
        /// Softmax and dropout of attention (Korthikanti et al.), of use without flash attention.
        AttentionCore = "attention-core",
        /// Outputs that little work brings back: of norms, of the activation function of experts, of latent
        /// attention's projections up (Megatron-LM, `--recompute-modules layernorm moe_act mla_up_proj`).
        Light = "light",
    }
);

choice!(
    /// One checkpointing flag for all layers: what `layout choice` decides.
    Checkpointing {
        /// Every activation is kept.
        None = "none",
        /// Every layer recomputes itself whole.
        Full = "full",
        /// Every layer recomputes its feed-forward block.
        FeedForward = "feed-forward",
        /// Every layer recomputes its attention core.
        AttentionCore = "attention-core",
        /// Every layer recomputes the outputs that little work brings back.
        Light = "light",
    }
);

impl Recompute {
    /// The flag by which every layer recomputes so.
    #[must_use]
    pub const fn of_every_layer(self) -> Checkpointing {
        match self {
            Self::Full => Checkpointing::Full,
            Self::FeedForward => Checkpointing::FeedForward,
            Self::AttentionCore => Checkpointing::AttentionCore,
            Self::Light => Checkpointing::Light,
        }
    }
}

impl Checkpointing {
    /// The recompute mode of every layer, if any.
    #[must_use]
    pub const fn recompute(self) -> Option<Recompute> {
        match self {
            Self::None => None,
            Self::Full => Some(Recompute::Full),
            Self::FeedForward => Some(Recompute::FeedForward),
            Self::AttentionCore => Some(Recompute::AttentionCore),
            Self::Light => Some(Recompute::Light),
        }
    }
}
