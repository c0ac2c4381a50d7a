//! What is believed of the parameters before any run is seen.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::catalog;
use crate::figures::{self, Figure, Seen};
use crate::laboratory::runs::Setup;

/// The prior of one parameter: log-normal, or normal for additive ones, within bounds.
#[derive(Debug, Clone, Copy)]
pub struct Prior {
    /// The parameter.
    pub parameter: &'static Figure,
    /// Median, where the fit starts.
    pub median: f64,
    /// Standard deviation of the logarithm; of the value for additive parameters.
    pub sigma: f64,
    /// Smallest value.
    pub lower: f64,
    /// Largest value.
    pub upper: f64,
}

impl Prior {
    /// The value `sigmas` prior standard deviations from the median, kept within bounds.
    #[must_use]
    pub fn value(&self, sigmas: f64) -> f64 {
        let free = if self.parameter.is_additive() {
            self.median + self.sigma * sigmas
        } else {
            self.median * (self.sigma * sigmas).exp()
        };
        free.clamp(self.lower, self.upper)
    }

    /// How many prior standard deviations `value` lies from the median.
    #[must_use]
    pub fn sigmas(&self, value: f64) -> f64 {
        if self.parameter.is_additive() {
            (value - self.median) / self.sigma
        } else {
            (value / self.median).ln() / self.sigma
        }
    }
}

/// Cluster and framework before a fit, and priors of the parameters that it may move; the others
/// stay.
#[derive(Debug, Clone)]
pub struct Priors {
    /// Cluster and framework.
    pub setup: Setup,
    /// One a parameter.
    pub list: Vec<Prior>,
}

/// Without bounds of its own a parameter may move by this factor.
const WIDEST: f64 = 100.0;

impl Priors {
    /// The figures of cluster and framework as medians, with the catalog's standard deviations.
    #[must_use]
    pub fn shipped(setup: &Setup) -> Self {
        let list = figures::all().filter_map(|parameter| {
            let median = setup.number(parameter);
            let (least, most) = parameter.terms.learning?.bounds;
            let sigma = BELIEFS.sigma(parameter.key, setup)?;
            let (lower, upper) = if parameter.is_additive() {
                (least, most)
            } else {
                // A logarithm never leaves 0: such a parameter is off.
                (median > 0.0).then_some(())?;
                (least.max(median / WIDEST), most.min(median * WIDEST))
            };
            Some(Prior {
                parameter,
                median,
                sigma,
                lower: lower.min(median),
                upper: upper.max(median),
            })
        });
        Self {
            setup: setup.clone(),
            list: list.collect(),
        }
    }

    /// The priors of parameters that are seen in `seen`; the others stay.
    #[must_use]
    pub fn only(&self, seen: Seen) -> Self {
        let mut only = self.clone();
        only.list.retain(|prior| prior.parameter.is_seen(seen));
        only
    }

    /// One profile with wide priors for the speed of every framework (catalog/priors.toml,
    /// `generic`): what is believed of a framework of which only documented structure is known. The
    /// cluster's figures are the given ones.
    ///
    /// # Panics
    ///
    /// Never: the catalog names known parameters, which tests assert.
    #[must_use]
    pub fn generic(setup: &Setup) -> Self {
        let mut priors = Self::shipped(setup);
        let generic = listed(&BELIEFS.generic);
        priors.list.retain(|prior| {
            generic
                .iter()
                .all(|it| it.parameter.key != prior.parameter.key)
        });
        priors.list.extend(generic);
        priors
    }

    /// What was believed before the paper's runs were seen (catalog/priors.toml, `before-fit`).
    ///
    /// # Panics
    ///
    /// Never: the catalog names known parameters, which tests assert.
    #[must_use]
    pub fn before_fit(setup: &Setup) -> Self {
        Self {
            setup: setup.clone(),
            list: listed(&BELIEFS.before_fit),
        }
    }
}

/// Whose a shared figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Belonging {
    /// Of all.
    Nobody,
    /// Of a generation of GPUs.
    Generation,
    /// Of a framework.
    Framework,
    /// Of a source of runs: what makes all its runs fast or slow alike, which nobody else learns from.
    Source,
}

