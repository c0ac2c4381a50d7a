//! Time and memory of a layout in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::components::{MemoryComponents, TimeDocument};
use super::{rounded, rounded_probability};
use crate::cost_model::components::StageMemory;
use crate::cost_model::prediction::Prediction;
use crate::quantity::{Bytes, Seconds};

/// Time and memory of one layout.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PredictionDocument {
    /// Model FLOP utilisation (a share, 0 to 1).
    mfu: f64,
    /// Duration of one optimizer step, in seconds: the sum of `time`.
    step_time_s: f64,
    /// Training tokens a second and GPU.
    tokens_per_s_per_gpu: f64,
    /// Probability that some GPU runs out of memory (0 to 1).
    oom_probability: f64,
    /// Memory by pipeline stage against what a GPU has.
    memory: MemoryDocument,
    /// Step time by component, in seconds.
    time: TimeDocument,
}

/// Memory by pipeline stage against what a GPU has.
#[derive(Debug, Serialize, JsonSchema)]
struct MemoryDocument {
    /// Memory that a process can use on each GPU, in GiB.
    capacity_gib: f64,
    /// Peak of the fullest stage, in GiB.
    peak_gib: f64,
    /// One entry a pipeline stage, first to last.
    stages: Vec<StageMemoryDocument>,
}

/// Peak memory of one GPU of a pipeline stage, in GiB.
#[derive(Debug, Serialize, JsonSchema)]
struct StageMemoryDocument {
    /// Sum of the components.
    peak_gib: f64,
    /// The components.
    #[serde(flatten)]
    components: MemoryComponents,
}

impl PredictionDocument {
    pub(super) fn new(prediction: &Prediction) -> Self {
        let stages = prediction.memory.stages.iter();
        Self {
            mfu: rounded(prediction.mfu.value()),
            step_time_s: seconds(prediction.step_time),
            tokens_per_s_per_gpu: rounded(prediction.tokens_per_second_per_gpu),
            oom_probability: rounded_probability(prediction.oom_probability),
            memory: MemoryDocument {
                capacity_gib: gib(prediction.memory.capacity),
                peak_gib: gib(prediction.memory.peak()),
                stages: stages.map(StageMemoryDocument::new).collect(),
            },
            time: TimeDocument::new(&prediction.time, seconds),
        }
    }
}

impl StageMemoryDocument {
    fn new(stage: &StageMemory) -> Self {
        Self {
            peak_gib: gib(stage.peak()),
            components: MemoryComponents::new(stage, gib),
        }
    }
}

fn gib(amount: Bytes) -> f64 {
    rounded(amount.gib())
}

fn seconds(duration: Seconds) -> f64 {
    rounded(duration.value())
}
