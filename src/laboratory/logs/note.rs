//! What was read from a log, in words.

use super::facts::Facts;
use super::log::{Log, Peak, SteadyStep};

/// What a log measured and the layout that it was read with.
pub(super) fn note(
    name: &str,
    log: &Log,
    (steady, peak): (Option<SteadyStep>, Option<Peak>),
    facts: &Facts,
    overruled: &[String],
) -> String {
    let mut parts = measured(log, steady, peak);
    parts.push(format!("read as {}", layout(facts)));
    parts.extend_from_slice(overruled);
    format!("{name}: {}", parts.join("; "))
}

fn measured(log: &Log, steady: Option<SteadyStep>, peak: Option<Peak>) -> Vec<String> {
    if let Some(out) = &log.out_of_memory {
        return vec![match out {
            Some(capacity) => format!("ran out of the {capacity} of a GPU"),
            None => "ran out of memory".to_owned(),
        }];
    }
    let mut parts = Vec::new();
    match steady {
        Some(steady) => parts.push(format!(
            "{:.3} s a step (median of {} logged iterations without the first {})",
            steady.step_time.value(),
            steady.logged,
            steady.left_out
        )),
        None if log.steps.len() == 1 => {
            parts.push("no step time: the only logged iteration is a warm-up".to_owned());
        }
        None => parts.push("no step time".to_owned()),
    }
    if let Some(peak) = peak {
        let of = match (peak.rank, peak.stage) {
            (Some(rank), Some(stage)) => format!("rank {rank}, stage {stage}"),
            (None, Some(stage)) => format!("stage {stage}"),
            _ => "an unstated rank, taken for the fullest".to_owned(),
        };
        parts.push(format!("peak {} on {of}", peak.memory));
    }
    parts
}

/// Network, degrees, batches and what saves memory.
fn layout(facts: &Facts) -> String {
    let number = |value: Option<u64>| value.map_or("?".to_owned(), |value| value.to_string());
    let degree = |value: Option<u32>| value.unwrap_or(1).to_string();
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unstated".to_owned());
    let model = facts.model.as_ref().map(|name| format!("{name}, "));
    let chunks = facts.virtual_stages.filter(|&chunks| chunks > 1);
    [
        format!(
            "{}{} layers of {}, {} heads",
            model.unwrap_or_default(),
            degree(facts.layers),
            number(facts.hidden),
            number(facts.heads)
        ),
        format!("{} GPUs", degree(facts.gpus)),
        format!("TP {}", degree(facts.tensor_parallel)),
        format!("PP {}", degree(facts.pipeline_parallel)),
        chunks.map_or(String::new(), |chunks| format!("{chunks} virtual stages")),
        format!("DP {}", degree(facts.data_parallel)),
        format!("CP {}", degree(facts.context_parallel)),
        format!("micro-batch {}", degree(facts.micro_batch)),
        format!("global batch {}", number(facts.global_batch)),
        format!("sequences of {}", number(facts.sequence_length)),
        format!("recompute {}", text(&facts.checkpointing)),
        format!("sharding {}", text(&facts.sharding)),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join(", ")
}

/// Figures of which the `chosen` source says something else than another, in words.
pub(super) fn differences(chosen: &Facts, other: &Facts, who: &str) -> Vec<String> {
    let number = |value: Option<u32>| value.map(u64::from);
    let figures = [
        ("GPUs", number(chosen.gpus), number(other.gpus)),
        (
            "TP",
            number(chosen.tensor_parallel),
            number(other.tensor_parallel),
        ),
        (
            "PP",
            number(chosen.pipeline_parallel),
            number(other.pipeline_parallel),
        ),
        (
            "CP",
            number(chosen.context_parallel),
            number(other.context_parallel),
        ),
        (
            "micro-batch",
            number(chosen.micro_batch),
            number(other.micro_batch),
        ),
        ("global batch", chosen.global_batch, other.global_batch),
        (
            "sequences of",
            chosen.sequence_length,
            other.sequence_length,
        ),
        ("layers", number(chosen.layers), number(other.layers)),
        ("hidden size", chosen.hidden, other.hidden),
    ];
    let differ = figures.into_iter().filter_map(|(name, chosen, other)| {
        let other = other.filter(|_| chosen != other)?;
        chosen.map(|_| format!("{name} {other}"))
    });
    let differ: Vec<String> = differ.collect();
    if differ.is_empty() {
        return Vec::new();
    }
    vec![format!("{who} says otherwise: {}", differ.join(", "))]
}
