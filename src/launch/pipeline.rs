//! How frameworks cut layers into stages.

use super::facts::{Facts, Problem};
use super::layout::{LAYERS, counts};
use crate::axis::FlaggedCombination;
use crate::cost_model::pipeline::chunks_in_order;
use crate::layout::Combination;
use crate::rules::Rule;

/// Most model chunks of a pipeline: a layer each of any network.
const MOST_CHUNKS: u64 = 1 << 16;

/// The layers of every model chunk in the order of the network, from those of the stages.
pub(crate) fn chunks(layers: &[u32], virtual_stages: u32) -> Vec<u32> {
    if layers.len() as u64 * u64::from(virtual_stages) > MOST_CHUNKS {
        return layers.to_vec();
    }
    let combination = Combination {
        pipeline_parallel: layers.len() as u32,
        virtual_stages,
        ..FlaggedCombination::FIRST.combination
    };
    chunks_in_order(&combination, layers)
}

/// An even cut, the remainder to the early stages.
pub(crate) fn even(layers: u32, stages: u32) -> Vec<u32> {
    let each = |stage| layers / stages + u32::from(stage < layers % stages);
    (0..stages).map(each).collect()
}

/// Notes that every stage has the same number of layers, which is all that a framework can do; what is left
/// over is a problem.
pub(crate) fn equal_stages(
    facts: &mut Facts,
    what_happens: &str,
    repair: &str,
    source: &'static str,
) {
    let stages = facts.one("pipeline_parallel");
    let Some(layers) = facts.number("layers") else {
        return;
    };
    if layers.is_multiple_of(stages) {
        let each = vec![(layers / stages) as u32; stages.min(1 << 16) as usize];
        facts.note(LAYERS, Some(counts(&each)));
        return;
    }
    let message =
        format!("{layers} layers do not divide among {stages} pipeline stages: {what_happens}");
    facts.problems.push(Problem {
        rule: Rule::LayersCoverStages.as_str(),
        message,
        repair: repair.to_owned(),
        source,
        column: "pipeline_parallel",
    });
}

/// The divisors of the layers nearest to a number of stages.
pub(crate) fn nearest_divisors(layers: u64, stages: u64) -> String {
    let divides = |it: &u64| layers.is_multiple_of(*it);
    let below = (1..stages).rev().find(divides);
    let above = (stages + 1..=layers).find(divides);
    let both: Vec<String> = below
        .into_iter()
        .chain(above)
        .map(|it| it.to_string())
        .collect();
    both.join(" or ")
}
