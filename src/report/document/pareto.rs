//! Pareto fronts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Document, JobDocument, LayoutDocument, Trust, rounded};
use crate::instance::Instance;
use crate::price::{Front, FrontKind, Point};

/// The layouts that no other beats in both of two figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParetoDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = ParetoDocument::FORMAT))]
    pub schema: String,
    /// Name of the instance: the file's stem, or what the job is.
    pub instance: String,
    /// The job as it is.
    pub job: JobDocument,
    /// The figures that are traded.
    pub front: FrontKind,
    /// Instances that were solved for the front.
    pub solved: u64,
    /// Those of them whose answer is not proven, because the time limit ended the search.
    pub unproven: u64,
    /// From the least memory or the fewest GPUs up; empty where no size has a layout.
    pub points: Vec<PointDocument>,
    /// How far to trust the predictions.
    pub trust: Trust,
    /// What the reader should know, though it is not an error.
    pub warnings: Vec<String>,
    /// Usable memory per GPU of the job as it is, in GiB.
    #[serde(default)]
    pub memory_gib: f64,
}

/// A layout of a front.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointDocument {
    /// GPUs of the job.
    pub gpus: u32,
    /// Usable memory per GPU that the layout needs at the accepted risk, in GiB.
    pub memory_gib: f64,
    /// Model FLOP utilisation (a share, 0 to 1).
    pub mfu: f64,
    /// Duration of one optimizer step, in seconds.
    pub step_time_s: f64,
    /// Training tokens per second over all GPUs.
    pub tokens_per_s: f64,
    /// GPU time of a step, in seconds.
    pub gpu_time_a_step_s: f64,
    /// The layout.
    pub layout: LayoutDocument,
}

impl Document for ParetoDocument {
    const FORMAT: &'static str = "parlayout/pareto/v1";
}

impl ParetoDocument {
    /// The front of an instance.
    #[must_use]
    pub fn new(instance: &Instance, front: &Front) -> Self {
        let job = JobDocument::new(&instance.job);
        let cluster = &instance.job.cluster;
        let points = front.points.iter();
        Self {
            schema: Self::FORMAT.to_owned(),
            instance: instance.name.clone(),
            front: front.kind,
            solved: front.solved as u64,
            unproven: front.unproven as u64,
            points: points
                .map(|point| PointDocument::new(point, job.global_batch))
                .collect(),
            trust: Trust::new(cluster, &instance.job.framework),
            warnings: instance.warnings.clone(),
            memory_gib: rounded(cluster.accelerator.usable_memory.gib()),
            job,
        }
    }
}

impl PointDocument {
    fn new(point: &Point, global_batch: u64) -> Self {
        let prediction = &point.evaluated.prediction;
        let step = prediction.step_time.value();
        Self {
            gpus: point.gpus,
            memory_gib: rounded(point.memory.gib()),
            mfu: rounded(prediction.mfu.value()),
            step_time_s: rounded(step),
            tokens_per_s: rounded(point.tokens_per_second()),
            gpu_time_a_step_s: rounded(step * f64::from(point.gpus)),
            layout: LayoutDocument::new(&point.evaluated.layout, global_batch),
        }
    }
}
