//! What was to be planned, and how far to trust the answer.

use schemars::JsonSchema;
use serde::Serialize;

use super::rounded;
use crate::cluster::{Calibration, CalibrationKind};
use crate::job::Job;

/// What was to be planned.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct JobDocument {
    /// Name of the network.
    model: String,
    /// Parameters of the network, a tied embedding counted once.
    parameters: u64,
    /// Name of the cluster.
    cluster: String,
    /// Name of the GPU.
    accelerator: String,
    /// GPUs of the job.
    gpus: u32,
    /// GPUs a node.
    gpus_per_node: u32,
    /// The framework whose habits of memory and partition are assumed.
    framework: String,
    /// Tokens of one sequence.
    sequence_length: u64,
    /// Sequences of one optimizer step.
    global_batch: u64,
    /// Which arithmetic every `mfu` counts: `paper` is `6N + 12Lhs` a token, `2Vh` within `N`.
    mfu_convention: &'static str,
}

/// How far to trust the prediction.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Trust {
    /// `measured`: the cluster's speeds are fitted to runs on it. `data-sheet`: hardware from
    /// data sheets, software efficiencies of a similar cluster.
    #[schemars(extend("enum" = ["measured", "data-sheet"]))]
    calibration: &'static str,
    /// Typical relative error of a predicted step time (a share).
    step_time_error: f64,
    /// Source of the cluster's figures.
    source: String,
}

impl JobDocument {
    pub(super) fn new(job: &Job) -> Self {
        Self {
            model: job.transformer.name.clone(),
            parameters: job.transformer.parameters(),
            cluster: job.cluster.name.clone(),
            accelerator: job.cluster.accelerator.name.clone(),
            gpus: job.cluster.gpus,
            gpus_per_node: job.cluster.gpus_per_node,
            framework: job.framework.name.clone(),
            sequence_length: job.workload.sequence_length,
            global_batch: job.workload.global_batch,
            mfu_convention: job.workload.mfu_convention.as_str(),
        }
    }
}

impl Trust {
    pub(super) fn new(calibration: &Calibration) -> Self {
        Self {
            calibration: match calibration.kind {
                CalibrationKind::Measured => "measured",
                CalibrationKind::DataSheet => "data-sheet",
            },
            step_time_error: rounded(calibration.time_error),
            source: calibration.source.clone(),
        }
    }
}
