//! A layout in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::axis::{Axis, FlaggedCombination};
use crate::layout::{Combination, Layout, RmsNormKernel, SequenceParallel, Stage};

/// A complete layout.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LayoutDocument {
    /// The choices that hold for the whole job.
    #[serde(flatten)]
    cell: CellDocument,
    /// Micro-batches of one step and data-parallel replica.
    micro_batches: u64,
    /// One entry a pipeline stage, first to last.
    stages: Vec<StageDocument>,
}

/// A combination of choices that has no layers by stage.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CandidateDocument {
    /// The choices that hold for the whole job.
    #[serde(flatten)]
    cell: CellDocument,
    /// What every layer recomputes in the backward pass.
    #[schemars(extend("enum" = Axis::Checkpointing.names()))]
    checkpointing: &'static str,
}

/// The choices that hold for the whole job.
#[derive(Debug, Serialize, JsonSchema)]
struct CellDocument {
    /// Tensor-parallel degree.
    tensor_parallel: u32,
    /// Pipeline stages.
    pipeline_parallel: u32,
    /// Data-parallel replicas.
    data_parallel: u32,
    /// Context-parallel degree: the ranks that share one sequence.
    context_parallel: u32,
    /// Expert-parallel degree; 1 for dense networks.
    expert_parallel: u32,
    /// Model chunks a pipeline rank; more than 1 is an interleaved schedule.
    virtual_stages: u32,
    /// Sequences of a micro-batch.
    micro_batch: u32,
    /// Whether activations outside the tensor-parallel blocks are split along the sequence.
    sequence_parallel: bool,
    /// What data-parallel ranks split among themselves.
    #[schemars(extend("enum" = Axis::Sharding.names()))]
    sharding: &'static str,
    /// Implementation of attention.
    #[schemars(extend("enum" = Axis::AttentionKernel.names()))]
    attention_kernel: &'static str,
    /// Whether one fused kernel computes `RMSNorm`.
    rmsnorm_kernel: bool,
    /// Order of forward and backward passes in the pipeline.
    #[schemars(extend("enum" = Axis::Schedule.names()))]
    schedule: &'static str,
}

/// Layers of one pipeline stage.
#[derive(Debug, Serialize, JsonSchema)]
struct StageDocument {
    /// Transformer layers, over all virtual stages of the rank.
    layers: u32,
    /// Layers that recompute something, over all modes.
    checkpointed_layers: u32,
    /// Those layers by mode.
    recomputed: RecomputedDocument,
}

/// Checkpointed layers by what they recompute.
#[derive(Debug, Serialize, JsonSchema)]
struct RecomputedDocument {
    /// Layers that recompute themselves whole.
    full: u32,
    /// Layers that recompute their feed-forward block.
    feed_forward: u32,
    /// Layers that recompute their attention core.
    attention_core: u32,
}

impl LayoutDocument {
    pub(super) fn new(layout: &Layout, global_batch: u64) -> Self {
        Self {
            cell: CellDocument::new(&layout.combination),
            micro_batches: layout.combination.micro_batches(global_batch),
            stages: layout.stages.iter().map(StageDocument::new).collect(),
        }
    }
}

impl CandidateDocument {
    pub(super) fn new(candidate: &FlaggedCombination) -> Self {
        Self {
            cell: CellDocument::new(&candidate.combination),
            checkpointing: candidate.checkpointing.as_str(),
        }
    }
}

impl CellDocument {
    fn new(cell: &Combination) -> Self {
        Self {
            tensor_parallel: cell.tensor_parallel,
            pipeline_parallel: cell.pipeline_parallel,
            data_parallel: cell.data_parallel,
            context_parallel: cell.context_parallel,
            expert_parallel: cell.expert_parallel,
            virtual_stages: cell.virtual_stages,
            micro_batch: cell.micro_batch,
            sequence_parallel: cell.sequence_parallel == SequenceParallel::On,
            sharding: cell.sharding.as_str(),
            attention_kernel: cell.attention_kernel.as_str(),
            rmsnorm_kernel: cell.rmsnorm_kernel == RmsNormKernel::Fused,
            schedule: cell.schedule.as_str(),
        }
    }
}

impl StageDocument {
    fn new(stage: &Stage) -> Self {
        let [full, feed_forward, attention_core] = stage.recomputed;
        Self {
            layers: stage.layers,
            checkpointed_layers: stage.checkpointed_layers(),
            recomputed: RecomputedDocument {
                full,
                feed_forward,
                attention_core,
            },
        }
    }
}
