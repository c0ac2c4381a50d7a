//! How far the figures can be trusted, and what was proven.

use maud::{Markup, html};

use super::super::notes::{proof_note, safer_note, trust_notes};
use super::Choice;

pub(super) fn section(choice: &Choice) -> Markup {
    let answer = choice.page.answer;
    let mut notes = trust_notes(&answer.job, &answer.trust, choice.prediction);
    notes.push(safer_note(answer, choice.prediction));
    notes.push(proof_note(&answer.proof));
    let figure = html! { @for note in &notes { p { (note) } } };
    super::section(
        "How far to trust this",
        "Time and memory come from formulas whose efficiencies were fitted to measured runs. Compare the first steps \
         of your own run with this page; parlayout calibrate corrects the figures with them.",
        &figure,
    )
}
