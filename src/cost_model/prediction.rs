//! What the cost model says of one layout.

use crate::quantity::{Bytes, Mfu, Seconds};

/// Time and memory of one layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Model FLOP utilisation by the instance's convention.
    pub mfu: Mfu,
    /// Duration of one optimizer step.
    pub step_time: Seconds,
    /// Training tokens a second and GPU.
    pub tokens_per_second_per_gpu: f64,
    /// Probability that some GPU runs out of memory.
    pub oom_probability: f64,
    /// Memory by pipeline stage.
    pub memory: MemoryUse,
    /// Step time by component.
    pub time: StepTime,
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
}

/// Peak memory of one GPU of a pipeline stage, by component.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageMemory {
    /// Weights, in the format of the matrix products.
    pub weights: Bytes,
    /// Gradients.
    pub gradients: Bytes,
    /// Master weights and moments.
    pub optimizer_states: Bytes,
    /// Activations kept for the backward pass, over all micro-batches in flight.
    pub activations: Bytes,
    /// Activations of the one layer that is being recomputed.
    pub recompute_workspace: Bytes,
    /// Logits and their gradients on the last stage.
    pub logits: Bytes,
    /// Context, communicators and fragmentation.
    pub fixed: Bytes,
}

impl StageMemory {
    /// Names and amounts in the order of printing.
    #[must_use]
    pub const fn components(&self) -> [(&'static str, Bytes); 7] {
        [
            ("weights", self.weights),
            ("gradients", self.gradients),
            ("optimizer_states", self.optimizer_states),
            ("activations", self.activations),
            ("recompute_workspace", self.recompute_workspace),
            ("logits", self.logits),
            ("fixed", self.fixed),
        ]
    }

    /// Sum of all components.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.components()
            .into_iter()
            .map(|(_, amount)| amount)
            .sum()
    }
}

/// Time of one optimizer step by component: work of the slowest stage over all micro-batches,
/// then what the pipeline, the network between replicas and the optimizer add.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepTime {
    /// Matrix products of the layers.
    pub gemm: Seconds,
    /// Attention itself.
    pub attention: Seconds,
    /// Elementwise operators of the layers.
    pub elementwise: Seconds,
    /// Norms that no kernel fuses.
    pub rmsnorm: Seconds,
    /// Collectives of tensor parallelism.
    pub tensor_parallel: Seconds,
    /// Exchange of keys and values in context parallelism.
    pub context_parallel: Seconds,
    /// Gathering of sharded weights (ZeRO-3).
    pub weight_gathering: Seconds,
    /// Host time to launch kernels, as far as it does not hide.
    pub launch: Seconds,
    /// Recomputation of checkpointed layers.
    pub recompute: Seconds,
    /// Output layer and loss.
    pub head: Seconds,
    /// Transfers between pipeline stages.
    pub pipeline_transfer: Seconds,
    /// Host time of micro-batches and of the step.
    pub overhead: Seconds,
    /// Waiting while the pipeline fills, drains or runs uneven stages.
    pub bubble: Seconds,
    /// Reduction of gradients and gathering of weights among replicas.
    pub data_parallel: Seconds,
    /// The optimizer's own work.
    pub optimizer: Seconds,
}

impl StepTime {
    /// Names and durations in the order of printing.
    #[must_use]
    pub const fn components(&self) -> [(&'static str, Seconds); 15] {
        [
            ("gemm", self.gemm),
            ("attention", self.attention),
            ("elementwise", self.elementwise),
            ("rmsnorm", self.rmsnorm),
            ("tensor_parallel", self.tensor_parallel),
            ("context_parallel", self.context_parallel),
            ("weight_gathering", self.weight_gathering),
            ("launch", self.launch),
            ("recompute", self.recompute),
            ("head", self.head),
            ("pipeline_transfer", self.pipeline_transfer),
            ("overhead", self.overhead),
            ("bubble", self.bubble),
            ("data_parallel", self.data_parallel),
            ("optimizer", self.optimizer),
        ]
    }

    /// Sum of all components: the step time.
    #[must_use]
    pub fn total(&self) -> Seconds {
        self.components()
            .into_iter()
            .map(|(_, duration)| duration)
            .sum()
    }
}
