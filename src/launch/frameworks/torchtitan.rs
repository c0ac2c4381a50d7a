//! torchtitan's TOML, and the same keys as flags (`torchtitan/config/job_config.py`,
//! `distributed/pipeline_parallel.py`, both of v0.2.2). Older files keep degrees in other sections.

use crate::launch::dialect::{
    Dialect, Launcher, Limits, Release, Syntax, always, number, release, text, words,
};
use crate::launch::facts::{Facts, Problem};
use crate::launch::layout::{LAYERS, counts, numbers};
use crate::launch::pipeline::{chunks, even};
use crate::launch::settings::Settings;
use crate::rules::Rule;

pub(super) const DIALECT: Dialect = Dialect {
    name: "torchtitan",
    title: "torchtitan",
    releases: &[
        release("v0.2.2"),
        release("v0.2.1"),
        release("v0.2.0"),
        Release {
            name: "main",
            refused: Some(
                "torchtitan's main branch reads no TOML: its jobs are Python (`config_registry.py`); \
                 write for `torchtitan@v0.2.2`",
            ),
        },
    ],
    framework: "fsdp",
    limits: &[Limits {
        values: &[("attention_kernel", "torch flash-attention-2 flash-attention-3 cudnn")],
        always_splits_sequence: true,
        ..Limits::NONE
    }],
    syntax: Syntax::Toml,
    signs: "parallelism.tensor_parallel_degree|parallelism.pipeline_parallel_degree|\
        parallelism.data_parallel_shard_degree|training.local_batch_size|training.batch_size|\
        training.tensor_parallel_degree|experimental.pipeline_parallel_degree|\
        training.data_parallel_shard_degree",
    rows: &[
        text("parallelism.data_parallel_replicate_degree|training.data_parallel_replicate_degree|experimental.data_parallel_replicate_degree", "titan_copies").or("1"),
        text("parallelism.data_parallel_shard_degree|training.data_parallel_shard_degree|experimental.data_parallel_shard_degree", "titan_shards").or("-1"),
        text("parallelism.fsdp_reshard_after_forward", "titan_reshard").or("default"),
        number("parallelism.tensor_parallel_degree|training.tensor_parallel_degree|experimental.tensor_parallel_degree", "tensor_parallel").or("1"),
        number("parallelism.context_parallel_degree|training.context_parallel_degree|experimental.context_parallel_degree", "context_parallel").or("1"),
        number("parallelism.expert_parallel_degree", "expert_parallel").or("1"),
        number("parallelism.pipeline_parallel_degree|training.pipeline_parallel_degree|experimental.pipeline_parallel_degree", "pipeline_parallel").or("1"),
        text("parallelism.pipeline_parallel_schedule|experimental.pipeline_parallel_schedule", "titan_schedule").or("1F1B"),
        number("parallelism.pipeline_parallel_microbatch_size", "titan_micro_batch"),
        number("parallelism.pipeline_parallel_first_stage_less_layers", "titan_first_less").or("1"),
        number("parallelism.pipeline_parallel_last_stage_less_layers", "titan_last_less").or("1"),
        number("parallelism.pipeline_parallel_layers_per_stage", "titan_layers_each"),
        text("parallelism.module_fqns_per_model_part", "titan_parts"),
        number("training.local_batch_size|training.batch_size", "titan_local_batch"),
        number("training.global_batch_size", "global_batch"),
        number("training.seq_len", "seq_len"),
        words("training.mixed_precision_param", "precision", &[("bf16", "bfloat16"), ("fp32", "float32")]).or("bfloat16"),
        always("training.mixed_precision_reduce", "float32"),
        words("activation_checkpoint.mode", "checkpointing", &[("none", "none"), ("full", "full"), ("selective", "selective"), ("memory-budget", "memory_budget")]).or("selective"),
    ],
    own,
    neutral,
    remarks: |facts| {
        vec![format!(
            "Add `[model]` for {} ({} layers), your data, optimizer and checkpoints. Dropout is none in \
             torchtitan's networks; gradients are reduced in fp32.",
            facts.text("model").unwrap_or("the network"),
            facts.text("layers").unwrap_or("its"),
        )]
    },
    launcher: Launcher::Torchrun("-m torchtitan.train --job.config_file {file}"),
    source: "torchtitan v0.2.2, `config/job_config.py`, `distributed/pipeline_parallel.py`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    let replicas = facts.one("data_parallel");
    let (copies, shards, reshard) = match facts.text("sharding") {
        Some("zero-0") => (replicas, 1, "default"),
        Some("zero-2") => (1, replicas, "never"),
        Some("zero-3") => (1, replicas, "always"),
        Some("hsdp") => {
            let copies = facts.one("copies");
            (copies, replicas / copies, "always")
        }
        other => {
            return Err(format!(
                "torchtitan has no {}: it shards weights, gradients and optimizer states (`zero-3`, \
                 `hsdp`), keeps weights gathered (`zero-2`), or shards nothing (`zero-0`)",
                other.unwrap_or("such sharding")
            ));
        }
    };
    facts.set("titan_copies", copies);
    facts.set("titan_shards", shards);
    facts.set("titan_reshard", reshard);
    if facts.one("tensor_parallel") > 1 && !facts.is_on("sequence_parallel") {
        return Err("torchtitan's tensor parallelism always splits the sequence".to_owned());
    }
    let stages = facts.one("pipeline_parallel");
    let micro_batch = facts.one("micro_batch");
    if stages == 1 {
        facts.set("titan_local_batch", micro_batch);
        return Ok(());
    }
    facts.set("titan_micro_batch", micro_batch);
    facts.set("titan_local_batch", micro_batch * facts.one("accumulation"));
    let chunks_each = facts.one("virtual_stages");
    let schedule = match (facts.text("schedule"), chunks_each) {
        (Some("afab"), 1) => "GPipe",
        (Some("1f1b"), 1) => "1F1B",
        (Some("1f1b"), _) => "Interleaved1F1B",
        _ => return Err("torchtitan has no such schedule".to_owned()),
    };
    facts.set("titan_schedule", schedule);
    stages_own(facts, chunks_each);
    Ok(())
}

