//! What the runs state for themselves, for runs to come.

use schemars::JsonSchema;
use serde::Serialize;

use super::fit::key;
use super::observation::Observation;
use crate::cluster::Cluster;
use crate::figures::Figure;
use crate::laboratory::runs::{Setup, Stated};
use crate::quantity::BytesPerSecond;

/// A figure that all runs state, so that it is no matter of fitting.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Fact {
    /// Its key in a cluster file.
    #[serde(rename = "key", serialize_with = "key")]
    #[schemars(with = "&str")]
    pub parameter: &'static Figure,
    /// Its value without the statement, in bytes a second or as a number.
    pub before: f64,
    /// Its value by the runs' statements.
    pub after: f64,
}

/// The figures that runs may state.
const KEYS: [&str; 5] = [
    "intra_node_bandwidth",
    "inter_node_bandwidth",
    "framework.memory.gradient_bytes",
    "gpus_per_node",
    "nvlink_domain",
];

/// What every run states.
#[derive(Debug, Clone, Copy, Default)]
pub struct Common {
    /// Medians of measured bandwidths, and the bytes of a gradient if all agree.
    pub figures: Stated,
    /// GPUs of a node and of an `NVLink` domain, if all runs over several domains agree.
    pub nodes: Option<(u32, Option<u32>)>,
}

fn cluster(run: &Observation) -> &Cluster {
    &run.modelled.job.cluster
}

/// What every run states. Runs within one `NVLink` domain say nothing of the network between nodes.
pub(super) fn by_all(observations: &[&Observation]) -> Common {
    let several: Vec<&Observation> = observations
        .iter()
        .copied()
        .filter(|run| cluster(run).gpus > cluster(run).domain())
        .collect();
    Common {
        figures: Stated {
            intra_node: median(observations, |stated| stated.intra_node),
            inter_node: median(&several, |stated| stated.inter_node),
            line_rate: median(&several, |stated| stated.line_rate),
            gradient_bytes: agreed(observations, |run| run.stated.gradient_bytes),
        },
        nodes: agreed(&several, |run| {
            Some((cluster(run).gpus_per_node, cluster(run).nvlink_domain))
        }),
    }
}

/// Takes over what every run states, bandwidths times training's share of them: later instances do
/// not repeat these columns.
pub(super) fn take_over(common: &Common, setup: &mut Setup) -> Vec<Fact> {
    let before = setup.clone();
    let (cluster, framework) = (&mut setup.cluster, &mut setup.framework);
    common.figures.apply(cluster, framework);
    if let Some((gpus, domain)) = common.nodes {
        (cluster.gpus_per_node, cluster.nvlink_domain) = (gpus, domain);
    }
    let named = KEYS.iter().filter_map(|key| Figure::named(key));
    let facts = named.map(|parameter| Fact {
        parameter,
        before: before.number(parameter),
        after: setup.number(parameter),
    });
    facts
        .filter(|fact| fact.before.to_bits() != fact.after.to_bits())
        .collect()
}

/// The median of a bandwidth that every run states.
fn median(
    observations: &[&Observation],
    of: impl Fn(&Stated) -> Option<BytesPerSecond>,
) -> Option<BytesPerSecond> {
    let values: Option<Vec<f64>> = observations
        .iter()
        .map(|run| of(&run.stated).map(BytesPerSecond::value))
        .collect();
    let mut values = values?;
    values.sort_by(f64::total_cmp);
    let middle = values.get(values.len() / 2).copied();
    middle.map(BytesPerSecond::new)
}

/// What all runs state, if they agree.
fn agreed<T: PartialEq>(
    observations: &[&Observation],
    of: impl Fn(&Observation) -> Option<T>,
) -> Option<T> {
    let mut all = observations.iter().map(|run| of(run));
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first))
        .then_some(first)
}
