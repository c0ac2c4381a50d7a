//! nanotron's configuration by dotted path.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::launch::Values;

/// What the configuration says; nothing where it is none.
pub(super) fn facts(values: &BTreeMap<String, String>) -> Facts {
    let values = Values(values);
    match parallelism(&values) {
        Some(degrees) => degrees.or(network(&values)).or(training(&values)),
        None => Facts::default(),
    }
}

fn parallelism(values: &Values) -> Option<Facts> {
    let degree = |name: &str| values.number::<u32>(&[&format!("parallelism.{name}")]);
    let (tensor, replicas) = (degree("tp")?, degree("dp")?);
    let stages = degree("pp").unwrap_or(1);
    let context = degree("context_parallel_size").unwrap_or(1);
    let is = |key: &str, value: &str| {
        let written = values.text(&[&format!("parallelism.{key}")]);
        written.is_some_and(|written| written.eq_ignore_ascii_case(value))
    };
    let schedule = if is("pp_engine", "afab") {
        "afab"
    } else {
        "1f1b"
    };
    Some(Facts {
        gpus: Some(tensor * replicas * stages * context),
        tensor_parallel: Some(tensor),
        pipeline_parallel: Some(stages),
        data_parallel: Some(replicas),
        context_parallel: Some(context),
        schedule: Some(schedule.to_owned()),
        sequence_parallel: Some(is("tp_mode", "reduce_scatter")),
        ..Facts::default()
    })
}

fn network(values: &Values) -> Facts {
    let size = |name: &str| values.number::<u64>(&[&format!("model.model_config.{name}")]);
    Facts {
        layers: size("num_hidden_layers").and_then(|layers| u32::try_from(layers).ok()),
        hidden: size("hidden_size"),
        feed_forward_width: size("intermediate_size"),
        heads: size("num_attention_heads"),
        key_value_heads: size("num_key_value_heads"),
        mlp_matrices: Some(3),
        vocabulary: size("vocab_size"),
        ..Facts::default()
    }
}

fn training(values: &Values) -> Facts {
    let recomputed = values.switch(&["parallelism.recompute_layer"]) == Some(true);
    let stage: Option<u32> = values.number(&["optimizer.zero_stage"]);
    let wide = values.switch(&["optimizer.accumulate_grad_in_fp32"]);
    Facts {
        sequence_length: values.number(&["tokens.sequence_length"]),
        accumulation: values.number(&["tokens.batch_accumulation_per_replica"]),
        micro_batch: values.number(&["tokens.micro_batch_size"]),
        checkpointing: Some(if recomputed { "full" } else { "none" }.to_owned()),
        sharding: stage.map(|stage| format!("zero-{stage}")),
        precision: Some("bf16".to_owned()),
        // bf16 gradients beside an fp32 accumulator.
        gradient_bytes: wide.map(|wide| if wide { 6.0 } else { 2.0 }),
        ..Facts::default()
    }
}
