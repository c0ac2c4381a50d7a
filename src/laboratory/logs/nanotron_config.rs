//! nanotron's configuration by dotted path.

use super::facts::Facts;
use super::settings::Settings;

/// Columns and the settings that state them.
const COPIED: [(&str, &str); 10] = [
    ("layers", "model.model_config.num_hidden_layers"),
    ("hidden", "model.model_config.hidden_size"),
    ("ffn", "model.model_config.intermediate_size"),
    ("heads", "model.model_config.num_attention_heads"),
    ("kv_heads", "model.model_config.num_key_value_heads"),
    ("vocab", "model.model_config.vocab_size"),
    ("seq_len", "tokens.sequence_length"),
    ("accumulation", "tokens.batch_accumulation_per_replica"),
    ("micro_batch", "tokens.micro_batch_size"),
    ("data_parallel", "parallelism.dp"),
];

/// What the configuration says; nothing where it is none.
pub(super) fn facts(settings: &Settings) -> Facts {
    let degrees = ["parallelism.tp", "parallelism.dp"].map(|key| settings.number(key));
    let [Some(tensor), Some(replicas)] = degrees else {
        return Facts::default();
    };
    let usually_one = |key: &str| settings.number(key).unwrap_or(1);
    let stages = usually_one("parallelism.pp");
    let context = usually_one("parallelism.context_parallel_size");
    let is = |key: &str, value: &str| {
        let written = settings.text(key);
        written.is_some_and(|written| written.eq_ignore_ascii_case(value))
    };
    let choice =
        |holds: bool, yes: &'static str, no: &'static str| Some(if holds { yes } else { no });
    let wide = "optimizer.accumulate_grad_in_fp32";
    let gradient_bytes = if settings.is_on(wide) { 6 } else { 2 };
    let sharding = settings.number("optimizer.zero_stage");
    Facts::copied(&COPIED, settings)
        .with(
            "gpus",
            Some(
                [replicas, stages, context]
                    .iter()
                    .fold(tensor, |all, &it| all.saturating_mul(it)),
            ),
        )
        .with("tensor_parallel", Some(tensor))
        .with("pipeline_parallel", Some(stages))
        .with("context_parallel", Some(context))
        .with(
            "schedule",
            choice(is("parallelism.pp_engine", "afab"), "afab", "1f1b"),
        )
        .with(
            "sequence_parallel",
            Some(is("parallelism.tp_mode", "reduce_scatter")),
        )
        .with("mlp_matrices", Some(3))
        .with(
            "checkpointing",
            choice(
                settings.is_on("parallelism.recompute_layer"),
                "full",
                "none",
            ),
        )
        .with("sharding", sharding.map(|stage| format!("zero-{stage}")))
        .with("precision", Some("bf16"))
        // bf16 gradients beside an fp32 accumulator.
        .with(
            "gradient_bytes",
            settings.text(wide).map(|_| gradient_bytes),
        )
}
