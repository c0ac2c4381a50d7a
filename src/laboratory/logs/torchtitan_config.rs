//! torchtitan's configuration by dotted path; older versions name batches and degrees otherwise.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::launch::Values;

/// What the configuration says; nothing where it is none.
pub(super) fn facts(values: &BTreeMap<String, String>) -> Facts {
    let values = Values(values);
    let known = ["training.local_batch_size", "training.batch_size"];
    let degrees = ["pipeline_parallel_degree", "data_parallel_shard_degree"];
    let any =
        values.text(&known).is_some() || degrees.iter().any(|name| degree(&values, name).is_some());
    if !any {
        return Facts::default();
    }
    parallelism(&values).or(training(&values))
}

/// A degree, in the section that this version keeps it in; -1 ("the rest") is none.
fn degree(values: &Values, name: &str) -> Option<u32> {
    let keys = ["parallelism", "training", "experimental"].map(|part| format!("{part}.{name}"));
    let degree: Option<i64> = values.number(&keys.each_ref().map(String::as_str));
    degree.and_then(|degree| u32::try_from(degree).ok())
}

fn parallelism(values: &Values) -> Facts {
    Facts {
        tensor_parallel: degree(values, "tensor_parallel_degree").or(Some(1)),
        pipeline_parallel: degree(values, "pipeline_parallel_degree").or(Some(1)),
        context_parallel: degree(values, "context_parallel_degree").or(Some(1)),
        // Tensor parallelism always splits the sequence.
        sequence_parallel: Some(true),
        sharding: Some(sharding(values).to_owned()),
        ..Facts::default()
    }
}

fn sharding(values: &Values) -> &'static str {
    let replicas = degree(values, "data_parallel_replicate_degree").unwrap_or(1);
    let shards = degree(values, "data_parallel_shard_degree");
    let gathered_once = values.text(&["parallelism.fsdp_reshard_after_forward"]) == Some("never");
    match (replicas, shards) {
        (_, Some(1)) => "zero-0",
        (1, _) if gathered_once => "zero-2",
        (1, _) => "zero-3",
        _ => "hsdp",
    }
}

fn training(values: &Values) -> Facts {
    let local: Option<u32> = values.number(&["training.local_batch_size", "training.batch_size"]);
    let piped = degree(values, "pipeline_parallel_degree").is_some_and(|stages| stages > 1);
    let micro_batch = if piped {
        degree(values, "pipeline_parallel_microbatch_size").or(Some(1))
    } else {
        local
    };
    let global: Option<i64> = values.number(&["training.global_batch_size"]);
    let mode = values.text(&["activation_checkpoint.mode"]);
    Facts {
        model: values.text(&["model.flavor"]).map(|flavor| {
            let family = values.text(&["model.name"]).unwrap_or_default();
            format!("{family} {flavor}")
        }),
        sequence_length: values.number(&["training.seq_len"]),
        global_batch: global.and_then(|size| u64::try_from(size).ok()),
        // Without a global batch a step is one local batch on each replica.
        accumulation: match (local, micro_batch) {
            (Some(local), Some(micro)) if micro > 0 => Some(u64::from(local / micro).max(1)),
            _ => None,
        },
        micro_batch,
        checkpointing: Some(mode.map_or("none".to_owned(), str::to_ascii_lowercase)),
        precision: Some("bf16".to_owned()),
        ..Facts::default()
    }
}
