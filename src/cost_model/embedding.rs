//! The input embedding: parameters, but no work worth counting.

use super::block::Parameters;
use super::rank::Rank;

/// `V h`, padded, and learned positions.
#[must_use]
pub fn parameters(rank: &Rank<'_>) -> Parameters {
    let network = &rank.job.transformer;
    Parameters::new(
        rank.vocabulary * network.hidden,
        network.learned_positions * network.hidden,
    )
}
