//! Command-line flags of Megatron-LM (`megatron/training/arguments.py`, main branch of August 2026).

use super::megatron;
use crate::framework::CheckpointRule;
use crate::launch::dialect::{
    Dialect, Launcher, Limits, Row, Syntax, always, number, release, switch, text, words,
};
use crate::launch::facts::{Facts, Problem};
use crate::launch::settings::Settings;

/// Megatron-LM recomputes whole layers of every chunk alike; where that cannot be said, all or none.
pub(super) const LIMITS: &[Limits] = &[
    Limits {
        values: &[("rmsnorm_kernel", "fused")],
        ..Limits::NONE
    },
    Limits {
        values: &[("rmsnorm_kernel", "fused")],
        checkpointing: Some(CheckpointRule::AllOrNothing),
        ..Limits::NONE
    },
];

pub(crate) const DIALECT: Dialect = Dialect {
    name: "megatron-lm",
    title: "Megatron-LM",
    releases: &[
        release("main"),
        release("core_v0.15"),
        release("core_v0.14"),
    ],
    framework: "megatron-lm",
    limits: LIMITS,
    syntax: Syntax::Flags,
    signs: "tensor_model_parallel_size|pipeline_model_parallel_size|num_layers|hidden_size|\
        micro_batch_size|recompute_granularity|use_distributed_optimizer",
    rows: ROWS,
    own,
    neutral,
    remarks,
    launcher: Launcher::Torchrun("pretrain_gpt.py"),
    source: "Megatron-LM, `megatron/training/arguments.py`",
};

