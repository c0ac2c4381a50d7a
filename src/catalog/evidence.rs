//! How far to trust a prediction: what is known of runs like it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::choice::choice;
use crate::cluster::{CalibrationKind, Cluster};
use crate::framework::Framework;

choice!(
    /// What is known of runs like those that are predicted.
    Evidence {
        /// None of what follows.
        Nothing = "nothing-known",
        /// Runs on this GPU, or the one that it derives from.
        SameGpu = "same-gpu",
        /// Runs on this GPU, or the one that it derives from, under this framework.
        SameGpuAndFramework = "same-gpu-and-framework",
        /// The cluster's speeds were fitted to runs on it under this framework.
        Calibrated = "calibrated",
    }
);

impl Evidence {
    /// What it says, as the end of "a step time predicted for …".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Calibrated => "a cluster fitted to its runs",
            Self::SameGpuAndFramework => "a GPU and framework of which other runs are known",
            Self::SameGpu => "a GPU of which runs are known, but none with this framework",
            Self::Nothing => "a GPU of which no run is known",
        }
    }
}

/// How far to trust a predicted step time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeTrust {
    /// What is known.
    pub evidence: Evidence,
    /// Typical relative error, a share.
    pub error: f64,
}

impl TimeTrust {
    /// Half width of the interval that holds 80 % of runs, of the logarithm of a step time: 1.2816
    /// standard deviations of a normal error, which are `sqrt(pi / 2)` times its mean amount.
    #[must_use]
    pub fn half_width(self) -> f64 {
        const DEVIATIONS: f64 = 1.281_551_565_544_6;
        self.error * DEVIATIONS * (std::f64::consts::PI / 2.0).sqrt()
    }
}

/// `catalog/evidence.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    time_error: BTreeMap<Evidence, f64>,
    runs: BTreeMap<String, Vec<String>>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    toml::from_str(include_str!("../../catalog/evidence.toml"))
        .expect("the catalog's evidence is valid")
});

/// How far to trust a step time predicted for a cluster under a framework: the error that the
/// cluster states, else that of runs of which as much is known.
#[must_use]
pub fn time_trust(cluster: &Cluster, framework: &Framework) -> TimeTrust {
    let (evidence, calibration) = (evidence(cluster, framework), &cluster.calibration);
    let is_stated =
        evidence == Evidence::Calibrated || calibration.kind == CalibrationKind::DataSheet;
    let stated = calibration.time_error.filter(|_| is_stated);
    let usual = || {
        KNOWN
            .time_error
            .get(&evidence.min(Evidence::SameGpuAndFramework))
    };
    TimeTrust {
        evidence,
        error: stated.or_else(|| usual().copied()).unwrap_or(1.0),
    }
}

fn evidence(cluster: &Cluster, framework: &Framework) -> Evidence {
    let calibration = &cluster.calibration;
    let fitted_with = calibration.framework.as_ref();
    if calibration.kind == CalibrationKind::Measured
        && fitted_with.is_none_or(|fitted| *fitted == framework.name)
    {
        return Evidence::Calibrated;
    }
    match KNOWN.runs.get(super::generation(&cluster.accelerator.name)) {
        Some(frameworks) if frameworks.contains(&framework.name) => Evidence::SameGpuAndFramework,
        Some(_) => Evidence::SameGpu,
        None => Evidence::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn the_error_follows_the_evidence() {
        let trust = |cluster: &str, framework: &str| {
            let cluster = catalog::cluster(cluster).expect("it is in the catalog");
            let framework = catalog::framework(framework).expect("it is in the catalog");
            time_trust(&cluster, &framework)
        };
        let fitted = trust("a100-80gb-one-nic", "aleph-alpha-scaling");
        assert_eq!(fitted.evidence, Evidence::Calibrated);
        assert!((fitted.error - 0.033).abs() < 1e-12);
        let other = trust("a100-80gb-one-nic", "nanotron");
        assert_eq!(other.evidence, Evidence::SameGpu);
        let derived = trust("dgx-h200-141gb", "megatron-lm");
        assert_eq!(derived.evidence, Evidence::SameGpuAndFramework);
        let mut unknown = catalog::cluster("dgx-h100-80gb").expect("it is in the catalog");
        unknown.accelerator = catalog::accelerator("mi300x-192gb").expect("it is in the catalog");
        let unknown = time_trust(&unknown, &catalog::framework("fsdp").expect("it is there"));
        assert_eq!(unknown.evidence, Evidence::Nothing);
        let widths = [fitted, derived, other, unknown].map(TimeTrust::half_width);
        assert!(widths.is_sorted(), "{widths:?}");
    }

    #[test]
    fn evidence_is_of_the_catalog() {
        for (gpu, frameworks) in &KNOWN.runs {
            assert_eq!(catalog::generation(gpu), gpu);
            assert!(catalog::accelerator(gpu).is_ok(), "{gpu}");
            for framework in frameworks {
                assert!(catalog::framework(framework).is_ok(), "{framework}");
            }
        }
        assert_eq!(KNOWN.time_error.len(), Evidence::COUNT - 1);
    }
}
