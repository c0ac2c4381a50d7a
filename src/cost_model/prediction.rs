//! What the cost model says of one layout.

use super::components::{StageMemory, StepTime};
use crate::framework::LoggedMemory;
use crate::quantity::{Bytes, FlopsPerSecond, Mfu, Seconds};

/// Time and memory of one layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Model FLOP utilisation by the instance's convention.
    pub mfu: Mfu,
    /// The same by the paper's convention.
    pub mfu_paper: Mfu,
    /// The same by the causal convention.
    pub mfu_causal: Mfu,
    /// Arithmetic that `mfu` counts, of each GPU.
    pub throughput_per_gpu: FlopsPerSecond,
    /// Duration of one optimizer step.
    pub step_time: Seconds,
    /// Training tokens a second and GPU.
    pub tokens_per_second_per_gpu: f64,
    /// Probability that some GPU runs out of memory.
    pub oom_probability: f64,
    /// Memory by pipeline stage.
    pub memory: MemoryUse,
    /// Position of the pipeline stage that works the longest, the first of equals.
    pub slowest_stage: usize,
    /// Step time by component.
    pub time: StepTime,
    /// How routed experts are used, in a network that has some.
    pub experts: Option<ExpertUse>,
}

/// How the routed experts of a network are used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpertUse {
    /// Experts of each layer on a GPU.
    pub per_gpu: f64,
    /// Tokens of a micro-batch that an expert works on, the mean over experts.
    pub tokens_each: f64,
    /// Tokens of the busiest expert-parallel rank over the mean.
    pub load_imbalance: f64,
    /// What that adds to the step time.
    pub imbalance: Seconds,
}

/// Memory by pipeline stage against what a GPU has.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryUse {
    /// Memory that a process can use on each GPU.
    pub capacity: Bytes,
    /// One entry a pipeline stage, first to last.
    pub stages: Vec<StageMemory>,
}

impl MemoryUse {
    /// Peak memory of the fullest stage.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.stages
            .iter()
            .map(StageMemory::peak)
            .fold(Bytes::ZERO, Bytes::max)
    }

    /// What a log of this kind counts on the fullest stage.
    #[must_use]
    pub fn logged(&self, memory: LoggedMemory) -> Bytes {
        let stages = self.stages.iter().map(|stage| stage.logged(memory));
        stages.fold(Bytes::ZERO, Bytes::max)
    }
}
