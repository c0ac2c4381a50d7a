//! A layout in words: whole, or only where it differs from another.

use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::cost_model::pipeline::chunks_in_order;
use crate::layout::{Checkpointing, Combination, Layout, Recompute, Stage};

/// The layout in one line, leaving out what is off: `TP 2, PP 16, DP 4, micro-batch 1, zero-1,
/// flash-attention-2, fused RMSNorm, layers 7, 8 x14, 7`.
#[must_use]
pub fn line(layout: &Layout) -> String {
    let mut parts = named(&layout.combination, |_| true);
    if !even(layout) {
        parts.push(format!("layers {}", layers(layout)));
    }
    if layout.checkpointing() != Checkpointing::None {
        parts.push(checkpointing(layout));
    }
    parts.join(", ")
}

/// A combination that has no layers per stage yet, in one line.
#[must_use]
pub fn candidate_line(candidate: &FlaggedCombination) -> String {
    let mut parts = named(&candidate.combination, |_| true);
    if candidate.checkpointing != Checkpointing::None {
        parts.push(format!("{} checkpointing", candidate.checkpointing));
    }
    parts.join(", ")
}

/// The degrees and the micro-batch in one line: `TP 2, PP 16, DP 4, micro-batch 1`.
#[must_use]
pub fn degrees(combination: &Combination) -> String {
    named(combination, is_degree).join(", ")
}

/// The degrees, the micro-batch, what is chosen on `further` axes and how many layers are checkpointed,
/// in one line.
#[must_use]
pub fn brief(layout: &Layout, further: AxisSet) -> String {
    let is_shown = |axis| is_degree(axis) || further.contains(axis);
    let mut parts = named(&layout.combination, is_shown);
    parts.push(checkpointed(layout));
    parts.join(", ")
}

/// What is chosen on the axes that are no degrees, but for some.
#[must_use]
pub fn besides(combination: &Combination, but: AxisSet) -> String {
    named(combination, |axis| !is_degree(axis) && !but.contains(axis)).join(", ")
}

/// What of `other` differs from `choice`, in the words of [`line()`].
#[must_use]
pub fn difference(choice: &Layout, other: &Layout) -> String {
    let mut parts = changed(choice, other);
    let same_stages = choice.stages.len() == other.stages.len();
    let same_layers = same_stages && layers(choice) == layers(other);
    if !same_layers && !(even(other) && (!same_stages || even(choice))) {
        parts.push(format!("layers {}", layers(other)));
    }
    if checkpointing(choice) != checkpointing(other) {
        parts.push(checkpointing(other));
    }
    or_the_same(&parts)
}

/// The same without the layers of every stage.
#[must_use]
pub fn brief_difference(choice: &Layout, other: &Layout) -> String {
    let mut parts = changed(choice, other);
    if choice.stages.len() == other.stages.len() && layers(choice) != layers(other) {
        parts.push("other layers per stage".to_owned());
    }
    let (before, now) = (checkpointed(choice), checkpointed(other));
    if before != now || (parts.is_empty() && choice != other) {
        parts.push(now);
    }
    or_the_same(&parts)
}

fn or_the_same(parts: &[String]) -> String {
    if parts.is_empty() {
        return "the same".to_owned();
    }
    parts.join(", ")
}

/// The degrees and the micro-batch as a short label: `TP2 PP16 v2 b1`. What data parallelism fills
/// is left out.
#[must_use]
pub fn short(combination: &Combination) -> String {
    let axes = [
        ("TP", Axis::TensorParallel),
        ("PP", Axis::PipelineParallel),
        ("CP", Axis::ContextParallel),
        ("v", Axis::VirtualStages),
        ("b", Axis::MicroBatch),
    ];
    let plain = FlaggedCombination::plain(*combination);
    let codes = axes.map(|(name, axis)| (name, axis, plain.code(axis)));
    let shown = codes
        .iter()
        .filter(|(_, axis, code)| is_named(*axis, *code));
    let parts: Vec<String> = shown
        .map(|(name, _, code)| format!("{name}{code}"))
        .collect();
    parts.join(" ")
}

/// The name of an axis in tables.
#[must_use]
pub fn axis_label(axis: Axis) -> String {
    let spaced = axis
        .as_str()
        .replace("micro_batch", "micro-batch")
        .replace('_', " ");
    spaced.replace("rmsnorm", "RMSNorm")
}

/// The axes on which layouts differ.
#[must_use]
pub fn varying(layouts: &[Layout]) -> AxisSet {
    let code = |layout: &Layout, axis| FlaggedCombination::plain(layout.combination).code(axis);
    let mut set = AxisSet::EMPTY;
    for axis in Axis::ALL {
        let mut pairs = layouts.windows(2);
        if pairs.any(|pair| code(&pair[0], axis) != code(&pair[1], axis)) {
            set = set.with(axis);
        }
    }
    set
}

/// Layers of each stage, runs written once: `7, 8 x14, 7`.
#[must_use]
pub fn layers(layout: &Layout) -> String {
    run_lengths(&by_stage(layout, |stage| stage.layers))
}

/// Layers of each model chunk in the order of the forward pass, where they differ.
#[must_use]
pub fn layers_by_chunk(layout: &Layout) -> Option<String> {
    let (one, layers) = (&layout.combination, by_stage(layout, |stage| stage.layers));
    if one.virtual_stages == 1 {
        return None;
    }
    let chunks = chunks_in_order(one, &layers);
    let differ = chunks.iter().any(|&it| it != chunks[0]);
    differ.then(|| run_lengths(&chunks))
}

