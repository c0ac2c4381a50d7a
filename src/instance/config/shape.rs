//! What a family makes of the fields of a config.

use super::experts::ExpertsShape;
use super::keys::Size;
use crate::catalog::sections::ModelSection;
use crate::reading::{Field, OrNone, Origin};
use crate::transformer::{
    Biases, Embeddings, FeedForward, LatentAttention, Normalization, Numerics, SmallParts, Windows,
};

/// The shape of a network.
pub(super) struct Shape {
    pub(super) layers: Size,
    pub(super) hidden: Size,
    pub(super) heads: Size,
    pub(super) key_value_heads: Size,
    /// Width of a head; `None`: hidden size over heads.
    pub(super) head_width: Option<Size>,
    pub(super) feed_forward_width: Size,
    pub(super) vocabulary: Size,
    pub(super) feed_forward: FeedForward,
    pub(super) embeddings: Embeddings,
    pub(super) normalization: Normalization,
    pub(super) biases: Biases,
    pub(super) experts: Option<ExpertsShape>,
    pub(super) latent_attention: Option<LatentAttention>,
    pub(super) windows: Option<Windows>,
    pub(super) prediction_layers: u64,
    /// Entries of a learned position embedding.
    pub(super) learned_positions: u64,
    pub(super) small_parts: SmallParts,
    pub(super) numerics: Numerics,
}

impl Shape {
    /// The shape as the keys of `[model]`.
    pub(super) fn section(&self) -> ModelSection {
        let at = &self.layers.origin;
        let parts = &self.small_parts;
        let count = |size: &Size| Field::Given(size.count, size.origin.clone());
        let number = |count: u64| Field::Given(count, at.clone());
        let or_none = |count: u64| Field::Given(OrNone(count), at.clone());
        let mut section = ModelSection {
            layers: count(&self.layers),
            hidden: count(&self.hidden),
            heads: count(&self.heads),
            key_value_heads: count(&self.key_value_heads),
            head_width: self.head_width.as_ref().map_or(Field::Absent, count),
            feed_forward_width: count(&self.feed_forward_width),
            vocabulary: count(&self.vocabulary),
            feed_forward: one_of(self.feed_forward, at),
            embeddings: one_of(self.embeddings, at),
            normalization: one_of(self.normalization, at),
            biases: one_of(self.biases, at),
            learned_positions: number(self.learned_positions),
            layer_norms: number(parts.layer_norms),
            outer_norms: number(parts.outer_norms),
            query_key_norms: one_of(parts.query_key_norms, at),
            output_bias: one_of(parts.output_bias, at),
            activation_parameters: number(parts.activation_parameters),
            positions: one_of(self.numerics.positions, at),
            rotary_base: one_of(self.numerics.rotary_base, at),
            rotary_share: one_of(self.numerics.rotary_share, at),
            rope_scaling: one_of(self.numerics.rope_scaling, at),
            rope_factor: one_of(self.numerics.rope_factor, at),
            norm_epsilon: one_of(self.numerics.norm_epsilon, at),
            activation: one_of(self.numerics.activation, at),
            hidden_dropout: one_of(self.numerics.hidden_dropout, at),
            attention_dropout: one_of(self.numerics.attention_dropout, at),
            attention_sinks: or_none(parts.attention_sinks),
            prediction_layers: or_none(self.prediction_layers),
            ..ModelSection::default()
        };
        if let Some(shape) = &self.experts {
            section.experts = count(&shape.experts);
            section.experts_per_token = count(&shape.experts_per_token);
            section.expert_width = count(&shape.expert_width);
            section.shared_expert_width = or_none(shape.rest.shared_expert_width);
            section.dense_layers = or_none(shape.rest.dense_layers.into());
            section.expert_interval = number(shape.rest.expert_interval.into());
            section.router_biases = or_none(shape.rest.router_biases);
            section.shared_expert_gates = or_none(shape.rest.shared_expert_gates);
            if !shape.has_dense() {
                section.feed_forward_width = Field::Absent;
            }
        }
        if let Some(latent) = self.latent_attention {
            section.query_rank = or_none(latent.query_rank);
            section.key_value_rank = number(latent.key_value_rank);
            section.unrotated_width = number(latent.unrotated_width);
            section.rotated_width = number(latent.rotated_width);
            section.value_width = number(latent.value_width);
            (section.key_value_heads, section.head_width) = (Field::Absent, Field::Absent);
        }
        if let Some(windows) = self.windows {
            section.window = or_none(windows.window);
            section.window_interval = or_none(windows.window_interval.into());
        }
        section
    }
}

fn one_of<C>(value: C, at: &Origin) -> Field<C> {
    Field::Given(value, at.clone())
}
