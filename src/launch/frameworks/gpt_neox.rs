//! GPT-NeoX's YAML (`megatron/neox_arguments/neox_args.py`, `deepspeed_args.py`, v2.0 and main). Keys are
//! written with underscores or dashes.

use super::deepspeed;
use crate::framework::{CheckpointRule, Partition};
use crate::launch::dialect::{
    Dialect, Launcher, Limits, Syntax, always, number, release, switch, text, words,
};
use crate::launch::facts::{Facts, Problem};
use crate::launch::pipeline::equal_stages;
use crate::launch::settings::Settings;
use crate::rules::Rule;

pub(super) const DIALECT: Dialect = Dialect {
    name: "gpt-neox",
    title: "GPT-NeoX",
    releases: &[release("main"), release("v2.0")],
    framework: "deepspeed",
    limits: &[Limits {
        values: &[
            ("schedule", "1f1b"),
            ("checkpointing", "none full"),
            ("attention_kernel", "megatron-fused flash-attention-2"),
        ],
        partition: Some(Partition::Equal),
        checkpointing: Some(CheckpointRule::AllOrNothing),
        ..Limits::NONE
    }],
    syntax: Syntax::Yaml,
    signs: "pipe_parallel_size|model_parallel_size|pipe-parallel-size|model-parallel-size",
    rows: &[
        number("pipe_parallel_size|pipe-parallel-size", "neox_stages").or("0"),
        number("model_parallel_size|model-parallel-size", "tensor_parallel").or("1"),
        switch("sequence_parallel", "sequence_parallel"),
        words(
            "zero_optimization.stage",
            "sharding",
            deepspeed::ZERO_STAGES,
        )
        .or("0"),
        number("train_batch_size|train-batch-size", "global_batch"),
        number(
            "train_micro_batch_size_per_gpu|train-micro-batch-size-per-gpu",
            "micro_batch",
        ),
        number(
            "gradient_accumulation_steps|gradient-accumulation-steps",
            "accumulation",
        )
        .or("1"),
        number("seq_length|seq-length", "seq_len"),
        switch(
            "checkpoint_activations|checkpoint-activations",
            "neox_checkpointing",
        ),
        number(
            "checkpoint_num_layers|checkpoint-num-layers",
            "neox_checkpointed",
        ),
        words(
            "precision",
            "neox_precision",
            &[("bf16", "bfloat16"), ("fp16", "fp16")],
        ),
        switch("bf16.enabled", "neox_bf16"),
        switch("fp16.enabled", "neox_fp16"),
        words(
            "data_types.grad_accum_dtype",
            "neox_gradients",
            &[("2", "bf16"), ("2.0", "fp16"), ("4", "fp32")],
        ),
        number("num_layers|num-layers", "layers"),
        number("hidden_size|hidden-size", "hidden"),
        number("intermediate_size|intermediate-size", "neox_width"),
        number("num_attention_heads|num-attention-heads", "heads"),
        number("num_kv_heads|num-kv-heads", "kv_heads"),
        number(
            "max_position_embeddings|max-position-embeddings",
            "neox_length",
        ),
        words(
            "norm",
            "normalization",
            &[("rmsnorm", "rmsnorm"), ("layernorm", "layernorm")],
        )
        .or("layernorm"),
        text("pos_emb|pos-emb", "neox_positions").or("learned"),
        text("rotary_pct", "rotary_share").or("1").numeric(),
        text("rotary_emb_base", "rotary_base").or("10000").numeric(),
        switch("no_weight_tying|no-weight-tying", "neox_untied"),
        words(
            "activation",
            "neox_activation",
            &[
                ("silu", "swiglu"),
                ("gelu", "gelu"),
                ("relu", "relu"),
                ("squared-relu", "squared_relu"),
            ],
        )
        .or("gelu")
        .numeric(),
        switch("use_bias_in_attn_linear", "neox_attention_bias").or("true"),
        switch("use_bias_in_mlp", "neox_feed_forward_bias").or("true"),
        text("rms_norm_epsilon", "neox_rms_epsilon")
            .or("0.00000001")
            .numeric(),
        text("layernorm_epsilon", "neox_layer_epsilon")
            .or("0.00001")
            .numeric(),
        text("hidden_dropout|hidden-dropout", "hidden_dropout")
            .or("0")
            .numeric(),
        text("attention_dropout|attention-dropout", "attention_dropout")
            .or("0")
            .numeric(),
        number("make_vocab_size_divisible_by", "neox_multiple").or("128"),
        always("scaled_upper_triang_masked_softmax_fusion", "true"),
        text("attention_config|attention_config.0.0.0", "neox_attention"),
    ],
    own,
    neutral,
    remarks: |_| {
        vec![
            "Add your data, tokenizer (which sets the vocabulary), optimizer and checkpoints."
                .to_owned(),
        ]
    },
    launcher: Launcher::Command("python ./deepy.py train.py {file}"),
    source: "GPT-NeoX, `megatron/neox_arguments/neox_args.py`, README",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    let stages = facts.one("pipeline_parallel");
    let is_sharded = matches!(facts.text("sharding"), Some("zero-2" | "zero-3"));
    // Without a pipeline the program is another, which ZeRO-2 and ZeRO-3 need.
    facts.set("neox_stages", if is_sharded { 0 } else { stages });
    match facts.text("checkpointing") {
        Some("none") => facts.set("neox_checkpointing", false),
        Some("full") => {
            facts.set("neox_checkpointing", true);
            facts.set("neox_checkpointed", 1);
        }
        _ => return Err("GPT-NeoX recomputes whole layers, all of them or none".to_owned()),
    }
    let precision = facts.text("precision").unwrap_or("bf16").to_owned();
    if precision == "fp8" {
        return Err("GPT-NeoX has no fp8".to_owned());
    }
    facts.set("neox_precision", &precision);
    let bytes = facts
        .text("gradient_bytes")
        .and_then(|text| text.parse::<f64>().ok());
    let width = match bytes {
        Some(bytes) if bytes > 2.0 => "4",
        _ if precision == "fp16" => "2.0",
        _ => "2",
    };
    facts.set("neox_gradients", width);
    network_own(facts);
    let flash = facts.text("attention_kernel") == Some("flash-attention-2");
    let layers = facts.one("layers");
    let kind = if flash { "flash" } else { "global" };
    facts.set("neox_attention", format!("[[[\"{kind}\"], {layers}]]"));
    Ok(())
}

