//! The network that is trained: its shape, its parameters.

mod attention;
mod experts;
mod layers;
mod numerics;
mod parameters;
mod parts;

pub use attention::{LatentAttention, Windows};
pub use experts::Experts;
pub use layers::{Block, LayerKind, LayerOrder};
pub use numerics::{Activation, Numerics, Positions, RopeScaling};
pub use parameters::Active;
pub use parts::{
    Biases, Embeddings, FeedForward, Normalization, OutputBias, QueryKeyNorms, SmallParts,
};

/// A decoder-only transformer, dense or with a mixture of experts.
///
/// Symbols of the paper (Hagemann et al., arXiv 2311.05610): `L` layers, `h` hidden size,
/// `a` heads, `f` feed-forward width, `V` vocabulary.
///
/// Fields are the keys of `[model]`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Transformer {
    /// What people call it.
    pub name: String,
    /// Layers, `L`.
    pub layers: u32,
    /// Hidden size, `h`.
    pub hidden: u64,
    /// Attention heads, `a`.
    pub heads: u64,
    /// Heads of keys and values: `a` without grouped-query attention.
    pub key_value_heads: u64,
    /// Width of one head, usually `h / a`.
    pub head_width: u64,
    /// Width of the dense feed-forward block, `f`; 0 where no layer has one.
    pub feed_forward_width: u64,
    /// Structure of the feed-forward block.
    pub feed_forward: FeedForward,
    /// Entries of the vocabulary, `V`.
    pub vocabulary: u64,
    /// Whether the output layer shares the input embedding's weights.
    pub embeddings: Embeddings,
    /// Which normalisation each block starts with.
    pub normalization: Normalization,
    /// Which linear layers carry a bias.
    pub biases: Biases,
    /// Learned position embeddings (entries); 0 with rotary embeddings.
    pub learned_positions: u64,
    /// The experts that take the place of the dense feed-forward block in most layers, if any.
    #[serde(flatten)]
    pub experts: Option<Experts>,
    /// Queries, keys and values through low-rank projections, where attention is latent.
    #[serde(flatten)]
    pub latent_attention: Option<LatentAttention>,
    /// Windows of attention, where not every layer sees the whole sequence.
    #[serde(flatten)]
    pub windows: Option<Windows>,
    /// Layers that predict further tokens, after the last (DeepSeek-V3, arXiv 2412.19437, section 2.2).
    #[serde(skip_serializing_if = "is_zero")]
    pub prediction_layers: u32,
    /// Small parts that differ between families.
    #[serde(flatten)]
    pub small_parts: SmallParts,
    /// What it computes besides: neither time nor memory depends on it, but who trains it has to know.
    #[serde(flatten)]
    pub numerics: Numerics,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
