//! Time and memory of a layout in JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::components::{MemoryComponents, TimeDocument};
use super::{rounded, rounded_probability};
use crate::cost_model::components::{StageMemory, TimeComponent};
use crate::cost_model::prediction::Prediction;
use crate::quantity::{Bytes, Seconds};

/// Time and memory of one layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictionDocument {
    /// Model FLOP utilisation by the job's convention (a share, 0 to 1).
    pub mfu: f64,
    /// The same by the convention `paper`.
    #[serde(default)]
    pub mfu_paper: f64,
    /// The same by the convention `causal`.
    #[serde(default)]
    pub mfu_causal: f64,
    /// TFLOP/s per GPU of the arithmetic that `mfu` counts.
    #[serde(default)]
    pub tflops_per_gpu: f64,
    /// Duration of one optimizer step, in seconds: the sum of `time`.
    pub step_time_s: f64,
    /// Training tokens per second and GPU.
    pub tokens_per_s_per_gpu: f64,
    /// Probability that some GPU runs out of memory (0 to 1).
    pub oom_probability: f64,
    /// Memory by pipeline stage against the capacity of a GPU.
    pub memory: MemoryDocument,
    /// Position of the pipeline stage that works the longest, the first of equals.
    #[serde(default)]
    pub slowest_stage: u64,
    /// Step time by component, in seconds.
    pub time: TimeDocument,
    /// How routed experts are used; absent where the network has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<ExpertsDocument>,
}

/// How routed experts are used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpertsDocument {
    /// Experts of each layer on a GPU.
    pub per_gpu: f64,
    /// Tokens of a micro-batch that an expert works on, the mean over experts.
    pub tokens_each: f64,
    /// Tokens of the busiest expert-parallel rank over the mean.
    pub load_imbalance: f64,
    /// What that adds to the step time, in seconds.
    pub imbalance_s: f64,
}

/// Memory by pipeline stage against the capacity of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryDocument {
    /// Memory that a process can use on each GPU, in GiB.
    pub capacity_gib: f64,
    /// Peak of the fullest stage, in GiB.
    pub peak_gib: f64,
    /// One entry per pipeline stage, first to last.
    pub stages: Vec<StageMemoryDocument>,
}

/// Peak memory of one GPU of a pipeline stage, in GiB.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageMemoryDocument {
    /// Sum of the components.
    pub peak_gib: f64,
    /// The components.
    #[serde(flatten)]
    pub components: MemoryComponents,
}

impl PredictionDocument {
    /// The prediction.
    #[must_use]
    pub fn new(prediction: &Prediction) -> Self {
        let stages = prediction.memory.stages.iter();
        Self {
            mfu: rounded(prediction.mfu.value()),
            mfu_paper: rounded(prediction.mfu_paper.value()),
            mfu_causal: rounded(prediction.mfu_causal.value()),
            tflops_per_gpu: rounded(prediction.throughput_per_gpu.value() / 1e12),
            step_time_s: seconds(prediction.step_time),
            tokens_per_s_per_gpu: rounded(prediction.tokens_per_second_per_gpu),
            oom_probability: rounded_probability(prediction.oom_probability),
            memory: MemoryDocument {
                capacity_gib: gib(prediction.memory.capacity),
                peak_gib: gib(prediction.memory.peak()),
                stages: stages.map(StageMemoryDocument::new).collect(),
            },
            slowest_stage: prediction.slowest_stage as u64,
            time: TimeDocument::new(&prediction.time, seconds),
            experts: prediction.experts.map(|experts| ExpertsDocument {
                per_gpu: rounded(experts.per_gpu),
                tokens_each: rounded(experts.tokens_each),
                load_imbalance: experts.load_imbalance,
                imbalance_s: seconds(experts.imbalance),
            }),
        }
    }

    /// Share of the step time that is waiting.
    #[must_use]
    pub fn bubble(&self) -> f64 {
        self.time[TimeComponent::Bubble] / self.step_time_s
    }
}

impl MemoryDocument {
    /// Position of the stage with the highest peak, the first of equals.
    #[must_use]
    pub fn fullest(&self) -> usize {
        let mut fullest = 0;
        for (position, stage) in self.stages.iter().enumerate() {
            if stage.peak_gib > self.stages[fullest].peak_gib {
                fullest = position;
            }
        }
        fullest
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