const ROWS: &[Row] = &[
    number("tensor_model_parallel_size", "tensor_parallel").or("1"),
    number("pipeline_model_parallel_size", "pipeline_parallel").or("1"),
    number("context_parallel_size", "context_parallel").or("1"),
    number("expert_model_parallel_size", "expert_parallel").or("1"),
    // By default as many as are tensor-parallel.
    number("expert_tensor_parallel_size", "expert_tensor_parallel"),
    switch("sequence_parallel", "sequence_parallel"),
    number(
        "microbatch_group_size_per_virtual_pipeline_stage",
        "megatron_group",
    ),
    text("pipeline_model_parallel_layout", "megatron_layout"),
    number(
        "num_virtual_stages_per_pipeline_rank|virtual_pipeline_model_parallel_size",
        "megatron_chunks",
    ),
    number("num_layers_per_virtual_pipeline_stage", "chunk_layers"),
    number(
        "decoder_first_pipeline_num_layers|num_layers_in_first_pipeline_stage",
        "megatron_first",
    ),
    number(
        "decoder_last_pipeline_num_layers|num_layers_in_last_pipeline_stage",
        "megatron_last",
    ),
    switch(
        "account_for_embedding_in_pipeline_split",
        "megatron_embedding_counts",
    ),
    switch("account_for_loss_in_pipeline_split", "megatron_loss_counts"),
    number("micro_batch_size", "micro_batch"),
    number("global_batch_size", "global_batch"),
    number("seq_length", "seq_len"),
    words(
        "recompute_granularity",
        "megatron_granularity",
        &[("full", "full"), ("selective", "selective")],
    ),
    switch("recompute_activations", "megatron_recompute_activations"),
    text("recompute_modules", "megatron_modules"),
    text("recompute_method", "megatron_method"),
    number("recompute_num_layers", "megatron_recompute_layers"),
    switch("use_distributed_optimizer", "megatron_distributed"),
    switch("overlap_grad_reduce", "megatron_overlap_reduce"),
    switch("overlap_param_gather", "megatron_overlap_gather"),
    switch("use_megatron_fsdp|use_custom_fsdp", "megatron_fsdp"),
    text("data_parallel_sharding_strategy", "megatron_strategy"),
    text("ckpt_format", "megatron_format"),
    number("num_distributed_optimizer_instances", "copies"),
    text("outer_dp_sharding_strategy", "megatron_outer"),
    switch("bf16", "megatron_bf16"),
    switch("fp16", "megatron_fp16"),
    text("fp8_format|fp8", "megatron_fp8"),
    switch("grad_reduce_in_bf16", "megatron_narrow").numeric_or("fp32"),
    switch("accumulate_allreduce_grads_in_fp32", "megatron_wide").numeric_or("fp16"),
    words(
        "optimizer",
        "megatron_optimizer",
        &[("adam", "adam"), ("sgd", "sgd")],
    )
    .or("adam"),
    switch("use_precision_aware_optimizer", "megatron_precision_aware"),
    text("main_params_dtype", "megatron_main_parameters"),
    text("exp_avg_dtype", "megatron_first_moment"),
    text("exp_avg_sq_dtype", "megatron_second_moment"),
    always("transformer_impl", "transformer_engine"),
    text("attention_backend", "megatron_attention").numeric_or("auto"),
    switch("no_masked_softmax_fusion", "megatron_plain_softmax").numeric_or("a fused softmax"),
    switch("cross_entropy_loss_fusion", "fused_loss").numeric_or("off"),
    number("num_layers", "layers"),
    number("hidden_size", "hidden"),
    number("ffn_hidden_size", "ffn"),
    number("num_attention_heads", "heads"),
    switch("group_query_attention", "megatron_grouped"),
    number("num_query_groups", "megatron_groups"),
    number("kv_channels", "head_width"),
    switch("swiglu", "gated"),
    switch("squared_relu", "megatron_squared"),
    switch("untie_embeddings_and_output_weights", "megatron_untied"),
    words(
        "normalization",
        "normalization",
        &[("rmsnorm", "RMSNorm"), ("layernorm", "LayerNorm")],
    )
    .or("LayerNorm"),
    switch("disable_bias_linear", "megatron_no_bias"),
    switch("add_qkv_bias", "megatron_qkv_bias"),
    switch("qk_layernorm", "query_key_norms"),
    text("position_embedding_type", "megatron_positions"),
    number("max_position_embeddings", "megatron_length"),
    text("rotary_base", "rotary_base").or("10000").numeric(),
    text("rotary_percent", "rotary_share").or("1").numeric(),
    switch("use_rope_scaling", "megatron_rope_scaling").numeric_or("off"),
    text("rope_scaling_factor", "megatron_rope_factor"),
    text(
        "rotary_seq_len_interpolation_factor",
        "megatron_interpolation",
    )
    .numeric_or("none"),
    text("norm_epsilon", "norm_epsilon").or("0.00001").numeric(),
    text("hidden_dropout", "hidden_dropout").or("0.1").numeric(),
    text("attention_dropout", "attention_dropout")
        .or("0.1")
        .numeric(),
    number("vocab_size|padded_vocab_size", "vocab"),
    number("make_vocab_size_divisible_by", "vocabulary_multiple").or("128"),
    number("world_size", "gpus"),
    number("num_experts", "experts"),
    number("moe_router_topk", "experts_per_token"),
    number("moe_ffn_hidden_size", "expert_width"),
    number("moe_shared_expert_intermediate_size", "shared_expert_width"),
    text("moe_layer_freq", "megatron_expert_layers"),
    switch("moe_grouped_gemm", "megatron_grouped_products"),
    switch("moe_permute_fusion", "megatron_permute_fusion"),
    text("moe_token_dispatcher_type", "megatron_dispatcher"),
    switch("multi_latent_attention", "latent"),
    number("q_lora_rank", "query_rank"),
    number("kv_lora_rank", "key_value_rank"),
    number("qk_head_dim", "unrotated_width"),
    number("qk_pos_emb_head_dim", "rotated_width"),
    number("v_head_dim", "value_width"),
    number("mtp_num_layers", "prediction_layers"),
];

fn own(facts: &mut Facts) -> Result<(), String> {
    // What starts the job says it.
    facts.take("gpus");
    precision_own(facts);
    kernels_own(facts);
    network_own(facts);
    experts_own(facts);
    megatron::own(facts)
}

