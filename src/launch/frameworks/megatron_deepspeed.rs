//! Command-line flags of Megatron-DeepSpeed (`megatron/arguments.py`, main branch of July 2025).

use super::deepspeed;
use crate::framework::{CheckpointRule, Partition};
use crate::launch::dialect::{
    Dialect, Launcher, Limits, Syntax, always, number, release, switch, text, words,
};
use crate::launch::facts::Facts;
use crate::launch::pipeline::equal_stages;
use crate::launch::settings::Settings;

pub(super) const DIALECT: Dialect = Dialect {
    name: "megatron-deepspeed",
    title: "Megatron-DeepSpeed",
    releases: &[release("main"), release("v2.4")],
    framework: "deepspeed",
    limits: &[Limits {
        values: &[
            ("schedule", "1f1b"),
            ("attention_kernel", "megatron-fused flash-attention-2"),
        ],
        partition: Some(Partition::Equal),
        checkpointing: Some(CheckpointRule::AllOrNothing),
        ..Limits::NONE
    }],
    syntax: Syntax::Flags,
    signs: "zero_stage|ds_sequence_parallel_size|deepspeed_config|no_pipeline_parallel|checkpoint_activations",
    rows: &[
        always("deepspeed", "true"),
        number("tensor_model_parallel_size", "tensor_parallel").or("1"),
        number("pipeline_model_parallel_size", "pipeline_parallel").or("1"),
        switch("no_pipeline_parallel", "mds_no_pipeline"),
        number("ds_sequence_parallel_size", "mds_ulysses").or("1"),
        switch("sequence_parallel", "sequence_parallel"),
        words("zero_stage", "sharding", deepspeed::ZERO_STAGES).or("1"),
        number("micro_batch_size", "micro_batch"),
        number("global_batch_size", "global_batch"),
        number("seq_length", "seq_len"),
        switch(
            "checkpoint_activations|deepspeed_activation_checkpointing",
            "mds_full",
        ),
        words(
            "recompute_granularity",
            "mds_granularity",
            &[("full", "full"), ("selective", "selective")],
        ),
        switch("bf16", "mds_bf16"),
        switch("fp16", "mds_fp16"),
        switch(
            "use_flash_attn_v2|use_flash_attn|use_flash_attn_v1",
            "mds_flash",
        ),
        number("num_layers", "layers"),
        number("hidden_size", "hidden"),
        number("ffn_hidden_size", "ffn"),
        number("num_attention_heads", "heads"),
        number("num_key_value_heads", "kv_heads"),
        switch("swiglu", "gated"),
        switch("untie_embeddings_and_output_weights", "mds_untied"),
        words(
            "normalization",
            "normalization",
            &[("rmsnorm", "rmsnorm"), ("layernorm", "layernorm")],
        )
        .or("layernorm"),
        switch("use_rotary_position_embeddings", "mds_rotary"),
        text("rotary_percent", "rotary_share").or("1").numeric(),
        text("layernorm_epsilon", "norm_epsilon")
            .or("0.00001")
            .numeric(),
        text("hidden_dropout", "hidden_dropout").or("0.1").numeric(),
        text("attention_dropout", "attention_dropout")
            .or("0.1")
            .numeric(),
        switch("disable_bias_linear", "mds_no_bias"),
        number("max_position_embeddings", "mds_length"),
        number("make_vocab_size_divisible_by", "mds_multiple").or("128"),
    ],
    own,
    neutral,
    remarks: |_| {
        vec![
            "Add `--deepspeed_config` with a file of the same batch sizes and ZeRO stage \
             (`parlayout export --to deepspeed`), your data and tokenizer. Gradients are reduced in the \
             format of the weights, the default."
                .to_owned(),
        ]
    },
    launcher: Launcher::Command(
        "deepspeed --num_nodes {nodes} --num_gpus {per_node} pretrain_gpt.py",
    ),
    source: "Megatron-DeepSpeed, `megatron/arguments.py`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    let is_sharded = matches!(facts.text("sharding"), Some("zero-2" | "zero-3"));
    facts.set(
        "mds_no_pipeline",
        is_sharded || facts.one("pipeline_parallel") == 1,
    );
    match facts.text("checkpointing") {
        Some("none") => {}
        Some("full") => facts.set("mds_full", true),
        Some("attention-core") => facts.set("mds_granularity", "selective"),
        _ => {
            return Err(
                "Megatron-DeepSpeed recomputes all layers, the attention of all, or none"
                    .to_owned(),
            );
        }
    }
    let is_fp16 = facts.text("precision") == Some("fp16");
    if facts.text("precision") == Some("fp8") {
        return Err("Megatron-DeepSpeed has no fp8".to_owned());
    }
    facts.set("mds_fp16", is_fp16);
    facts.set("mds_bf16", !is_fp16);
    facts.set(
        "mds_flash",
        facts
            .text("attention_kernel")
            .is_some_and(|it| it.starts_with("flash")),
    );
    facts.set("mds_untied", !facts.is_on("tied"));
    let is_rotary = facts.number("learned_positions") == Some(0);
    facts.set("mds_rotary", is_rotary);
    if !is_rotary {
        facts.take("rotary_share");
    }
    let length = facts.number("learned_positions").filter(|&it| it > 0);
    facts.set("mds_length", length.unwrap_or_else(|| facts.one("seq_len")));
    facts.set("mds_no_bias", facts.text("biases") == Some("none"));
    facts.set("mds_multiple", facts.one("vocabulary_multiple").max(128));
    Ok(())
}

fn neutral(settings: &Settings, facts: &mut Facts) {
    if facts.is_on("mds_no_pipeline") {
        facts.set("pipeline_parallel", 1);
    }
    let recomputed = match (facts.is_on("mds_full"), facts.text("mds_granularity")) {
        (true, _) | (_, Some("full")) => "full",
        (_, Some("selective")) => "selective",
        _ => "none",
    };
    facts.note("checkpointing", Some(recomputed));
    facts.note("virtual_stages", Some(1));
    facts.note("context_parallel", Some(1));
    facts.note("kv_heads", facts.number("heads"));
    let width = facts.number("hidden").map(|hidden| {
        let gated = facts.is_on("gated");
        if gated {
            hidden.saturating_mul(8) / 3 / 64 * 64
        } else {
            hidden.saturating_mul(4)
        }
    });
    facts.note("ffn", width);
    facts.note(
        "mlp_matrices",
        settings
            .switch("swiglu")
            .map(|gated| if gated { 3 } else { 2 }),
    );
    facts.note(
        "tied",
        facts.text("mds_untied").map(|untied| untied != "true"),
    );
    let precision = match () {
        () if facts.is_on("mds_bf16") => "bf16",
        () if facts.is_on("mds_fp16") => "fp16",
        () => "fp32",
    };
    facts.note("precision", Some(precision));
    facts.note(
        "attention_kernel",
        facts.is_on("mds_flash").then_some("flash-attention-2"),
    );
    equal_stages(
        facts,
        "DeepSpeed balances them by itself, which is not modelled",
        "choose a number of stages that divides the layers",
        "DeepSpeed, `runtime/pipe/module.py`",
    );
}
