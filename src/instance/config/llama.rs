//! Families with gated feed-forward blocks and `RMSNorm`, as LLaMA has them, and their kin.

use super::family::{Family, HeadWidth, KeyValueHeads, Width};
use super::keys::Config;
use super::shape::Shape;
use crate::transformer::{
    Activation, Biases, Embeddings, FeedForward, Normalization, Numerics, QueryKeyNorms,
};

const LLAMA: Family = Family {
    types: &["llama"],
    sizes: [32, 4096, 32, 32000],
    width: Width::Fixed(11008),
    key_value_heads: KeyValueHeads::Stated,
    head_width: HeadWidth::Stated,
    feed_forward: FeedForward::Gated,
    normalization: Normalization::RmsNorm,
    embeddings: Embeddings::Untied,
    numerics: NUMERICS,
    rest: stated_biases,
};

/// Of the LLaMA class of Hugging Face.
const NUMERICS: Numerics = Numerics {
    norm_epsilon: 1e-6,
    ..Numerics::USUAL
};

/// The same with the epsilon that most later families have.
const LARGER_EPSILON: Numerics = Numerics::USUAL;

/// What an unknown `model_type` is taken for: every size must be stated.
pub(super) const UNKNOWN: Family = Family {
    types: &[],
    sizes: [0; 4],
    width: Width::Fixed(0),
    ..LLAMA
};

/// Activation functions that only gated blocks have.
const GATED: &[&str] = &["silu", "swish", "swiglu"];

/// Refuses an unknown type whose feed-forward block may have two matrices.
pub(super) fn check_unknown(config: &mut Config) {
    let activation = config.value("hidden_act").and_then(|act| act.as_str());
    if let Some(activation) = activation.filter(|name| !GATED.contains(name)) {
        let text = format!(
            "the `model_type` is not known, and `hidden_act` `{activation}` leaves open whether \
             its feed-forward block has two or three matrices"
        );
        let hint = "describe the network by the keys of its shape in `[model]`, without `config`";
        config.refuse("hidden_act", text, hint);
    }
}

/// `attention_bias` of all attention matrices, `mlp_bias` of all others.
fn stated_biases(config: &mut Config, shape: &mut Shape) {
    let attention = config.flag("attention_bias", false);
    let feed_forward = config.flag("mlp_bias", false);
    shape.biases = config.biases([attention, attention, feed_forward]);
}

fn no_biases(_: &mut Config, _: &mut Shape) {}

/// `attention_bias` of all attention matrices; the feed-forward block has none.
fn attention_bias(config: &mut Config, shape: &mut Shape) {
    let attention = config.flag("attention_bias", false);
    shape.biases = config.biases([attention, attention, false]);
}

fn head_norms(config: &mut Config, shape: &mut Shape) {
    attention_bias(config, shape);
    shape.small_parts.query_key_norms = QueryKeyNorms::Head;
}

fn full_norms(config: &mut Config, shape: &mut Shape) {
    attention_bias(config, shape);
    shape.small_parts.query_key_norms = QueryKeyNorms::Full;
}

/// `attention_bias` of query, key and value.
fn glm(config: &mut Config, shape: &mut Shape) {
    let attention = config.flag("attention_bias", true);
    shape.biases = config.biases([attention, false, false]);
}