/// Experts run as one grouped product; a layer's place says whether it has some.
fn experts_own(facts: &mut Facts) {
    if facts.number("query_rank") == Some(0) {
        facts.take("query_rank");
    }
    if facts.number("shared_expert_width") == Some(0) {
        facts.take("shared_expert_width");
    }
    let Some(dense) = facts.take("dense_layers") else {
        facts.take("expert_tensor_parallel");
        return;
    };
    let dense: u64 = dense.parse().unwrap_or(0);
    if dense > 0 {
        let rest = facts.one("layers") - dense;
        facts.set(
            "megatron_expert_layers",
            format!("([0]*{dense}+[1]*{rest})"),
        );
    } else if let Some(width) = facts.text("expert_width").map(str::to_owned) {
        facts.set("ffn", width);
    }
    facts.set("megatron_grouped_products", true);
    facts.set("megatron_permute_fusion", true);
    facts.set("megatron_dispatcher", "alltoall");
}

fn precision_own(facts: &mut Facts) {
    let precision = facts.text("precision").unwrap_or("bf16").to_owned();
    let is_fp16 = precision == "fp16";
    facts.set("megatron_fp16", is_fp16);
    facts.set("megatron_bf16", !is_fp16);
    if precision == "fp8" {
        facts.set("megatron_fp8", "hybrid");
    }
    let is_wide = gradient_bytes(facts) > 2.0;
    facts.set("megatron_narrow", !is_wide && !is_fp16);
    facts.set("megatron_wide", is_wide && is_fp16);
    let optimizer = facts.text("optimizer").unwrap_or("adam").to_owned();
    facts.set(
        "megatron_optimizer",
        if optimizer == "sgd-momentum" {
            "sgd"
        } else {
            "adam"
        },
    );
    let is_aware = optimizer.starts_with("adam-");
    facts.set("megatron_precision_aware", is_aware);
    if is_aware {
        facts.set("megatron_first_moment", "bf16");
        facts.set("megatron_second_moment", "bf16");
    }
    if optimizer == "adam-bf16" {
        facts.set("megatron_main_parameters", "fp16");
    }
}

fn gradient_bytes(facts: &Facts) -> f64 {
    facts
        .text("gradient_bytes")
        .and_then(|text| text.parse().ok())
        .unwrap_or(4.0)
}

/// Attention is left to Transformer Engine unless the job lists its kernels.
fn kernels_own(facts: &mut Facts) {
    let kernel = facts
        .text("attention_kernel")
        .unwrap_or_default()
        .to_owned();
    let backend = match kernel.as_str() {
        "cudnn" => "fused",
        "megatron-fused" | "torch" => "unfused",
        _ => "flash",
    };
    if backend == "unfused" || facts.is_on("kernels_listed") {
        facts.set("megatron_attention", backend);
    }
    facts.set("megatron_plain_softmax", kernel == "torch");
}

fn network_own(facts: &mut Facts) {
    let (heads, groups) = (facts.one("heads"), facts.one("kv_heads"));
    facts.set("megatron_grouped", heads != groups);
    if heads != groups {
        facts.set("megatron_groups", groups);
    }
    facts.set("megatron_untied", !facts.is_on("tied"));
    let is_plain = !facts.is_on("gated");
    facts.set(
        "megatron_squared",
        is_plain && facts.text("activation") == Some("squared-relu"),
    );
    if facts
        .text("normalization")
        .is_some_and(|name| name.starts_with("layernorm"))
    {
        facts.set("normalization", "layernorm");
    }
    let biases = facts.text("biases").unwrap_or("none").to_owned();
    facts.set(
        "megatron_no_bias",
        ["none", "query-key-value"].contains(&biases.as_str()),
    );
    facts.set("megatron_qkv_bias", biases == "query-key-value");
    positions_own(facts);
    let multiple = facts.one("vocabulary_multiple").max(USUAL_MULTIPLE);
    facts.set("vocabulary_multiple", multiple);
}

/// What Megatron-LM pads the vocabulary to by default, times the tensor-parallel degree.
const USUAL_MULTIPLE: u64 = 128;

