//! The list that `parlayout catalog` prints.

use super::{CATALOG, Kind};
use crate::reading::Field;
use crate::transformer::Active;

/// One preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its name in instance files.
    pub name: String,
    /// Its main figures, in one line.
    pub figures: String,
    /// Where the figures come from.
    pub source: String,
}

/// Every preset, by kind, in the order of the catalog.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let catalog = &*CATALOG;
    let mut entries = Vec::new();
    let mut push = |kind, name: &str, figures: Option<String>, source: &Field<String>| {
        entries.push(Entry {
            kind,
            name: name.to_owned(),
            figures: figures.unwrap_or_default(),
            source: source.value().cloned().unwrap_or_default(),
        });
    };
    for (name, section) in &catalog.accelerators.presets {
        push(Kind::Accelerator, name, accelerator(name), &section.source);
    }
    for (name, section) in &catalog.clusters.presets {
        push(Kind::Cluster, name, cluster(name), &section.source);
    }
    for (name, section) in &catalog.models.presets {
        push(Kind::Model, name, model(name), &section.source);
    }
    for (name, section) in &catalog.frameworks.presets {
        push(Kind::Framework, name, framework(name), &section.source);
    }
    entries
}

fn accelerator(name: &str) -> Option<String> {
    let gpu = super::accelerator(name).ok()?;
    let fp8 = gpu.peak_fp8.map_or(String::new(), |peak| {
        format!(", fp8 {:.0}", peak.value() / 1e12)
    });
    Some(format!(
        "{:.1} GiB usable at {:.2} TB/s, bf16 {:.0}{fp8} TFLOP/s",
        gpu.usable_memory.gib(),
        gpu.memory_bandwidth.value() / 1e12,
        gpu.peak_bf16.value() / 1e12,
    ))
}

fn cluster(name: &str) -> Option<String> {
    let cluster = super::cluster(name).ok()?;
    let domain = cluster.nvlink_domain.map_or_else(String::new, |domain| {
        format!(", NVLink domains of {domain}")
    });
    Some(format!(
        "nodes of {} {}{domain}, {:.0} GB/s per GPU within, {:.0} GB/s per node between, {}",
        cluster.gpus_per_node,
        cluster.accelerator.name,
        cluster.intra_node_bandwidth.value() / 1e9,
        cluster.inter_node_bandwidth.value() / 1e9,
        match cluster.calibration.kind {
            crate::cluster::CalibrationKind::Measured => "fitted to measured runs",
            crate::cluster::CalibrationKind::DataSheet => "from data sheets",
        },
    ))
}

fn model(name: &str) -> Option<String> {
    let model = super::model(name).ok()?;
    let billions = |count: u64| count as f64 / 1e9;
    let active = model.experts.map_or_else(String::new, |it| {
        let count = billions(model.active_parameters(Active::All));
        let (used, all) = (it.experts_per_token, it.experts);
        format!(", {count:.1}B active with both embeddings ({used} of {all} experts)")
    });
    Some(format!(
        "{:.1}B parameters{active}: {} layers, hidden {}, {} heads ({} of keys and values), vocabulary {}",
        billions(model.parameters()),
        model.layers,
        model.hidden,
        model.heads,
        model.key_value_heads,
        model.vocabulary,
    ))
}

fn framework(name: &str) -> Option<String> {
    let framework = super::framework(name).ok()?;
    Some(format!(
        "{:?} partition, {:?} checkpointing, {} gradient bytes, {:?} logits",
        framework.partition,
        framework.checkpoint_rule,
        framework.memory.gradient_bytes,
        framework.memory.logits,
    ))
}
