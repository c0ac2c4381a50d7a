//! What a network computes besides its shape.

use crate::choice::choice;

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
