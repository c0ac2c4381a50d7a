//! Why no layout is possible, and what would help, for people.

use super::components;
use super::layout_text::{candidate_line, line};
use super::style::{Meaning, Style, wrap};
use super::table::{job_line, with_heading};
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
    let mut blocks = vec![head.join("\n")];
    if let Some(nearest) = &infeasibility.nearest {
        blocks.extend(nearest_blocks(nearest, style));
    }
    let mut tries = vec!["Try:".to_owned()];
    tries.extend(
        remedies(infeasibility)
            .into_iter()
            .map(|remedy| wrap(&format!("- {remedy}"), 2)),
    );
    blocks.push(tries.join("\n"));
    blocks
}

/// The layout nearest to being possible and by how much it misses.
fn nearest_blocks(nearest: &Nearest, style: &Style) -> Vec<String> {
    let layout = match &nearest.evaluated {
        Some(evaluated) => line(&evaluated.layout),
        None => candidate_line(&nearest.candidate),
    };
    let mut lines = vec![wrap(&format!("Nearest layout: {layout}"), 2)];
    lines.extend(
        nearest
            .violations
            .iter()
            .map(|violation| wrap(&format!("- {}: {}", violation.rule, violation.message), 2)),
    );
    let mut blocks = vec![lines.join("\n")];
    if let Some(evaluated) = &nearest.evaluated {
        let memory = components::memory(&evaluated.prediction.memory);
        blocks.push(with_heading(style, &memory));
    }
    blocks
}

/// What would make room, by the rules that clash; each remedy once.
fn remedies(infeasibility: &Infeasibility) -> Vec<&'static str> {
    let nearest = infeasibility.nearest.iter().flat_map(|nearest| {
        nearest
            .violations
            .iter()
            .map(|violation| violation.rule.as_str())
    });
    let rules = infeasibility
        .clashing_rules
        .iter()
        .map(String::as_str)
        .chain(nearest);
    let mut remedies = Vec::new();
    for rule in rules {
        for &remedy in remedies_of(rule) {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
    }
    remedies
}

fn remedies_of(rule: &str) -> &'static [&'static str] {
    let name = rule.split('(').next().unwrap_or(rule);
    match name {
        "memory_capacity" => &[
            "more GPUs, or GPUs with more memory",
            "checkpointing, a smaller micro-batch or more sharding among the values of `[search]`",
            "a shorter sequence or a smaller vocabulary",
        ],
        "gpu_count" => &["a number of GPUs that the degrees of `[search]` multiply to"],
        "heads_divisible" => &["a tensor-parallel degree that divides the attention heads"],
        "layers_divisible" => &["a pipeline-parallel degree that divides the layers"],
        "global_batch_divisible" => {
            &["a global batch that is a multiple of micro-batch times data-parallel degree"]
        }
        "tensor_parallel_within_node" => {
            &["a tensor-parallel degree of at most the GPUs of a node"]
        }
        "rmsnorm_kernel_excludes_checkpointing" => {
            &["`unfused` among the values of `rmsnorm_kernel`, or `none` among `checkpointing`"]
        }
        "deadline" => &["a later deadline, or more GPUs"],
        "at_least_mfu" => &["a lower utilisation, or another number of GPUs"],
        _ => &["more values in `[search]`, fewer pins and forbidden combinations"],
    }
}
