//! What single families mean that `catalog/config-json.toml` cannot say.

use serde::Deserialize;
use serde_json::Value as Json;

use super::fields::names;
use super::keys::Config;
use super::shape::Shape;
use crate::transformer::{Biases, Normalization, Positions};

/// The function of a family.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Name {
    Chatglm,
    Dbrx,
    Falcon,
    GptBigcode,
    Minicpm,
    Mpt,
    Opt,
    Qwen,
}

impl Name {
    /// Reads what the family has besides.
    pub(super) fn read(self, config: &mut Config, shape: &mut Shape) {
        match self {
            Self::Chatglm => chatglm(config, shape),
            Self::Dbrx => dbrx(config, shape),
            Self::Falcon => falcon(config, shape),
            Self::GptBigcode => gpt_bigcode(config, shape),
            Self::Minicpm => minicpm(config),
            Self::Mpt => mpt(config, shape),
            Self::Opt => opt(config, shape),
            Self::Qwen => qwen(config, shape),
        }
    }
}

fn gpt_bigcode(config: &mut Config, shape: &mut Shape) {
    if config.flag("multi_query", true) {
        shape.key_value_heads.count = 1;
    }
    let why = "`multi_query` decides about them";
    config.agrees(names("key_value_heads"), shape.key_value_heads.count, why);
}

fn minicpm(config: &mut Config) {
    if config.is_absent(&["tie_word_embeddings"]) {
        let text = "the config does not say `tie_word_embeddings`: read as tied, as in MiniCPM-2B";
        config.problems.warn(text);
    }
}

fn opt(config: &mut Config, shape: &mut Shape) {
    // The table keeps two entries for padding.
    shape.learned_positions = shape.learned_positions.saturating_add(2);
    if !config.flag("layer_norm_elementwise_affine", true) {
        shape.normalization = Normalization::LayerNormWithoutParameters;
    }
    if !config.flag("do_layer_norm_before", true) {
        let text = "`do_layer_norm_before` is false: norms after the blocks are not modelled yet";
        config.refuse("do_layer_norm_before", text, "plan for another model");
    }
    if config.flag("_remove_final_layer_norm", false) {
        let text = "`_remove_final_layer_norm`: a network without a last norm is not modelled yet";
        config.refuse("_remove_final_layer_norm", text, "plan for another model");
    }
    if let Some(size) = config.stated(&["word_embed_proj_dim"])
        && size.count != shape.hidden.count
    {
        let text = format!(
            "`word_embed_proj_dim` is {}: embeddings narrower than the hidden size are not \
             modelled yet",
            size.count
        );
        config.refuse("word_embed_proj_dim", text, "plan for another model");
    }
}

fn falcon(config: &mut Config, shape: &mut Shape) {
    let legacy = config.model_type() == Some("RefinedWeb");
    let new = config.flag("new_decoder_architecture", legacy);
    let multi_query = config.flag("multi_query", !legacy);
    let stated = config.stated(names("key_value_heads"));
    if new {
        shape.key_value_heads = stated.unwrap_or_else(|| shape.heads.clone());
    } else if multi_query {
        shape.key_value_heads.count = 1;
    }
    let norms = config.stated(&["num_ln_in_parallel_attn"]);
    if config.flag("parallel_attn", true) {
        shape.small_parts.layer_norms = match norms {
            Some(norms) if norms.count == 2 => 2,
            None if new => 2,
            _ => 1,
        };
        config.warn_of_parallel();
    }
    let factor = shape.feed_forward_width.count / shape.hidden.count;
    config.agrees(
        &["ff_factor"],
        factor,
        "the width of the feed-forward block says otherwise",
    );
}