fn network_own(facts: &mut Facts) {
    facts.set("neox_width", facts.one("ffn"));
    if facts.number("kv_heads") == facts.number("heads") {
        facts.take("kv_heads");
    }
    facts.set("neox_untied", !facts.is_on("tied"));
    facts.set(
        "neox_activation",
        facts.text("activation").unwrap_or("silu").to_owned(),
    );
    let epsilon = facts.text("norm_epsilon").unwrap_or("0.00001").to_owned();
    let is_rms = facts.text("normalization") == Some("rmsnorm");
    facts.set(
        "normalization",
        if is_rms { "rmsnorm" } else { "layernorm" },
    );
    facts.set(
        if is_rms {
            "neox_rms_epsilon"
        } else {
            "neox_layer_epsilon"
        },
        epsilon,
    );
    let learned = facts.number("learned_positions").unwrap_or(0);
    let positions = match (learned, facts.text("positions")) {
        (1.., _) => "learned",
        (_, Some("alibi")) => "alibi",
        _ => "rotary",
    };
    if positions != "rotary" {
        for column in ["rotary_share", "rotary_base"] {
            facts.take(column);
        }
    }
    facts.set("neox_positions", positions);
    facts.set(
        "neox_length",
        if learned > 0 {
            learned
        } else {
            facts.one("seq_len")
        },
    );
    let biases = facts.text("biases").unwrap_or("none").to_owned();
    facts.set(
        "neox_attention_bias",
        ["attention", "all"].contains(&biases.as_str()),
    );
    facts.set(
        "neox_feed_forward_bias",
        ["feed-forward", "all"].contains(&biases.as_str()),
    );
    facts.set("neox_multiple", facts.one("vocabulary_multiple").max(128));
}

fn neutral(_: &Settings, facts: &mut Facts) {
    facts.note(
        "pipeline_parallel",
        facts.number("neox_stages").map(|stages| stages.max(1)),
    );
    facts.note("virtual_stages", Some(1));
    facts.note("context_parallel", Some(1));
    let is_full = facts.is_on("neox_checkpointing");
    facts.note("checkpointing", Some(if is_full { "full" } else { "none" }));
    let precision = match (facts.text("neox_precision"), facts.is_on("neox_bf16")) {
        (Some(precision), _) => Some(precision.to_owned()),
        (None, true) => Some("bf16".to_owned()),
        (None, false) => facts.is_on("neox_fp16").then(|| "fp16".to_owned()),
    };
    facts.note("precision", precision);
    let bytes = facts
        .text("neox_gradients")
        .map(|width| width.trim_end_matches(".0").to_owned());
    facts.note("gradient_bytes", bytes);
    facts.note("kv_heads", facts.number("heads"));
    let gated = facts.text("neox_activation") == Some("silu");
    let usual = facts
        .number("hidden")
        .map(|hidden| hidden.saturating_mul(4));
    facts.note(
        "ffn",
        facts.number("neox_width").or(usual.filter(|_| !gated)),
    );
    facts.note("mlp_matrices", Some(if gated { 3 } else { 2 }));
    facts.note("gated", Some(gated));
    facts.note(
        "tied",
        facts.text("neox_untied").map(|untied| untied != "true"),
    );
    let kernel = facts.text("neox_attention").map(|kind| {
        if kind.contains("flash") {
            "flash-attention-2"
        } else {
            "megatron-fused"
        }
    });
    // Without a configuration attention is Megatron's own, fused.
    facts.note("attention_kernel", kernel.or(Some("megatron-fused")));
    let learned = facts.text("neox_positions") == Some("learned");
    facts.note(
        "learned_positions",
        facts.number("neox_length").filter(|_| learned),
    );
    deepspeed::batches(facts);
    let stages = facts.number("neox_stages").unwrap_or(0);
    if stages > 0 && matches!(facts.text("sharding"), Some("zero-2" | "zero-3")) {
        facts.problems.push(Problem {
            rule: Rule::FrameworkSupports.as_str(),
            message: format!("ZeRO-2 and ZeRO-3 need `pipe_parallel_size` 0, not {stages}"),
            repair: "set \"stage\": 1, or pipe_parallel_size 0".to_owned(),
            source: "GPT-NeoX, README; DeepSpeed, `runtime/pipe/engine.py`",
            column: "sharding",
        });
    }
    equal_stages(
        facts,
        "DeepSpeed balances them by itself, which is not modelled",
        "choose a number of stages that divides the layers",
        "DeepSpeed, `runtime/pipe/module.py`: `_partition_layers`",
    );
}
