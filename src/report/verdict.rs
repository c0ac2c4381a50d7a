//! What the checker says of an answer, for people.

use super::layout_text;
use super::style::{Meaning, Style, wrap};
use crate::verify::{Accepted, Named, Rejected, Verdict};

/// The verdict, with what was checked or what is wrong.
#[must_use]
pub fn verdict(verdict: &Verdict, style: &Style) -> String {
    match verdict {
        Verdict::Accepted(accepted) => accept(accepted, style),
        Verdict::Rejected(rejected) => reject(rejected, style),
    }
}

fn accept(accepted: &Accepted, style: &Style) -> String {
    let status = accepted.status;
    let (word, meaning) = if accepted.is_cut {
        ("not finished", Meaning::Warning)
    } else {
        ("accepted", Meaning::Good)
    };
    let mut lines = vec![style.paint(meaning, &format!("{word}: {status}"))];
    if let Some(layout) = &accepted.layout {
        lines.push(wrap(&line(layout), 2));
    }
    lines.push("Every figure and every rule was checked.".to_owned());
    if let Some(searched) = accepted.searched {
        let line = format!(
            "{} combinations were searched again: {} break a rule, {} cannot be as fast as what was \
             found, {} were solved one by one.",
            searched.combinations, searched.broken, searched.passed_over, searched.searched
        );
        lines.push(wrap(&line, 0));
    }
    let unchecked = accepted.unchecked.iter();
    lines.extend(unchecked.map(|text| wrap(&format!("Not checked: {text}."), 2)));
    lines.join("\n") + "\n"
}

fn reject(rejected: &Rejected, style: &Style) -> String {
    let headline = format!("rejected: `{}`: {}", rejected.place, rejected.cause);
    let mut lines = vec![style.paint(Meaning::Bad, &wrap(&headline, 2))];
    if let (Some(stated), Some(recomputed)) = (&rejected.stated, &rejected.recomputed) {
        lines.push(wrap(&format!("  the answer says {stated}"), 4));
        lines.push(wrap(&format!("  computed anew   {recomputed}"), 4));
    }
    if let Some(better) = &rejected.better {
        lines.push(wrap(&format!("  {}", line(better)), 4));
    }
    lines.join("\n") + "\n"
}

fn line(named: &Named) -> String {
    let evaluated = &named.evaluated;
    format!(
        "MFU {:.2} %: {}",
        evaluated.prediction.mfu.value() * 100.0,
        layout_text::line(&evaluated.layout)
    )
}
