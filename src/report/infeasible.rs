//! Why no layout is possible, and what would help, for people.

use super::components;
use super::layout_text::{candidate_line, line};
use super::style::{Meaning, Style, wrap};
use super::table::{job_line, next_command, with_heading};
use crate::instance::Instance;
use crate::plan::{Infeasibility, Nearest};

/// The rules that clash, the nearest layout and by how much it misses, and remedies.
pub(crate) fn blocks(
    instance: &Instance,
    infeasibility: &Infeasibility,
    style: &Style,
) -> Vec<String> {
    let headline = wrap(
        &format!(
            "{}: infeasible: no layout satisfies every rule",
            instance.name
        ),
        2,
    );
    let mut head = vec![style.paint(Meaning::Bad, &headline), job_line(instance)];
    if !infeasibility.clashing_rules.is_empty() {
        head.push(wrap(
            &format!(
                "Rules that clash: {}",
                infeasibility.clashing_rules.join(", ")
            ),
            2,
        ));
    }
    if infeasibility.clashing_rules.is_empty() && infeasibility.nearest.is_none() {
        head.push("Rules that clash: not found in time".to_owned());
    }
    let mut blocks = vec![head.join("\n")];
    if let Some(nearest) = &infeasibility.nearest {
        blocks.extend(nearest_blocks(nearest, style));
    }
    let goals: Vec<&str> = infeasibility
        .clashing_rules
        .iter()
        .filter_map(|rule| remedy(rule))
        .collect();
    if goals.is_empty() {
        blocks.push(format!(
            "What would repair it, with amounts:\n{}",
            next_command(style, "explain", "")
        ));
    } else {
        blocks.push(format!("Try: {}.", goals.join("; ")));
    }
    blocks
}

/// The layout nearest to being possible and by how much it misses.
fn nearest_blocks(nearest: &Nearest, style: &Style) -> Vec<String> {
    let mut blocks = vec![nearest_lines(nearest)];
    if let Some(evaluated) = &nearest.evaluated {
        let memory = components::memory(&evaluated.prediction.memory);
        blocks.push(with_heading(style, &memory));
    }
    blocks
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
pub(crate) fn nearest_lines(nearest: &Nearest) -> String {
    let layout = match &nearest.evaluated {
        Some(evaluated) => line(&evaluated.layout),
        None => candidate_line(&nearest.candidate),
    };
    let mut lines = vec![wrap(&format!("Nearest layout: {layout}"), 2)];
    let told = nearest.violations.iter().take(MOST_VIOLATIONS);
    lines.extend(
        told.map(|violation| wrap(&format!("- {}: {}", violation.rule, violation.message), 2)),
    );
    let further = nearest.violations.len().saturating_sub(MOST_VIOLATIONS);
    if further > 0 {
        lines.push(format!("- and {further} more like these"));
    }
    lines.join("\n")
}
