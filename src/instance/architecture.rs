//! What the `model_type` of a `config.json` implies beyond the fields that it writes.

use crate::transformer::{Biases, FeedForward, Normalization};

/// A family of networks.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// Values of `model_type`.
    types: &'static [&'static str],
    /// Structure of the feed-forward block.
    pub(crate) feed_forward: FeedForward,
    /// Normalization of each block's input.
    pub(crate) normalization: Normalization,
    /// Which linear layers carry a bias.
    pub(crate) biases: AttentionBias,
    /// Whether embeddings are tied if the config does not say.
    pub(crate) tied: bool,
    /// Position embeddings.
    pub(crate) positions: Positions,
    /// Width of a head if the config does not say; else `hidden / heads`.
    pub(crate) default_head_width: Option<u64>,
    /// Feed-forward width in hidden sizes if the config does not say.
    pub(crate) default_expansion: Option<u64>,
    /// Further fields that are understood.
    pub(crate) fields: &'static [&'static str],
    /// Parameters that the count leaves out.
    pub(crate) uncounted: Option<&'static str>,
}

/// Where the biases of a family are stated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AttentionBias {
    /// Nowhere: all networks of the family have these.
    Fixed(Biases),
    /// By `attention_bias` and `mlp_bias`.
    Stated {
        /// Where the config does not say.
        default: bool,
    },
}

/// Position embeddings of a family.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Positions {
    /// Without parameters.
    Rotary,
    /// A table.
    Learned {
        /// The field with its number of entries.
        field: &'static str,
        /// Entries where the config does not say.
        default: u64,
        /// Further entries.
        extra: u64,
    },
}

const LLAMA: Architecture = Architecture {
    types: &["llama", "mistral", "granite", "phi3"],
    feed_forward: FeedForward::Gated,
    normalization: Normalization::RmsNorm,
    biases: AttentionBias::Stated { default: false },
    tied: false,
    positions: Positions::Rotary,
    default_head_width: None,
    default_expansion: None,
    fields: &["attention_bias", "mlp_bias", "tie_word_embeddings"],
    uncounted: None,
};

const GPT: Architecture = Architecture {
    types: &["gpt2"],
    feed_forward: FeedForward::Plain,
    normalization: Normalization::LayerNorm,
    biases: AttentionBias::Fixed(Biases::All),
    tied: true,
    positions: Positions::Learned {
        field: "n_positions",
        default: 1024,
        extra: 0,
    },
    default_expansion: Some(4),
    fields: &["n_positions", "n_ctx", "tie_word_embeddings"],
    ..LLAMA
};

const NORMS_OF_HEADS: Option<&str> = Some("the norms of queries and keys (under 0.01 %)");

static ARCHITECTURES: &[Architecture] = &[
    LLAMA,
    Architecture {
        types: &["qwen2"],
        biases: AttentionBias::Fixed(Biases::QueryKeyValue),
        ..LLAMA
    },
    Architecture {
        types: &["qwen3"],
        default_head_width: Some(128),
        uncounted: NORMS_OF_HEADS,
        ..LLAMA
    },
    Architecture {
        types: &["smollm3"],
        tied: true,
        ..LLAMA
    },
    Architecture {
        types: &["olmo2"],
        uncounted: NORMS_OF_HEADS,
        ..LLAMA
    },
    Architecture {
        types: &["gemma"],
        tied: true,
        default_head_width: Some(256),
        ..LLAMA
    },
    Architecture {
        types: &["gemma2", "gemma3_text"],
        tied: true,
        default_head_width: Some(256),
        uncounted: Some("the norms after attention and feed-forward block (under 0.01 %)"),
        ..LLAMA
    },
    GPT,
    Architecture {
        types: &["opt"],
        // The table keeps two entries for padding.
        positions: Positions::Learned {
            field: "max_position_embeddings",
            default: 2048,
            extra: 2,
        },
        default_expansion: None,
        fields: &[
            "max_position_embeddings",
            "word_embed_proj_dim",
            "tie_word_embeddings",
        ],
        ..GPT
    },
    Architecture {
        types: &["gpt_neox"],
        tied: false,
        positions: Positions::Rotary,
        default_expansion: None,
        fields: &["attention_bias", "tie_word_embeddings"],
        ..GPT
    },
    Architecture {
        types: &["starcoder2"],
        positions: Positions::Rotary,
        default_expansion: None,
        fields: &["use_bias", "tie_word_embeddings"],
        ..GPT
    },
];

/// The family of a `model_type`.
pub(crate) fn find(model_type: &str) -> Option<&'static Architecture> {
    ARCHITECTURES
        .iter()
        .find(|architecture| architecture.types.contains(&model_type))
}

/// The family that unknown types are taken for.
pub(crate) fn llama() -> &'static Architecture {
    &ARCHITECTURES[0]
}
