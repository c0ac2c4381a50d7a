//! What the runs state for themselves, for runs to come.

use super::observation::Observation;
use super::parameters::Parameter;
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::quantity::BytesPerSecond;
use crate::runs::Stated;

/// A figure that all runs state, so that it is no matter of fitting.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    /// The figure.
    pub parameter: &'static Parameter,
    /// Its value before.
    pub before: f64,
    /// Its value by the runs' statements.
    pub after: f64,
}

/// The figures that runs may state.
const KEYS: [&str; 3] = [
    "intra_node_bandwidth",
    "inter_node_bandwidth",
    "framework.memory.gradient_bytes",
];

/// What every run states: the medians of measured bandwidths, and the bytes of a gradient if all
/// agree.
pub(super) fn by_all(observations: &[&Observation]) -> Stated {
    Stated {
        intra_node: median(observations, |stated| stated.intra_node),
        inter_node: median(observations, |stated| stated.inter_node),
        gradient_bytes: agreed(observations),
    }
}

/// Takes over what every run states, bandwidths times training's share of them: later instances do
/// not repeat these columns.
pub(super) fn take_over(
    stated: &Stated,
    cluster: &mut Cluster,
    framework: &mut Framework,
) -> Vec<Fact> {
    let before = values(cluster, framework);
    stated.apply(cluster, framework);
    let pairs = before.into_iter().zip(values(cluster, framework));
    let moved = pairs.filter(|((_, before), (_, after))| before.to_bits() != after.to_bits());
    moved
        .map(|((parameter, before), (_, after))| Fact {
            parameter,
            before,
            after,
        })
        .collect()
}

fn values(cluster: &Cluster, framework: &Framework) -> [(&'static Parameter, f64); KEYS.len()] {
    KEYS.map(|key| {
        let parameter = Parameter::named(key).expect("the table of parameters has it");
        (parameter, parameter.get(cluster, framework))
    })
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

/// The bytes of a gradient, if every run states the same.
fn agreed(observations: &[&Observation]) -> Option<f64> {
    let mut all = observations.iter().map(|run| run.stated.gradient_bytes);
    let first = all.next()??;
    all.all(|bytes| bytes.is_some_and(|bytes| bytes.to_bits() == first.to_bits()))
        .then_some(first)
}