/// Priors of the figures that runs of many sources share, before any run is seen (catalog/priors.toml,
/// `shared` and `generic`). A median of 0 stands for the figure of the data sheet or the kernel's
/// benchmark, and its bounds are factors of that.
pub(super) fn shared(setup: &Setup) -> Vec<(Prior, Belonging)> {
    let tables = [
        (&BELIEFS.shared.network, Belonging::Nobody),
        (&BELIEFS.shared.kernels, Belonging::Generation),
        (&BELIEFS.generic, Belonging::Framework),
        (&BELIEFS.shared.source, Belonging::Source),
    ];
    let mut all = Vec::new();
    for (table, belonging) in tables {
        for prior in listed(table) {
            let own = setup.number(prior.parameter);
            let is_relative = prior.median <= 0.0 && prior.sigma > 0.0;
            let prior = if is_relative {
                Prior {
                    median: own,
                    lower: own * prior.lower,
                    upper: own * prior.upper,
                    ..prior
                }
            } else {
                prior
            };
            all.push((prior, belonging));
        }
    }
    all
}

/// Priors by key: median, standard deviation, bounds.
fn listed(table: &BTreeMap<String, [f64; 4]>) -> Vec<Prior> {
    let list = table.iter().map(|(key, prior)| {
        let [median, sigma, lower, upper] = *prior;
        Prior {
            parameter: Figure::named(key).expect("priors are of known parameters"),
            median,
            sigma,
            lower,
            upper,
        }
    });
    list.collect()
}

/// catalog/priors.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Beliefs {
    cluster: Sigmas,
    generations: BTreeMap<String, Sigmas>,
    clusters: BTreeMap<String, Sigmas>,
    framework: Sigmas,
    frameworks: BTreeMap<String, Sigmas>,
    before_fit: BTreeMap<String, [f64; 4]>,
    generic: BTreeMap<String, [f64; 4]>,
    shared: Shared,
}

/// Figures that no framework owns, in a fit to the runs of many sources.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    network: BTreeMap<String, [f64; 4]>,
    kernels: BTreeMap<String, [f64; 4]>,
    source: BTreeMap<String, [f64; 4]>,
}

type Sigmas = BTreeMap<String, f64>;

impl Beliefs {
    /// The standard deviation of a parameter, if it may be fitted.
    fn sigma(&self, key: &str, setup: &Setup) -> Option<f64> {
        let tables = [
            self.clusters.get(&setup.cluster.name),
            self.generations
                .get(catalog::generation(&setup.cluster.accelerator.name)),
            Some(&self.cluster),
            self.frameworks.get(&setup.framework.name),
            Some(&self.framework),
        ];
        let found = tables
            .into_iter()
            .flatten()
            .find_map(|table| table.get(key));
        found.copied()
    }
}

static BELIEFS: LazyLock<Beliefs> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../catalog/priors.toml"))
        .expect("the catalog's priors are valid")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prior_is_of_a_known_parameter() {
        let tables = [&BELIEFS.cluster, &BELIEFS.framework]
            .into_iter()
            .chain(BELIEFS.generations.values())
            .chain(BELIEFS.clusters.values())
            .chain(BELIEFS.frameworks.values());
        for key in tables.flat_map(BTreeMap::keys) {
            assert!(Figure::named(key).is_some(), "{key}");
        }
        for name in BELIEFS.clusters.keys() {
            assert!(catalog::cluster(name).is_ok(), "{name}");
        }
        for name in BELIEFS.frameworks.keys() {
            assert!(catalog::framework(name).is_ok(), "{name}");
        }
        for name in BELIEFS.generations.keys() {
            assert!(catalog::accelerator(name).is_ok(), "{name}");
        }
        assert_eq!(BELIEFS.before_fit.len(), 18);
        let shared = &BELIEFS.shared;
        let shared = [&shared.network, &shared.kernels, &shared.source];
        let shared = shared.into_iter().flat_map(BTreeMap::keys);
        for key in BELIEFS
            .generic
            .keys()
            .chain(BELIEFS.before_fit.keys())
            .chain(shared)
        {
            assert!(Figure::named(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_prior_counts_in_standard_deviations() {
        let gemm = Prior {
            parameter: Figure::named("efficiency.gemm").expect("it is in the table"),
            median: 0.75,
            sigma: 0.1,
            lower: 0.3,
            upper: 0.95,
        };
        assert!((gemm.value(1.0) - 0.75 * 0.1_f64.exp()).abs() < 1e-12);
        assert!((gemm.sigmas(gemm.value(-2.0)) + 2.0).abs() < 1e-12);
        assert!((gemm.value(10.0) - 0.95).abs() < 1e-12);
    }
}
