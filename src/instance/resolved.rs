//! An instance written out in full: every figure in the keys of instance files, to its last digit.
//!
//! What is written depends on no preset and no other file, and the reader of instance files makes
//! the same [`Instance`] of it; name and warnings apart, which say how the instance was typed.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::document::{Entry, Node, Origin, Source, SourceKind, Table, Tree};
use super::search::FORBID;
use super::{Instance, InstanceError, Problems, check};
use crate::axis::{Axis, AxisSet};
use crate::catalog;
use crate::cluster::{Calibration, Cluster, Discrepancy, Efficiency};
use crate::constraint::{Constraint, Decision};
use crate::framework::{Framework, MemoryProfile, SpeedProfile};
use crate::layout_space::LayoutSpace;
use crate::quantity::{self, Measured};
use crate::transformer::Transformer;
use crate::workload::Workload;

/// A table of an instance file as JSON.
pub type Section = Map<String, Json>;

/// The instance in the keys of instance files.
#[must_use]
pub fn resolved(instance: &Instance) -> Section {
    let job = &instance.job;
    let mut file = table([
        ("model", model(&job.transformer).into()),
        ("cluster", cluster(&job.cluster).into()),
        ("framework", framework(&job.framework).into()),
        ("training", training(&job.workload).into()),
        ("limits", json!({ "max_oom_risk": instance.max_oom_risk })),
        ("search", search(&instance.space).into()),
    ]);
    if !instance.space.constraints.is_empty() {
        let rows = instance.space.constraints.iter().map(constraint);
        file.insert("constraint".to_owned(), rows.collect());
    }
    file
}

/// The instance that [`resolved`] wrote, under another name.
///
/// # Errors
///
/// If the sections break rules of instance files, or refer to a file.
pub fn from_resolved(name: &str, sections: &Section) -> Result<Instance, InstanceError> {
    let mut problems = Problems::default();
    let table = table_of("", sections);
    for (section, key) in [("model", "config"), ("cluster", "file")] {
        let node = table.get(section).map(|node| &node.value);
        if let Some(Tree::Table(table)) = node
            && let Some(node) = table.get(key)
        {
            let text = format!("`{section}.{key}` refers to another file");
            problems.add(&node.origin, text, "write the figures instead");
            return Err(InstanceError::Broken(problems));
        }
    }
    check::check(name, &table, problems)
}

fn table<const N: usize>(entries: [(&str, Json); N]) -> Section {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// The shortest text that is read as exactly this quantity.
fn quantity<Q>(amount: Q) -> Json
where
    Q: Measured + Copy + PartialEq + std::ops::Div<Output = f64>,
{
    let base = amount / Q::from_base(1.0);
    let texts = Q::UNITS
        .iter()
        .map(|(unit, factor)| format!("{} {unit}", base / factor));
    let exact = texts.filter(|text| quantity::parse::<Q>(text) == Ok(amount));
    let shortest = exact.min_by_key(String::len);
    shortest
        .unwrap_or_else(|| format!("{base:e} {}", base_unit::<Q>()))
        .into()
}

/// The unit in which quantities are kept.
fn base_unit<Q: Measured>() -> &'static str {
    let mut units = Q::UNITS.iter();
    let base = units.find(|(_, factor)| (factor - 1.0).abs() < f64::EPSILON);
    base.map_or("", |(unit, _)| unit)
}

fn model(network: &Transformer) -> Section {
    let mut model = table([
        ("name", json!(network.name)),
        ("layers", json!(network.layers)),
        ("hidden", json!(network.hidden)),
        ("heads", json!(network.heads)),
        ("key_value_heads", json!(network.key_value_heads)),
        ("head_width", json!(network.head_width)),
        ("feed_forward_width", json!(network.feed_forward_width)),
        ("feed_forward", network.feed_forward.as_str().into()),
        ("vocabulary", json!(network.vocabulary)),
        ("embeddings", network.embeddings.as_str().into()),
        ("normalization", network.normalization.as_str().into()),
        ("biases", network.biases.as_str().into()),
    ]);
    if network.learned_positions > 0 {
        model.insert(
            "learned_positions".to_owned(),
            network.learned_positions.into(),
        );
    }
    model
}

