//! How far to trust a prediction: what is known of runs like it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::cluster::{CalibrationKind, Cluster};
use crate::framework::Framework;
use crate::layout::{Combination, Schedule};

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

choice!(
    /// A mechanism that few measured runs support, and that a layout may lean on.
    Mechanism {
        /// Context parallelism.
        ContextParallelism = "context-parallelism",
        /// Zero-bubble schedules.
        ZeroBubble = "zero-bubble",
        /// Experts spread over ranks.
        ExpertParallelism = "expert-parallelism",
    }
);

impl Mechanism {
    fn is_used(self, combination: &Combination) -> bool {
        match self {
            Self::ContextParallelism => combination.context_parallel > 1,
            Self::ExpertParallelism => combination.expert_ranks() > 1,
            Self::ZeroBubble => matches!(
                combination.schedule,
                Schedule::ZeroBubble1p | Schedule::ZeroBubble2p
            ),
        }
    }

    /// What it is called in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::ContextParallelism => "context parallelism",
            Self::ZeroBubble => "a zero-bubble schedule",
            Self::ExpertParallelism => "expert parallelism",
        }
    }
}

/// What is known of a mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Support {
    /// Measured runs that use it.
    pub runs: u32,
    /// Sources of them.
    pub sources: u32,
    /// Relative error of a step time that it adds to that of other runs (a share).
    pub error: f64,
}

/// How far to trust a predicted step time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeTrust {
    /// What is known.
    pub evidence: Evidence,
    /// Typical relative error, a share.
    pub error: f64,
}

/// Standard deviations on either side of the mean that hold 80 % of a normal distribution.
pub const DEVIATIONS_OF_80_PERCENT: f64 = 1.281_551_565_544_6;

impl TimeTrust {
    /// Half width of the interval that holds 80 % of runs, of the logarithm of a step time: 1.2816
    /// standard deviations of a normal error, which are `sqrt(pi / 2)` times its mean amount.
    #[must_use]
    pub fn half_width(self) -> f64 {
        self.error * DEVIATIONS_OF_80_PERCENT * (std::f64::consts::PI / 2.0).sqrt()
    }

    /// The trust in a layout that leans on these mechanisms: independent errors add in square.
    #[must_use]
    pub fn leaning_on(self, mechanisms: &[(Mechanism, Support)]) -> Self {
        let added = mechanisms.iter().map(|(_, support)| support.error.powi(2));
        Self {
            error: added.fold(self.error.powi(2), |sum, it| sum + it).sqrt(),
            ..self
        }
    }
}

/// The mechanisms of a combination that few measured runs support.
#[must_use]
pub fn scarcely_measured(combination: &Combination) -> Vec<(Mechanism, Support)> {
    let used = KNOWN.mechanisms.iter();
    used.filter(|(mechanism, _)| mechanism.is_used(combination))
        .map(|(&mechanism, &support)| (mechanism, support))
        .collect()
}

/// `catalog/evidence.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    time_error: BTreeMap<Evidence, f64>,
    runs: BTreeMap<String, Vec<String>>,
    mechanisms: BTreeMap<Mechanism, Support>,
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
    let usual = usual_trust(evidence);
    TimeTrust {
        error: stated.unwrap_or(usual.error),
        ..usual
    }
}

/// How far to trust a step time of which as much is known, where no cluster states it.
#[must_use]
pub fn usual_trust(evidence: Evidence) -> TimeTrust {
    let usual = KNOWN
        .time_error
        .get(&evidence.min(Evidence::SameGpuAndFramework));
    TimeTrust {
        evidence,
        error: usual.copied().unwrap_or(1.0),
    }
}

/// Frameworks of which measured runs on a GPU, or the one that it derives from, are known.
pub(super) fn measured_with(accelerator: &str) -> &'static [String] {
    let known = KNOWN.runs.get(super::generation(accelerator));
    known.map_or(&[], Vec::as_slice)
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
    fn scarce_mechanisms_widen_the_band() {
        let plain = crate::fixture::llama_13b_layout().combination;
        assert!(scarcely_measured(&plain).is_empty());
        let context = Combination {
            context_parallel: 2,
            ..plain
        };
        let both = Combination {
            schedule: Schedule::ZeroBubble1p,
            ..context
        };
        let base = TimeTrust {
            evidence: Evidence::SameGpu,
            error: 0.16,
        };
        let widths =
            [plain, context, both].map(|it| base.leaning_on(&scarcely_measured(&it)).half_width());
        assert!(widths.is_sorted_by(|one, other| one < other), "{widths:?}");
        assert_eq!(KNOWN.mechanisms.len(), Mechanism::COUNT);
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
