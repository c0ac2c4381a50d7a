//! The named rules that a layout obeys.
//!
//! One name serves docs, code, the rows of the program, LP text, violations and explanations.

use std::fmt;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// `tp pp dp cp = G`.
    GpuCount,
    /// `tp` divides the attention heads.
    HeadsDivisible,
    /// The key-value heads are a multiple or a divisor of `tp`.
    KeyValueHeadsDivisible,
    /// A tensor-parallel group lies within one node: `tp` divides the GPUs a node.
    TensorParallelWithinNode,
    /// `dp b` divides the global batch.
    GlobalBatchDivisible,
    /// `2 cp` divides the sequence length, with `cp > 1`; `tp` does, with sequence parallelism.
    SequenceDivisible,
    /// Every pipeline stage and virtual stage gets a layer, by the framework's partition.
    LayersCoverStages,
    /// Sequence parallelism splits among tensor-parallel ranks: it needs `tp > 1`.
    SequenceParallelNeedsTensorParallel,
    /// Virtual stages interleave a pipeline: they need `pp > 1` and the 1F1B schedule.
    InterleavingNeedsPipeline,
    /// Interleaving needs `M >= pp` and `pp` divides `M`.
    InterleavingMicroBatches,
    /// ZeRO-2, ZeRO-3 and HSDP exclude pipeline parallelism.
    ShardingExcludesPipeline,
    /// Expert parallelism needs a mixture of experts.
    ExpertsDivisible,
    /// In some frameworks the fused `RMSNorm` does not work in checkpointed layers.
    RmsNormKernelExcludesCheckpointing,
    /// Every value is one that the instance lists for its axis.
    AllowedValues,
    /// A combination that the instance forbids.
    Forbidden,
    /// A row of the user's own.
    Constraint,
    /// Peak memory of every stage stays within what the accepted risk allows.
    MemoryCapacity,
}

impl Rule {
    /// Every rule; those on memory last.
    pub const ALL: [Self; 17] = [
        Self::GpuCount,
        Self::HeadsDivisible,
        Self::KeyValueHeadsDivisible,
        Self::TensorParallelWithinNode,
        Self::GlobalBatchDivisible,
        Self::SequenceDivisible,
        Self::LayersCoverStages,
        Self::SequenceParallelNeedsTensorParallel,
        Self::InterleavingNeedsPipeline,
        Self::InterleavingMicroBatches,
        Self::ShardingExcludesPipeline,
        Self::ExpertsDivisible,
        Self::RmsNormKernelExcludesCheckpointing,
        Self::AllowedValues,
        Self::Forbidden,
        Self::Constraint,
        Self::MemoryCapacity,
    ];

    /// The rule's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GpuCount => "gpu_count",
            Self::HeadsDivisible => "heads_divisible",
            Self::KeyValueHeadsDivisible => "key_value_heads_divisible",
            Self::TensorParallelWithinNode => "tensor_parallel_within_node",
            Self::GlobalBatchDivisible => "global_batch_divisible",
            Self::SequenceDivisible => "sequence_divisible",
            Self::LayersCoverStages => "layers_cover_stages",
            Self::SequenceParallelNeedsTensorParallel => "sequence_parallel_needs_tensor_parallel",
            Self::InterleavingNeedsPipeline => "interleaving_needs_pipeline",
            Self::InterleavingMicroBatches => "interleaving_micro_batches",
            Self::ShardingExcludesPipeline => "sharding_excludes_pipeline",
            Self::ExpertsDivisible => "experts_divisible",
            Self::RmsNormKernelExcludesCheckpointing => "rmsnorm_kernel_excludes_checkpointing",
            Self::AllowedValues => "allowed_values",
            Self::Forbidden => "forbidden",
            Self::Constraint => "constraint",
            Self::MemoryCapacity => "memory_capacity",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A set of rules, such as those that a candidate breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RuleSet(u32);

impl RuleSet {
    /// No rule.
    pub const EMPTY: Self = Self(0);

    /// Adds `rule` if `broken`.
    pub fn insert_if(&mut self, rule: Rule, broken: bool) {
        self.0 |= u32::from(broken) << rule as u32;
    }

    /// The rules of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rules of this set that are not in `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether the set has no rule.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `rule` is in the set.
    #[must_use]
    pub const fn contains(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u32) != 0
    }

    /// The rules of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        Rule::ALL
            .into_iter()
            .filter(move |&rule| self.contains(rule))
    }

    /// One bit a rule, by position in [`Rule::ALL`].
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0 as u64
    }
}
