//! The network that is trained: its shape, its parameters.

use crate::choice::choice;

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
    /// The experts that take the place of the dense feed-forward block in most layers, if any.
    #[serde(flatten)]
    pub experts: Option<Experts>,
    /// Queries, keys and values through low-rank projections, where attention is latent.
    #[serde(flatten)]
    pub latent_attention: Option<LatentAttention>,
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

/// What a network computes besides its shape.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Numerics {
    /// How positions enter, where they are not learned.
    pub positions: Positions,
    /// Base of the frequencies of rotary embeddings.
    pub rotary_base: f64,
    /// Share of a head's width that is rotated.
    pub rotary_share: f64,
    /// How the frequencies are stretched for longer sequences.
    pub rope_scaling: RopeScaling,
    /// By how much.
    pub rope_factor: f64,
    /// What norms add to the variance.
    pub norm_epsilon: f64,
    /// The feed-forward block's activation function.
    pub activation: Activation,
    /// Probability with which an element of a block's output is dropped.
    pub hidden_dropout: f64,
    /// Probability with which an attention weight is dropped.
    pub attention_dropout: f64,
}

impl Default for Numerics {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Numerics {
    /// Of a network that states nothing: rotary embeddings of base 10,000, `SiLU`, no dropout.
    pub const USUAL: Self = Self {
        positions: Positions::Rotary,
        rotary_base: 1e4,
        rotary_share: 1.0,
        rope_scaling: RopeScaling::None,
        rope_factor: 1.0,
        norm_epsilon: 1e-5,
        activation: Activation::Silu,
        hidden_dropout: 0.0,
        attention_dropout: 0.0,
    };
}

choice!(
    /// How positions enter, where they are not learned.
    Positions, "a kind of positions" {
        /// Queries and keys are rotated (Su et al., arXiv 2104.09864).
        Rotary = "rotary",
        /// Distances are taken off attention scores (Press et al., arXiv 2108.12409).
        Alibi = "alibi",
    }
);

choice!(
    /// How the frequencies of rotary embeddings are stretched.
    RopeScaling, "a kind of rope scaling" {
        /// Not at all.
        None = "none",
        /// All by the factor.
        Linear = "linear",
        /// The low ones by the factor, between 1 and 4 turns in 8,192 tokens smoothly (Llama 3.1).
        Llama3 = "llama3",
        /// Peng et al., arXiv 2309.00071.
        Yarn = "yarn",
        /// Any other way.
        Other = "other",
    }
);

choice!(
    /// The activation function of a feed-forward block.
    Activation, "an activation function" {
        /// `x sigmoid(x)`.
        Silu = "silu",
        /// Gaussian error linear unit, exact or by its approximation.
        Gelu = "gelu",
        /// `max(x, 0)`.
        Relu = "relu",
        /// `max(x, 0)^2`.
        SquaredRelu = "squared-relu",
        /// Any other.
        Other = "other",
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
}

impl Default for SmallParts {
    fn default() -> Self {
        Self {
            layer_norms: 2,
            outer_norms: 1,
            query_key_norms: QueryKeyNorms::None,
            output_bias: OutputBias::None,
            activation_parameters: 0,
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

choice!(
    /// Structure of a feed-forward block.
    FeedForward, "a feed-forward block" {
        /// Three matrices: gate, up, down (`SwiGLU` and kin).
        Gated = "gated",
        /// Two matrices: up, down.
        Plain = "plain",
    }
);

/// A mixture of experts (Shazeer et al., arXiv 1701.06538): a router gives every token to some of many
/// feed-forward networks. Fields are keys of `[model]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Experts {
    /// Routed experts of a layer, `E`.
    pub experts: u64,
    /// Experts that work on a token, `K`.
    pub experts_per_token: u64,
    /// Width of a routed expert, `f_e`.
    pub expert_width: u64,
    /// Width of all shared experts together, which work on every token, `f_s`; 0 without any.
    pub shared_expert_width: u64,
    /// Leading layers with a dense feed-forward block.
    pub dense_layers: u32,
    /// Of the layers after those, every so many-th has experts: 1 where all have, 2 where the
    /// second, the fourth and so on do.
    pub expert_interval: u32,
    /// Numbers for each expert beside its row of the router: 1 with a bias or a correction of the choice.
    pub router_biases: u64,
    /// Rows of the hidden size that gate the shared experts: 1 in Qwen 2.
    pub shared_expert_gates: u64,
}

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Fields are keys of `[model]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LatentAttention {
    /// Rank of the queries' projection, `r_q`; 0 where they are projected at once.
    pub query_rank: u64,
    /// Rank of the keys' and values' projection, `r_k`.
    pub key_value_rank: u64,
    /// Width of a head's part that is not rotated, `d_n`.
    pub unrotated_width: u64,
    /// Width of its rotated part, which all heads' keys share, `d_r`.
    pub rotated_width: u64,
    /// Width of a head's values, `d_v`.
    pub value_width: u64,
}

/// A part of a layer with an input norm and a residual connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Block {
    /// Attention with its projections.
    Attention,
    /// The dense feed-forward network.
    FeedForward,
    /// Router and experts in its place.
    Experts,
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
    /// Attention, then router and experts.
    pub const EXPERTS: Self = Self {
        blocks: &[Block::Attention, Block::Experts],
    };

    /// Whether it has routed experts.
    #[must_use]
    pub const fn has_experts(self) -> bool {
        matches!(self.blocks, [_, Block::Experts])
    }
}

/// Which layers are of the second of two kinds: the leading ones, and of the rest all but every so
/// many-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerOrder {
    /// Leading layers of the second kind.
    pub leading: u32,
    /// After those, layers from one of the first kind to the next.
    pub interval: u32,
}

impl LayerOrder {
    /// All layers are of the first kind.
    pub const ALIKE: Self = Self {
        leading: 0,
        interval: 1,
    };

    /// Layers of the second kind before position `end`.
    #[must_use]
    pub const fn others_before(self, end: u32) -> u32 {
        if end <= self.leading {
            return end;
        }
        let rest = end - self.leading;
        self.leading + rest - rest / self.interval
    }

    /// Layers of the second kind from position `start` up to before `end`.
    #[must_use]
    pub const fn others_between(self, start: u32, end: u32) -> u32 {
        self.others_before(end) - self.others_before(start)
    }

    /// Whether layer `position` is of the second kind.
    #[must_use]
    pub const fn is_other(self, position: u32) -> bool {
        self.others_between(position, position + 1) > 0
    }
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
    /// The kinds of its layers, the last layer's first; at most one other follows.
    #[must_use]
    pub const fn kinds(&self) -> &'static [LayerKind] {
        match self.experts {
            None => &[LayerKind::DENSE],
            Some(experts) if experts.dense_layers == 0 && experts.expert_interval == 1 => {
                &[LayerKind::EXPERTS]
            }
            Some(_) => &[LayerKind::EXPERTS, LayerKind::DENSE],
        }
    }

    /// Where layers of the second kind are.
    #[must_use]
    pub const fn order(&self) -> LayerOrder {
        match self.experts {
            None => LayerOrder::ALIKE,
            Some(experts) => LayerOrder {
                leading: experts.dense_layers,
                interval: experts.expert_interval,
            },
        }
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

    /// Biases of queries, keys and values of one layer.
    #[must_use]
    pub const fn query_key_value_biases(&self) -> u64 {
        self.biases.of_query_key_value() as u64
            * (self.attention_width() + 2 * self.key_value_width())
    }

    /// Biases of the attention's output of one layer.
    #[must_use]
    pub const fn attention_output_biases(&self) -> u64 {
        self.biases.of_attention_output() as u64 * self.hidden
    }

    /// Biases within the feed-forward block of one layer.
    #[must_use]
    pub const fn feed_forward_inner_biases(&self) -> u64 {
        let inner = (self.feed_forward.matrices() - 1) * self.feed_forward_width;
        self.biases.of_feed_forward() as u64 * inner
    }

    /// Biases of the feed-forward block's output of one layer.
    #[must_use]
    pub const fn feed_forward_output_biases(&self) -> u64 {
        self.biases.of_feed_forward() as u64 * self.hidden
    }

    /// Parameters of the norms of queries and keys of one layer.
    #[must_use]
    pub const fn query_key_norm_parameters(&self) -> u64 {
        match self.small_parts.query_key_norms {
            QueryKeyNorms::None => 0,
            QueryKeyNorms::Head => 2 * self.head_width,
            QueryKeyNorms::HeadWithBias => 4 * self.head_width,
            QueryKeyNorms::Full => self.attention_width() + self.key_value_width(),
        }
    }

    /// Parameters of one layer's norms of the hidden size.
    #[must_use]
    pub const fn hidden_norm_parameters(&self) -> u64 {
        self.small_parts.layer_norms * self.normalization.parameters() * self.hidden
    }

    /// Parameters of the norms outside the layers.
    #[must_use]
    pub const fn outer_norm_parameters(&self) -> u64 {
        self.small_parts.outer_norms * self.normalization.parameters() * self.hidden
    }

    /// Parameters of the output layer's bias.
    #[must_use]
    pub const fn output_bias_parameters(&self) -> u64 {
        match self.small_parts.output_bias {
            OutputBias::None => 0,
            OutputBias::Vocabulary => self.vocabulary,
        }
    }

    /// All parameters of one layer.
    #[must_use]
    pub const fn layer_parameters(&self) -> u64 {
        self.layer_weights()
            + self.hidden_norm_parameters()
            + self.query_key_norm_parameters()
            + self.query_key_value_biases()
            + self.attention_output_biases()
            + self.feed_forward_inner_biases()
            + self.feed_forward_output_biases()
            + self.small_parts.activation_parameters
    }

    /// The exact number of parameters, as a framework reports it: matrices, norms, biases,
    /// learned positions; a tied embedding counts once.
    #[must_use]
    pub const fn parameters(&self) -> u64 {
        let embeddings = match self.embeddings {
            Embeddings::Tied => self.embedding_weights(),
            Embeddings::Untied => 2 * self.embedding_weights(),
        };
        self.layers as u64 * self.layer_parameters()
            + embeddings
            + self.learned_positions * self.hidden
            + self.outer_norm_parameters()
            + self.output_bias_parameters()
    }
}
