//! Where the time of a step goes.

use maud::{Markup, html};

use super::super::number::{duration, percent};
use super::{Choice, Part, bar, legend};
use crate::cost_model::components::TimeComponent;

/// What a GPU does meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Computes,
    Again,
    Sends,
    Waits,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Computes, Self::Again, Self::Sends, Self::Waits];

    const fn of(component: TimeComponent) -> Self {
        use TimeComponent as Time;
        match component {
            Time::Gemm
            | Time::Experts
            | Time::Attention
            | Time::Elementwise
            | Time::RmsNorm
            | Time::Head
            | Time::Optimizer => Self::Computes,
            Time::Recompute => Self::Again,
            Time::TensorParallel
            | Time::AllToAll
            | Time::ContextParallel
            | Time::WeightGathering
            | Time::PipelineTransfer
            | Time::DataParallel => Self::Sends,
            Time::Launch | Time::Overhead | Time::Bubble => Self::Waits,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Computes => "c0",
            Self::Again => "c4",
            Self::Sends => "c3",
            Self::Waits => "c7",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Computes => "computing",
            Self::Again => "computing again what was not kept",
            Self::Sends => "waiting for the network",
            Self::Waits => "waiting for the host or other stages",
        }
    }
}

pub(super) fn section(choice: &Choice) -> Markup {
    let prediction = choice.prediction;
    let step = prediction.step_time_s;
    let mut parts: Vec<(TimeComponent, f64)> = prediction.time.components().collect();
    parts.retain(|&(_, seconds)| seconds > step * 5e-4);
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let longest = parts.first().map_or(1.0, |part| part.1);
    let of_kind = |kind: Kind| -> f64 {
        let own = parts
            .iter()
            .filter(|(component, _)| Kind::of(*component) == kind);
        own.map(|part| part.1).sum()
    };
    let used = Kind::ALL.into_iter().filter(|&kind| of_kind(kind) > 0.0);
    let shares: Vec<String> = used
        .clone()
        .map(|kind| format!("{} {}", percent(of_kind(kind) / step), kind.words()))
        .collect();
    let figure = html! {
        (legend(used.map(|kind| (kind.class().to_owned(), kind.words()))))
        @for &(component, seconds) in &parts {
            (bar(
                component.label(),
                &[Part {
                    class: Kind::of(component).class().to_owned(),
                    share: seconds / longest,
                    title: component.description().to_owned(),
                }],
                &format!("{}, {}", duration(seconds), percent(seconds / step)),
                None,
            ))
        }
    };
    let reading = format!(
        "A step of {}: a GPU spends {}. The bars are the mean of all GPUs; what is hidden behind other work does not \
         count.",
        duration(step),
        shares.join(", ")
    );
    super::section("Where the time of a step goes", &reading, &figure)
}