fn mpt(config: &mut Config, shape: &mut Shape) {
    let times = config.or(&["expansion_ratio"], 4).count;
    shape.feed_forward_width.count = shape.hidden.count.saturating_mul(times);
    if config.flag("no_bias", true) {
        shape.normalization = Normalization::LayerNormWithoutBias;
    } else {
        shape.biases = Biases::All;
    }
    let learned = config.flag("learned_pos_emb", true);
    let length = config.or(&["max_seq_len"], 2048).count;
    let mut attention = match config.value("attn_config") {
        Some(Json::Object(fields)) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    let kind = attention.remove("attn_type");
    let kind = kind.as_ref().and_then(Json::as_str);
    let groups = attention
        .remove("kv_n_heads")
        .and_then(|heads| heads.as_u64());
    match kind.unwrap_or("multihead_attention") {
        "multihead_attention" => {}
        "multiquery_attention" => shape.key_value_heads.count = 1,
        "grouped_query_attention" if groups.is_some() => {
            shape.key_value_heads.count = groups.unwrap_or(1);
        }
        other => {
            let text = format!("`attn_type` `{other}` is not modelled");
            config.refuse("attn_type", text, "known is `multihead_attention`");
        }
    }
    let on = |name: &str| attention.get(name) == Some(&Json::Bool(true));
    if on("qk_ln") || on("qk_gn") {
        let text = "`qk_ln`: norms of queries and keys are not modelled for `mpt`";
        config.refuse("qk_ln", text, "plan for another model");
    }
    let alibi = attention.get("alibi") != Some(&Json::Bool(false));
    if !alibi {
        shape.numerics.positions = Positions::Rotary;
    }
    if learned && !alibi && !on("rope") {
        shape.learned_positions = length;
    }
    let norm = config.value("norm_type").and_then(Json::as_str);
    if let Some(norm) = norm.filter(|norm| !norm.ends_with("layernorm")) {
        let text = format!("`norm_type` `{norm}` is not modelled for `mpt`");
        config.refuse("norm_type", text, "known is `low_precision_layernorm`");
    }
    let block = config
        .value("ffn_config")
        .and_then(|block| block.get("ffn_type"));
    if let Some(block) = block
        .and_then(Json::as_str)
        .filter(|block| *block != "mptmlp")
    {
        let text = format!("`ffn_type` `{block}` is not modelled");
        config.refuse("ffn_type", text, "known is `mptmlp`");
    }
}

/// Its fields on attention and experts are nested.
fn dbrx(config: &mut Config, shape: &mut Shape) {
    let attention = config.value("attn_config").cloned().unwrap_or_default();
    let block = config.value("ffn_config").cloned().unwrap_or_default();
    let nested = |fields: &Json, name: &str| fields.get(name).and_then(Json::as_u64);
    if let Some(groups) = nested(&attention, "kv_n_heads") {
        shape.key_value_heads.count = groups.max(1);
    }
    if let Some(base) = attention.get("rope_theta").and_then(Json::as_f64) {
        shape.numerics.rotary_base = base;
    }
    if let Some(experts) = &mut shape.experts {
        for (name, size) in [
            ("moe_num_experts", &mut experts.experts),
            ("moe_top_k", &mut experts.experts_per_token),
            ("ffn_hidden_size", &mut experts.expert_width),
        ] {
            size.count = nested(&block, name).unwrap_or(size.count).max(1);
        }
    }
}

/// The first Qwen: `intermediate_size` is the width of gate and up together.
fn qwen(config: &mut Config, shape: &mut Shape) {
    let both = shape.feed_forward_width.count;
    if both.is_multiple_of(2) {
        shape.feed_forward_width.count = both / 2;
    } else {
        let text = format!(
            "`intermediate_size` is {both}, but for `qwen` it is the width of two matrices together"
        );
        config.refuse("intermediate_size", text, "give an even number");
    }
    shape.biases = if config.flag("no_bias", true) {
        Biases::QueryKeyValue
    } else {
        Biases::All
    };
}

/// `ChatGLM` 2 and 3, GLM-4 before it came to Hugging Face's library.
fn chatglm(config: &mut Config, shape: &mut Shape) {
    if !config.is_absent(&["inner_hidden_size", "position_encoding_2d"]) {
        let text = "the first ChatGLM is not modelled";
        config.refuse("inner_hidden_size", text, "plan for ChatGLM 2 or later");
        config.read.insert("inner_hidden_size".to_owned());
    }
    let groups = config.or(&["multi_query_group_num"], 1);
    if config.flag("multi_query_attention", false) {
        shape.key_value_heads = groups;
    }
    let why = "`multi_query_group_num` decides about them";
    config.agrees(names("key_value_heads"), shape.key_value_heads.count, why);
    let linear = config.flag("add_bias_linear", false);
    let query_key_value = config.flag("add_qkv_bias", false) || linear;
    shape.biases = config.biases([query_key_value, linear, linear]);
    if !config.flag("rmsnorm", true) {
        shape.normalization = Normalization::LayerNorm;
    }
    if !config.flag("post_layer_norm", true) {
        let text = "`post_layer_norm`: a network without a last norm is not modelled yet";
        config.refuse("post_layer_norm", text, "plan for another model");
    }
    if config.is_absent(names("head_width")) {
        shape.head_width = Some(config.or(names("head_width"), 128));
    }
}