pub(super) const FAMILIES: &[Family] = &[
    LLAMA,
    Family {
        types: &["mistral", "ministral"],
        width: Width::Fixed(14336),
        key_value_heads: KeyValueHeads::Default(8),
        rest: no_biases,
        ..LLAMA
    },
    Family {
        types: &["granite"],
        ..LLAMA
    },
    Family {
        types: &["phi3"],
        sizes: [32, 3072, 32, 32064],
        width: Width::Fixed(8192),
        rest: no_biases,
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["qwen2"],
        sizes: [32, 4096, 32, 151_936],
        width: Width::Fixed(22016),
        key_value_heads: KeyValueHeads::Default(32),
        rest: |_, shape| shape.biases = Biases::QueryKeyValue,
        ..LLAMA
    },
    Family {
        types: &["qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"],
        sizes: [80, 8192, 64, 152_064],
        width: Width::Fixed(29568),
        key_value_heads: KeyValueHeads::Default(8),
        rest: |_, shape| shape.biases = Biases::QueryKeyValue,
        ..LLAMA
    },
    Family {
        types: &["qwen3", "qwen3_vl_text"],
        sizes: [32, 4096, 32, 151_936],
        width: Width::Fixed(22016),
        key_value_heads: KeyValueHeads::Default(32),
        head_width: HeadWidth::Default(128),
        rest: head_norms,
        ..LLAMA
    },
    Family {
        types: &["smollm3"],
        sizes: [36, 2048, 16, 128_256],
        key_value_heads: KeyValueHeads::Default(4),
        embeddings: Embeddings::Tied,
        numerics: Numerics {
            rotary_base: 2e6,
            ..NUMERICS
        },
        ..LLAMA
    },
    Family {
        types: &["olmo"],
        sizes: [32, 4096, 32, 50304],
        normalization: Normalization::LayerNormWithoutParameters,
        rest: attention_bias,
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["olmo2", "olmo3"],
        sizes: [32, 4096, 32, 50304],
        rest: full_norms,
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["gemma"],
        sizes: [28, 3072, 16, 256_000],
        width: Width::Fixed(24576),
        key_value_heads: KeyValueHeads::Default(16),
        head_width: HeadWidth::Default(256),
        embeddings: Embeddings::Tied,
        rest: attention_bias,
        numerics: Numerics {
            activation: Activation::Gelu,
            ..NUMERICS
        },
        ..LLAMA
    },
    Family {
        types: &["gemma2"],
        rest: |config, shape| {
            attention_bias(config, shape);
            shape.small_parts.layer_norms = 4;
        },
        ..GEMMA2
    },
    Family {
        types: &["gemma3_text", "gemma3"],
        sizes: [26, 2304, 8, 262_208],
        rest: |config, shape| {
            head_norms(config, shape);
            shape.small_parts.layer_norms = 4;
        },
        numerics: Numerics {
            activation: Activation::Gelu,
            rotary_base: 1e6,
            ..NUMERICS
        },
        ..GEMMA2
    },
    Family {
        types: &["cohere"],
        sizes: [40, 8192, 64, 256_000],
        width: Width::Fixed(22528),
        head_width: HeadWidth::HiddenOverHeads,
        normalization: Normalization::LayerNormWithoutBias,
        embeddings: Embeddings::Tied,
        rest: |config, shape| {
            attention_bias(config, shape);
            parallel(config, shape);
            if config.flag("use_qk_norm", false) {
                shape.small_parts.query_key_norms = QueryKeyNorms::Full;
            }
        },
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["cohere2"],
        sizes: [40, 8192, 64, 256_000],
        width: Width::Fixed(22528),
        normalization: Normalization::LayerNormWithoutBias,
        embeddings: Embeddings::Tied,
        rest: |config, shape| {
            attention_bias(config, shape);
            parallel(config, shape);
        },
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["glm"],
        rest: glm,
        ..GLM
    },
    Family {
        types: &["glm4"],
        rest: |config, shape| {
            glm(config, shape);
            shape.small_parts.layer_norms = 4;
        },
        ..GLM
    },
    Family {
        types: &["stablelm"],
        sizes: [32, 2560, 32, 50304],
        width: Width::Fixed(6912),
        key_value_heads: KeyValueHeads::Default(32),
        head_width: HeadWidth::HiddenOverHeads,
        normalization: Normalization::LayerNorm,
        rest: |config, shape| {
            let query_key_value = config.flag("use_qkv_bias", false);
            shape.biases = config.biases([query_key_value, false, false]);
            if config.flag("use_parallel_residual", false) {
                parallel(config, shape);
            }
            // One for each head, without a bias.
            if config.flag("qk_layernorm", false) {
                shape.small_parts.query_key_norms = QueryKeyNorms::Full;
            }
        },
        numerics: Numerics {
            rotary_share: 0.25,
            norm_epsilon: 1e-5,
            ..NUMERICS
        },
        ..LLAMA
    },
    Family {
        types: &["helium"],
        sizes: [24, 2560, 20, 48000],
        width: Width::Fixed(7040),
        key_value_heads: KeyValueHeads::Default(20),
        head_width: HeadWidth::Default(128),
        rest: |config, shape| {
            let attention = config.flag("attention_bias", false);
            let feed_forward = config.flag("mlp_bias", false);
            shape.biases = config.biases([attention, false, feed_forward]);
        },
        numerics: Numerics {
            rotary_base: 1e5,
            norm_epsilon: 1e-8,
            ..NUMERICS
        },
        ..LLAMA
    },
    Family {
        types: &["ernie4_5"],
        sizes: [18, 1024, 16, 103_424],
        width: Width::Fixed(3072),
        key_value_heads: KeyValueHeads::Default(2),
        head_width: HeadWidth::Default(128),
        embeddings: Embeddings::Tied,
        rest: |config, shape| {
            let on = config.flag("use_bias", false);
            shape.biases = config.biases([on; 3]);
        },
        numerics: Numerics {
            rotary_base: 5e5,
            norm_epsilon: 1e-5,
            ..NUMERICS
        },
        ..LLAMA
    },
    Family {
        types: &["seed_oss"],
        sizes: [64, 4096, 80, 155_136],
        width: Width::Fixed(27648),
        key_value_heads: KeyValueHeads::Default(8),
        head_width: HeadWidth::Default(128),
        rest: |config, shape| {
            let query_key_value = config.flag("attention_bias", true);
            let output = config.flag("attention_out_bias", false);
            let feed_forward = config.flag("mlp_bias", false);
            shape.biases = config.biases([query_key_value, output, feed_forward]);
        },
        ..LLAMA
    },
    Family {
        types: &["exaone4"],
        sizes: [32, 4096, 32, 102_400],
        width: Width::Fixed(16384),
        key_value_heads: KeyValueHeads::Default(32),
        rest: |_, shape| shape.small_parts.query_key_norms = QueryKeyNorms::Head,
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["hunyuan_v1_dense"],
        sizes: [32, 4096, 32, 290_943],
        rest: head_norms,
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["arcee"],
        sizes: [32, 2560, 32, 32000],
        width: Width::Fixed(18432),
        feed_forward: FeedForward::Plain,
        numerics: LARGER_EPSILON,
        ..LLAMA
    },
    Family {
        types: &["apertus"],
        sizes: [32, 4096, 32, 131_072],
        width: Width::Fixed(14336),
        feed_forward: FeedForward::Plain,
        rest: |config, shape| {
            head_norms(config, shape);
            shape.small_parts.activation_parameters = 2;
        },
        numerics: Numerics {
            rotary_base: 12e6,
            norm_epsilon: 1e-5,
            activation: Activation::Other,
            ..NUMERICS
        },
        ..LLAMA
    },
];

const GEMMA2: Family = Family {
    types: &[],
    sizes: [26, 2304, 8, 256_000],
    width: Width::Fixed(9216),
    key_value_heads: KeyValueHeads::Default(4),
    head_width: HeadWidth::Default(256),
    embeddings: Embeddings::Tied,
    numerics: Numerics {
        activation: Activation::Gelu,
        ..NUMERICS
    },
    ..LLAMA
};

const GLM: Family = Family {
    types: &[],
    sizes: [40, 4096, 32, 151_552],
    width: Width::Fixed(13696),
    key_value_heads: KeyValueHeads::Default(2),
    head_width: HeadWidth::Default(128),
    numerics: Numerics {
        rotary_share: 0.5,
        norm_epsilon: 1.562_5e-7,
        ..NUMERICS
    },
    ..LLAMA
};

/// Attention and feed-forward block read one norm's output.
pub(super) fn parallel(config: &mut Config, shape: &mut Shape) {
    shape.small_parts.layer_norms = 1;
    warn_of_parallel(config);
}

pub(super) fn warn_of_parallel(config: &mut Config) {
    config.problems.warn(
        "attention and feed-forward block run side by side: their time is modelled as if one \
         followed the other",
    );
}
