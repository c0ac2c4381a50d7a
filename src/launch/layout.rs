//! A job and its layout as facts, and the layout that facts state.

use super::facts::Facts;
use crate::axis::{Axis, FlaggedCombination};
use crate::cost_model::rank::Rank;
use crate::framework::CrossEntropy;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{Layout, Recompute, Sharding};
use crate::layout_argument;
use crate::transformer::{Embeddings, FeedForward, QueryKeyNorms, Transformer};

/// The columns with the layers of every stage that are recomputed, by mode.
pub(crate) const RECOMPUTED: [&str; Recompute::COUNT] = [
    "checkpointed_full",
    "checkpointed_feed_forward",
    "checkpointed_attention_core",
    "checkpointed_light",
];
/// The column with the layers of every stage.
pub(crate) const LAYERS: &str = "layers_by_stage";
/// What [`Axis::Checkpointing`] is where stages differ.
pub(crate) const MIXED: &str = "mixed";

/// Numbers of stages as they are typed: `9+10x2`.
pub(crate) fn counts(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|one, other| one == other);
    let runs = runs.map(|run| match run.len() {
        1 => run[0].to_string(),
        times => format!("{}x{times}", run[0]),
    });
    runs.collect::<Vec<_>>().join("+")
}

/// Most stages that are read.
const MOST_STAGES: usize = 1 << 16;

/// The numbers of [`counts`].
pub(crate) fn numbers(text: &str) -> Vec<u32> {
    let parts = text.split('+').filter_map(|part| {
        let (number, times) = part.split_once('x').unwrap_or((part, "1"));
        Some((number.parse().ok()?, times.parse::<usize>().ok()?))
    });
    let all = parts.flat_map(|(number, times)| std::iter::repeat_n(number, times.min(MOST_STAGES)));
    all.take(MOST_STAGES).collect()
}

/// What a job and a layout are.
#[must_use]
pub fn facts(instance: &Instance, layout: &Layout) -> Facts {
    let (job, combination) = (&instance.job, &layout.combination);
    let mut facts = Facts::default();
    let flagged = FlaggedCombination {
        combination: *combination,
        checkpointing: layout.checkpointing(),
    };
    for axis in Axis::ALL {
        let value = axis.show(flagged.code(axis));
        facts.note(axis.as_str(), Some(value));
    }
    for (axis, is_on) in [
        (Axis::SequenceParallel, combination.sequence_parallel.into()),
        (Axis::RmsNormKernel, combination.rmsnorm_kernel.into()),
    ] {
        let is_on: bool = is_on;
        facts.set(axis.as_str(), is_on);
    }
    let layers: Vec<u32> = layout.stages.iter().map(|stage| stage.layers).collect();
    facts.set(LAYERS, counts(&layers));
    if layout.flags().len() > 1 {
        facts.set(Axis::Checkpointing.as_str(), MIXED);
        for (mode, column) in RECOMPUTED.into_iter().enumerate() {
            let each: Vec<u32> = layout.stages.iter().map(|it| it.recomputed[mode]).collect();
            if each.iter().any(|&count| count > 0) {
                facts.set(column, counts(&each));
            }
        }
    }
    if combination.sharding == Sharding::Hybrid {
        let rank = Rank::new(job, combination);
        let replicas = rank.replicas();
        let copies = replicas.all / replicas.in_domain;
        facts.set("copies", copies.round() as u64);
    }
    facts.or(of_job(
        job,
        combination.micro_batches(job.workload.global_batch),
    ))
}

