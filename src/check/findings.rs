//! What is wrong with a layout, where the file says it, and what would be right.

use super::job::Known;
use super::{Finding, Level};
use crate::axis::Axis;
use crate::catalog;
use crate::export::Target;
use crate::instance::Instance;
use crate::launch::frameworks::megatron_lm;
use crate::launch::{Facts, Problem};
use crate::layout::Layout;
use crate::rules::{self, MEGATRON_LM, Rule};

/// What the framework's own file says of its rules.
pub(super) fn of_framework(facts: &Facts) -> Vec<Finding> {
    facts
        .problems()
        .iter()
        .map(|problem| finding(facts, problem))
        .collect()
}

fn finding(facts: &Facts, problem: &Problem) -> Finding {
    let level = match problem.rule {
        "not_modelled" => Level::Warning,
        _ => Level::Error,
    };
    let mut finding = Finding::new(level, problem.rule, problem.message.clone());
    finding.repair = Some(problem.repair.clone());
    finding.source = Some(problem.source.to_owned());
    finding.at(facts, &[problem.column])
}

/// A layout that cannot be read, for a reason that no rule names.
pub(super) fn no_layout(facts: &Facts, cause: String) -> Finding {
    Finding::new(Level::Error, Rule::LayersCoverStages.as_str(), cause)
        .at(facts, columns(Axis::PipelineParallel))
}

/// Degrees that no cluster has.
pub(super) fn beyond_any_cluster(facts: &Facts, gpus: u64) -> Finding {
    let text =
        format!("the degrees multiply to {gpus} GPUs, or a stage has thousands of model chunks");
    Finding::new(Level::Error, Rule::GpuCount.as_str(), text)
        .at(facts, columns(Axis::TensorParallel))
}

/// The rules that a layout breaks, as far as what they read is known.
pub(super) fn of_rules(
    facts: &Facts,
    there: &Instance,
    layout: &Layout,
    known: &Known,
    target: Target,
) -> Vec<Finding> {
    let is_megatron = target.dialect().framework == MEGATRON_LM.framework;
    let mut found: Vec<Finding> = Vec::new();
    for violation in rules::violations(there, layout) {
        let Some(rule) = rule_of(&violation.rule) else {
            continue;
        };
        // Megatron-LM groups micro-batches, which is its own rule; selective recomputation differs
        // between frameworks.
        let is_own = is_megatron && rule == Rule::InterleavingMicroBatches;
        let is_selective = violation.rule == "framework_supports(checkpointing)"
            && facts.text("checkpointing") == Some("selective");
        // The framework's own words say more.
        let said = |it: &Problem| it.rule == rule.as_str();
        let is_said = facts.problems().iter().any(said);
        if !known.judges(rule) || is_own || is_selective || is_said {
            continue;
        }
        let axes = axes_of(rule, &violation.rule);
        let columns: Vec<&'static str> = axes
            .iter()
            .flat_map(|&axis| columns(axis).iter().copied())
            .collect();
        let mut finding = Finding::new(Level::Error, &violation.rule, violation.message);
        finding.source = Some(source(rule, &violation.rule, target));
        found.push(finding.at(facts, &columns));
    }
    let groups = known.judges(Rule::InterleavingMicroBatches) && is_megatron;
    let groups = groups.then(|| megatron_lm::interleaving(facts)).flatten();
    found.extend(groups.map(|problem| finding(facts, &problem)));
    found
}

fn rule_of(name: &str) -> Option<Rule> {
    let name = name.split('(').next().unwrap_or(name);
    rules::ALL
        .iter()
        .copied()
        .find(|rule| rule.as_str() == name)
}

/// The axis that the name of a part has, or those of the rule.
fn axes_of(rule: Rule, name: &str) -> Vec<Axis> {
    let part = name
        .split_once('(')
        .map(|(_, part)| part.trim_end_matches(')'));
    let part = part.map(|part| part.trim_end_matches("_with_pipeline"));
    match part.and_then(Axis::parse) {
        Some(axis) => vec![axis],
        None => rule.definition().axes.to_vec(),
    }
}

/// Where a rule comes from, in the framework's own words where it is of the framework.
fn source(rule: Rule, name: &str, target: Target) -> String {
    let framework = target.dialect().framework;
    let own = match axes_of(rule, name).as_slice() {
        [axis] if rule == Rule::FrameworkSupports => catalog::source_of_axis(framework, *axis),
        _ => None,
    };
    own.unwrap_or(rule.definition().source).to_owned()
}

/// The columns by which files state an axis.
pub(super) const fn columns(axis: Axis) -> &'static [&'static str] {
    match axis {
        Axis::TensorParallel => &["tensor_parallel", "deepspeed_tensor", "max_tensor_inside"],
        Axis::PipelineParallel => &["pipeline_parallel", "neox_stages", "megatron_layout"],
        Axis::DataParallel => &[
            "data_parallel",
            "titan_shards",
            "fsdp_shards",
            "global_batch",
            "gpus",
        ],
        Axis::ContextParallel => &["context_parallel", "max_context_inside"],
        Axis::VirtualStages => &[
            "virtual_stages",
            "megatron_chunks",
            "chunk_layers",
            "megatron_layout",
            "titan_schedule",
        ],
        Axis::MicroBatch => &[
            "micro_batch",
            "titan_micro_batch",
            "titan_local_batch",
            "max_batch",
        ],
        Axis::SequenceParallel => &["sequence_parallel"],
        Axis::Sharding => &[
            "sharding",
            "megatron_strategy",
            "megatron_distributed",
            "titan_shards",
            "fsdp_shards",
            "max_shards_inside",
        ],
        Axis::Checkpointing => &[
            "checkpointing",
            "megatron_granularity",
            "nanotron_recompute",
            "neox_checkpointing",
            "fsdp_checkpointing",
            "factory_keeps",
            "mds_full",
        ],
        Axis::Schedule => &["schedule", "titan_schedule"],
        Axis::AttentionKernel => &["attention_kernel", "megatron_attention"],
        _ => &[],
    }
}
