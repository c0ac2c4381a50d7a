//! The fields of a `config.json`: which give the shape, which do not matter, and which describe a
//! network that is not modelled.

use serde_json::{Map, Value as Json};

/// Our keys with the fields that state them.
pub(crate) const SHAPE: &[(&str, &[&str])] = &[
    ("layers", &["num_hidden_layers", "n_layer", "num_layers"]),
    ("hidden", &["hidden_size", "n_embd"]),
    ("heads", &["num_attention_heads", "n_head"]),
    ("key_value_heads", &["num_key_value_heads"]),
    ("head_width", &["head_dim"]),
    (
        "feed_forward_width",
        &["intermediate_size", "n_inner", "ffn_dim"],
    ),
    ("vocabulary", &["vocab_size"]),
];

/// Fields that change neither parameters nor arithmetic.
pub(crate) const HARMLESS: &[&str] = &[
    "activation_dropout",
    "activation_function",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attention_multiplier",
    "attn_implementation",
    "attn_logit_softcapping",
    "attn_pdrop",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "bos_token",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "do_layer_norm_before",
    "dropout",
    "dtype",
    "embd_pdrop",
    "embedding_dropout",
    "embedding_multiplier",
    "eos_token_id",
    "eos_token",
    "final_logit_softcapping",
    "hidden_act",
    "hidden_activation",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "init_std",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layer_types",
    "layerdrop",
    "logits_scaling",
    "max_position_embeddings",
    "max_window_layers",
    "model_type",
    "n_ctx",
    "norm_epsilon",
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "partial_rotary_factor",
    "prefix",
    "pretraining_tp",
    "quantization_config",
    "query_pre_attn_scalar",
    "reorder_and_upcast_attn",
    "resid_pdrop",
    "residual_dropout",
    "residual_multiplier",
    "return_dict",
    "rms_norm_eps",
    "rope_local_base_freq",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "rotary_emb_base",
    "rotary_pct",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "sep_token_id",
    "sliding_window",
    "sliding_window_pattern",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "unk_token_id",
    "use_cache",
    "use_parallel_residual",
    "use_sliding_window",
    "vision_config",
];

/// Values of `model_type` that are not dense decoders even where no field says so.
const OTHER_TYPES: &[(&str, &str)] = &[
    ("mixtral", MIXTURE),
    ("dbrx", MIXTURE),
    ("gpt_oss", MIXTURE),
    ("deepseek_v2", MIXTURE),
    ("deepseek_v3", MIXTURE),
    ("llama4", MIXTURE),
    ("llama4_text", MIXTURE),
    ("bert", ENCODER),
    ("roberta", ENCODER),
    ("t5", ENCODER),
    ("bart", ENCODER),
    ("whisper", ENCODER),
    ("mamba", STATE_SPACE),
    ("mamba2", STATE_SPACE),
    ("jamba", STATE_SPACE),
    ("qwen3_next", STATE_SPACE),
];

const MIXTURE: &str = "mixtures of experts";
const ENCODER: &str = "encoders";
const STATE_SPACE: &str = "state-space and linear-attention layers";
const LATENT: &str = "latent attention";
const PREDICTION: &str = "multi-token prediction";

/// Counts that are harmless up to a value.
const COUNTS: &[(&str, u64, &str)] = &[
    ("num_experts", 1, MIXTURE),
    ("num_local_experts", 1, MIXTURE),
    ("n_routed_experts", 1, MIXTURE),
    ("moe_num_experts", 1, MIXTURE),
    ("num_nextn_predict_layers", 0, PREDICTION),
    ("mtp_num_hidden_layers", 0, PREDICTION),
    ("num_mtp_modules", 0, PREDICTION),
    ("q_lora_rank", 0, LATENT),
    ("kv_lora_rank", 0, LATENT),
    (
        "num_kv_shared_layers",
        0,
        "layers that share keys and values",
    ),
    ("hidden_size_per_layer_input", 0, "embeddings of each layer"),
];

/// Fields that only networks of other kinds have.
const OTHER_FIELDS: &[(&str, &str)] = &[
    ("ssm_cfg", STATE_SPACE),
    ("mamba_d_state", STATE_SPACE),
    ("attn_layer_period", STATE_SPACE),
    ("linear_num_key_heads", STATE_SPACE),
    ("hybrid_override_pattern", STATE_SPACE),
    ("layers_block_type", STATE_SPACE),
    ("block_configs", "layers of different shapes"),
    ("cross_attention_layers", "cross-attention"),
];

/// Fields that describe a network that is not modelled, with what it is.
pub(crate) fn unsupported(fields: &Map<String, Json>) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    if let Some(model_type) = fields.get("model_type").and_then(Json::as_str) {
        let other = OTHER_TYPES.iter().find(|(name, _)| *name == model_type);
        if let Some((_, what)) = other {
            found.push(("model_type".to_owned(), *what));
        } else if model_type.ends_with("_moe") || model_type.ends_with("moe") {
            found.push(("model_type".to_owned(), MIXTURE));
        }
    }
    for (field, harmless, what) in COUNTS {
        let count = fields.get(*field).and_then(Json::as_f64);
        if count.is_some_and(|count| count > *harmless as f64) {
            found.push(((*field).to_owned(), *what));
        }
    }
    for (field, what) in OTHER_FIELDS {
        if fields.contains_key(*field) {
            found.push(((*field).to_owned(), *what));
        }
    }
    for (field, what) in [
        ("is_encoder_decoder", ENCODER),
        ("add_cross_attention", ENCODER),
    ] {
        if fields.get(field) == Some(&Json::Bool(true)) {
            found.push((field.to_owned(), what));
        }
    }
    let inner = fields.get("word_embed_proj_dim");
    if inner.is_some() && inner != fields.get("hidden_size") {
        let what = "embeddings narrower than the hidden size";
        found.push(("word_embed_proj_dim".to_owned(), what));
    }
    let kinds = layer_types(fields);
    if kinds
        .iter()
        .any(|kind| !kind.ends_with("full_attention") && *kind != SLIDING)
    {
        found.push(("layer_types".to_owned(), STATE_SPACE));
    }
    found
}

const SLIDING: &str = "sliding_attention";

fn layer_types(fields: &Map<String, Json>) -> Vec<&str> {
    fields
        .get("layer_types")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect()
}

/// What fields say that is modelled only in part.
pub(crate) fn warnings(fields: &Map<String, Json>) -> Vec<String> {
    let mut warnings = Vec::new();
    let window = fields.contains_key("sliding_window")
        && fields.get("use_sliding_window") != Some(&Json::Bool(false));
    if window || layer_types(fields).contains(&SLIDING) {
        warnings.push("`sliding_window`: attention is modelled over the whole sequence".to_owned());
    }
    if fields.contains_key("quantization_config") {
        let text = "`quantization_config` has no effect: training uses the instance's precision";
        warnings.push(text.to_owned());
    }
    if fields.get("do_layer_norm_before") == Some(&Json::Bool(false)) {
        warnings.push("`do_layer_norm_before`: modelled as if norms came first".to_owned());
    }
    warnings
}
