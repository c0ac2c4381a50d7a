//! An answer without a layout: why, and what would help.

use maud::{Markup, html};

use super::super::layout_text::candidate_line;
use super::super::notes::proof_note;
use super::{Page, prices, section};
use crate::plan::Status;
use crate::rules;

pub(super) fn sections(page: &Page) -> Markup {
    let answer = page.answer;
    let Some(infeasibility) = &answer.infeasibility else {
        let text =
            "The time limit ended the search before any layout was found. Solve with a longer one.";
        return section("No layout yet", text, &html! {});
    };
    let clashing = infeasibility.clashing_rules.iter();
    let nearest = infeasibility.nearest.as_ref();
    let figure = html! {
        ul { @for rule in clashing { li { code { (rule) } (demand(rule)) } } }
        @if let Some(nearest) = nearest {
            p { "The layout nearest to being possible, and what it breaks:" }
            p.layout { (candidate_line(&nearest.candidate)) }
            ul { @for broken in &nearest.violations { li { code { (broken.rule) } ": " (broken.message) } } }
        }
        p.small { (proof_note(&answer.proof)) }
        p { "parlayout explain names repairs, each solved before it is named." }
    };
    html! {
        @for warning in &answer.warnings { p.warning { (warning) } }
        (section(
            "No layout is possible",
            match answer.status {
                Status::Infeasible => "It is proven that no layout satisfies these rules together:",
                _ => "No layout satisfies these rules together:",
            },
            &figure,
        ))
        (prices::section(page))
    }
}

/// What a rule demands, where its name says too little.
fn demand(name: &str) -> String {
    let mut rules = rules::ALL.iter();
    let rule = rules.find(|rule| rule.as_str() == name);
    let demands = rule.map_or("", |rule| rule.definition().demands);
    match demands {
        "" => String::new(),
        demands => format!(": {demands}"),
    }
}