fn cluster(cluster: &Cluster) -> Section {
    let gpu = &cluster.accelerator;
    let mut written = table([("name", json!(cluster.name))]);
    if catalog::accelerator(&gpu.name).is_ok() {
        written.insert("accelerator".to_owned(), json!(gpu.name));
    }
    written.extend(table([
        ("gpus", json!(cluster.gpus)),
        ("gpus_per_node", json!(cluster.gpus_per_node)),
        ("memory", quantity(gpu.usable_memory)),
        ("memory_bandwidth", quantity(gpu.memory_bandwidth)),
        ("peak_bf16", quantity(gpu.peak_bf16)),
    ]));
    if let Some(peak) = gpu.peak_fp8 {
        written.insert("peak_fp8".to_owned(), quantity(peak));
    }
    written.extend(table([
        (
            "intra_node_bandwidth",
            quantity(cluster.intra_node_bandwidth),
        ),
        (
            "inter_node_bandwidth",
            quantity(cluster.inter_node_bandwidth),
        ),
        ("efficiency", efficiency(&cluster.efficiency).into()),
        ("calibration", calibration(&cluster.calibration).into()),
    ]));
    if let Some(learned) = &cluster.discrepancy {
        written.insert("discrepancy".to_owned(), discrepancy(learned).into());
    }
    written
}

/// Fields of a struct under their own names: each is written as it is. All fields are named, so that
/// a new figure cannot be forgotten.
macro_rules! fields {
    ($struct:ident { $($number:ident,)* } { $($quantity:ident,)* } { $($choice:ident,)* } = $from:expr) => {{
        let $struct { $($number,)* $($quantity,)* $($choice,)* } = $from;
        let mut section = Section::new();
        $(section.insert(stringify!($number).to_owned(), json!($number));)*
        $(section.insert(stringify!($quantity).to_owned(), quantity(*$quantity));)*
        $(section.insert(stringify!($choice).to_owned(), $choice.as_str().into());)*
        section
    }};
}

fn efficiency(efficiency: &Efficiency) -> Section {
    fields!(Efficiency
        { gemm, flash_attention_1, flash_attention_2, memory_bandwidth, congestion, slowdown, }
        { ring_hop, collective_latency, pipeline_hop_latency, }
        {} = efficiency)
}

fn calibration(calibration: &Calibration) -> Section {
    table([
        ("kind", calibration.kind.as_str().into()),
        ("time_error", json!(calibration.time_error)),
        ("memory_scale", json!(calibration.memory.scale)),
        ("memory_shift", json!(calibration.memory.shift)),
        ("source", json!(calibration.source)),
    ])
}

fn discrepancy(learned: &Discrepancy) -> Section {
    fields!(Discrepancy { amplitude, length_scale, noise, weights, points, } {} {} = learned)
}

fn framework(framework: &Framework) -> Section {
    let mut written = table([
        ("name", json!(framework.name)),
        ("partition", framework.partition.as_str().into()),
        ("checkpointing", framework.checkpoint_rule.as_str().into()),
        ("fused_rmsnorm", framework.fused_rmsnorm.as_str().into()),
        ("usual_attention", framework.usual_attention.as_str().into()),
        ("usual_rmsnorm", framework.usual_rmsnorm.as_str().into()),
        (
            "usual_sequence_parallel",
            framework.usual_sequence_parallel.as_str().into(),
        ),
        ("memory", memory(&framework.memory).into()),
        ("speed", speed(&framework.speed).into()),
    ]);
    if !framework.source.is_empty() {
        written.insert("source".to_owned(), json!(framework.source));
    }
    written
}

fn memory(memory: &MemoryProfile) -> Section {
    fields!(MemoryProfile
        {
            gradient_bytes, logit_bytes, logit_bytes_gathered, hidden_bytes, gathered_bytes,
            attention_bytes, norm_bytes, feed_forward_bytes, working_bytes, activation_factor,
        }
        { fixed, communicator, }
        { logits, logged_peak, } = memory)
}

