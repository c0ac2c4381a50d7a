//! A layout in words: whole, or only where it differs from another.

use crate::axis::FlaggedCombination;
use crate::layout::{
    Checkpointing, Combination, Layout, Recompute, RmsNormKernel, Schedule, SequenceParallel, Stage,
};

/// The layout in one line, leaving out what is off: `TP 2, PP 16, DP 4, micro-batch 1, zero-1,
/// flash-attention-2, fused RMSNorm, layers 7, 8 x14, 7`.
#[must_use]
pub fn line(layout: &Layout) -> String {
    let mut parts = parts(&layout.combination);
    if !even(layout) {
        parts.push(layers(layout));
    }
    if layout
        .stages
        .iter()
        .any(|stage| stage.checkpointed_layers() > 0)
    {
        parts.push(checkpointing(layout));
    }
    parts.join(", ")
}

/// A combination that has no layers per stage yet, in one line.
#[must_use]
pub fn candidate_line(candidate: &FlaggedCombination) -> String {
    let mut parts = parts(&candidate.combination);
    if candidate.checkpointing != Checkpointing::None {
        parts.push(format!("{} checkpointing", candidate.checkpointing));
    }
    parts.join(", ")
}

/// The degrees and the micro-batch in one line: `TP 2, PP 16, DP 4, micro-batch 1`.
#[must_use]
pub fn degrees(combination: &Combination) -> String {
    let degrees = features(combination).into_iter().take(7);
    let parts: Vec<String> = degrees
        .filter(|part| !NEUTRAL.contains(&part.as_str()))
        .collect();
    parts.join(", ")
}

/// What of `other` differs from `choice`, without the layers of every stage.
#[must_use]
pub fn brief_difference(choice: &Layout, other: &Layout) -> String {
    let (ours, theirs) = (&choice.combination, &other.combination);
    let mut parts = changed_features(ours, theirs);
    let counts = |layout: &Layout| {
        layout
            .stages
            .iter()
            .map(|stage| stage.layers)
            .collect::<Vec<_>>()
    };
    if ours.pipeline_parallel == theirs.pipeline_parallel && counts(choice) != counts(other) {
        parts.push("other layers per stage".to_owned());
    }
    let (before, now) = (checkpointed(choice), checkpointed(other));
    if before != now || (parts.is_empty() && choice != other) {
        parts.push(now);
    }
    if parts.is_empty() {
        return "the same".to_owned();
    }
    parts.join(", ")
}

/// The degrees, the micro-batch and how many layers are checkpointed, in one line.
#[must_use]
pub fn brief(layout: &Layout) -> String {
    format!("{}, {}", degrees(&layout.combination), checkpointed(layout))
}

/// How many layers are checkpointed: `no checkpointing`, `51 of 80 layers checkpointed`.
fn checkpointed(layout: &Layout) -> String {
    let count = |of: fn(&Stage) -> u32| layout.stages.iter().map(of).sum::<u32>();
    let (all, some) = (
        count(|stage| stage.layers),
        count(Stage::checkpointed_layers),
    );
    if some == 0 {
        return "no checkpointing".to_owned();
    }
    let full = count(|stage| stage.recomputed[Recompute::Full as usize]);
    let partly = if full < some && full > 0 {
        format!(" ({full} of them wholly)")
    } else if full == 0 {
        " in part".to_owned()
    } else {
        String::new()
    };
    format!("{some} of {all} layers checkpointed{partly}")
}

/// The degrees and the micro-batch as a short label: `TP2 PP16 v2 b1`. What data parallelism fills
/// is left out.
#[must_use]
pub fn short(combination: &Combination) -> String {
    let parts = [
        ("TP", combination.tensor_parallel, true),
        ("PP", combination.pipeline_parallel, true),
        (
            "CP",
            combination.context_parallel,
            combination.context_parallel > 1,
        ),
        (
            "v",
            combination.virtual_stages,
            combination.virtual_stages > 1,
        ),
        ("b", combination.micro_batch, true),
    ];
    let shown = parts.into_iter().filter(|(_, _, shown)| *shown);
    let parts: Vec<String> = shown
        .map(|(name, number, _)| format!("{name}{number}"))
        .collect();
    parts.join(" ")
}

/// What of `other` differs from `choice`, in the words of [`line()`].
#[must_use]
pub fn difference(choice: &Layout, other: &Layout) -> String {
    let (ours, theirs) = (&choice.combination, &other.combination);
    let mut parts = changed_features(ours, theirs);
    let same_stages = ours.pipeline_parallel == theirs.pipeline_parallel;
    let same_layers = same_stages && layers(choice) == layers(other);
    if !same_layers && !(even(other) && (!same_stages || even(choice))) {
        parts.push(layers(other));
    }
    if checkpointing(choice) != checkpointing(other) {
        parts.push(checkpointing(other));
    }
    if parts.is_empty() {
        return "the same".to_owned();
    }
    parts.join(", ")
}

