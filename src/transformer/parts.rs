//! Kinds of the parts that every network has, and small parts that differ between families.

use crate::choice::choice;

choice!(
    /// Structure of a feed-forward block.
    FeedForward, "a feed-forward block" {
        /// Three matrices: gate, up, down (`SwiGLU` and kin).
        Gated = "gated",
        /// Two matrices: up, down.
        Plain = "plain",
    }
);

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
        /// `LayerNorm` with a weight and no bias (Cohere, MPT).
        LayerNormWithoutBias = "layernorm-without-bias",
        /// `LayerNorm` with neither (the first `OLMo`).
        LayerNormWithoutParameters = "layernorm-without-parameters",
    }
);

choice!(
    /// Which linear layers carry a bias.
    Biases, "a set of biases" {
        /// None (LLaMA).
        None = "none",
        /// Query, key and value only (Qwen 2).
        QueryKeyValue = "query-key-value",
        /// All of the attention.
        Attention = "attention",
        /// Those of the feed-forward block (GPT-J).
        FeedForward = "feed-forward",
        /// All but query, key and value (GPT-Neo).
        AllButQueryKeyValue = "all-but-query-key-value",
        /// All but the attention's output.
        AllButAttentionOutput = "all-but-attention-output",
        /// All (GPT).
        All = "all",
    }
);

/// Small parts that differ between families and together hold less than 0.1 % of the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SmallParts {
    /// Norms of the hidden size in one layer: 1 where attention and feed-forward block share
    /// theirs (Falcon 7B), 4 where each has one before and one after (Gemma 2).
    pub layer_norms: u64,
    /// Norms of the hidden size outside the layers: the last one, in BLOOM also the embedding's.
    pub outer_norms: u64,
    /// Norms of queries and keys.
    pub query_key_norms: QueryKeyNorms,
    /// Whether the output layer has a bias.
    pub output_bias: OutputBias,
    /// Learned numbers in one layer's activation function (2 in Apertus).
    pub activation_parameters: u64,
    /// Learned numbers for each head that join its softmax: 1 with attention sinks (gpt-oss).
    pub attention_sinks: u64,
}

impl Default for SmallParts {
    fn default() -> Self {
        Self {
            layer_norms: 2,
            outer_norms: 1,
            query_key_norms: QueryKeyNorms::None,
            output_bias: OutputBias::None,
            activation_parameters: 0,
            attention_sinks: 0,
        }
    }
}

choice!(
    /// Norms of queries and keys before their product.
    QueryKeyNorms, "a kind of norms of queries and keys" {
        /// None.
        None = "none",
        /// One of the width of a head for all query heads, one for all key heads (Qwen 3).
        Head = "head",
        /// The same with a bias (Persimmon).
        HeadWithBias = "head-with-bias",
        /// One weight for each element of queries and keys (`OLMo` 2).
        Full = "full",
    }
);

choice!(
    /// The bias of the output layer.
    OutputBias, "a bias of the output layer" {
        /// None.
        None = "none",
        /// One number for each entry of the vocabulary (Phi 2).
        Vocabulary = "vocabulary",
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

impl Normalization {
    /// Parameters for each element.
    #[must_use]
    pub const fn parameters(self) -> u64 {
        match self {
            Self::LayerNormWithoutParameters => 0,
            Self::RmsNorm | Self::LayerNormWithoutBias => 1,
            Self::LayerNorm => 2,
        }
    }
}

impl Biases {
    /// Whether queries, keys and values have one.
    #[must_use]
    pub const fn of_query_key_value(self) -> bool {
        matches!(
            self,
            Self::QueryKeyValue | Self::Attention | Self::AllButAttentionOutput | Self::All
        )
    }

    /// Whether the attention's output projection has one.
    #[must_use]
    pub const fn of_attention_output(self) -> bool {
        matches!(
            self,
            Self::Attention | Self::AllButQueryKeyValue | Self::All
        )
    }

    /// Whether the matrices of the feed-forward block have one.
    #[must_use]
    pub const fn of_feed_forward(self) -> bool {
        matches!(
            self,
            Self::FeedForward | Self::AllButQueryKeyValue | Self::AllButAttentionOutput | Self::All
        )
    }
}
