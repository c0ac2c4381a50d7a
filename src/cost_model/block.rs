//! What a block of a layer demands of one GPU. Each block counts it in a file of its own; how long
//! it takes, and what it adds up to, is the mechanisms' matter.

use std::ops::Add;

use super::rank::Rank;
use super::{attention, experts, feed_forward};
use crate::framework::Selective;
use crate::layout::Recompute;
use crate::quantity::{Bytes, Flops};
use crate::transformer::{Block, LayerKind, Transformer};

/// Parameters by shard class: how tensor parallelism divides them (Megatron-LM,
/// `core/tensor_parallel/layers.py`). Matrices are split, and so are the biases of those split by
/// columns; norms, learned positions and the biases of matrices split by rows are on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// Split among the tensor-parallel ranks.
    pub split: f64,
    /// Whole on every tensor-parallel rank.
    pub replicated: f64,
    /// Of routed experts, split among expert-parallel and expert-tensor-parallel ranks.
    pub experts: f64,
}

impl Parameters {
    /// So many parameters of either class.
    #[must_use]
    pub const fn new(split: u64, replicated: u64) -> Self {
        Self {
            split: split as f64,
            replicated: replicated as f64,
            experts: 0.0,
        }
    }

    /// Parameters on one of `tensor_parallel` ranks, without those of routed experts.
    #[must_use]
    pub const fn on_rank(self, tensor_parallel: f64) -> f64 {
        self.split / tensor_parallel + self.replicated
    }
}

/// Work of a block for one layer and micro-batch on one GPU. FLOP and collectives are of one
/// forward pass; traffic and launches are of a forward and a backward pass together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Matrix products.
    pub products: Flops,
    /// Attention itself.
    pub attention: Flops,
    /// Traffic of attention's softmax, where it is not part of the kernel.
    pub softmax: Bytes,
    /// Elementwise operators, before the framework's multiplier.
    pub elementwise: Bytes,
    /// Norms that no kernel fuses.
    pub norms: Bytes,
    /// Keys and values that one hop of context parallelism passes on, in one forward pass.
    pub key_values: Bytes,
    /// Tensor-parallel all-reduces (or pairs of reduce-scatter and all-gather) in one forward pass.
    pub collectives: f64,
    /// Share of a layer's kernel launches.
    pub launches: f64,
}

/// Activations that a block keeps for the backward pass, for one layer and micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Saved {
    /// All of them.
    pub kept: Bytes,
    /// Those that each mode of `Recompute::ALL` does not keep, apart from `Recompute::Full`, which
    /// keeps only the layer's input.
    pub dropped: [Bytes; Recompute::COUNT],
}

impl Block {
    /// Its parameters.
    #[must_use]
    pub fn parameters(self, transformer: &Transformer) -> Parameters {
        match self {
            Self::Attention => attention::parameters(transformer),
            Self::FeedForward => feed_forward::parameters(transformer),
            Self::Experts => experts::parameters(transformer),
        }
    }

    /// Its work.
    #[must_use]
    pub fn work(self, rank: &Rank<'_>) -> Work {
        match self {
            Self::Attention => attention::work(rank),
            Self::FeedForward => feed_forward::work(rank),
            Self::Experts => experts::work(rank),
        }
    }

    /// The work that a partial mode of recomputation repeats.
    #[must_use]
    pub fn repeated(self, rank: &Rank<'_>, mode: Recompute) -> Work {
        match (self, mode) {
            (_, Recompute::AttentionCore)
                if rank.job.framework.memory.selective == Selective::EverySecondProduct =>
            {
                self.work(rank).every_second_product()
            }
            (Self::Attention, Recompute::AttentionCore) => attention::core(rank),
            (Self::FeedForward, Recompute::FeedForward) => {
                feed_forward::repeated(rank, rank.job.transformer.feed_forward_width)
            }
            (Self::Experts, Recompute::FeedForward) => self.work(rank),
            (_, Recompute::Light) => norm(rank) + self.light(rank).1,
            _ => Work::default(),
        }
    }

    /// The activations that it keeps.
    #[must_use]
    pub fn saved(self, rank: &Rank<'_>) -> Saved {
        let mut saved = match self {
            Self::Attention => attention::saved(rank),
            Self::FeedForward => feed_forward::saved(rank),
            Self::Experts => experts::saved(rank),
        };
        // The norm's output, which the block's matrices read.
        saved.dropped[Recompute::Light as usize] = rank.boundary() + self.light(rank).0;
        saved
    }

    /// Outputs within it that little work brings back, and that work.
    fn light(self, rank: &Rank<'_>) -> (Bytes, Work) {
        match self {
            Self::Attention => attention::projected_up(rank),
            Self::FeedForward => (Bytes::ZERO, Work::default()),
            Self::Experts => experts::activated(rank),
        }
    }
}

