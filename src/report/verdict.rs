//! What the checker says of a certificate, for people.

use crate::verify::{Accepted, Counts, Reasons, Verdict};

use super::layout_text;
use super::style::{Meaning, Style, wrap};

/// The verdict, with what is proven or what is wrong.
#[must_use]
pub fn verdict(verdict: &Verdict, style: &Style) -> String {
    match verdict {
        Verdict::Accepted(accepted) => accept(accepted, style),
        Verdict::Rejected(reasons) => reject(reasons, style),
    }
}

fn accept(accepted: &Accepted, style: &Style) -> String {
    let Counts {
        total,
        broken,
        infeasible,
        pruned,
        solved,
        open,
    } = accepted.counts;
    let open = if open > 0 {
        format!(", {open} open")
    } else {
        String::new()
    };
    let line = format!(
        "accepted: {}, {total} combinations: {broken} broken, {infeasible} infeasible, {pruned} pruned, \
         {solved} solved{open}",
        accepted.status
    );
    let mut text = style.paint(Meaning::Good, &wrap(&line, 2)) + "\n";
    if let Some(winner) = &accepted.winner {
        let gap = match accepted.status {
            "optimal" => "no layout is better".to_owned(),
            _ => format!(
                "no layout is better by more than {:.2} %",
                winner.gap * 100.0
            ),
        };
        let line = format!(
            "MFU {:.2} %, {gap}: {}",
            winner.mfu.value() * 100.0,
            layout_text::line(&winner.layout)
        );
        text += &(wrap(&line, 2) + "\n");
    }
    text
}

fn reject(reasons: &Reasons, style: &Style) -> String {
    let mut lines = Vec::new();
    for (index, reason) in reasons.list().iter().enumerate() {
        let line = if index == 0 {
            format!("rejected: {reason}")
        } else {
            format!("  {reason}")
        };
        lines.push(style.paint(Meaning::Bad, &wrap(&line, 4)));
    }
    let more = reasons.count() - reasons.list().len();
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    lines.join("\n") + "\n"
}
