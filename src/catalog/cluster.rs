//! `[cluster]`: from preset, file and figures to a checked [`Cluster`].

use super::machine::Machine;
use super::sections::{AcceleratorSection, ClusterSection};
use super::seen_to_fit::SeenToFit;
use super::{data_sheet_cluster, discrepancy};
use crate::cluster::{Accelerator, CalibrationKind, Cluster};
use crate::figures::Value;
use crate::figures::stated::Stated;
use crate::framework::Framework;
use crate::reading::section::Part;
use crate::reading::{Field, Origin, Problems, Source, Value as _, document};

/// Most GPUs of a job.
pub(crate) const MOST_GPUS: u64 = 1_048_576;
/// The cluster whose figures stand in where nothing nearer is known.
const FALLBACK: &str = "dgx-a100-80gb";

/// The GPUs of a cluster that does not state their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unstated {
    /// Are a problem.
    Reported,
    /// Are those of one node.
    OneNode,
}

/// The cluster that the section describes.
pub(crate) fn resolve(
    section: &ClusterSection,
    gpus: Unstated,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Machine> {
    let (name, merged) = over_bases(section, problems)?;
    let mut gpu = merged.gpu.given();
    let unnamed = gpu.all(|figure| !matches!(figure.leaf(), "memory" | "peak_bf16"));
    if merged.accelerator.is_absent() && unnamed {
        problems.add_anywhere(
            origin,
            "`[cluster]` names no GPU",
            "give `preset = \"dgx-h100-80gb\"`, `accelerator = \"h100-80gb\"`, or `memory`, \
             `memory_bandwidth` and `peak_bf16`",
        );
        return None;
    }
    let accelerator = accelerator(&merged, problems);
    let mut cluster = Cluster::default();
    // Figures of a framework are not touched.
    let mut none = Framework::default();
    if let Some((name, gpu)) = &accelerator {
        gpu.report_missing(origin, problems);
        name.clone_into(&mut cluster.accelerator.name);
    }
    let stated = gpus == Unstated::Reported || !merged.gpus.is_absent();
    let hint = "give `--gpus 64`, or write `gpus = 64`";
    let gpus = stated.then(|| merged.gpus.required("cluster.gpus", origin, hint, problems));
    merged.gpus.at_most(MOST_GPUS, "cluster.gpus", problems);
    merged.network.report_missing(origin, problems);
    let discrepancy = discrepancy::resolve(&merged.discrepancy, problems);
    trust(&merged, &mut cluster, problems)?;
    merged.network.apply(&mut cluster, &mut none)?;
    cluster.gpus = match gpus {
        Some(gpus) => u32::try_from(gpus?).unwrap_or(u32::MAX),
        None => cluster.gpus_per_node,
    };
    let (per_node, domain) = (cluster.gpus_per_node, cluster.domain());
    if !domain.is_multiple_of(per_node) {
        problems.add_anywhere(
            origin,
            format!("an NVLink domain of {domain} GPUs is no whole number of nodes of {per_node}"),
            "give `nvlink_domain` as a multiple of `gpus_per_node`",
        );
        return None;
    }
    accelerator?.1.apply(&mut cluster, &mut none)?;
    cluster.discrepancy = discrepancy.ok()?;
    if let Some(SeenToFit(seen)) = merged.seen_to_fit.value() {
        cluster.seen_to_fit.clone_from(seen);
    }
    let fitted = merged.framework.value();
    if let Some(Field::Given(name, at)) = fitted.map(|framework| &framework.preset) {
        if let Err(unknown) = super::framework_section(name) {
            problems.add(at, unknown.text(), unknown.hint());
            return None;
        }
        cluster.calibration.framework = Some(name.clone());
    }
    cluster.name = merged.name.or_default(name)?;
    Some(Machine {
        cluster,
        fitted: merged.framework.value().cloned(),
    })
}

/// The section over its preset or file, and the name of that.
fn over_bases(
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
        (Field::Given(preset, at), _) => match super::cluster_section(preset) {
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
    let source = Source::named_at(&path, at, problems)?;
    let table = document::parse(&source, problems);
    let section = ClusterSection::of_table(&table, "", problems);
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
    let other_gpu = !section.accelerator.is_absent();
    if let Some(gpu) = section.accelerator.value() {
        base.gpu = Stated::default();
        forget_kernels(gpu, &mut base);
    }
    let figures = section.gpu.given().chain(section.network.given());
    let mut faster_or_slower = figures
        .filter(|figure| !matches!(figure.leaf(), "memory" | "gpus_per_node" | "nvlink_domain"));
    let altered = other_gpu || faster_or_slower.next().is_some() || !section.efficiency.is_absent();
    if altered && section.calibration.is_absent() && is_measured(&base) {
        base.calibration = Field::Absent;
    }
    if altered {
        // Residuals of one machine say nothing of another.
        base.discrepancy = Field::Absent;
    }
    section.clone().over(&base)
}

/// Drops what kernels reach on the base's GPU where `gpu` is of another generation.
fn forget_kernels(gpu: &str, base: &mut ClusterSection) {
    let own = base.accelerator.value();
    if own.is_some_and(|own| super::generation(own) == super::generation(gpu)) {
        return;
    }
    let section = super::accelerator_section(gpu).unwrap_or_default();
    if let (Field::Given(reached, _), Some(kernels)) =
        (&mut base.efficiency, section.efficiency.value())
    {
        reached.forget(kernels);
    }
}

/// Whether the section says that its figures were fitted to runs.
pub(super) fn is_measured(section: &ClusterSection) -> bool {
    let calibration = section.calibration.value();
    let kind = calibration.and_then(|calibration| calibration.speeds.value("kind"));
    kind == Some(Value::Name(CalibrationKind::Measured.as_str()))
}

/// The name of the GPU and its figures: the section's over those of the catalog.
fn accelerator(
    section: &ClusterSection,
    problems: &mut Problems,
) -> Option<(String, Stated<Accelerator>)> {
    let (name, base) = match &section.accelerator {
        Field::Broken => return None,
        Field::Absent => ("custom", AcceleratorSection::default()),
        Field::Given(name, at) => match super::accelerator_section(name) {
            Ok(base) => (name.as_str(), base),
            Err(unknown) => {
                problems.add(at, unknown.text(), unknown.hint());
                return None;
            }
        },
    };
    Some((name.to_owned(), Part::over(section.gpu.clone(), &base.gpu)))
}

/// Sets efficiency and calibration. What kernels reach is a matter of the GPU's generation; what else
/// the section does not state comes from a similar cluster of the catalog.
fn trust(section: &ClusterSection, cluster: &mut Cluster, problems: &mut Problems) -> Option<()> {
    if matches!(section.efficiency, Field::Broken) || matches!(section.calibration, Field::Broken) {
        return None;
    }
    let gpu = section.accelerator.value();
    let of_generation = |gpu| data_sheet_cluster(super::generation(gpu));
    let similar = gpu.and_then(|gpu| data_sheet_cluster(gpu).or_else(|| of_generation(gpu)));
    let similar = similar.unwrap_or(FALLBACK);
    // The catalog's own clusters are complete: this recursion ends at once.
    let (_, stand_in) = over_bases(super::cluster_section(similar).ok()?, problems)?;
    let (efficiency, calibration) = (stand_in.efficiency.value()?, stand_in.calibration.value()?);
    let kernels = |gpu: &str| {
        super::accelerator_section(gpu)
            .unwrap_or_default()
            .efficiency
    };
    let mut own = section.efficiency.value().cloned().unwrap_or_default();
    if let Some(reached) = gpu.and_then(|gpu| kernels(gpu).value().cloned()) {
        own = Part::over(own, &reached);
    }
    let efficiency = match kernels(stand_in.accelerator.value()?).value() {
        Some(reached) => Part::over(efficiency.clone(), reached),
        None => efficiency.clone(),
    };
    if own.missing().next().is_some() {
        problems.warn(format!(
            "the cluster does not state all software efficiencies: those of `{similar}` stand in"
        ));
    }
    let mut none = Framework::default();
    Part::over(own, &efficiency).apply(cluster, &mut none)?;
    let own = section.calibration.value().cloned().unwrap_or_default();
    Part::over(own.speeds, &calibration.speeds).apply(cluster, &mut none)?;
    Part::over(own.memory, &calibration.memory).apply(cluster, &mut none)?;
    let source = own.source.value().or(section.source.value());
    cluster.calibration.source = match source {
        Some(source) => source.clone(),
        None => format!("figures of the instance, else of `{similar}`"),
    };
    Some(())
}