fn of_job(job: &Job, accumulation: u64) -> Facts {
    let (transformer, cluster, workload) = (&job.transformer, &job.cluster, &job.workload);
    let per_node = cluster.gpus_per_node.min(cluster.gpus);
    let memory = &job.framework.memory;
    let numerics = &transformer.numerics;
    let is_gated = transformer.feed_forward == FeedForward::Gated;
    let mut facts = Facts::default()
        .with("framework", Some(&job.framework.name))
        .with("gpus", Some(cluster.gpus))
        .with("gpus_per_node", Some(per_node))
        .with("nodes", Some(cluster.gpus / per_node))
        .with("domain", Some(cluster.domain()))
        .with("accumulation", Some(accumulation))
        .with("global_batch", Some(workload.global_batch))
        .with("seq_len", Some(workload.sequence_length))
        .with("precision", Some(workload.precision))
        .with("gradient_bytes", Some(memory.gradients(workload.precision)))
        .with("optimizer", Some(workload.optimizer))
        .with(
            "fused_loss",
            Some(memory.cross_entropy == CrossEntropy::Fused),
        )
        .with("vocabulary_multiple", Some(memory.vocabulary_multiple))
        .with("model", Some(&transformer.name))
        .with("layers", Some(transformer.layers))
        .with("hidden", Some(transformer.hidden))
        .with("ffn", Some(transformer.feed_forward_width))
        .with("heads", Some(transformer.heads))
        .with("kv_heads", Some(transformer.key_value_heads))
        .with("head_width", Some(transformer.head_width))
        .with("vocab", Some(transformer.vocabulary))
        .with("gated", Some(is_gated))
        .with("mlp_matrices", Some(transformer.feed_forward.matrices()))
        .with("tied", Some(transformer.embeddings == Embeddings::Tied))
        .with("normalization", Some(transformer.normalization))
        .with("biases", Some(transformer.biases));
    experts_of(transformer, &mut facts);
    let has_norms = transformer.small_parts.query_key_norms != QueryKeyNorms::None;
    facts.set("query_key_norms", has_norms);
    facts.set("layer_norms", transformer.small_parts.layer_norms);
    facts.set("outer_norms", transformer.small_parts.outer_norms);
    facts.set("learned_positions", transformer.learned_positions);
    facts.set("positions", numerics.positions);
    facts.set("rotary_base", numerics.rotary_base);
    facts.set("rotary_share", numerics.rotary_share);
    facts.set("rope_scaling", numerics.rope_scaling);
    facts.set("rope_factor", numerics.rope_factor);
    facts.set("norm_epsilon", numerics.norm_epsilon);
    facts.set("activation", numerics.activation);
    facts.set("hidden_dropout", numerics.hidden_dropout);
    facts.set("attention_dropout", numerics.attention_dropout);
    facts
}

/// Notes experts, latent attention and layers for further tokens of a network that has them.
fn experts_of(transformer: &Transformer, facts: &mut Facts) {
    if let Some(experts) = transformer.experts {
        facts.set("experts", experts.experts);
        facts.set("experts_per_token", experts.experts_per_token);
        facts.set("expert_width", experts.expert_width);
        facts.set("shared_expert_width", experts.shared_expert_width);
        facts.set("dense_layers", experts.dense_layers);
    }
    if let Some(latent) = transformer.latent_attention {
        facts.set("latent", true);
        facts.set("query_rank", latent.query_rank);
        facts.set("key_value_rank", latent.key_value_rank);
        facts.set("unrotated_width", latent.unrotated_width);
        facts.set("rotated_width", latent.rotated_width);
        facts.set("value_width", latent.value_width);
    }
    if transformer.prediction_layers > 0 {
        facts.set("prediction_layers", transformer.prediction_layers);
    }
}

/// The axes that facts state, and the layers of the stages, as `evaluate --layout` takes them.
#[must_use]
pub fn typed(facts: &Facts) -> String {
    let mut parts = Vec::new();
    for axis in Axis::ALL {
        let Some(text) = facts.text(axis.as_str()) else {
            continue;
        };
        let text = match text {
            "selective" => "attention-core",
            text => text,
        };
        if axis.parse_value(text).is_some() {
            parts.push(format!("{axis}={text}"));
        }
    }
    let columns = [("layers", LAYERS)].into_iter();
    for (key, column) in columns.chain(RECOMPUTED.map(|column| (column, column))) {
        let text = facts.text(column).map(|text| format!("{key}={text}"));
        parts.extend(text);
    }
    parts.join(",")
}

/// The layout that facts state; what they do not say is as `evaluate --layout` has it.
///
/// # Errors
///
/// In words: stages that do not hold the layers of the network, say.
pub fn layout(facts: &Facts, instance: &Instance) -> Result<Layout, String> {
    layout_argument::parse(&typed(facts), instance)
}