fn by_stage(layout: &Layout, count: impl Fn(&Stage) -> u32) -> Vec<u32> {
    layout.stages.iter().map(count).collect()
}

/// Counts, runs written once.
fn run_lengths(counts: &[u32]) -> String {
    let runs = counts.chunk_by(|one, other| one == other);
    let runs = runs.map(|run| match run.len() {
        1 => run[0].to_string(),
        length => format!("{} x{length}", run[0]),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// What is recomputed: `no checkpointing`, `full checkpointing`, or the checkpointed layers of
/// each stage by mode.
#[must_use]
pub fn checkpointing(layout: &Layout) -> String {
    let total = count(layout, |stage| stage.layers);
    let by_mode = Recompute::ALL.iter().filter_map(|&mode| {
        let of = |stage: &Stage| stage.recomputed[mode as usize];
        match count(layout, of) {
            0 => None,
            all if all == total => Some(format!("{mode} checkpointing")),
            _ => Some(format!(
                "{mode} checkpointing of {} layers",
                run_lengths(&by_stage(layout, of))
            )),
        }
    });
    let by_mode: Vec<String> = by_mode.collect();
    if by_mode.is_empty() {
        return "no checkpointing".to_owned();
    }
    by_mode.join(", ")
}

/// How many layers are checkpointed: `no checkpointing`, `51 of 80 layers checkpointed`.
fn checkpointed(layout: &Layout) -> String {
    let some = count(layout, Stage::checkpointed_layers);
    if some == 0 {
        return "no checkpointing".to_owned();
    }
    let full = count(layout, |stage| stage.recomputed[Recompute::Full as usize]);
    let partly = if full == 0 {
        " in part".to_owned()
    } else if full < some {
        format!(" ({full} of them wholly)")
    } else {
        String::new()
    };
    let all = count(layout, |stage| stage.layers);
    format!("{some} of {all} layers checkpointed{partly}")
}

/// A count over all stages.
fn count(layout: &Layout, of: impl Fn(&Stage) -> u32) -> u32 {
    layout.stages.iter().map(of).sum()
}

/// Whether every stage has the same number of layers.
fn even(layout: &Layout) -> bool {
    let mut pairs = layout.stages.windows(2);
    pairs.all(|pair| pair[0].layers == pair[1].layers)
}

/// The degrees and the micro-batch come first among the axes.
fn is_degree(axis: Axis) -> bool {
    axis <= Axis::MicroBatch
}

/// Whether a value is worth naming: some axes always are, others where they are not 1, off or usual.
fn is_named(axis: Axis, code: u32) -> bool {
    let is_always = matches!(
        axis,
        Axis::TensorParallel
            | Axis::PipelineParallel
            | Axis::DataParallel
            | Axis::MicroBatch
            | Axis::Sharding
            | Axis::AttentionKernel
    );
    is_always || code != FlaggedCombination::FIRST.code(axis)
}

/// What a combination has that is worth naming, on the axes that are wanted.
fn named(combination: &Combination, is_wanted: impl Fn(Axis) -> bool) -> Vec<String> {
    let plain = FlaggedCombination::plain(*combination);
    let axes = Axis::ALL.into_iter().filter(|&axis| is_wanted(axis));
    axes.map(|axis| (axis, plain.code(axis)))
        .filter(|&(axis, code)| is_named(axis, code))
        .map(|(axis, code)| phrase(axis, code))
        .collect()
}

/// What `other` has on the axes on which it differs from `choice`.
fn changed(choice: &Layout, other: &Layout) -> Vec<String> {
    let [ours, theirs] = [choice, other].map(|it| FlaggedCombination::plain(it.combination));
    let axes = Axis::ALL.into_iter();
    axes.filter(|&axis| ours.code(axis) != theirs.code(axis))
        .map(|axis| phrase(axis, theirs.code(axis)))
        .collect()
}

/// What is said of a value of an axis.
fn phrase(axis: Axis, code: u32) -> String {
    let value = axis.show(code);
    match (axis, code) {
        (Axis::TensorParallel, _) => format!("TP {value}"),
        (Axis::PipelineParallel, _) => format!("PP {value}"),
        (Axis::DataParallel, _) => format!("DP {value}"),
        (Axis::ContextParallel, _) => format!("CP {value}"),
        (Axis::ExpertParallel, _) => format!("EP {value}"),
        (Axis::ExpertTensorParallel, _) => format!("ETP {value}"),
        (Axis::MicroBatch, _) => format!("micro-batch {value}"),
        (Axis::VirtualStages, 1) => "1 virtual stage".to_owned(),
        (Axis::VirtualStages, _) => format!("{value} virtual stages"),
        (Axis::SequenceParallel, 0) => "no sequence parallelism".to_owned(),
        (Axis::SequenceParallel, _) => "sequence parallelism".to_owned(),
        (Axis::RmsNormKernel, _) => format!("{value} RMSNorm"),
        (Axis::Schedule, 1..) => format!("schedule {value}"),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn runs_are_written_once() {
        assert_eq!(layers(&fixture::llama_405b_layout()), "7, 8 x14, 7");
        assert_eq!(layers(&fixture::llama_13b_layout()), "40");
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
        other.stages[0].recomputed = [40, 0, 0, 0];
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
