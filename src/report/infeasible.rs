//! What is said where there is no layout: what clashes, the nearest layout, what helps.

use super::components;
use super::document::{InfeasibilityDocument, JobDocument, NearestDocument, SolutionDocument};
use super::layout_text::{candidate_line, line};
use super::solution::{broken_rules, job_line, next_command};
use super::style::{Meaning, Style, wrap};

/// The rules that clash, the nearest layout and by how much it misses, and remedies.
pub(super) fn infeasible_blocks(
    answer: &SolutionDocument,
    infeasibility: &InfeasibilityDocument,
    style: &Style,
) -> Vec<String> {
    let rules = &infeasibility.clashing_rules;
    let nearest = infeasibility.nearest.as_ref();
    let mut head = infeasible_head(&answer.instance, &answer.job, style);
    if !rules.is_empty() {
        head.push(wrap(&format!("Rules that clash: {}", rules.join(", ")), 2));
    } else if nearest.is_none() {
        head.push("Rules that clash: not found in time".to_owned());
    }
    let mut blocks = vec![head.join("\n")];
    blocks.extend(nearest.map(nearest_lines));
    let prediction = nearest.and_then(|nearest| nearest.prediction.as_ref());
    blocks.extend(prediction.map(|it| components::memory(&it.memory, style)));
    let remedies: Vec<&str> = rules.iter().filter_map(|rule| remedy(rule)).collect();
    blocks.push(if remedies.is_empty() {
        let command = next_command(style, "explain", "");
        format!("`explain` says what would repair it, with amounts.\n{command}")
    } else {
        format!("Try: {}.", remedies.join("; "))
    });
    blocks
}

/// That there is no layout, and of what.
pub(super) fn infeasible_head(instance: &str, job: &JobDocument, style: &Style) -> Vec<String> {
    let headline = format!("{instance}: infeasible: no layout satisfies every rule");
    vec![
        style.wrapped(Meaning::Bad, &headline),
        wrap(&job_line(job), 2),
    ]
}

/// What helps where a demand on time or utilisation is missed.
fn remedy(demand: &str) -> Option<&'static str> {
    match demand {
        "deadline" => Some("a later deadline, or more GPUs"),
        "at_least_mfu" => Some("a lower utilisation, or another number of GPUs"),
        _ => None,
    }
}

/// Most broken rules that are told of a layout.
const MOST_VIOLATIONS: usize = 4;

/// The nearest layout in one line, then what it breaks.
pub(super) fn nearest_lines(nearest: &NearestDocument) -> String {
    let layout = match &nearest.layout {
        Some(layout) => line(&layout.layout()),
        None => candidate_line(&nearest.candidate),
    };
    let mut lines = vec![wrap(&format!("Nearest layout: {layout}"), 2)];
    lines.extend(
        broken_rules(&nearest.violations)
            .into_iter()
            .take(MOST_VIOLATIONS),
    );
    let further = nearest.violations.len().saturating_sub(MOST_VIOLATIONS);
    if further > 0 {
        lines.push(format!("- and {further} more like these"));
    }
    lines.join("\n")
}
