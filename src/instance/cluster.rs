//! `[cluster]`: from preset, file and figures to a checked [`Cluster`].

use std::path::Path;
use std::sync::Arc;

use super::check::MOST_GPUS;
use super::document::{self, Origin, Source, SourceKind};
use super::error::Problems;
use super::file::{AcceleratorSection, ClusterSection};
use super::machine::Machine;
use super::model::at_most;
use super::reader::{Field, Value};
use super::text_file;
use super::values::{Count, Quantity};
use super::{efficiency, learned};
use crate::catalog;
use crate::cluster::{Accelerator, CalibrationKind, Cluster};
use crate::quantity::Measured;

/// Most GPUs of one node (or of one `NVLink` domain).
const MOST_GPUS_PER_NODE: u64 = 1024;
/// Least bandwidth, memory or throughput in base units: a slow disk has more.
const LEAST: f64 = 1e6;
/// Largest physical quantity in base units: beyond it arithmetic loses its meaning.
const LARGEST: f64 = 1e24;

/// The cluster that the section describes.
pub(crate) fn resolve(
    section: &ClusterSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Cluster> {
    let (name, merged) = over_bases(section, problems)?;
    complete(&name, &merged, origin, problems)
}

/// The cluster of a section that need not state the number of GPUs: one node, then.
pub(super) fn any_size(
    section: &ClusterSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Machine> {
    let (name, mut merged) = over_bases(section, problems)?;
    merged.gpus = merged.gpus.or(&merged.gpus_per_node);
    machine(&name, &merged, origin, problems)
}

/// One node of a cluster that states everything but the number of GPUs.
pub(crate) fn one_node(section: &ClusterSection) -> Option<Machine> {
    let mut problems = Problems::default();
    let (name, mut merged) = over_bases(section, &mut problems)?;
    merged.gpus = merged.gpus_per_node.clone();
    machine(&name, &merged, None, &mut problems)
}

fn machine(
    name: &str,
    merged: &ClusterSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Machine> {
    let cluster = complete(name, merged, origin, problems)?;
    Some(Machine::new(cluster, merged.framework.value().cloned()))
}

/// The section over its preset or file, and the name of that.
pub(super) fn over_bases(
    section: &ClusterSection,
    problems: &mut Problems,
) -> Option<(String, ClusterSection)> {
    let (name, base) = match (&section.preset, &section.file) {
        (Field::Given(_, preset), Field::Given(..)) => {
            problems.add(
                preset,
                "`cluster.preset` and `cluster.file` exclude each other",
                "keep one of the two; figures override either",
            );
            return None;
        }
        (Field::Broken, _) | (_, Field::Broken) => return None,
        (Field::Given(preset, at), _) => match catalog::cluster_section(preset) {
            Ok(base) => over_bases(base, problems).map(|(_, base)| (preset.clone(), base))?,
            Err(unknown) => {
                problems.add(at, unknown.text(), unknown.hint());
                return None;
            }
        },
        (_, Field::Given(file, at)) => read_file(file, at, problems)?,
        _ => {
            let name = section.accelerator.value().map_or("custom", String::as_str);
            return Some((name.to_owned(), section.clone()));
        }
    };
    Some((name, over(section, base)))
}

/// A cluster file.
fn read_file(file: &str, at: &Origin, problems: &mut Problems) -> Option<(String, ClusterSection)> {
    let path = at.source.folder.join(file);
    let text = match text_file::read(&path) {
        Ok(text) => text,
        Err((reason, hint)) => {
            problems.add(
                at,
                format!("cannot read `{}`: {reason}", path.display()),
                hint,
            );
            return None;
        }
    };
    let source = Arc::new(Source {
        name: path.display().to_string(),
        text,
        folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        kind: SourceKind::File,
    });
    let table = document::parse(&source, problems);
    let section = ClusterSection::from_table(&table, "", problems);
    if let Some(nested) = section.file.origin() {
        problems.add(
            nested,
            "a cluster file cannot build on another file",
            "give `preset`, or copy the figures",
        );
        return None;
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let (_, merged) = over_bases(&section, problems)?;
    Some((stem.into_owned(), merged))
}

/// The section over `base`; a base that is altered in what decides speed is no longer measured.
fn over(section: &ClusterSection, mut base: ClusterSection) -> ClusterSection {
    let gpu = !section.accelerator.is_absent();
    if gpu {
        base.memory = Field::Absent;
        base.memory_bandwidth = Field::Absent;
        base.peak_bf16 = Field::Absent;
        base.peak_fp8 = Field::Absent;
    }
    let altered = gpu
        || !section.memory_bandwidth.is_absent()
        || !section.peak_bf16.is_absent()
        || !section.peak_fp8.is_absent()
        || !section.intra_node_bandwidth.is_absent()
        || !section.inter_node_bandwidth.is_absent()
        || !section.efficiency.is_absent();
    let measured = base
        .calibration
        .value()
        .and_then(|calibration| calibration.kind.value())
        .is_some_and(|kind| kind.0 == CalibrationKind::Measured);
    if altered && measured && section.calibration.is_absent() {
        base.calibration = Field::Absent;
    }
    if altered {
        // Residuals of one machine say nothing of another.
        base.discrepancy = Field::Absent;
    }
    section.clone().over(&base)
}

/// The cluster of a section over its bases.
fn complete(
    name: &str,
    section: &ClusterSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Cluster> {
    let gpu = [section.memory.is_absent(), section.peak_bf16.is_absent()];
    if section.accelerator.is_absent() && gpu == [true; 2] {
        problems.add_anywhere(
            origin,
            "`[cluster]` names no GPU",
            "give `preset = \"dgx-h100-80gb\"`, `accelerator = \"h100-80gb\"`, or `memory`, \
             `memory_bandwidth` and `peak_bf16`",
        );
        return None;
    }
    let accelerator = accelerator(section, origin, problems);
    let hint = "give `--gpus 64`, or write `gpus = 64`";
    let gpus = section
        .gpus
        .required("cluster.gpus", origin, hint, problems);
    at_most(&section.gpus, "cluster.gpus", MOST_GPUS, problems);
    let per_node = section.gpus_per_node.or_default(Count(8));
    at_most(
        &section.gpus_per_node,
        "cluster.gpus_per_node",
        MOST_GPUS_PER_NODE,
        problems,
    );
    let intra = positive(
        &section.intra_node_bandwidth,
        "intra_node_bandwidth = \"240 GB/s\"",
        origin,
        problems,
    );
    let inter = positive(
        &section.inter_node_bandwidth,
        "inter_node_bandwidth = \"1600 Gb/s\"",
        origin,
        problems,
    );
    let discrepancy = learned::resolve(&section.discrepancy, problems);
    let (efficiency, calibration) = efficiency::resolve(section, problems)?;
    let (gpus, gpus_per_node) = (gpus?.0, per_node?.0);
    if gpus > gpus_per_node && !gpus.is_multiple_of(gpus_per_node) {
        problems.warn(format!(
            "{gpus} GPUs are no whole number of nodes of {gpus_per_node}: the last node is used in \
             part"
        ));
    }
    Some(Cluster {
        name: section.name.or_default(name.to_owned())?,
        accelerator: accelerator?,
        gpus: u32::try_from(gpus).unwrap_or(u32::MAX),
        gpus_per_node: u32::try_from(gpus_per_node).unwrap_or(u32::MAX),
        intra_node_bandwidth: intra?,
        inter_node_bandwidth: inter?,
        efficiency,
        calibration,
        discrepancy: discrepancy.ok()?,
    })
}

fn accelerator(
    section: &ClusterSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Accelerator> {
    let (name, base) = match &section.accelerator {
        Field::Broken => return None,
        Field::Absent => ("custom".to_owned(), AcceleratorSection::default()),
        Field::Given(name, at) => match catalog::accelerator_section(name) {
            Ok(base) => (name.clone(), base.clone()),
            Err(unknown) => {
                problems.add(at, unknown.text(), unknown.hint());
                return None;
            }
        },
    };
    let memory = section.memory.clone().or(&base.memory);
    let memory_bandwidth = section.memory_bandwidth.clone().or(&base.memory_bandwidth);
    let peak_bf16 = section.peak_bf16.clone().or(&base.peak_bf16);
    let peak_fp8 = section.peak_fp8.clone().or(&base.peak_fp8);
    let usable_memory = positive(&memory, "memory = \"85 GB\"", origin, problems);
    let bandwidth = positive(
        &memory_bandwidth,
        "memory_bandwidth = \"2.039 TB/s\"",
        origin,
        problems,
    );
    let bf16 = positive(&peak_bf16, "peak_bf16 = \"312 TFLOP/s\"", origin, problems);
    let peak_fp8 = match peak_fp8 {
        Field::Absent => None,
        given => Some(positive(
            &given,
            "peak_fp8 = \"1979 TFLOP/s\"",
            origin,
            problems,
        )?),
    };
    Some(Accelerator {
        name,
        usable_memory: usable_memory?,
        memory_bandwidth: bandwidth?,
        peak_bf16: bf16?,
        peak_fp8,
    })
}

/// A quantity that must be given and above 0.
fn positive<Q: Measured + Copy + PartialOrd + std::ops::Div<Output = f64>>(
    field: &Field<Quantity<Q>>,
    example: &str,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Q> {
    let key = example.split(' ').next().unwrap_or_default();
    let path = format!("cluster.{key}");
    let hint = format!("write it with its unit: `{example}`");
    field.check(
        |quantity| (LEAST..LARGEST).contains(&(quantity.0 / Q::from_base(1.0))),
        problems,
        |_| format!("`{path}` is no amount that a machine has"),
        &hint,
    );
    field
        .required(&path, origin, &hint, problems)
        .map(|quantity| quantity.0)
}
