//! Time and memory of a layout in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{rounded, rounded_probability};
use crate::cost_model::prediction::{Prediction, StageMemory, StepTime};
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
#[expect(clippy::struct_field_names, reason = "the unit belongs to the key")]
struct StageMemoryDocument {
    /// Sum of the components.
    peak_gib: f64,
    /// Weights, in the format of the matrix products.
    weights_gib: f64,
    /// Gradients.
    gradients_gib: f64,
    /// Master weights and moments.
    optimizer_states_gib: f64,
    /// Activations kept for the backward pass, over all micro-batches in flight.
    activations_gib: f64,
    /// Activations of the one layer that is being recomputed.
    recompute_workspace_gib: f64,
    /// Logits and their gradients on the last stage.
    logits_gib: f64,
    /// Context, communicators and fragmentation.
    fixed_gib: f64,
}

/// Time of one optimizer step by component, in seconds: work of the slowest stage over all
/// micro-batches, then what pipeline, network between replicas and optimizer add.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the unit belongs to the key")]
struct TimeDocument {
    /// Matrix products of the layers.
    gemm_s: f64,
    /// Attention itself.
    attention_s: f64,
    /// Elementwise operators of the layers.
    elementwise_s: f64,
    /// Norms that no kernel fuses.
    rmsnorm_s: f64,
    /// Collectives of tensor parallelism.
    tensor_parallel_s: f64,
    /// Exchange of keys and values in context parallelism.
    context_parallel_s: f64,
    /// Gathering of sharded weights (ZeRO-3).
    weight_gathering_s: f64,
    /// Host time to launch kernels, as far as it does not hide.
    launch_s: f64,
    /// Recomputation of checkpointed layers.
    recompute_s: f64,
    /// Output layer and loss.
    head_s: f64,
    /// Transfers between pipeline stages.
    pipeline_transfer_s: f64,
    /// Host time of micro-batches and of the step.
    overhead_s: f64,
    /// Waiting while the pipeline fills, drains or runs uneven stages.
    bubble_s: f64,
    /// Reduction of gradients and gathering of weights among replicas.
    data_parallel_s: f64,
    /// The optimizer's own work.
    optimizer_s: f64,
}

impl PredictionDocument {
    pub(super) fn new(prediction: &Prediction) -> Self {
        Self {
            mfu: rounded(prediction.mfu.value()),
            step_time_s: seconds(prediction.step_time),
            tokens_per_s_per_gpu: rounded(prediction.tokens_per_second_per_gpu),
            oom_probability: rounded_probability(prediction.oom_probability),
            memory: MemoryDocument {
                capacity_gib: gib(prediction.memory.capacity),
                peak_gib: gib(prediction.memory.peak()),
                stages: prediction
                    .memory
                    .stages
                    .iter()
                    .map(StageMemoryDocument::new)
                    .collect(),
            },
            time: TimeDocument::new(&prediction.time),
        }
    }
}

impl StageMemoryDocument {
    fn new(stage: &StageMemory) -> Self {
        // Taken apart without `..`, so that a new component cannot be forgotten here.
        let &StageMemory {
            weights,
            gradients,
            optimizer_states,
            activations,
            recompute_workspace,
            logits,
            fixed,
        } = stage;
        Self {
            peak_gib: gib(stage.peak()),
            weights_gib: gib(weights),
            gradients_gib: gib(gradients),
            optimizer_states_gib: gib(optimizer_states),
            activations_gib: gib(activations),
            recompute_workspace_gib: gib(recompute_workspace),
            logits_gib: gib(logits),
            fixed_gib: gib(fixed),
        }
    }
}

impl TimeDocument {
    fn new(time: &StepTime) -> Self {
        let &StepTime {
            gemm,
            attention,
            elementwise,
            rmsnorm,
            tensor_parallel,
            context_parallel,
            weight_gathering,
            launch,
            recompute,
            head,
            pipeline_transfer,
            overhead,
            bubble,
            data_parallel,
            optimizer,
        } = time;
        Self {
            gemm_s: seconds(gemm),
            attention_s: seconds(attention),
            elementwise_s: seconds(elementwise),
            rmsnorm_s: seconds(rmsnorm),
            tensor_parallel_s: seconds(tensor_parallel),
            context_parallel_s: seconds(context_parallel),
            weight_gathering_s: seconds(weight_gathering),
            launch_s: seconds(launch),
            recompute_s: seconds(recompute),
            head_s: seconds(head),
            pipeline_transfer_s: seconds(pipeline_transfer),
            overhead_s: seconds(overhead),
            bubble_s: seconds(bubble),
            data_parallel_s: seconds(data_parallel),
            optimizer_s: seconds(optimizer),
        }
    }
}

fn gib(amount: Bytes) -> f64 {
    rounded(amount.gib())
}

fn seconds(duration: Seconds) -> f64 {
    rounded(duration.value())
}
