//! One step of the pipeline, to scale.

use std::fmt::Write as _;
use std::ops::Range;

use maud::{Markup, PreEscaped, html};

use super::super::number::{duration, grouped};
use super::{Choice, legend};
use crate::cost_model::components::TimeComponent;
use crate::layout::Schedule;
use crate::timeline::{PassKind, Slice, Timeline};

/// Slices up to which a step is drawn whole.
const MOST_SLICES: usize = 6_000;
/// Stages up to which all are drawn, and micro-batches drawn after the start of a longer step.
const MOST_STAGES: usize = 16;
const MORE_MICRO_BATCHES: f64 = 5.0;
/// Micro-batches up to which a step is drawn whole.
const FEW_MICRO_BATCHES: u32 = 24;
/// Width and height of a line, in units of the picture.
const WIDTH: f64 = 10_000.0;
const HEIGHT: u32 = 10;

pub(super) fn section(choice: &Choice) -> Markup {
    let Some(timeline) = &choice.page.timeline else {
        let text =
            "The passes of this schedule are too many to be laid out, or none is known for it.";
        return super::section("The pipeline in time", text, &html! {});
    };
    let pipeline = timeline.pipeline;
    let length = timeline.length();
    let longest = match pipeline.micro_batches {
        0..=FEW_MICRO_BATCHES => length,
        _ => timeline.warm_up(MORE_MICRO_BATCHES),
    };
    let parts = timeline.parts(MOST_SLICES, longest);
    let stages = timeline.stages.len();
    let middle = stages.saturating_sub(MOST_STAGES);
    let is_drawn =
        |stage: usize| middle == 0 || !(MOST_STAGES / 2..MOST_STAGES / 2 + middle).contains(&stage);
    let figure = html! {
        (legend(kinds(timeline).into_iter().map(|(kind, words)| (kind.as_str().to_owned(), words)).chain([("idle".to_owned(), "waiting")])))
        div.lanes {
            @for (stage, slices) in timeline.stages.iter().enumerate() {
                @if is_drawn(stage) { (lane(&format!("stage {stage}"), slices, &parts)) }
                @else if stage == MOST_STAGES / 2 {
                    p.small { (format!("\u{2026} {middle} stages between, which look like their neighbours \u{2026}")) }
                }
            }
            (axis(&parts))
        }
        @if let [first, last] = parts.as_slice() {
            p.small { (format!(
                "The picture leaves out the middle of the step, from {} to {}, where every stage goes on as at the end of \
                 the left part.",
                duration(first.end), duration(last.start)
            )) }
        }
    };
    super::section("The pipeline in time", &reading(choice, timeline), &figure)
}

fn reading(choice: &Choice, timeline: &Timeline) -> String {
    let pipeline = &timeline.pipeline;
    let length = timeline.length();
    let busy: f64 = timeline
        .stages
        .iter()
        .flatten()
        .map(|it| it.end - it.start)
        .sum();
    let waiting = 1.0 - busy / length / timeline.stages.len() as f64;
    if pipeline.stages == 1 {
        return format!(
            "There is one stage, which never waits: {} micro-batches, one after the other, forward and backward.",
            grouped(u64::from(pipeline.micro_batches))
        );
    }
    let order = match (pipeline.schedule, pipeline.chunks) {
        (Schedule::OneForwardOneBackward, 1) => {
            "after the start each stage alternates one forward and one backward pass (1F1B)"
                .to_owned()
        }
        (Schedule::OneForwardOneBackward, chunks) => format!(
            "each stage holds {chunks} pieces of the network and alternates one forward and one backward pass of one \
             of them (interleaved 1F1B)"
        ),
        (Schedule::AllForwardAllBackward, _) => {
            "all forward passes come before all backward passes".to_owned()
        }
        (Schedule::ZeroBubble1p | Schedule::ZeroBubble2p, _) => {
            "gradients of weights are put off until a stage would wait (zero bubble)".to_owned()
        }
    };
    let time = &choice.prediction.time;
    let after = time[TimeComponent::DataParallel] + time[TimeComponent::Optimizer];
    let predicted = choice.prediction.step_time_s - after;
    format!(
        "Each line is a pipeline stage, time runs to the right, to scale. A step has {} micro-batches per copy; {order}. \
         Gaps are the bubble: {:.1} % of the {} that the drawn passes take. The cost model predicts {} for this part of \
         the step, with the bubble that measured runs showed and the host's time for a step.",
        grouped(u64::from(pipeline.micro_batches)),
        waiting * 100.0,
        duration(length),
        duration(predicted),
    )
}

/// The kinds of passes that the step has.
fn kinds(timeline: &Timeline) -> Vec<(PassKind, &'static str)> {
    let words = |kind: PassKind| match kind {
        PassKind::Forward => "forward pass",
        PassKind::Recompute => "recomputation",
        PassKind::Backward => "backward pass",
        PassKind::WeightGradients => "gradients of weights",
    };
    let is_used = |kind: &&PassKind| {
        timeline
            .stages
            .iter()
            .flatten()
            .any(|it| it.pass.kind == **kind)
    };
    let kinds = PassKind::ALL.iter().filter(is_used);
    kinds.map(|&kind| (kind, words(kind))).collect()
}

/// Columns as wide as the parts of the step are long.
fn columns(parts: &[Range<f64>]) -> String {
    let widths = parts.iter().map(|_| "1fr");
    format!(
        "grid-template-columns:{}",
        widths.collect::<Vec<_>>().join(" ")
    )
}

/// The passes of a stage, one path a kind.
fn lane(name: &str, slices: &[Slice], parts: &[Range<f64>]) -> Markup {
    let picture = |part: &Range<f64>| {
        let mut paths: Vec<(PassKind, String)> = Vec::new();
        for kind in PassKind::ALL {
            let own = slices.iter().filter(|slice| slice.pass.kind == *kind);
            let path = path(own, part);
            if !path.is_empty() {
                paths.push((*kind, path));
            }
        }
        html! {
            span.track {
                svg.lane viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" aria-hidden="true" {
                    @for (kind, path) in &paths { path class=(kind.as_str()) d=(PreEscaped(path)) {} }
                }
            }
        }
    };
    html! {
        div.bar {
            span.name { (name) }
            span.two style=(columns(parts)) { @for part in parts { (picture(part)) } }
        }
    }
}

/// Rectangles of the slices in a part of the step.
fn path<'a>(slices: impl Iterator<Item = &'a Slice>, part: &Range<f64>) -> String {
    let mut path = String::new();
    let at = |time: f64| {
        let share = (time - part.start) / (part.end - part.start);
        (share.clamp(0.0, 1.0) * WIDTH).round() as i64
    };
    for slice in slices {
        // A thin gap keeps neighbours apart.
        let (start, end) = (at(slice.start), at(slice.end));
        let width = end - start - (end - start).min(12) / 6 * 4;
        if width > 0 {
            write!(path, "M{start} 0h{width}v{HEIGHT}h-{width}z").expect("text takes every write");
        }
    }
    path
}

/// Where the parts begin and end.
fn axis(parts: &[Range<f64>]) -> Markup {
    html! {
        div.bar {
            span.name {}
            span.two style=(columns(parts)) {
                @for part in parts {
                    span.axis { span { (time(part.start)) } span { (time(part.end)) } }
                }
            }
        }
    }
}

fn time(seconds: f64) -> String {
    if seconds > 0.0 {
        duration(seconds)
    } else {
        "0".to_owned()
    }
}
