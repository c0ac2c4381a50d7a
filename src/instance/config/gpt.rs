//! Families with plain feed-forward blocks and `LayerNorm`, as GPT has them.

use serde_json::Value as Json;

use super::family::{Family, HeadWidth, KeyValueHeads, Width};
use super::keys::{Config, KEY_VALUE_HEADS};
use super::llama::{parallel, warn_of_parallel};
use super::shape::Shape;
use crate::transformer::{
    Activation, Biases, Embeddings, FeedForward, Normalization, Numerics, OutputBias, Positions,
    QueryKeyNorms,
};

const GPT: Family = Family {
    types: &["gpt2"],
    sizes: [12, 768, 12, 50257],
    width: Width::Hidden(4),
    key_value_heads: KeyValueHeads::Heads,
    head_width: HeadWidth::HiddenOverHeads,
    feed_forward: FeedForward::Plain,
    normalization: Normalization::LayerNorm,
    embeddings: Embeddings::Tied,
    numerics: DROPPING,
    rest: |config, shape| {
        shape.biases = Biases::All;
        shape.learned_positions = positions(config, 1024);
    },
};

/// Of most classes with plain feed-forward blocks.
const NUMERICS: Numerics = Numerics {
    activation: Activation::Gelu,
    ..Numerics::USUAL
};

/// The same with the dropout of GPT-2.
const DROPPING: Numerics = Numerics {
    hidden_dropout: 0.1,
    attention_dropout: 0.1,
    ..NUMERICS
};

/// Entries of a table of positions.
fn positions(config: &mut Config, default: u64) -> u64 {
    config
        .or(&["n_positions", "max_position_embeddings"], default)
        .count
}

/// Biases in the feed-forward block and the output layer, one norm for both blocks.
fn gptj(config: &mut Config, shape: &mut Shape) {
    shape.biases = Biases::FeedForward;
    shape.small_parts.output_bias = OutputBias::Vocabulary;
    parallel(config, shape);
}

