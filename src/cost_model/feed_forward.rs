//! The dense feed-forward network.
//!
//! Sources as of [`attention`](super::attention).

use super::block::{Parameters, Saved, Work, saved_around, surroundings};
use super::rank::Rank;
use crate::framework::Selective;
use crate::layout::Recompute;
use crate::quantity::{Bytes, Flops};
use crate::transformer::{FeedForward, Transformer};

/// `3 h f` gated, `2 h f` plain; the output's bias and those of the activation function are on every rank.
#[must_use]
pub fn parameters(transformer: &Transformer) -> Parameters {
    Parameters::new(
        transformer.feed_forward_weights() + transformer.feed_forward_inner_biases(),
        transformer.feed_forward_output_biases() + transformer.small_parts.activation_parameters,
    )
}

/// Products of `2 t W / tp` FLOP a forward pass and elementwise operators of `12 w t f / tp` bytes
/// (half of it in a plain network), besides the block's surroundings.
#[must_use]
pub fn work(rank: &Rank<'_>) -> Work {
    surroundings(rank) + inside(rank, rank.job.transformer.feed_forward_width)
}

/// The same of a block of width `f` without its surroundings.
pub(super) fn inside(rank: &Rank<'_>, width: u64) -> Work {
    let network = &rank.job.transformer;
    let weights = (network.feed_forward.matrices() * network.hidden * width) as f64;
    let inside = 12.0 * gating(rank) * inner_elements(rank, width);
    Work {
        products: Flops::new(2.0 * rank.tokens * (weights / rank.tensor_parallel)),
        elementwise: rank.width * inside,
        ..Work::default()
    }
}

/// What recomputing the block repeats: all products but the last, `2 t (matrices - 1) h f / tp` FLOP
/// a forward pass, elementwise operators as of a gated network, and the block's launches.
#[must_use]
pub fn repeated(rank: &Rank<'_>, width: u64) -> Work {
    let network = &rank.job.transformer;
    let (products, inner) = (
        (network.feed_forward.matrices() - 1) as f64,
        inner_elements(rank, width),
    );
    Work {
        products: Flops::new(2.0 * products * network.hidden as f64 * inner),
        elementwise: rank.width * (12.0 * inner),
        launches: 0.5,
        ..Work::default()
    }
}

/// Inner activations: `m by_feed_forward t f / tp` bytes, each kind of block with bytes of its own.
#[must_use]
pub fn saved(rank: &Rank<'_>) -> Saved {
    let habits = &rank.job.framework.memory;
    let width = rank.job.transformer.feed_forward_width;
    let inner = between(rank, width);
    let kept = saved_around(rank) + inner;
    let mut dropped = [Bytes::ZERO; Recompute::COUNT];
    dropped[Recompute::FeedForward as usize] = inner;
    if habits.selective == Selective::EverySecondProduct {
        // The gate's product and that of the last matrix stay.
        let products = rank.width * inner_elements(rank, width) + rank.boundary();
        dropped[Recompute::AttentionCore as usize] = kept - products;
    }
    Saved { kept, dropped }
}

/// Activations between the matrices of a block of width `f`, `m by_feed_forward t f / tp` bytes.
pub(super) fn between(rank: &Rank<'_>, width: u64) -> Bytes {
    let habits = &rank.job.framework.memory;
    Bytes::new(habits.activation_factor * bytes_between(rank) * inner_elements(rank, width))
}

/// What is kept of an element between the matrices.
pub(super) fn bytes_between(rank: &Rank<'_>) -> f64 {
    let habits = &rank.job.framework.memory;
    match rank.job.transformer.feed_forward {
        FeedForward::Gated => habits.feed_forward_bytes,
        FeedForward::Plain => habits.feed_forward_bytes_plain,
    }
}

/// Elements between the matrices on one rank, `t f / tp`.
fn inner_elements(rank: &Rank<'_>, width: u64) -> f64 {
    rank.tokens * width as f64 / rank.tensor_parallel
}

/// Tensors between the matrices, as a share of those of a gated network.
fn gating(rank: &Rank<'_>) -> f64 {
    match rank.job.transformer.feed_forward {
        FeedForward::Gated => 1.0,
        FeedForward::Plain => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::{LayerMemory, fixture};
    use crate::transformer::LayerKind;

    #[test]
    fn a_gated_network_has_three_matrices() {
        let (job, combination) = (fixture::job(), fixture::combination());
        let rank = Rank::new(&job, &combination);
        assert_eq!(parameters(&job.transformer), Parameters::new(384, 0));
        // 2 t W / tp; (12 t h + 12 t f / tp) elements of 2 bytes.
        assert_eq!(work(&rank).products, Flops::new(1536.0));
        assert_eq!(work(&rank).elementwise, Bytes::new(1536.0));
        // Two of the three products again, and the inner operators.
        assert_eq!(repeated(&rank, 16).products, Flops::new(1024.0));
        assert_eq!(repeated(&rank, 16).elementwise, Bytes::new(768.0));
        // 448 around the block, 8 bytes t f / tp within.
        assert_eq!(saved(&rank).kept, Bytes::new(448.0 + 256.0));
        let dropped = saved(&rank).dropped[Recompute::FeedForward as usize];
        assert_eq!(dropped, Bytes::new(256.0));
    }

    #[test]
    fn every_second_product_of_a_layer_is_kept() {
        let (mut job, combination) = (fixture::job(), fixture::combination());
        job.framework.memory.selective = Selective::EverySecondProduct;
        let memory = LayerMemory::new(&Rank::new(&job, &combination), LayerKind::DENSE);
        // t (8 h + 2 k d + 2 f) bytes with t = 4, what is split on two ranks, and 16 of softmax sums.
        let whole = 4.0 * 2.0 * (8.0 + 8.0);
        let split = 4.0 * 2.0 * (2.0 * 8.0 + 4.0 + 16.0) / 2.0;
        let kept = memory.kept[Recompute::AttentionCore as usize];
        assert_eq!(kept, Bytes::new(whole + split + 16.0));
    }

    #[test]
    fn a_plain_network_has_two() {
        let (mut job, combination) = (fixture::job(), fixture::combination());
        job.transformer.feed_forward = FeedForward::Plain;
        let rank = Rank::new(&job, &combination);
        assert_eq!(parameters(&job.transformer), Parameters::new(256, 0));
        assert_eq!(work(&rank).elementwise, Bytes::new(768.0 + 384.0));
        assert_eq!(repeated(&rank, 16).products, Flops::new(512.0));
        assert_eq!(saved(&rank).kept, Bytes::new(448.0 + 128.0));
    }
}
