//! nanotron's YAML (`src/nanotron/config/config.py`, `parallelism_config.py`, main branch of April 2026).

use crate::launch::dialect::{
    Dialect, Launcher, Limits, Syntax, always, number, release, switch, text, words,
};
use crate::launch::facts::Facts;
use crate::launch::layout::{LAYERS, counts};
use crate::launch::pipeline::even;
use crate::launch::settings::Settings;

pub(super) const DIALECT: Dialect = Dialect {
    name: "nanotron",
    title: "nanotron",
    releases: &[release("main"), release("v0.5"), release("v0.4")],
    framework: "nanotron",
    limits: &[Limits::NONE],
    syntax: Syntax::Yaml,
    signs: "parallelism.tp|parallelism.dp|tokens.batch_accumulation_per_replica",
    rows: &[
        number("parallelism.dp", "data_parallel"),
        number("parallelism.tp", "tensor_parallel").or("1"),
        number("parallelism.pp", "pipeline_parallel").or("1"),
        number("parallelism.context_parallel_size", "context_parallel").or("1"),
        number("parallelism.expert_parallel_size", "expert_parallel").or("1"),
        words(
            "parallelism.pp_engine",
            "schedule",
            &[("1f1b", "1f1b"), ("afab", "afab")],
        )
        .or("afab"),
        words(
            "parallelism.tp_mode",
            "sequence_parallel",
            &[("true", "REDUCE_SCATTER"), ("false", "ALL_REDUCE")],
        )
        .or("ALL_REDUCE"),
        switch(
            "parallelism.tp_linear_async_communication",
            "nanotron_async",
        ),
        switch("parallelism.recompute_layer", "nanotron_recompute"),
        number("tokens.micro_batch_size", "micro_batch"),
        number("tokens.batch_accumulation_per_replica", "accumulation"),
        number("tokens.sequence_length", "seq_len"),
        words(
            "optimizer.zero_stage",
            "sharding",
            &[("zero-0", "0"), ("zero-1", "1")],
        ),
        switch("optimizer.accumulate_grad_in_fp32", "nanotron_wide"),
        words(
            "model.dtype",
            "precision",
            &[
                ("bf16", "bfloat16"),
                ("fp16", "float16"),
                ("fp32", "float32"),
            ],
        )
        .or("bfloat16"),
        number("model.make_vocab_size_divisible_by", "vocabulary_multiple"),
        number("model.model_config.num_hidden_layers", "layers"),
        number("model.model_config.hidden_size", "hidden"),
        number("model.model_config.intermediate_size", "ffn"),
        number("model.model_config.num_attention_heads", "heads"),
        number("model.model_config.num_key_value_heads", "kv_heads"),
        number("model.model_config.vocab_size", "vocab"),
        switch("model.model_config.tie_word_embeddings", "tied"),
        always("model.model_config.is_llama_config", "true"),
        words(
            "model.model_config.hidden_act",
            "activation",
            &[("silu", "silu"), ("gelu", "gelu"), ("relu", "relu")],
        )
        .or("silu")
        .numeric(),
        text("model.model_config.rms_norm_eps", "norm_epsilon")
            .or("0.000001")
            .numeric(),
        text("model.model_config.rope_theta", "rotary_base")
            .or("10000")
            .numeric(),
        number(
            "model.model_config.max_position_embeddings",
            "nanotron_positions",
        ),
    ],
    own,
    neutral,
    remarks: |facts| {
        let mut remarks = vec![
            "Add `data_stages`, `tokenizer`, `checkpoints`, `general` and the learning rate. Dropout is \
             none in nanotron's networks."
                .to_owned(),
        ];
        if facts
            .text("rope_scaling")
            .is_some_and(|kind| kind != "none")
        {
            remarks.push("The model's rope scaling is not written: add `rope_scaling`.".to_owned());
        }
        remarks
    },
    launcher: Launcher::Torchrun("run_train.py --config-file {file}"),
    source: "nanotron, `config/config.py`, `config/parallelism_config.py`, `models/base.py`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    let recompute = match facts.text("checkpointing") {
        Some("none") => false,
        Some("full") => true,
        _ => return Err("nanotron recomputes whole layers, all of them or none".to_owned()),
    };
    facts.set("nanotron_recompute", recompute);
    facts.set("nanotron_async", facts.is_on("sequence_parallel"));
    let width = facts.text("gradient_bytes").unwrap_or("6").to_owned();
    facts.set(
        "nanotron_wide",
        width.parse::<f64>().is_ok_and(|bytes| bytes > 2.0),
    );
    let length = facts.one("seq_len");
    facts.set("nanotron_positions", length);
    if facts.text(LAYERS) != even_cut(facts).as_deref() {
        return Err(
            "nanotron cuts the layers itself, evenly with the remainder on the early stages"
                .to_owned(),
        );
    }
    Ok(())
}

/// Layers are cut evenly, as the catalog has it.
fn even_cut(facts: &Facts) -> Option<String> {
    let stages = facts.one("pipeline_parallel").min(1 << 16);
    Some(counts(&even(facts.number("layers")? as u32, stages as u32)))
}

fn neutral(settings: &Settings, facts: &mut Facts) {
    let recompute = facts
        .text("nanotron_recompute")
        .map(|on| if on == "true" { "full" } else { "none" });
    facts.note("checkpointing", recompute);
    facts.note("virtual_stages", Some(1));
    facts.note("mlp_matrices", Some(3));
    facts.note("gated", Some(true));
    facts.note("normalization", Some("rmsnorm"));
    facts.note("kv_heads", facts.number("heads"));
    // bf16 gradients beside an fp32 accumulator.
    let is_stated = settings.text("optimizer.accumulate_grad_in_fp32").is_some();
    let wide = facts.is_on("nanotron_wide");
    facts.note(
        "gradient_bytes",
        is_stated.then_some(if wide { 6 } else { 2 }),
    );
    let degrees =
        ["tensor_parallel", "pipeline_parallel", "context_parallel"].map(|it| facts.one(it));
    let gpus = facts.number("data_parallel").map(|replicas| {
        degrees
            .iter()
            .fold(replicas, |all, &it| all.saturating_mul(it))
    });
    facts.note("gpus", gpus);
    let cut = even_cut(facts);
    facts.note(LAYERS, cut);
}
