//! Families whose code ships with the weights, not with Hugging Face's library.

use super::family::{Family, HeadWidth, KeyValueHeads, Width};
use super::keys::{Config, HEAD_WIDTH, KEY_VALUE_HEADS};
use super::shape::Shape;
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization, Numerics};

const GATED: Family = Family {
    types: &[],
    sizes: [0; 4],
    width: Width::Fixed(0),
    key_value_heads: KeyValueHeads::Heads,
    head_width: HeadWidth::HiddenOverHeads,
    feed_forward: FeedForward::Gated,
    normalization: Normalization::RmsNorm,
    embeddings: Embeddings::Untied,
    numerics: Numerics {
        norm_epsilon: 1e-6,
        ..Numerics::USUAL
    },
    rest: |_, _| (),
};

/// `bias` of all attention matrices.
fn attention(config: &mut Config, shape: &mut Shape) {
    let on = config.flag("bias", true);
    shape.biases = config.biases([on, on, false]);
}

pub(super) const FAMILIES: &[Family] = &[
    Family {
        types: &["baichuan"],
        ..GATED
    },
    Family {
        types: &["Yi"],
        key_value_heads: KeyValueHeads::Stated,
        ..GATED
    },
    Family {
        types: &["internlm"],
        rest: attention,
        ..GATED
    },
    Family {
        types: &["internlm2"],
        key_value_heads: KeyValueHeads::Stated,
        rest: attention,
        ..GATED
    },
    Family {
        types: &["exaone"],
        width: Width::Hidden(4),
        key_value_heads: KeyValueHeads::Stated,
        head_width: HeadWidth::Stated,
        embeddings: Embeddings::Tied,
        ..GATED
    },
    Family {
        types: &["minicpm"],
        key_value_heads: KeyValueHeads::Stated,
        embeddings: Embeddings::Tied,
        rest: |config, shape| {
            if config.is_absent(&["tie_word_embeddings"]) {
                config.problems.warn(
                    "the config does not say `tie_word_embeddings`: read as tied, as in \
                     MiniCPM-2B",
                );
            }
            let on = config.flag("attention_bias", false);
            shape.biases = config.biases([on, on, false]);
        },
        ..GATED
    },
    Family {
        types: &["qwen"],
        head_width: HeadWidth::Stated,
        rest: qwen,
        ..GATED
    },
    Family {
        types: &["chatglm"],
        key_value_heads: KeyValueHeads::Special,
        head_width: HeadWidth::Stated,
        numerics: Numerics {
            rotary_share: 0.5,
            ..Numerics::USUAL
        },
        rest: chatglm,
        ..GATED
    },
];

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
    config.agrees(KEY_VALUE_HEADS, shape.key_value_heads.count, why);
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
    if config.is_absent(HEAD_WIDTH) {
        shape.head_width = Some(config.or(HEAD_WIDTH, 128));
    }
}