/// How much embedding and head count as layers, or the names of every part's modules.
fn stages_own(facts: &mut Facts, chunks_each: u64) {
    let layers = numbers(facts.text(LAYERS).unwrap_or_default());
    let parts = chunks(&layers, chunks_each as u32);
    let total: u32 = layers.iter().sum();
    let few = total / parts.len().max(1) as u32 + 1;
    let mut weights = (0..=few).flat_map(|first| (0..=few).map(move |last| (first, last)));
    let fitting = weights.find(|&(first, last)| {
        generated(total, parts.len() as u32, first, last).is_some_and(|cut| cut == parts)
    });
    let each = fitting.and_then(|(first, last)| {
        let counted = total + first + last;
        let each = counted.div_ceil(parts.len() as u32);
        (counted.div_ceil(each) as usize == parts.len()).then_some(each)
    });
    match fitting.filter(|_| chunks_each == 1 || each.is_some()) {
        Some((first, last)) => {
            facts.set("titan_first_less", first);
            facts.set("titan_last_less", last);
            if chunks_each > 1 {
                facts.set("titan_layers_each", each.unwrap_or_default());
            }
        }
        None => facts.set("titan_parts", modules(&parts)),
    }
}

/// The names of the modules of every part, as a list of lists.
fn modules(parts: &[u32]) -> String {
    let mut next = 0;
    let lists = parts.iter().enumerate().map(|(index, &layers)| {
        let mut names: Vec<String> = (next..next + layers)
            .map(|it| format!("\"layers.{it}\""))
            .collect();
        next += layers;
        if index == 0 {
            names.insert(0, "\"tok_embeddings\"".to_owned());
        }
        if index + 1 == parts.len() {
            names.extend(["\"norm\"", "\"output\""].map(str::to_owned));
        }
        format!("[{}]", names.join(", "))
    });
    format!("[{}]", lists.collect::<Vec<_>>().join(", "))
}

/// The layers of every part by `generate_llm_fqn_per_model_part`: embedding and head count as `first` and
/// `last` layers. `None` where it refuses.
fn generated(layers: u32, parts: u32, first: u32, last: u32) -> Option<Vec<u32>> {
    let counted = layers + first + last;
    let least = counted.checked_div(parts)?;
    if least == 0 || first > least || last > least {
        return None;
    }
    let mut cut = even(counted, parts);
    *cut.first_mut()? -= first;
    *cut.last_mut()? -= last;
    Some(cut)
}