fn positions_own(facts: &mut Facts) {
    let learned = facts.number("learned_positions").filter(|&count| count > 0);
    let length = learned.unwrap_or_else(|| facts.one("seq_len"));
    facts.set("megatron_length", length);
    let is_rotary = learned.is_none() && facts.text("positions") == Some("rotary");
    let kind = match (learned, is_rotary) {
        (Some(_), _) => "learned_absolute",
        (None, true) => "rope",
        (None, false) => "none",
    };
    facts.set("megatron_positions", kind);
    let base = number_of(facts, "rotary_base").map(f64::round);
    let share = number_of(facts, "rotary_share");
    for column in ["rotary_base", "rotary_share"] {
        facts.take(column);
    }
    if !is_rotary {
        return;
    }
    facts.note("rotary_base", base);
    facts.note("rotary_share", share.filter(|&share| share < 1.0));
    let factor = number_of(facts, "rope_factor").unwrap_or(1.0);
    match facts.text("rope_scaling") {
        Some("llama3") => {
            facts.set("megatron_rope_scaling", true);
            facts.set("megatron_rope_factor", factor);
        }
        Some("linear") if factor.fract() == 0.0 => facts.set("megatron_interpolation", factor),
        _ => {}
    }
}

fn number_of(facts: &Facts, column: &str) -> Option<f64> {
    facts.text(column)?.parse().ok()
}

fn neutral(settings: &Settings, facts: &mut Facts) {
    let hidden = facts.number("hidden");
    let gated = settings.switch("swiglu");
    let usual_width = hidden.map(|hidden| match gated {
        // Megatron-LM keeps the parameters of a plain block: 8 h / 3, in steps of 64.
        Some(true) => hidden.saturating_mul(8) / 3 / 64 * 64,
        _ => hidden.saturating_mul(4),
    });
    facts.note(
        "ffn",
        usual_width.filter(|_| !settings.unset.contains_key("ffn_hidden_size")),
    );
    let groups = if settings.is_on("group_query_attention") {
        "num_query_groups"
    } else {
        "num_attention_heads"
    };
    facts.note("kv_heads", settings.number(groups));
    facts.note("mlp_matrices", gated.map(|gated| if gated { 3 } else { 2 }));
    let untied = settings.switch("untie_embeddings_and_output_weights");
    facts.note("tied", untied.map(|untied| !untied));
    let precision = match () {
        () if settings.text("fp8_format|fp8").is_some() => "fp8",
        () if settings.is_on("bf16") => "bf16",
        () if settings.is_on("fp16") => "fp16",
        // Without another format Megatron-LM computes in 32 bits.
        () => "fp32",
    };
    facts.note("precision", Some(precision));
    // With bf16 Megatron-LM accumulates gradients in 32 bits unless told otherwise.
    let wide = settings.is_on("accumulate_allreduce_grads_in_fp32") || settings.is_on("bf16");
    let bytes = if settings.is_on("grad_reduce_in_bf16") {
        Some(2)
    } else {
        wide.then_some(4)
    };
    facts.note("gradient_bytes", bytes);
    let kernel = match facts.text("megatron_attention") {
        Some("unfused") if facts.is_on("megatron_plain_softmax") => Some("torch"),
        Some("unfused" | "local") => Some("megatron-fused"),
        Some("fused") => Some("cudnn"),
        _ => None,
    };
    facts.note("attention_kernel", kernel);
    megatron::neutral(facts);
    let uneven = UNEVEN.iter().find(|name| settings.text(name).is_some());
    let uneven = uneven.map(|name| {
        let flag = name.replace('_', "-");
        format!("`--{flag}` spreads layers unevenly, which a row of runs cannot say")
    });
    facts.note("refused", uneven);
}

/// Arguments that spread layers unevenly over pipeline stages.
const UNEVEN: [&str; 4] = [
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "num_layers_in_first_pipeline_stage",
    "pipeline_model_parallel_layout",
];

