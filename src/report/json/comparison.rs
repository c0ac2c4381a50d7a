//! Two layouts side by side in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::layout::LayoutDocument;
use super::prediction::PredictionDocument;
use super::proof::ViolationDocument;
use super::{rounded, schema_of, write};
use crate::explain::comparison::{Comparison, Side, Term};
use crate::quantity::{Bytes, Seconds};

/// Name and version of the comparison of two layouts.
pub const COMPARISON: &str = "parlayout/comparison/v1";

/// The comparison as a document of the format [`COMPARISON`], on several lines.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    write(&ComparisonDocument {
        schema: COMPARISON,
        comparison: ComparisonBody::new(comparison),
    })
}

/// The JSON Schema of [`COMPARISON`], shipped as `docs/comparison.schema.json`.
#[must_use]
pub fn comparison_schema() -> String {
    schema_of::<ComparisonDocument>(COMPARISON)
}

/// Two layouts side by side.
#[derive(Debug, Serialize, JsonSchema)]
struct ComparisonDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = COMPARISON))]
    schema: &'static str,
    /// The comparison.
    #[serde(flatten)]
    comparison: ComparisonBody,
}

/// Two layouts, and where their time and memory differ.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ComparisonBody {
    /// The first layout, from which differences are counted.
    left: SideDocument,
    /// The second.
    right: SideDocument,
    /// Utilisation of the second minus that of the first (shares).
    mfu_difference: f64,
    /// Step time of the second minus that of the first, in seconds.
    step_time_difference_s: f64,
    /// Components of the step time, the largest difference first.
    time: Vec<TimeTerm>,
    /// Components of the memory of each side's fullest stage, the largest difference first.
    memory: Vec<MemoryTerm>,
}

/// A layout with what it was chosen for.
#[derive(Debug, Serialize, JsonSchema)]
struct SideDocument {
    /// Name of the instance.
    instance: String,
    /// Name of the network.
    model: String,
    /// Name of the cluster.
    cluster: String,
    /// GPUs of the job.
    gpus: u32,
    /// The framework.
    framework: String,
    /// Tokens of one sequence.
    sequence_length: u64,
    /// Sequences of one optimizer step.
    global_batch: u64,
    /// The layout.
    layout: LayoutDocument,
    /// What the cost model says of it.
    prediction: PredictionDocument,
    /// Every rule that the layout breaks; empty for a legal layout and one read from a document.
    violations: Vec<ViolationDocument>,
}

/// A component of the step time on both sides.
#[derive(Debug, Serialize, JsonSchema)]
struct TimeTerm {
    /// The component.
    component: &'static str,
    /// On the first side, in seconds.
    left_s: f64,
    /// On the second, in seconds.
    right_s: f64,
    /// The second minus the first, in seconds.
    difference_s: f64,
    /// The component's part of `mfu_difference`, in proportion to its part of the difference in
    /// time; null where the two utilisations are not of the same work.
    mfu: Option<f64>,
}

/// A component of the memory on both sides.
#[derive(Debug, Serialize, JsonSchema)]
struct MemoryTerm {
    /// The component.
    component: &'static str,
    /// On the first side's fullest stage, in GiB.
    left_gib: f64,
    /// On the second's, in GiB.
    right_gib: f64,
    /// The second minus the first, in GiB.
    difference_gib: f64,
}

impl ComparisonBody {
    pub(super) fn new(comparison: &Comparison) -> Self {
        let (one, other) = (
            &comparison.left.evaluated.prediction,
            &comparison.right.evaluated.prediction,
        );
        Self {
            left: SideDocument::new(&comparison.left),
            right: SideDocument::new(&comparison.right),
            mfu_difference: rounded((other.mfu - one.mfu).value()),
            step_time_difference_s: rounded((other.step_time - one.step_time).value()),
            time: comparison.time.iter().map(TimeTerm::new).collect(),
            memory: comparison.memory.iter().map(MemoryTerm::new).collect(),
        }
    }
}

impl SideDocument {
    fn new(side: &Side) -> Self {
        let setting = side.setting.clone();
        Self {
            layout: LayoutDocument::new(&side.evaluated.layout, setting.global_batch),
            prediction: PredictionDocument::new(&side.evaluated.prediction),
            violations: side.violations.iter().map(ViolationDocument::new).collect(),
            instance: setting.instance,
            model: setting.model,
            cluster: setting.cluster,
            gpus: setting.gpus,
            framework: setting.framework,
            sequence_length: setting.sequence_length,
            global_batch: setting.global_batch,
        }
    }
}

impl TimeTerm {
    fn new(term: &Term<Seconds>) -> Self {
        Self {
            component: term.name,
            left_s: rounded(term.left.value()),
            right_s: rounded(term.right.value()),
            difference_s: rounded((term.right - term.left).value()),
            mfu: term.mfu.map(|mfu| rounded(mfu.value())),
        }
    }
}

impl MemoryTerm {
    fn new(term: &Term<Bytes>) -> Self {
        Self {
            component: term.name,
            left_gib: rounded(term.left.gib()),
            right_gib: rounded(term.right.gib()),
            difference_gib: rounded((term.right - term.left).gib()),
        }
    }
}
