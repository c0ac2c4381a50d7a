//! What was read from a log, in words.

use super::log::{Log, Peak, SteadyStep};
use crate::count::counted;
use crate::launch::Facts;

/// What a log measured.
pub(super) fn measured(log: &Log, steady: Option<SteadyStep>, peak: Option<Peak>) -> Vec<String> {
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

/// The layout that it was read with: network, degrees, batches and what saves memory.
pub(super) fn layout(facts: &Facts) -> String {
    let model = facts.text("model").map(|name| format!("{name}, "));
    let text = |column: &str, otherwise: &'static str| {
        let text = facts.text(column).unwrap_or(otherwise);
        text.to_owned()
    };
    let mut parts = vec![format!(
        "{}{} layers of {}, {} heads",
        model.unwrap_or_default(),
        text("layers", "1"),
        text("hidden", "?"),
        text("heads", "?")
    )];
    let gpus: u64 = facts.number("gpus").unwrap_or(1);
    parts.push(counted(gpus, "GPU"));
    parts.push(format!("TP {}", text("tensor_parallel", "1")));
    parts.push(format!("PP {}", text("pipeline_parallel", "1")));
    let chunks = facts.number("virtual_stages").filter(|&chunks| chunks > 1);
    parts.extend(chunks.map(|chunks| format!("{chunks} virtual stages")));
    let others = [
        ("DP", "data_parallel", "1"),
        ("CP", "context_parallel", "1"),
        ("micro-batch", "micro_batch", "1"),
        ("global batch", "global_batch", "?"),
        ("sequences of", "seq_len", "?"),
        ("recompute", "checkpointing", "unstated"),
        ("sharding", "sharding", "unstated"),
    ];
    let others = others.iter();
    parts.extend(
        others.map(|(name, column, otherwise)| format!("{name} {}", text(column, otherwise))),
    );
    parts.join(", ")
}

/// The figures that sources may state differently.
const FIGURES: [(&str, &str); 9] = [
    ("GPUs", "gpus"),
    ("TP", "tensor_parallel"),
    ("PP", "pipeline_parallel"),
    ("CP", "context_parallel"),
    ("micro-batch", "micro_batch"),
    ("global batch", "global_batch"),
    ("sequences of", "seq_len"),
    ("layers", "layers"),
    ("hidden size", "hidden"),
];

/// Figures of which the `chosen` source says something else than another, in words.
pub(super) fn differences(chosen: &Facts, other: &Facts, who: &str) -> Option<String> {
    let differ = FIGURES.iter().filter_map(|(name, column)| {
        let (chosen, other) = (chosen.text(column)?, other.text(column)?);
        (chosen != other).then(|| format!("{name} {other}"))
    });
    let differ: Vec<String> = differ.collect();
    (!differ.is_empty()).then(|| format!("{who} says otherwise: {}", differ.join(", ")))
}
