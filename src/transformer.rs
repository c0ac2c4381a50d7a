//! The network that is trained: its shape, its parameters.

use crate::choice::choice;

/// A dense decoder-only transformer.
///
/// Symbols of the paper (Hagemann et al., arXiv 2311.05610): `L` layers, `h` hidden size,
/// `a` heads, `f` feed-forward width, `V` vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Width of the feed-forward block, `f`.
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
}

choice!(
    /// Structure of a feed-forward block.
    FeedForward, "a feed-forward block" {
        /// Three matrices: gate, up, down (`SwiGLU` and kin).
        Gated = "gated",
        /// Two matrices: up, down.
        Plain = "plain",
    }
);

/// A part of a layer with an input norm and a residual connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Block {
    /// Attention with its projections.
    Attention,
    /// The dense feed-forward network.
    FeedForward,
}

/// A kind of layer: the blocks that it passes through, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerKind {
    /// Its blocks.
    pub blocks: &'static [Block],
}

impl LayerKind {
    /// Attention, then a dense feed-forward network.
    pub const DENSE: Self = Self {
        blocks: &[Block::Attention, Block::FeedForward],
    };
}

choice!(
    /// Whether input embedding and output layer share their weights.
    Embeddings, "a kind of embeddings" {
        /// Two matrices of `V h` weights.
        Untied = "untied",
        /// One matrix of `V h` weights.
        Tied = "tied",
    }
);

choice!(
    /// The normalisation of a block's input.
    Normalization, "a normalization" {
        /// One weight an element.
        RmsNorm = "rmsnorm",
        /// A weight and a bias an element.
        LayerNorm = "layernorm",
    }
);

choice!(
    /// Which linear layers carry a bias.
    Biases, "a set of biases" {
        /// None (LLaMA).
        None = "none",
        /// Query, key and value only (Qwen 2).
        QueryKeyValue = "query-key-value",
        /// All (GPT).
        All = "all",
    }
);

impl FeedForward {
    /// Weight matrices of `h f` entries.
    #[must_use]
    pub const fn matrices(self) -> u64 {
        match self {
            Self::Gated => 3,
            Self::Plain => 2,
        }
    }
}

impl Transformer {
    /// The kinds of its layers.
    #[must_use]
    pub const fn kinds(&self) -> &'static [LayerKind] {
        &[LayerKind::DENSE]
    }

    /// Width of all heads together: `h`, unless the head width is set apart.
    #[must_use]
    pub const fn attention_width(&self) -> u64 {
        self.heads * self.head_width
    }

    /// Width of all key (or value) heads together.
    #[must_use]
    pub const fn key_value_width(&self) -> u64 {
        self.key_value_heads * self.head_width
    }

    /// Weights of the attention matrices of one layer: `2 h^2 (1 + kv_heads / a)`, that is
    /// `4 h^2` without grouped queries.
    #[must_use]
    pub const fn attention_weights(&self) -> u64 {
        2 * self.hidden * (self.attention_width() + self.key_value_width())
    }

    /// Weights of the feed-forward matrices of one layer: `3 h f` gated, `2 h f` plain.
    #[must_use]
    pub const fn feed_forward_weights(&self) -> u64 {
        self.feed_forward.matrices() * self.hidden * self.feed_forward_width
    }

    /// Weights of the matrices of one layer: `4 h^2 + 3 h f` for LLaMA.
    #[must_use]
    pub const fn layer_weights(&self) -> u64 {
        self.attention_weights() + self.feed_forward_weights()
    }

    /// Weights of one embedding matrix, `V h`.
    #[must_use]
    pub const fn embedding_weights(&self) -> u64 {
        self.vocabulary * self.hidden
    }

    /// The paper's `N = L (4 h^2 + 3 h f) + 2 V h`: the weights that matrix products use.
    /// A tied output layer computes as much as an untied one and counts as well.
    #[must_use]
    pub const fn matrix_weights(&self) -> u64 {
        self.layers as u64 * self.layer_weights() + 2 * self.embedding_weights()
    }

    /// The exact number of parameters, as a framework reports it: matrices, two norms a layer
    /// and a final one, biases, learned positions; a tied embedding counts once.
    #[must_use]
    pub const fn parameters(&self) -> u64 {
        let norm = match self.normalization {
            Normalization::RmsNorm => self.hidden,
            Normalization::LayerNorm => 2 * self.hidden,
        };
        let query_key_value = self.attention_width() + 2 * self.key_value_width();
        let up = (self.feed_forward.matrices() - 1) * self.feed_forward_width;
        let bias = match self.biases {
            Biases::None => 0,
            Biases::QueryKeyValue => query_key_value,
            Biases::All => query_key_value + self.hidden + up + self.hidden,
        };
        let embeddings = match self.embeddings {
            Embeddings::Tied => self.embedding_weights(),
            Embeddings::Untied => 2 * self.embedding_weights(),
        };
        let layer = self.layer_weights() + 2 * norm + bias;
        self.layers as u64 * layer + embeddings + self.learned_positions * self.hidden + norm
    }
}