/// Counts by stage, runs written once: `7, 8 x14, 7`.
#[must_use]
pub fn run_lengths(counts: impl IntoIterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, usize)> = Vec::new();
    for count in counts {
        match runs.last_mut() {
            Some((value, length)) if *value == count => *length += 1,
            _ => runs.push((count, 1)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .map(|(value, length)| match length {
            1 => value.to_string(),
            _ => format!("{value} x{length}"),
        })
        .collect();
    runs.join(", ")
}

/// What is recomputed: `no checkpointing`, `full checkpointing`, or the checkpointed layers of
/// each stage by mode.
#[must_use]
pub fn checkpointing(layout: &Layout) -> String {
    let total: u32 = layout.stages.iter().map(|stage| stage.layers).sum();
    let by_mode: Vec<String> = Recompute::ALL
        .iter()
        .enumerate()
        .filter_map(|(position, mode)| {
            let of = |stage: &Stage| stage.recomputed[position];
            match layout.stages.iter().map(of).sum::<u32>() {
                0 => None,
                all if all == total => Some(format!("{mode} checkpointing")),
                _ => Some(format!(
                    "{mode} checkpointing of {} layers",
                    run_lengths(layout.stages.iter().map(of))
                )),
            }
        })
        .collect();
    if by_mode.is_empty() {
        return "no checkpointing".to_owned();
    }
    by_mode.join(", ")
}

/// Layers of each stage, in words.
fn layers(layout: &Layout) -> String {
    let counts = layout.stages.iter().map(|stage| stage.layers);
    format!("layers {}", run_lengths(counts))
}

/// Whether every stage has the same number of layers.
fn even(layout: &Layout) -> bool {
    layout
        .stages
        .windows(2)
        .all(|pair| pair[0].layers == pair[1].layers)
}

/// Features that go without saying.
const NEUTRAL: [&str; 6] = [
    "CP 1",
    "EP 1",
    "1 virtual stage",
    "no sequence parallelism",
    "1f1b",
    "unfused RMSNorm",
];

/// The features of `theirs` that `ours` has not.
fn changed_features(ours: &Combination, theirs: &Combination) -> Vec<String> {
    let pairs = features(ours).into_iter().zip(features(theirs));
    pairs
        .filter(|(our, their)| our != their)
        .map(|(_, their)| their)
        .collect()
}

/// The features that are not at their neutral value.
fn parts(combination: &Combination) -> Vec<String> {
    features(combination)
        .into_iter()
        .filter(|feature| !NEUTRAL.contains(&feature.as_str()))
        .collect()
}

/// One phrase for each choice, always in the same order.
fn features(combination: &Combination) -> Vec<String> {
    vec![
        format!("TP {}", combination.tensor_parallel),
        format!("PP {}", combination.pipeline_parallel),
        format!("DP {}", combination.data_parallel),
        format!("CP {}", combination.context_parallel),
        format!("EP {}", combination.expert_parallel),
        match combination.virtual_stages {
            1 => "1 virtual stage".to_owned(),
            several => format!("{several} virtual stages"),
        },
        format!("micro-batch {}", combination.micro_batch),
        match combination.sequence_parallel {
            SequenceParallel::Off => "no sequence parallelism".to_owned(),
            SequenceParallel::On => "sequence parallelism".to_owned(),
        },
        combination.sharding.to_string(),
        combination.attention_kernel.to_string(),
        match combination.rmsnorm_kernel {
            RmsNormKernel::Unfused => "unfused RMSNorm".to_owned(),
            RmsNormKernel::Fused => "fused RMSNorm".to_owned(),
        },
        match combination.schedule {
            Schedule::OneForwardOneBackward => "1f1b".to_owned(),
            other => format!("schedule {other}"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn runs_are_written_once() {
        assert_eq!(run_lengths([7, 8, 8, 8, 7]), "7, 8 x3, 7");
        assert_eq!(run_lengths([40]), "40");
        assert_eq!(run_lengths([]), "");
    }

    #[test]
    fn a_line_leaves_out_what_is_off() {
        assert_eq!(
            line(&fixture::llama_13b_layout()),
            "TP 1, PP 1, DP 64, micro-batch 1, zero-1, flash-attention-2, fused RMSNorm"
        );
        assert_eq!(
            line(&fixture::llama_405b_layout()),
            "TP 8, PP 16, DP 64, micro-batch 1, sequence parallelism, zero-1, \
             flash-attention-2, fused RMSNorm, layers 7, 8 x14, 7, full checkpointing of 3, 2, 0 \
             x14 layers"
        );
    }

    #[test]
    fn a_difference_names_only_what_differs() {
        let choice = fixture::llama_13b_layout();
        let mut other = choice.clone();
        assert_eq!(difference(&choice, &other), "the same");
        other.combination.tensor_parallel = 2;
        other.combination.data_parallel = 32;
        assert_eq!(difference(&choice, &other), "TP 2, DP 32");
        other.stages[0].recomputed = [40, 0, 0];
        assert_eq!(
            difference(&choice, &other),
            "TP 2, DP 32, full checkpointing"
        );
        let uneven = fixture::llama_405b_layout();
        let mut other = uneven.clone();
        other.stages[0].layers = 8;
        other.stages[1].layers = 7;
        assert_eq!(difference(&uneven, &other), "layers 8, 7, 8 x13, 7");
    }
}