fn speed(speed: &SpeedProfile) -> Section {
    fields!(SpeedProfile
        {
            elementwise, rmsnorm_bytes, softmax_bytes_fused, softmax_bytes_torch, logit_bytes,
            launch_recompute, launch_norm, transfer_exposed, bubble, bubble_zero_1p,
            bubble_zero_2p, bubble_interleaved, reduction_bytes, sharded_bytes, sharded_norm,
            measured_intra_node, measured_inter_node, tensor_parallel_across,
        }
        { launch, launch_unfused, micro_batch_overhead, step_overhead, sharded_latency, }
        { optimizer_work, } = speed)
}

fn training(workload: &Workload) -> Section {
    fields!(Workload
        { sequence_length, global_batch, }
        {}
        { precision, optimizer, mfu_convention, } = workload)
}

/// The value of an axis as `[search]` takes it.
fn value(axis: Axis, code: u32) -> Json {
    match axis.names() {
        Some(_) => axis.show(code).into(),
        None => code.into(),
    }
}

/// What the user lists; every other axis follows from the rest of the instance.
fn search(space: &LayoutSpace) -> Section {
    let listed = |axis: Axis| {
        space
            .values(axis)
            .iter()
            .map(move |&code| value(axis, code))
    };
    let axes = space.listed().iter();
    let mut search: Section = axes
        .map(|axis| (axis.to_string(), listed(axis).collect()))
        .collect();
    let forbidden = space.forbidden.iter().map(|assignment| {
        let values = assignment.0.iter();
        let values = values.map(|&(axis, code)| (axis.to_string(), value(axis, code)));
        Json::Object(values.collect())
    });
    if !space.forbidden.is_empty() {
        search.insert(FORBID.to_owned(), forbidden.collect());
    }
    search
}

fn constraint(row: &Constraint) -> Json {
    let name = |decision: Decision| match decision {
        Decision::Is(axis, code) => format!("{axis}={}", axis.show(code)),
        other => other.to_string(),
    };
    let terms = row.terms.iter();
    let terms: Section = terms
        .map(|term| (name(term.decision), term.coefficient.into()))
        .collect();
    json!({ "name": row.name, "terms": terms, (row.comparison.as_str()): row.right })
}

/// The axes with these names.
pub(crate) fn axes(names: &[String]) -> Option<AxisSet> {
    let mut axes = names.iter().map(|name| Axis::parse(name));
    axes.try_fold(AxisSet::EMPTY, |set, axis| Some(set.with(axis?)))
}

/// A table of JSON as the tree that instances are read from. Each value is a text of its own, so that
/// messages can show it.
fn table_of(path: &str, section: &Section) -> Table {
    let entry = |(key, value): (&String, &Json)| {
        let path = super::reader::join(path, key);
        let node = node(&path, value);
        Entry {
            key: key.clone(),
            key_origin: node.origin.clone(),
            node,
        }
    };
    Table {
        entries: section.iter().map(entry).collect(),
    }
}

fn node(path: &str, json: &Json) -> Node {
    let value = match json {
        Json::Null => Tree::Date,
        Json::Bool(on) => Tree::Switch(*on),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Tree::Integer(Some(integer.into())),
            (_, Some(integer)) => Tree::Integer(Some(integer.into())),
            _ => Tree::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Tree::Text(text.clone()),
        Json::Array(items) => Tree::List(items.iter().map(|item| node(path, item)).collect()),
        Json::Object(section) => Tree::Table(table_of(path, section)),
    };
    let text = match json {
        Json::Array(_) | Json::Object(_) => "…".to_owned(),
        scalar => scalar.to_string(),
    };
    let span = 0..text.len();
    let source = Arc::new(Source {
        name: format!("resolved_instance.{path}"),
        text,
        folder: PathBuf::new(),
        kind: SourceKind::Argument,
    });
    Node {
        value,
        origin: Origin::new(&source, span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Bytes, Seconds};

    #[test]
    fn quantities_are_short_where_they_can_be_and_exact_always() {
        assert_eq!(quantity(Bytes::new(85e9)), "85 GB");
        assert_eq!(quantity(Seconds::new(1.5e-3)), "1.5 ms");
        for value in [0.0, 1.0 / 3.0, 1e-300, 0.1 + 0.2, 123_456_789.123_456_79] {
            let text = quantity(Seconds::new(value));
            let text = text.as_str().expect("a text");
            assert_eq!(quantity::parse(text), Ok(Seconds::new(value)), "{text}");
        }
    }
}
