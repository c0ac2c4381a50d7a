//! `[cluster.efficiency]` and `[cluster.calibration]`: what software reaches, and how far to
//! trust it.

use super::cluster::over_bases;
use super::error::Problems;
use super::file::{CalibrationSection, ClusterSection, EfficiencySection};
use super::reader::{Field, Value};
use super::values::{Number, Quantity};
use crate::catalog;
use crate::cluster::{Calibration, CalibrationKind, Efficiency, MemoryError};
use crate::quantity::Seconds;

/// The cluster whose figures stand in where nothing nearer is known.
const FALLBACK: &str = "dgx-a100-80gb";
/// Longest latency that a key takes.
const LONGEST: Seconds = Seconds::new(10.0);

/// Efficiency and calibration of a section over its bases; what is absent comes from a similar
/// cluster of the catalog.
pub(super) fn resolve(
    section: &ClusterSection,
    problems: &mut Problems,
) -> Option<(Efficiency, Calibration)> {
    if matches!(section.efficiency, Field::Broken) || matches!(section.calibration, Field::Broken) {
        return None;
    }
    let similar = similar(section);
    let stand_in = catalog::cluster_section(similar).ok()?;
    // The catalog's own clusters are complete: this recursion ends at once.
    let (_, stand_in) = over_bases(stand_in, problems)?;
    let own = section.efficiency.value().cloned().unwrap_or_default();
    if !own.is_complete() {
        problems.warn(format!(
            "the cluster does not state all software efficiencies: those of `{similar}` stand in"
        ));
    }
    let efficiency = own.over(stand_in.efficiency.value()?);
    let calibration = calibration(section, stand_in.calibration.value()?, similar, problems);
    Some((efficiency.checked(problems)?, calibration?))
}

/// A cluster of the catalog with the same GPU, or the usual one.
fn similar(section: &ClusterSection) -> &'static str {
    section
        .accelerator
        .value()
        .and_then(|accelerator| catalog::data_sheet_cluster(accelerator))
        .unwrap_or(FALLBACK)
}

fn calibration(
    section: &ClusterSection,
    stand_in: &CalibrationSection,
    similar: &str,
    problems: &mut Problems,
) -> Option<Calibration> {
    let own = section.calibration.value().cloned().unwrap_or_default();
    between(
        &own.time_error,
        "calibration.time_error",
        0.0,
        10.0,
        problems,
    );
    between(
        &own.memory_scale,
        "calibration.memory_scale",
        1e-6,
        10.0,
        problems,
    );
    let kind = match &own.kind {
        Field::Absent => CalibrationKind::DataSheet,
        other => other.value()?.0,
    };
    let source = match own.source.value().or(section.source.value()) {
        Some(source) => source.clone(),
        None => format!("figures of the instance, else of `{similar}`"),
    };
    Some(Calibration {
        kind,
        time_error: own.time_error.or(&stand_in.time_error).value()?.0,
        memory: MemoryError {
            shift: own.memory_shift.or(&stand_in.memory_shift).value()?.0,
            scale: own.memory_scale.or(&stand_in.memory_scale).value()?.0,
        },
        source,
    })
}

impl EfficiencySection {
    fn is_complete(&self) -> bool {
        self.checked(&mut Problems::default()).is_some()
    }

    /// The efficiencies; `None` if one is absent or impossible.
    fn checked(&self, problems: &mut Problems) -> Option<Efficiency> {
        let mut share = |field: &Field<Number>, key: &str, least: f64, most: f64| {
            between(field, &format!("efficiency.{key}"), least, most, problems)
        };
        let gemm = share(&self.gemm, "gemm", 0.01, 1.0);
        let flash_1 = share(&self.flash_attention_1, "flash_attention_1", 0.01, 1.0);
        let flash_2 = share(&self.flash_attention_2, "flash_attention_2", 0.01, 1.0);
        let memory_bandwidth = share(&self.memory_bandwidth, "memory_bandwidth", 0.01, 1.0);
        let congestion = share(&self.congestion, "congestion", 0.0, 2.0);
        let ring_hop = duration(&self.ring_hop, "ring_hop", problems);
        let collective = duration(&self.collective_latency, "collective_latency", problems);
        let hop = duration(&self.pipeline_hop_latency, "pipeline_hop_latency", problems);
        let slowdown = match &self.slowdown {
            Field::Absent => Some(1.0),
            field => between(field, "efficiency.slowdown", 0.1, 10.0, problems),
        };
        Some(Efficiency {
            gemm: gemm?,
            flash_attention_1: flash_1?,
            flash_attention_2: flash_2?,
            memory_bandwidth: memory_bandwidth?,
            ring_hop: ring_hop?,
            congestion: congestion?,
            collective_latency: collective?,
            pipeline_hop_latency: hop?,
            slowdown: slowdown?,
        })
    }
}

/// A number of `[cluster]` that lies between two bounds.
fn between(
    field: &Field<Number>,
    key: &str,
    least: f64,
    most: f64,
    problems: &mut Problems,
) -> Option<f64> {
    field.check(
        |number| (least..=most).contains(&number.0),
        problems,
        |number| {
            format!(
                "`cluster.{key}` is between {least} and {most}, not `{}`",
                number.0
            )
        },
        "see its unit in docs/instance-format.md",
    );
    field.value().map(|number| number.0)
}

fn duration(
    field: &Field<Quantity<Seconds>>,
    key: &str,
    problems: &mut Problems,
) -> Option<Seconds> {
    field.check(
        |duration| duration.0 <= LONGEST,
        problems,
        |_| format!("`cluster.efficiency.{key}` is longer than 10 s"),
        "check the unit: `us`, `ms` or `s`",
    );
    field.value().map(|duration| duration.0)
}
