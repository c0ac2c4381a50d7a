//! `[search]`: the values that each axis may take, and combinations that are ruled out.

use serde_json::{Map, Value as Json, json};

use crate::axis::{Assignment, Axis};
use crate::catalog::axes;
use crate::framework::support::Aspect;
use crate::reading::document::Entry;
use crate::reading::section::{described, tables_of};
use crate::reading::{Field, Node, Origin, Problems, Tree, Value, join};

/// What `[search]` says. Its keys are those of [`Axis`] and `forbid`.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchSection {
    /// The codes of each axis that is listed, and where they stand.
    pub(crate) values: Vec<(Axis, Vec<u32>, Origin)>,
    /// Combinations that are ruled out.
    pub(crate) forbidden: Vec<Assignment>,
}

/// The key of the combinations that are ruled out.
pub(crate) const FORBID: &str = "forbid";

/// The keys of `[search]`.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> + Clone {
    names().chain([FORBID])
}

fn names() -> impl Iterator<Item = &'static str> + Clone {
    Axis::ALL.iter().map(|axis| axis.as_str())
}

impl Value for SearchSection {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let Tree::Table(table) = &node.value else {
            problems.add(
                &node.origin,
                format!("`{path}` must be a table, not {}", node.value.kind()),
                "write a section `[search]` with lines such as `tensor_parallel = [1, 2, 4]`",
            );
            return None;
        };
        let mut section = Self::default();
        for entry in &table.entries {
            if entry.key == FORBID {
                section.forbidden = read_forbidden(&entry.node, path, problems);
            } else if let Some(axis) = axis_of(entry, path, keys(), problems)
                && let Some(codes) = read_values(axis, &entry.node, problems)
            {
                if section.values.iter().any(|(earlier, ..)| *earlier == axis) {
                    let text = format!("`search.{axis}` is given twice");
                    problems.add(&entry.key_origin, text, "keep one of the two keys");
                }
                let origin = entry.node.origin.clone();
                section.values.push((axis, codes, origin));
            }
        }
        Some(section)
    }

    fn schema() -> Json {
        let mut properties = Map::new();
        let mut single = Map::new();
        for axis in Axis::ALL {
            let value = axes::value_schema(Aspect::Axis(axis));
            let list = axes::list_schema(Aspect::Axis(axis));
            let either = json!({ "anyOf": [value, list] });
            for name in [Some(axis.as_str()), axis.short()].into_iter().flatten() {
                let meaning = described(either.clone(), meaning(axis));
                properties.insert(name.to_owned(), meaning);
            }
            single.insert(axis.to_string(), value);
        }
        properties.insert(
            FORBID.to_owned(),
            json!({
                "description": "Combinations of values that are ruled out.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": single,
                    "minProperties": 1,
                    "additionalProperties": false,
                },
            }),
        );
        json!({
            "type": "object",
            "description": "The layouts that may be tried: for each axis a list of values, or one \
                            value that pins it. Absent axes try everything legal.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

/// The axis that a key names.
fn axis_of(
    entry: &Entry,
    path: &str,
    known: impl Iterator<Item = &'static str>,
    problems: &mut Problems,
) -> Option<Axis> {
    let axis = Axis::parse(&entry.key);
    if axis.is_none() {
        let known: Vec<&str> = known.collect();
        problems.add_unknown_key(&entry.key_origin, path, &entry.key, &known);
    }
    axis
}

/// The codes of a list or of one value.
fn read_values(axis: Axis, node: &Node, problems: &mut Problems) -> Option<Vec<u32>> {
    axes::read_codes(
        Aspect::Axis(axis),
        &join("search", axis.as_str()),
        node,
        problems,
    )
}

fn read_value(axis: Axis, node: &Node, problems: &mut Problems) -> Option<u32> {
    axes::read_code(
        Aspect::Axis(axis),
        &join("search", axis.as_str()),
        node,
        problems,
    )
}

fn read_forbidden(node: &Node, path: &str, problems: &mut Problems) -> Vec<Assignment> {
    let hint = "write `[[search.forbid]]` and under it the values that may not come together";
    let list = join(path, FORBID);
    let tables = tables_of(node, &list, hint, problems).unwrap_or_default();
    let mut forbidden = Vec::new();
    for (table, origin) in tables {
        if table.entries.is_empty() {
            let text = format!("`{list}` names no value: it would rule out everything");
            problems.add(origin, text, hint);
        }
        let mut assignment = Assignment::default();
        for entry in &table.entries {
            if let Some(axis) = axis_of(entry, &list, names(), problems)
                && let Some(code) = read_value(axis, &entry.node, problems)
            {
                assignment.0.push((axis, code));
            }
        }
        forbidden.push(assignment);
    }
    forbidden
}

impl Field<SearchSection> {
    /// What is said, or nothing.
    pub(crate) fn or_everything(&self) -> SearchSection {
        self.value().cloned().unwrap_or_default()
    }
}

/// What the values of an axis mean.
const fn meaning(axis: Axis) -> &'static str {
    match axis {
        Axis::TensorParallel => "Tensor-parallel degree.",
        Axis::PipelineParallel => "Pipeline stages.",
        Axis::DataParallel => "Data-parallel replicas.",
        Axis::ContextParallel => "Ranks that share one sequence.",
        Axis::ExpertParallel => "Ranks that share the experts of a layer.",
        Axis::ExpertTensorParallel => "Ranks that share each expert.",
        Axis::VirtualStages => "Model chunks a pipeline rank; more than 1 interleaves.",
        Axis::MicroBatch => "Sequences of a micro-batch.",
        Axis::SequenceParallel => "Whether norms and residuals are split along the sequence.",
        Axis::Sharding => "What data-parallel ranks split among themselves.",
        Axis::AttentionKernel => "Implementation of attention.",
        Axis::RmsNormKernel => "Whether RMSNorm is one fused kernel.",
        Axis::Checkpointing => "What every layer recomputes in the backward pass.",
        Axis::Schedule => "Order of forward and backward passes in the pipeline.",
    }
}
