//! Router, routed and shared experts.

use super::block::{Parameters, Saved, Work, saved_around, surroundings};
use super::rank::Rank;
use crate::transformer::Transformer;

/// Router and gates on every rank, shared experts `m h f_s` split as a dense block is, routed experts
/// `E m h f_e`, with `m` matrices each.
#[must_use]
pub fn parameters(transformer: &Transformer) -> Parameters {
    let Some(experts) = transformer.experts else {
        return Parameters::default();
    };
    let (hidden, matrices) = (transformer.hidden, transformer.feed_forward.matrices());
    let router = experts.experts * (hidden + experts.router_biases);
    let gates = experts.shared_expert_gates * hidden;
    Parameters {
        experts: (experts.experts * matrices * hidden * experts.expert_width) as f64,
        ..Parameters::new(
            matrices * hidden * experts.shared_expert_width,
            router + gates,
        )
    }
}

/// The block's work.
#[must_use]
pub fn work(rank: &Rank<'_>) -> Work {
    surroundings(rank)
}

/// The block's activations.
#[must_use]
pub fn saved(rank: &Rank<'_>) -> Saved {
    Saved {
        kept: saved_around(rank),
        ..Saved::default()
    }
}
