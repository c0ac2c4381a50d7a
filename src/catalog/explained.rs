//! One GPU of the catalog in full: its figures, its clusters, what is known of runs on it.

use serde::Serialize;
use serde_json::Value as Json;

use super::written::{self, Digits};
use super::{CATALOG, Evidence, NotFound, evidence, generation, usual_trust};
use crate::cluster::Cluster;
use crate::figures::Figure;

/// A GPU, with what describes another one like it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// Its name in instance files.
    pub name: String,
    /// Where its figures come from.
    pub source: String,
    /// The GPU whose kernels it runs: itself, unless it derives from another.
    pub generation: String,
    /// Frameworks of which measured runs on that GPU are known; none: nothing was measured.
    pub measured_with: Vec<String>,
    /// Typical error of a predicted step time, a share.
    pub time_error: f64,
    /// Clusters of the catalog that have it, the first with usual nodes and ports.
    pub clusters: Vec<String>,
    /// Figures of the GPU, and of nodes and network of the first cluster.
    pub figures: Vec<ExplainedFigure>,
}

/// One figure as instance files write it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedFigure {
    /// Its key in `[cluster]`.
    pub key: String,
    /// Its value.
    pub value: Json,
    /// What it says.
    pub meaning: &'static str,
}

/// Everything about a GPU.
///
/// # Errors
///
/// If there is none of this name.
pub fn explain(name: &str) -> Result<Explained, NotFound> {
    let section = super::accelerator_section(name)?;
    let presets = CATALOG.clusters.presets.iter();
    let machines = presets.filter_map(|(preset, _)| super::cluster(preset).ok());
    let mut machines: Vec<Cluster> = machines
        .filter(|machine| machine.accelerator.name == name)
        .collect();
    let usual = super::data_sheet_cluster(name);
    machines.sort_by_key(|machine| Some(machine.name.as_str()) != usual);
    let figures = match machines.first() {
        Some(machine) => written::cluster(machine, Digits::All),
        None => written::accelerator(&super::accelerator(name)?),
    };
    let figures = figures.into_iter().filter_map(|(key, value)| {
        let meaning = Figure::named(&key)?.doc;
        Some(ExplainedFigure {
            key,
            value,
            meaning,
        })
    });
    let measured_with = evidence::measured_with(name).to_vec();
    let evidence = if measured_with.is_empty() {
        Evidence::Nothing
    } else {
        Evidence::SameGpuAndFramework
    };
    Ok(Explained {
        name: name.to_owned(),
        source: section.source.value().cloned().unwrap_or_default(),
        generation: generation(name).to_owned(),
        measured_with,
        time_error: usual_trust(evidence).error,
        clusters: machines.into_iter().map(|machine| machine.name).collect(),
        figures: figures.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{self, Kind};

    #[test]
    fn every_gpu_is_explained_with_its_source() {
        let gpus = catalog::entries().into_iter();
        for gpu in gpus.filter(|entry| entry.kind == Kind::Accelerator) {
            let explained = explain(&gpu.name).expect("it is in the catalog");
            assert_eq!(explained.source, gpu.source);
            for key in ["memory", "memory_bandwidth", "peak_bf16"] {
                let mut figures = explained.figures.iter();
                assert!(
                    figures.any(|figure| figure.key == key),
                    "{} {key}",
                    gpu.name
                );
            }
            let says_so = gpu.source.contains("no run");
            assert!(
                !says_so || explained.measured_with.is_empty(),
                "{}",
                gpu.name
            );
        }
        let h100 = explain("h100-80gb").expect("it is in the catalog");
        assert_eq!(h100.clusters[0], "dgx-h100-80gb");
        assert!(h100.measured_with.iter().any(|name| name == "megatron-lm"));
        assert!(explain("abacus").is_err());
    }
}