impl Work {
    /// What recomputation of every second product repeats beside them: all but attention, which is kept
    /// (torchtitan, `models/common/parallelize.py`).
    fn every_second_product(self) -> Self {
        Self {
            products: self.products * 0.5,
            elementwise: self.elementwise,
            norms: self.norms,
            launches: self.launches / 2.0,
            ..Self::default()
        }
    }
}

impl LayerKind {
    /// Parameters of its blocks and of its norms.
    #[must_use]
    pub fn parameters(self, transformer: &Transformer) -> Parameters {
        let norms = Parameters::new(0, transformer.hidden_norm_parameters());
        norms + self.sum(|block| block.parameters(transformer))
    }

    /// The sum of what `count` says of each block.
    #[must_use]
    #[inline]
    pub fn sum<T: Default + Add<Output = T>>(self, count: impl Fn(Block) -> T) -> T {
        self.blocks
            .iter()
            .fold(T::default(), |sum, &block| sum + count(block))
    }
}

impl Add for Parameters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            split: self.split + other.split,
            replicated: self.replicated + other.replicated,
            experts: self.experts + other.experts,
        }
    }
}

impl Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            products: self.products + other.products,
            attention: self.attention + other.attention,
            softmax: self.softmax + other.softmax,
            elementwise: self.elementwise + other.elementwise,
            norms: self.norms + other.norms,
            key_values: self.key_values + other.key_values,
            collectives: self.collectives + other.collectives,
            launches: self.launches + other.launches,
        }
    }
}

impl Add for Saved {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self.kept += other.kept;
        for (dropped, &more) in self.dropped.iter_mut().zip(&other.dropped) {
            *dropped += more;
        }
        self
    }
}

/// A forward pass of a block's norm once more: a third of `6 w t h / u` bytes.
fn norm(rank: &Rank<'_>) -> Work {
    Work {
        elementwise: rank.width * (6.0 * rank.hidden_elements() / rank.sequence_split),
        ..Work::default()
    }
}

/// Traffic of what surrounds every block, its norm and its residual connection, forward and backward:
/// `12 w t h / u` bytes of elementwise operators and `by_rms t h / u` of a norm that no kernel fuses.
#[must_use]
pub(super) fn surroundings(rank: &Rank<'_>) -> Work {
    use crate::layout::RmsNormKernel::{Fused, Unfused};
    let elements = rank.hidden_elements() / rank.sequence_split;
    Work {
        elementwise: rank.width * (12.0 * elements),
        norms: match rank.combination.rmsnorm_kernel {
            Fused => Bytes::ZERO,
            Unfused => Bytes::new(rank.job.framework.speed.rmsnorm_bytes * elements),
        },
        collectives: 1.0,
        launches: 0.5,
        ..Work::default()
    }
}

/// Activations that surround every block (inputs of norm and block, residual, mask of dropout): half of
/// the framework's `m t h [by_hidden / u + by_gathered (1 - 1/u) + by_norm / u without the kernel + 2 / u
/// with dropout]`, which count both blocks of a dense layer. A mask has a byte an element (Korthikanti et
/// al., arXiv 2205.05198, section 4.1).
#[must_use]
pub(super) fn saved_around(rank: &Rank<'_>) -> Bytes {
    use crate::layout::RmsNormKernel::{Fused, Unfused};
    let (habits, u) = (&rank.job.framework.memory, rank.sequence_split);
    let unfused = match rank.combination.rmsnorm_kernel {
        Fused => 0.0,
        Unfused => habits.norm_bytes / u,
    };
    let has_dropout = rank.job.transformer.numerics.hidden_dropout > 0.0;
    let masks = if has_dropout { 2.0 / u } else { 0.0 };
    let around = habits.hidden_bytes / u + habits.gathered_bytes * (1.0 - 1.0 / u);
    let bytes = around + unfused + masks;
    Bytes::new(habits.activation_factor * rank.hidden_elements() * bytes / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::cost_model::fixture;

    #[test]
    fn no_parameter_of_a_layer_is_forgotten() {
        for name in ["llama-3.1-8b", "gpt-3-175b", "deepseek-v3", "gpt-oss-120b"] {
            let transformer = catalog::model(name).expect("it is in the catalog");
            for &kind in transformer.kinds() {
                let parameters = kind.parameters(&transformer);
                let counted = parameters.on_rank(1.0) + parameters.experts;
                let right = transformer.layer_parameters(kind) as f64;
                assert!(fixture::close(counted, right), "{name}");
            }
        }
    }

    #[test]
    fn replicated_parameters_are_not_divided() {
        let parameters = Parameters {
            split: 8.0,
            replicated: 3.0,
            experts: 0.0,
        };
        assert!((parameters.on_rank(4.0) - 5.0).abs() < f64::EPSILON);
    }
}
