//! The keys of an instance file: what was typed, before it is checked.

use serde_json::{Value as Json, json};

use super::constraint::ConstraintList;
use super::search::SearchSection;
use crate::catalog::sections::{ClusterSection, FrameworkSection, ModelSection};
use crate::reading::Value as _;
use crate::reading::section::section;
use crate::workload::{FlopConvention, GradientWidth, Optimizer, Precision};

section! {
    /// A training job, the machine it runs on, and the layouts that may be tried.
    struct InstanceFile {
        /// The network.
        model: ModelSection,
        /// The machine.
        cluster: ClusterSection,
        /// The training framework.
        framework: FrameworkSection,
        /// What one optimizer step has to do.
        training: TrainingSection,
        /// What the layout must respect.
        limits: LimitsSection,
        /// The layouts that may be tried.
        search: SearchSection,
        /// Rows of your own.
        constraint: ConstraintList,
    }
}

section! {
    /// What one optimizer step has to do.
    struct TrainingSection {
        /// Tokens of one sequence.
        sequence_length: u64,
        /// Sequences of one optimizer step.
        global_batch: u64,
        /// Number format of the matrix products; default: bf16.
        precision: Precision,
        /// Width in which gradients are accumulated and reduced; default: the framework's.
        gradients: GradientWidth,
        /// What is kept for every parameter; default: adam.
        optimizer: Optimizer,
        /// Which arithmetic the MFU counts; default: paper.
        mfu_convention: FlopConvention,
    }
}

section! {
    /// What the layout must respect.
    struct LimitsSection {
        /// Largest accepted probability that the layout runs out of memory; default: 0.05.
        max_oom_risk: f64,
    }
}

/// The sections that every file has.
const REQUIRED: [&str; 3] = ["model", "cluster", "training"];

/// The JSON Schema of an instance file, which follows from the declarations of its sections.
#[must_use]
pub fn json_schema() -> Json {
    let mut schema = InstanceFile::schema();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("InstanceFile");
    schema["required"] = json!(REQUIRED);
    schema
}
