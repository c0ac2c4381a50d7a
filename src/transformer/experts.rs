//! Mixtures of experts.

use super::{LayerKind, LayerOrder, Transformer};

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

    /// Layers with a dense feed-forward block.
    #[must_use]
    pub const fn dense_layers(&self) -> u32 {
        match self.experts {
            None => self.layers,
            Some(_) => self.order().others_before(self.layers),
        }
    }

    /// Layers with experts.
    #[must_use]
    pub const fn expert_layers(&self) -> u32 {
        self.layers - self.dense_layers()
    }

    /// Weights of the matrices of so many routed experts, `m h f_e` each, `m` as of a dense block.
    #[must_use]
    pub const fn routed_expert_weights(&self, count: u64) -> u64 {
        match self.experts {
            None => 0,
            Some(experts) => {
                count * self.feed_forward.matrices() * self.hidden * experts.expert_width
            }
        }
    }

    /// Biases of so many routed experts, which have those of a dense block: `(m - 1) f_e + h` each.
    #[must_use]
    pub const fn routed_expert_biases(&self, count: u64) -> u64 {
        match self.experts {
            None => 0,
            Some(experts) => {
                let inner = (self.feed_forward.matrices() - 1) * experts.expert_width;
                self.biases.of_feed_forward() as u64 * count * (inner + self.hidden)
            }
        }
    }

    /// Weights of the shared experts of one layer, `m h f_s`.
    #[must_use]
    pub const fn shared_expert_weights(&self) -> u64 {
        match self.experts {
            None => 0,
            Some(experts) => {
                self.feed_forward.matrices() * self.hidden * experts.shared_expert_width
            }
        }
    }

    /// Parameters of one layer's router and of the gates of its shared experts: `E (h + biases) + gates h`.
    #[must_use]
    pub const fn router_parameters(&self) -> u64 {
        match self.experts {
            None => 0,
            Some(experts) => {
                experts.experts * (self.hidden + experts.router_biases)
                    + experts.shared_expert_gates * self.hidden
            }
        }
    }

    /// Parameters of one layer's router, gates, shared experts and `count` of its routed experts.
    pub(super) const fn expert_parameters(&self, count: u64) -> u64 {
        self.router_parameters()
            + self.shared_expert_weights()
            + self.routed_expert_weights(count)
            + self.routed_expert_biases(count)
    }

    /// Weights of the matrices of experts that work on a token in one layer, `m h (K f_e + f_s)`: the
    /// router's are left out, as in Megatron-LM's count (`training/training.py`).
    #[must_use]
    pub const fn used_expert_weights(&self) -> u64 {
        match self.experts {
            None => 0,
            Some(experts) => {
                self.routed_expert_weights(experts.experts_per_token) + self.shared_expert_weights()
            }
        }
    }
}