pub(super) const FAMILIES: &[Family] = &[
    GPT,
    Family {
        types: &["gpt_bigcode"],
        key_value_heads: KeyValueHeads::Special,
        rest: |config, shape| {
            shape.biases = Biases::All;
            shape.learned_positions = positions(config, 1024);
            if config.flag("multi_query", true) {
                shape.key_value_heads.count = 1;
            }
            let why = "`multi_query` decides about them";
            config.agrees(KEY_VALUE_HEADS, shape.key_value_heads.count, why);
        },
        ..GPT
    },
    Family {
        types: &["gpt_neo"],
        sizes: [24, 2048, 16, 50257],
        rest: |config, shape| {
            shape.biases = Biases::AllButQueryKeyValue;
            shape.learned_positions = positions(config, 2048);
        },
        numerics: NUMERICS,
        ..GPT
    },
    Family {
        types: &["gptj", "codegen"],
        sizes: [28, 4096, 16, 50400],
        embeddings: Embeddings::Untied,
        rest: gptj,
        numerics: NUMERICS,
        ..GPT
    },
    Family {
        types: &["gpt_neox"],
        sizes: [44, 6144, 64, 50432],
        width: Width::Fixed(24576),
        embeddings: Embeddings::Untied,
        rest: |config, shape| {
            let attention = config.flag("attention_bias", true);
            shape.biases = config.biases([attention, attention, true]);
            if config.flag("use_parallel_residual", true) {
                warn_of_parallel(config);
            }
        },
        numerics: Numerics {
            rotary_share: 0.25,
            ..NUMERICS
        },
        ..GPT
    },
    Family {
        types: &["starcoder2"],
        sizes: [30, 3072, 24, 49152],
        width: Width::Fixed(12288),
        key_value_heads: KeyValueHeads::Default(2),
        head_width: HeadWidth::Stated,
        rest: |config, shape| {
            let on = config.flag("use_bias", true);
            shape.biases = config.biases([on; 3]);
        },
        numerics: NUMERICS,
        ..GPT
    },
    Family {
        types: &["opt"],
        sizes: [12, 768, 12, 50272],
        width: Width::Fixed(3072),
        rest: opt,
        numerics: Numerics {
            activation: Activation::Relu,
            hidden_dropout: 0.1,
            ..NUMERICS
        },
        ..GPT
    },
    Family {
        types: &["bloom"],
        // The sizes of the class are a toy's.
        sizes: [0, 0, 0, 250_880],
        rest: |_, shape| {
            shape.biases = Biases::All;
            shape.small_parts.outer_norms = 2;
        },
        numerics: Numerics {
            positions: Positions::Alibi,
            ..NUMERICS
        },
        ..GPT
    },
    Family {
        types: &["falcon", "RefinedWeb", "RefinedWebModel"],
        sizes: [32, 4544, 71, 65024],
        key_value_heads: KeyValueHeads::Special,
        rest: falcon,
        numerics: NUMERICS,
        ..GPT
    },
    Family {
        types: &["mpt"],
        sizes: [24, 2048, 16, 50368],
        key_value_heads: KeyValueHeads::Special,
        rest: mpt,
        numerics: Numerics {
            positions: Positions::Alibi,
            ..NUMERICS
        },
        ..GPT
    },
    Family {
        types: &["phi"],
        sizes: [24, 2048, 32, 51200],
        width: Width::Fixed(8192),
        key_value_heads: KeyValueHeads::Stated,
        head_width: HeadWidth::Stated,
        embeddings: Embeddings::Untied,
        rest: |config, shape| {
            shape.biases = Biases::All;
            shape.small_parts.output_bias = OutputBias::Vocabulary;
            parallel(config, shape);
            query_key_norms(config, shape, false);
        },
        numerics: Numerics {
            rotary_share: 0.5,
            ..NUMERICS
        },
        ..GPT
    },
    Family {
        types: &["persimmon"],
        sizes: [36, 4096, 64, 262_144],
        width: Width::Fixed(16384),
        embeddings: Embeddings::Untied,
        rest: |config, shape| {
            shape.biases = Biases::All;
            query_key_norms(config, shape, true);
        },
        numerics: Numerics {
            rotary_share: 0.5,
            rotary_base: 25e3,
            activation: Activation::SquaredRelu,
            ..NUMERICS
        },
        ..GPT
    },
    Family {
        types: &["nemotron"],
        sizes: [32, 6144, 48, 256_000],
        width: Width::Fixed(24576),
        key_value_heads: KeyValueHeads::Stated,
        head_width: HeadWidth::Stated,
        embeddings: Embeddings::Untied,
        rest: |config, shape| {
            let attention = config.flag("attention_bias", false);
            let feed_forward = config.flag("mlp_bias", false);
            shape.biases = config.biases([attention, attention, feed_forward]);
        },
        numerics: Numerics {
            rotary_share: 0.5,
            activation: Activation::SquaredRelu,
            ..NUMERICS
        },
        ..GPT
    },
];

fn query_key_norms(config: &mut Config, shape: &mut Shape, default: bool) {
    if config.flag("qk_layernorm", default) {
        shape.small_parts.query_key_norms = QueryKeyNorms::HeadWithBias;
    }
}

fn opt(config: &mut Config, shape: &mut Shape) {
    let on = config.flag("enable_bias", true);
    shape.biases = config.biases([on; 3]);
    // The table keeps two entries for padding.
    shape.learned_positions = positions(config, 2048).saturating_add(2);
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
    let stated = config.stated(KEY_VALUE_HEADS);
    if new {
        shape.key_value_heads = stated.unwrap_or_else(|| shape.heads.clone());
    } else if multi_query {
        shape.key_value_heads.count = 1;
    }
    let on = config.flag("bias", false);
    shape.biases = config.biases([on; 3]);
    let norms = config.stated(&["num_ln_in_parallel_attn"]);
    if config.flag("parallel_attn", true) {
        shape.small_parts.layer_norms = match norms {
            Some(norms) if norms.count == 2 => 2,
            None if new => 2,
            _ => 1,
        };
        warn_of_parallel(config);
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