/// What a reader of the flags should know.
fn remarks(facts: &Facts) -> Vec<String> {
    let mut said = Vec::new();
    let mut say = |holds: bool, text: String| said.extend(holds.then_some(text));
    let degrees = facts
        .one("tensor_parallel")
        .max(facts.one("context_parallel"));
    let is_fsdp = matches!(facts.text("sharding"), Some("zero-2" | "zero-3" | "hsdp"));
    say(
        is_fsdp,
        "The environment must not set `CUDA_DEVICE_MAX_CONNECTIONS=1`.".to_owned(),
    );
    say(
        !is_fsdp && degrees > 1,
        "Before Blackwell, the environment needs `CUDA_DEVICE_MAX_CONNECTIONS=1`.".to_owned(),
    );
    if let Some(group) = megatron::group_size(facts) {
        let (count, stages) = (facts.one("accumulation"), facts.one("pipeline_parallel"));
        say(
            true,
            format!(
                "{count} micro-batches do not divide by {stages} stages: they run in groups of {group}, which \
             keeps more activations than predicted."
            ),
        );
    }
    let (bytes, is_fp16) = (
        gradient_bytes(facts),
        facts.text("precision") == Some("fp16"),
    );
    say(
        bytes <= 2.0 && is_fp16,
        "Gradients are reduced in fp16, the default with fp16.".to_owned(),
    );
    say(
        bytes > 2.0 && !is_fp16,
        "Gradients are reduced in fp32, the default.".to_owned(),
    );
    say(
        bytes > 4.0,
        format!("A gradient has 4 bytes, not the {bytes} of the plan."),
    );
    say(
        facts.text("optimizer") == Some("adam-bf16"),
        "The master weights are kept in fp16: there is no bf16 for them.".to_owned(),
    );
    network_remarks(facts, &mut say);
    said
}

fn network_remarks(facts: &Facts, say: &mut impl FnMut(bool, String)) {
    say(
        facts.text("experts").is_some(),
        "How the router scores, groups, scales and balances is the model's own and not written: see \
         `--moe-router-score-function`, `--moe-router-load-balancing-type`, `--moe-aux-loss-coeff`, \
         `--moe-router-enable-expert-bias` and `--moe-router-topk-scaling-factor`."
            .to_owned(),
    );
    let norm = facts.text("normalization").unwrap_or_default();
    say(
        norm.starts_with("layernorm-"),
        "LayerNorm has a bias here, which the model's own has not.".to_owned(),
    );
    say(
        !["none", "query-key-value", "all"].contains(&facts.text("biases").unwrap_or("none")),
        "All linear layers have a bias here; not all of the model's own have.".to_owned(),
    );
    let norms = (
        facts.one("layer_norms"),
        facts.number("outer_norms").unwrap_or(1),
    );
    say(
        norms != (2, 1),
        format!(
            "A layer has two norms here, and one follows the last; the model's own have {} and {}.",
            norms.0, norms.1
        ),
    );
    let own = facts.text("activation").unwrap_or("silu");
    let written = match (facts.is_on("gated"), own) {
        (true, _) => "silu",
        (false, "squared-relu") => own,
        (false, _) => "gelu",
    };
    say(
        own != written,
        format!("The activation function is {written} here; the model's own is {own}."),
    );
    let is_rotary = facts.number("learned_positions").unwrap_or(0) == 0;
    let alibi = is_rotary && facts.text("positions") == Some("alibi");
    say(
        alibi,
        "There is no ALiBi: the network has no positions here.".to_owned(),
    );
    let base = number_of(facts, "rotary_base").unwrap_or(1e4);
    say(
        is_rotary && !alibi && base.fract() != 0.0,
        format!(
            "`--rotary-base` takes whole numbers only: {} stands for the model's own {base}.",
            base.round()
        ),
    );
    let factor = number_of(facts, "rope_factor").unwrap_or(1.0);
    let scaling = facts.text("rope_scaling").unwrap_or("none");
    let is_written =
        matches!(scaling, "none" | "llama3") || scaling == "linear" && factor.fract() == 0.0;
    say(
        is_rotary && !is_written,
        format!(
            "The model's rope scaling, {scaling} by {factor}, is not written: without it the network is another \
         beyond its original length."
        ),
    );
    let multiple =
        facts.one("vocabulary_multiple").max(USUAL_MULTIPLE) * facts.one("tensor_parallel");
    let vocabulary = facts.one("vocab");
    let padded = vocabulary.next_multiple_of(multiple);
    say(
        padded != vocabulary,
        format!("The vocabulary is padded from {vocabulary} to {padded} entries."),
    );
}

/// How micro-batches of an interleaved pipeline break the rule on their groups.
pub(crate) fn interleaving(facts: &Facts) -> Option<Problem> {
    megatron::interleaving(facts)
}

/// What a dump of the arguments at the start of a log says.
pub(crate) fn dumped(arguments: &Settings) -> Facts {
    crate::launch::dialect::read(&DIALECT, arguments, Facts::default())
}
