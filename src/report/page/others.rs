//! The layouts that come next, and the numbers of GPUs that were tried.

use maud::{Markup, html};

use super::super::document::NeighbourDocument;
use super::super::layout_text::{degrees, difference};
use super::super::number::{amount, duration, gib, grouped, mfu, points, risk};
use super::{Choice, Part, bar, section, table};

pub(super) fn sections(choice: &Choice) -> Markup {
    let answer = choice.page.answer;
    html! {
        @if !answer.alternatives.is_empty() || answer.safer.is_some() { (alternatives(choice)) }
        @if let Some(counts) = numbers_of_gpus(choice) { (counts) }
    }
}

fn alternatives(choice: &Choice) -> Markup {
    let answer = choice.page.answer;
    let row = |other: &NeighbourDocument, name: &str| {
        let prediction = &other.evaluated.prediction;
        let differs = difference(&choice.layout, &other.evaluated.layout.layout());
        vec![
            format!("{name}{differs}"),
            format!("{} ({})", mfu(prediction.mfu), points(other.mfu_distance)),
            duration(prediction.step_time_s),
            format!("{} GiB", gib(prediction.memory.peak_gib)),
            risk(prediction.oom_probability),
        ]
    };
    let safer = answer.safer.as_ref();
    let is_safer = |other: &NeighbourDocument| {
        safer.is_some_and(|safer| safer.evaluated.layout == other.evaluated.layout)
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for other in &answer.alternatives {
        rows.push(row(other, if is_safer(other) { "safer: " } else { "" }));
    }
    let unlisted = safer.filter(|_| !answer.alternatives.iter().any(is_safer));
    rows.extend(unlisted.map(|it| row(it, "safer: ")));
    section(
        "The next best layouts",
        "What each changes in the chosen layout, and what that does. One that is hardly slower may suit you better: \
         with more room in memory, or in degrees that your tools handle well.",
        &table(
            &[
                "what differs",
                "MFU (points)",
                "step",
                "peak memory",
                "risk",
            ],
            &rows,
        ),
    )
}

/// The numbers of GPUs that were tried, where the number was open.
fn numbers_of_gpus(choice: &Choice) -> Option<Markup> {
    let objective = choice.page.answer.objective.as_ref()?;
    let solved = objective.counts.iter().filter_map(|count| {
        Some((
            count,
            count.step_time_s?,
            count.mfu?,
            count.layout.as_ref()?,
        ))
    });
    let solved: Vec<_> = solved.collect();
    if solved.len() < 2 {
        return None;
    }
    let longest = solved.iter().map(|it| it.1).fold(0.0, f64::max);
    let figure = html! {
        @for (count, step, share, layout) in &solved {
            @let is_chosen = objective.gpus == Some(count.gpus);
            (bar(
                &format!("{} GPUs{}", grouped(u64::from(count.gpus)), if is_chosen { ", chosen" } else { "" }),
                &[Part {
                    class: if is_chosen { "c0" } else { "c1" }.to_owned(),
                    share: step / longest,
                    title: degrees(&layout.combination),
                }],
                &match count.gpu_hours {
                    Some(hours) => format!("{}, {} GPU h", duration(*step), amount(hours)),
                    None => format!("{}, {}", duration(*step), mfu(*share)),
                },
                None,
            ))
        }
    };
    Some(section(
        "How many GPUs",
        "The time of a step with the best layout on each number of GPUs that was tried.",
        &figure,
    ))
}
