//! Pareto fronts in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::job::{JobDocument, Trust};
use super::layout::LayoutDocument;
use super::{rounded, schema_of, write};
use crate::instance::Instance;
use crate::price::{Front, Point};

/// Name and version of Pareto fronts.
pub const PARETO: &str = "parlayout/pareto/v1";

/// The front as a document of the format [`PARETO`], on several lines.
#[must_use]
pub fn pareto(instance: &Instance, front: &Front) -> String {
    let job = &instance.job;
    write(&ParetoDocument {
        schema: PARETO,
        instance: instance.name.clone(),
        job: JobDocument::new(job),
        front: front.kind.as_str(),
        solved: front.solved as u64,
        unproven: front.unproven as u64,
        points: front
            .points
            .iter()
            .map(|point| PointDocument::new(point, job.workload.global_batch))
            .collect(),
        trust: Trust::new(&job.cluster.calibration),
        warnings: instance.warnings.clone(),
    })
}

/// The JSON Schema of [`PARETO`], shipped as `docs/pareto.schema.json`.
#[must_use]
pub fn pareto_schema() -> String {
    schema_of::<ParetoDocument>(PARETO)
}

/// The layouts that no other beats in both of two figures.
#[derive(Debug, Serialize, JsonSchema)]
struct ParetoDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = PARETO))]
    schema: &'static str,
    /// Name of the instance: the file's stem, or what the job is.
    instance: String,
    /// The job as it is.
    job: JobDocument,
    /// The figures: memory of a GPU and MFU, or number of GPUs and step time.
    #[schemars(extend("enum" = ["memory-mfu", "gpus-time"]))]
    front: &'static str,
    /// Instances that were solved for the front.
    solved: u64,
    /// Those of them whose answer is not proven, because the time limit ended the search.
    unproven: u64,
    /// From the least memory or the fewest GPUs up; empty where no size has a layout.
    points: Vec<PointDocument>,
    /// How far to trust the predictions.
    trust: Trust,
    /// What the reader should know, though it is not an error.
    warnings: Vec<String>,
}

/// A layout of a front.
#[derive(Debug, Serialize, JsonSchema)]
struct PointDocument {
    /// GPUs of the job.
    gpus: u32,
    /// Usable memory that a GPU needs for the layout at the accepted risk, in GiB.
    memory_gib: f64,
    /// Model FLOP utilisation (a share, 0 to 1).
    mfu: f64,
    /// Duration of one optimizer step, in seconds.
    step_time_s: f64,
    /// Training tokens a second over all GPUs.
    tokens_per_s: f64,
    /// GPU time of a step, in seconds.
    gpu_time_a_step_s: f64,
    /// The layout.
    layout: LayoutDocument,
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