fn neutral(settings: &Settings, facts: &mut Facts) {
    let degree = |column: &str| facts.text(column).and_then(|text| text.parse::<u64>().ok());
    let (copies, shards) = (degree("titan_copies"), degree("titan_shards"));
    let sharding = match (copies.unwrap_or(1), shards, facts.text("titan_reshard")) {
        (_, Some(1), _) => "zero-0",
        (1, _, Some("never")) => "zero-2",
        (1, ..) => "zero-3",
        _ => "hsdp",
    };
    let replicas = copies
        .zip(shards)
        .map(|(copies, shards)| copies.saturating_mul(shards));
    facts.note("sharding", Some(sharding));
    facts.note("data_parallel", replicas);
    // Tensor parallelism always splits the sequence.
    facts.note("sequence_parallel", Some(facts.one("tensor_parallel") > 1));
    let stages = facts.one("pipeline_parallel");
    let local = facts.number("titan_local_batch");
    let micro_batch = match stages {
        2.. => facts.number("titan_micro_batch").or(Some(1)),
        _ => local,
    };
    facts.note("micro_batch", micro_batch);
    // Without a global batch a step is one local batch on each replica.
    let accumulation = local
        .zip(micro_batch)
        .and_then(|(local, micro)| local.checked_div(micro));
    facts.note("accumulation", accumulation.map(|count| count.max(1)));
    if let Some((local, micro)) = local.zip(micro_batch)
        && micro > 0
        && !local.is_multiple_of(micro)
    {
        facts.problems.push(Problem {
            rule: Rule::GlobalBatchDivisible.as_str(),
            message: format!(
                "a local batch of {local} does not divide into pipeline micro-batches of {micro}"
            ),
            repair: format!("local_batch_size = {}", local.next_multiple_of(micro)),
            source: "torchtitan, `distributed/pipeline_parallel.py`",
            column: "titan_local_batch",
        });
    }
    let model = settings.text("model.flavor").map(|flavor| {
        let family = settings.text("model.name").unwrap_or_default();
        format!("{family} {flavor}")
    });
    facts.note("model", model);
    stages_neutral(settings, facts, stages);
}

/// Schedule, virtual stages and the layers of each stage, as far as the number of layers is known.
fn stages_neutral(settings: &Settings, facts: &mut Facts, stages: u64) {
    let schedule = facts.text("titan_schedule").unwrap_or("1F1B").to_owned();
    let ours = match schedule.to_ascii_lowercase().as_str() {
        "1f1b" | "interleaved1f1b" => Some("1f1b"),
        "gpipe" => Some("afab"),
        _ => None,
    };
    match ours {
        Some(ours) => facts.note("schedule", Some(ours)),
        None => drop(
            facts
                .unset
                .insert("pipeline_parallel_schedule".to_owned(), schedule.clone()),
        ),
    }
    let is_looped = schedule.to_ascii_lowercase().starts_with("interleaved");
    let parts = listed(settings);
    let layers = facts.number("layers");
    let weights = ["titan_first_less", "titan_last_less"].map(|it| facts.number(it).unwrap_or(1));
    let parts = if parts.is_empty() {
        let each = facts.number("titan_layers_each").filter(|&each| each > 0);
        let counted = layers.map(|layers| layers + weights[0] + weights[1]);
        let count = match (each, counted) {
            (Some(each), Some(counted)) => Some(counted.div_ceil(each)),
            (Some(_), None) => None,
            _ => Some(if is_looped { 2 * stages } else { stages }),
        };
        let Some(count) = count.filter(|&count| stages > 1 && count < 1 << 16) else {
            facts.note("virtual_stages", (stages == 1).then_some(1));
            return;
        };
        facts.note("virtual_stages", Some((count / stages).max(1)));
        let cut = layers.and_then(|layers| {
            generated(
                layers as u32,
                count as u32,
                weights[0] as u32,
                weights[1] as u32,
            )
        });
        match cut {
            Some(cut) => cut,
            None => return,
        }
    } else {
        facts.note("virtual_stages", Some((parts.len() as u64 / stages).max(1)));
        parts
    };
    if (parts.len() as u64).is_multiple_of(stages) {
        let of = |stage: u64| {
            parts
                .iter()
                .skip(stage as usize)
                .step_by(stages as usize)
                .sum()
        };
        let sums: Vec<u32> = (0..stages).map(of).collect();
        facts.note(LAYERS, Some(counts(&sums)));
    }
}

/// The layers of every part whose modules are listed.
fn listed(settings: &Settings) -> Vec<u32> {
    let mut parts: Vec<u32> = Vec::new();
    for (key, name) in settings.below("parallelism.module_fqns_per_model_part.") {
        let part = key
            .split('.')
            .next()
            .and_then(|index| index.parse::<usize>().ok());
        let Some(part) = part.filter(|&part| part < 1 << 16) else {
            continue;
        };
        if parts.len() <= part {
            parts.resize(part + 1, 0);
        }
        parts[part] += u32::from(name.starts_with("layers."));
    }
    parts
}
