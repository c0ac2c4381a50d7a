//! The best that each pair of tensor- and pipeline-parallel degrees reaches, or why it is impossible.

use maud::{Markup, html};

use super::super::layout_text::line;
use super::super::number::mfu;
use super::Choice;
use crate::explain::degrees::{Cell, Degrees};

pub(super) fn section(choice: &Choice) -> Markup {
    let title = "Why not other degrees";
    let Some(degrees) = &choice.page.degrees else {
        let text = "Left out: this page was written with --quick, which solves nothing again.";
        return super::section(title, text, &html! {});
    };
    let reasons = reasons(degrees);
    let figure = html! {
        (heat_map(choice, degrees, &reasons))
        @if !reasons.is_empty() {
            p { "A letter says which rule leaves no layout:" }
            dl {
                @for (at, (rule, example)) in reasons.iter().enumerate() {
                    dt { (letter(at)) " " code { (rule) } }
                    dd { (example) }
                }
            }
        }
        @if degrees.cells.contains(&Cell::Unknown) { p.small { "?: the time limit ended the search before that was known." } }
    };
    super::section(
        title,
        "The best MFU, in percent, of any layout with so many tensor-parallel ranks (columns) and pipeline stages \
         (rows), everything else chosen anew. Darker is faster; the red frame is the chosen layout.",
        &figure,
    )
}

/// The rules that leave no layout, each with the first example.
fn reasons(degrees: &Degrees) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, String)> = Vec::new();
    for (at, cell) in degrees.cells.iter().enumerate() {
        let Cell::Impossible(violation) = cell else {
            continue;
        };
        if reasons.iter().all(|(rule, _)| *rule != violation.rule) {
            let columns = degrees.tensor.len();
            let [tensor, stages] = [degrees.tensor[at % columns], degrees.pipeline[at / columns]];
            let example = format!("With TP {tensor} and PP {stages}: {}.", violation.message);
            reasons.push((violation.rule.clone(), example));
        }
    }
    reasons
}

fn letter(at: usize) -> char {
    char::from(b'a' + (at % 26) as u8)
}

fn heat_map(choice: &Choice, degrees: &Degrees, reasons: &[(String, String)]) -> Markup {
    let best = |cell: &Cell| match cell {
        Cell::Best(best) => Some(best.prediction.mfu.value()),
        _ => None,
    };
    let found = degrees.cells.iter().filter_map(best);
    let (least, most) = found.fold((f64::INFINITY, 0.0_f64), |(least, most), it| {
        (least.min(it), most.max(it))
    });
    let colour = |share: f64| {
        let heat = if most > least {
            (share - least) / (most - least)
        } else {
            1.0
        };
        let lightness = 92.0 - 54.0 * heat;
        let ink = if lightness < 62.0 { "#fff" } else { "#1f2933" };
        format!("background:hsl(209 62% {lightness:.0}%);color:{ink}")
    };
    let own = &choice.document.combination;
    html! {
        table.heat {
            thead { tr { th { "PP \u{2193} TP \u{2192}" } @for tensor in &degrees.tensor { th { (tensor) } } } }
            tbody {
                @for (row, stages) in degrees.pipeline.iter().enumerate() {
                    tr {
                        th { (stages) }
                        @for (column, tensor) in degrees.tensor.iter().enumerate() {
                            @let is_own = own.tensor_parallel == *tensor && own.pipeline_parallel == *stages;
                            @match degrees.cell(column, row) {
                                Cell::Best(best) => {
                                    td.best[is_own] style=(colour(best.prediction.mfu.value())) title=(line(&best.layout)) {
                                        (mfu(best.prediction.mfu.value()).trim_end_matches(" %"))
                                    }
                                }
                                Cell::Impossible(violation) => {
                                    @let at = reasons.iter().position(|(rule, _)| *rule == violation.rule);
                                    td.none title=(violation.message) { (at.map_or('?', letter)) }
                                }
                                Cell::Unknown => td.none { "?" },
                            }
                        }
                    }
                }
            }
        }
    }
}
