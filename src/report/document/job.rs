//! What was to be planned, and how far to trust the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rounded;
use crate::catalog::{self, Evidence, Mechanism, Support, TimeTrust};
use crate::cluster::{CalibrationKind, Cluster};
use crate::cost_model::discrepancy;
use crate::framework::Framework;
use crate::job::Job;
use crate::layout::Layout;
use crate::transformer::Active;
use crate::workload::FlopConvention;

/// What was to be planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobDocument {
    /// Name of the network.
    pub model: String,
    /// Parameters of the network, a tied embedding counted once.
    pub parameters: u64,
    /// Those that work on a token, both embeddings counted; absent where all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_parameters: Option<u64>,
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the GPU.
    pub accelerator: String,
    /// GPUs of the job.
    pub gpus: u32,
    /// GPUs per node.
    pub gpus_per_node: u32,
    /// The framework whose habits of memory and partition are assumed.
    pub framework: String,
    /// Bytes in which it keeps a gradient: 2 (bf16), 4 (fp32), 6 (both).
    pub gradient_bytes: f64,
    /// Tokens of one sequence.
    pub sequence_length: u64,
    /// Sequences of one optimizer step.
    pub global_batch: u64,
    /// Which arithmetic every `mfu` counts: `paper` is `6N + 12Lhs` per token, `2Vh` within `N`.
    pub mfu_convention: FlopConvention,
}

/// How far to trust the prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// `measured`: the cluster's speeds are fitted to runs on it. `data-sheet`: hardware from
    /// data sheets, kernels of the GPU's generation.
    pub calibration: CalibrationKind,
    /// What is known of runs like these; the error follows it.
    #[serde(default)]
    pub evidence: Evidence,
    /// Mechanisms of the layout that few measured runs support, and that widen the error.
    #[serde(default)]
    pub widened_by: Vec<ScarceDocument>,
    /// Typical relative error of a predicted step time (a share).
    pub step_time_error: f64,
    /// 80 % of step times are within `exp(± this)` of the prediction.
    #[serde(default)]
    pub step_time_band: f64,
    /// Source of the cluster's figures.
    pub source: String,
    /// How runs of similar layouts correct the step time; null where nothing was learned of them, or
    /// there is no layout.
    #[serde(default)]
    pub learned: Option<LearnedDocument>,
}

/// A mechanism that few measured runs support.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScarceDocument {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// What is known of it.
    #[serde(flatten)]
    pub support: Support,
}

/// What was learned of runs beyond the formulas (shares of the step time).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LearnedDocument {
    /// By how much the step time is corrected.
    pub correction: f64,
    /// One standard deviation of that.
    pub deviation: f64,
    /// One standard deviation where no run is similar.
    pub deviation_elsewhere: f64,
}

impl JobDocument {
    /// The job.
    #[must_use]
    pub fn new(job: &Job) -> Self {
        Self {
            model: job.transformer.name.clone(),
            parameters: job.transformer.parameters(),
            active_parameters: (job.transformer.experts)
                .map(|_| job.transformer.active_parameters(Active::All)),
            cluster: job.cluster.name.clone(),
            accelerator: job.cluster.accelerator.name.clone(),
            gpus: job.cluster.gpus,
            gpus_per_node: job.cluster.gpus_per_node,
            framework: job.framework.name.clone(),
            gradient_bytes: job.framework.memory.gradients(job.workload.precision),
            sequence_length: job.workload.sequence_length,
            global_batch: job.workload.global_batch,
            mfu_convention: job.workload.mfu_convention,
        }
    }
}

impl Trust {
    /// Trust in any prediction of a cluster under a framework.
    #[must_use]
    pub fn new(cluster: &Cluster, framework: &Framework) -> Self {
        Self::of(cluster, catalog::time_trust(cluster, framework))
    }

    fn of(cluster: &Cluster, time: TimeTrust) -> Self {
        let calibration = &cluster.calibration;
        Self {
            calibration: calibration.kind,
            evidence: time.evidence,
            widened_by: Vec::new(),
            step_time_error: rounded(time.error),
            step_time_band: rounded(time.half_width()),
            source: calibration.source.clone(),
            learned: None,
        }
    }

    /// Trust in the prediction of a layout.
    #[must_use]
    pub fn of_layout(job: &Job, layout: &Layout) -> Self {
        let learned = job.cluster.discrepancy.as_ref().map(|learned| {
            let at = discrepancy::features_of(job, layout);
            LearnedDocument {
                correction: rounded(learned.logarithm(&at).exp_m1()),
                deviation: rounded(learned.standard_deviations(&[at])[0]),
                deviation_elsewhere: rounded(learned.amplitude),
            }
        });
        let scarce = catalog::scarcely_measured(&layout.combination);
        let time = catalog::time_trust(&job.cluster, &job.framework).leaning_on(&scarce);
        let scarce = scarce.into_iter();
        Self {
            widened_by: scarce
                .map(|(mechanism, support)| ScarceDocument { mechanism, support })
                .collect(),
            learned,
            ..Self::of(&job.cluster, time)
        }
    }
}
