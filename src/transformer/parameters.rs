//! How many parameters a network has, and how many work on a token.

use super::{Block, Embeddings, LayerKind, OutputBias, Transformer};
use crate::choice::choice;

choice!(
    /// What counts as active: publishers differ.
    Active {
        /// All that works on a token, both embeddings (Mixtral, Qwen 3, Kimi K2).
        All = "all",
        /// Without the input embedding, which is looked up and not multiplied (gpt-oss).
        WithoutInputEmbedding = "without-input-embedding",
        /// Without either embedding (GLM-4.5).
        WithoutEmbeddings = "without-embeddings",
    }
);

impl Transformer {
    /// Weights of the feed-forward matrices of one dense layer: `3 h f` gated, `2 h f` plain.
    #[must_use]
    pub const fn feed_forward_weights(&self) -> u64 {
        self.feed_forward.matrices() * self.hidden * self.feed_forward_width
    }

    /// Weights of the matrices of one dense layer: `4 h^2 + 3 h f` for LLaMA.
    #[must_use]
    pub const fn layer_weights(&self) -> u64 {
        self.attention_weights() + self.feed_forward_weights()
    }

    /// Weights of one embedding matrix, `V h`.
    #[must_use]
    pub const fn embedding_weights(&self) -> u64 {
        self.vocabulary * self.hidden
    }

    /// Weights of the matrices that a token meets in a block of a layer.
    #[must_use]
    pub const fn used_weights(&self, block: Block) -> u64 {
        match block {
            Block::Attention => self.attention_weights(),
            Block::FeedForward => self.feed_forward_weights(),
            Block::Experts => self.used_expert_weights(),
        }
    }

    /// The paper's `N = L (4 h^2 + 3 h f) + 2 V h`: the weights that matrix products use on a token, of
    /// routed experts those of `K`. A tied output layer computes as much as an untied one and counts as
    /// well. A layer that predicts a further token has one that joins two hidden states, `2 h^2`, and the
    /// output layer once more (DeepSeek-V3, arXiv 2412.19437, equation 21).
    #[must_use]
    pub const fn matrix_weights(&self) -> u64 {
        let (dense, with_experts) = (self.dense_layers() as u64, self.expert_layers() as u64);
        let last = if with_experts > 0 {
            self.used_expert_weights()
        } else {
            self.feed_forward_weights()
        };
        let further = self.attention_weights()
            + last
            + 2 * self.hidden * self.hidden
            + self.embedding_weights();
        self.layers as u64 * self.attention_weights()
            + dense * self.feed_forward_weights()
            + with_experts * self.used_expert_weights()
            + 2 * self.embedding_weights()
            + self.prediction_layers as u64 * further
    }

    /// Biases within the feed-forward block of one dense layer.
    #[must_use]
    pub const fn feed_forward_inner_biases(&self) -> u64 {
        let inner = (self.feed_forward.matrices() - 1) * self.feed_forward_width;
        self.biases.of_feed_forward() as u64 * inner
    }

    /// Biases of the feed-forward block's output of one dense layer.
    #[must_use]
    pub const fn feed_forward_output_biases(&self) -> u64 {
        self.biases.of_feed_forward() as u64 * self.hidden
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

    /// All parameters of one layer of a kind, with `experts` routed ones where it has any.
    const fn parameters_of(&self, kind: LayerKind, experts: u64) -> u64 {
        let mut sum = self.hidden_norm_parameters();
        let mut position = 0;
        while position < kind.blocks.len() {
            sum += match kind.blocks[position] {
                Block::Attention => self.attention_parameters(),
                Block::FeedForward => {
                    self.feed_forward_weights()
                        + self.feed_forward_inner_biases()
                        + self.feed_forward_output_biases()
                        + self.small_parts.activation_parameters
                }
                Block::Experts => self.expert_parameters(experts),
            };
            position += 1;
        }
        sum
    }

    /// All parameters of one layer of a kind.
    #[must_use]
    pub const fn layer_parameters(&self, kind: LayerKind) -> u64 {
        self.parameters_of(kind, self.routed_experts())
    }

    /// Routed experts of a layer that has any.
    const fn routed_experts(&self) -> u64 {
        match self.experts {
            None => 0,
            Some(experts) => experts.experts,
        }
    }

    /// Parameters without those of layers that predict further tokens, with so many routed experts in each
    /// layer that has any.
    const fn parameters_with(&self, experts: u64) -> u64 {
        let embeddings = match self.embeddings {
            Embeddings::Tied => self.embedding_weights(),
            Embeddings::Untied => 2 * self.embedding_weights(),
        };
        let dense = self.parameters_of(LayerKind::DENSE, experts);
        let with_experts = self.parameters_of(LayerKind::EXPERTS, experts);
        self.dense_layers() as u64 * dense
            + self.expert_layers() as u64 * with_experts
            + embeddings
            + self.learned_positions * self.hidden
            + self.outer_norm_parameters()
            + self.output_bias_parameters()
    }

    /// The exact number of parameters that are trained, as a framework reports it: matrices, norms, biases,
    /// learned positions; a tied embedding counts once.
    #[must_use]
    pub const fn parameters(&self) -> u64 {
        self.parameters_with(self.routed_experts()) + self.prediction_parameters()
    }

    /// Parameters of the layers that predict further tokens: each one more layer of the last one's kind, a
    /// matrix that joins two hidden states, `2 h^2`, their norms and its own last one. Embedding and
    /// output layer are shared; checkpoints of Hugging Face have a copy of both, `2 V h` more.
    #[must_use]
    pub const fn prediction_parameters(&self) -> u64 {
        let layer = self.layer_parameters(self.kinds()[0]);
        let norms = 3 * self.normalization.parameters() * self.hidden;
        self.prediction_layers as u64 * (layer + 2 * self.hidden * self.hidden + norms)
    }

    /// Parameters that work on a token, without layers that predict further ones.
    #[must_use]
    pub const fn active_parameters(&self, convention: Active) -> u64 {
        let all = match self.experts {
            None => self.parameters_with(0),
            Some(experts) => self.parameters_with(experts.experts_per_token),
        };
        let is_tied = matches!(self.embeddings, Embeddings::Tied);
        let left_out = match convention {
            Active::All => 0,
            Active::WithoutInputEmbedding if is_tied => 0,
            Active::WithoutEmbeddings if !is_tied => 2,
            Active::WithoutInputEmbedding | Active::WithoutEmbeddings => 1,
        };
        all - left_out * self.embedding_weights()
    }
}
