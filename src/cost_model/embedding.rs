//! The input embedding: parameters, but no work worth counting.

use super::block::Parameters;
use crate::transformer::Transformer;

/// `V h`.
#[must_use]
pub fn parameters(transformer: &Transformer) -> Parameters {
    Parameters::split(transformer.embedding_weights())
}
