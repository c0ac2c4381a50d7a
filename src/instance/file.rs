//! The keys of an instance file: what was typed, before it is checked.

use serde_json::{Value as Json, json};

use super::constraint::ConstraintList;
use super::search::SearchSection;
use crate::catalog::sections::{ClusterSection, FrameworkSection, ModelSection};
use crate::reading::section::section;
use crate::reading::{self, Node, Problems, Value as _};
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
        /// Tokens of the busiest expert-parallel rank over their mean, 1 where balance is forced; default: 1.24.
        load_imbalance: f64,
    }
}

section! {
    /// What the layout must respect.
    struct LimitsSection {
        /// Largest accepted probability that the layout runs out of memory; default: 0.05.
        max_oom_risk: Risk,
    }
}

/// A probability that excludes certainty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Risk(pub(crate) f64);

impl reading::Value for Risk {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let risk = f64::read(node, path, problems)?;
        if 0.0 < risk && risk < 1.0 {
            return Some(Self(risk));
        }
        problems.add(
            &node.origin,
            format!("`{path}` is a probability between 0 and 1, not `{risk}`"),
            "0.05 accepts that one layout in twenty runs out of memory; 0 and 1 are excluded",
        );
        None
    }

    fn schema() -> Json {
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 })
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
