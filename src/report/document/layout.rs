//! A layout in JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layout::{Combination, Layout, Stage};

/// A complete layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutDocument {
    /// The choices that hold for the whole job.
    #[serde(flatten)]
    pub combination: Combination,
    /// Micro-batches of one step and data-parallel replica.
    pub micro_batches: u64,
    /// One entry per pipeline stage, first to last.
    pub stages: Vec<StageDocument>,
}

/// Layers of one pipeline stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageDocument {
    /// Transformer layers, over all virtual stages of the rank.
    pub layers: u32,
    /// Layers that recompute something, over all modes.
    pub checkpointed_layers: u32,
    /// Those layers by mode.
    pub recomputed: RecomputedDocument,
}

/// Checkpointed layers by what they recompute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecomputedDocument {
    /// Layers that recompute themselves whole.
    pub full: u32,
    /// Layers that recompute their feed-forward block.
    pub feed_forward: u32,
    /// Layers that recompute their attention core.
    pub attention_core: u32,
    /// Layers that recompute the outputs of norms, activation functions and latent projections up.
    #[serde(default)]
    pub light: u32,
}

impl LayoutDocument {
    /// The layout, for steps of so many sequences.
    #[must_use]
    pub fn new(layout: &Layout, global_batch: u64) -> Self {
        Self {
            combination: layout.combination,
            micro_batches: layout.combination.micro_batches(global_batch),
            stages: layout.stages.iter().map(StageDocument::new).collect(),
        }
    }

    /// The layout again.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            combination: self.combination,
            stages: self.stages.iter().map(StageDocument::stage).collect(),
        }
    }
}

impl StageDocument {
    fn new(stage: &Stage) -> Self {
        let [full, feed_forward, attention_core, light] = stage.recomputed;
        Self {
            layers: stage.layers,
            checkpointed_layers: stage.checkpointed_layers(),
            recomputed: RecomputedDocument {
                full,
                feed_forward,
                attention_core,
                light,
            },
        }
    }

    fn stage(&self) -> Stage {
        let by_mode = &self.recomputed;
        Stage {
            layers: self.layers,
            recomputed: [
                by_mode.full,
                by_mode.feed_forward,
                by_mode.attention_core,
                by_mode.light,
            ],
        }
    }
}
