//! Attention and its projections.
//!
//! Arithmetic counts by Korthikanti et al. (arXiv 2205.05198), appendix A; traffic and efficiencies
//! fitted to the step times of Hagemann et al. (arXiv 2311.05610).

use super::block::{Parameters, Saved, Work, saved_around, surroundings};
use super::rank::Rank;
use crate::layout::{AttentionKernel, Recompute};
use crate::quantity::{Bytes, Flops};
use crate::transformer::Transformer;

/// Query, key, value and output projections, `2 h (a + k) d`: `4 h^2` without grouped queries.
#[must_use]
pub fn parameters(transformer: &Transformer) -> Parameters {
    Parameters::split(transformer.attention_weights())
}

/// Projections of `2 t W / tp` FLOP a forward pass, attention itself ([`core`]), elementwise
/// operators of `36 w t h / tp` bytes besides the block's surroundings, and keys and values of
/// `2 w t k d / tp` bytes a hop.
#[must_use]
pub fn work(rank: &Rank<'_>) -> Work {
    let network = &rank.job.transformer;
    let weights = parameters(network).on_rank(rank.tensor_parallel);
    let inside = 36.0 * rank.hidden_elements() / rank.tensor_parallel;
    let key_values = 2.0 * rank.tokens * network.key_value_width() as f64;
    let beside = Work {
        products: Flops::new(2.0 * rank.tokens * weights),
        elementwise: rank.width * inside,
        key_values: rank.width * (key_values / rank.tensor_parallel),
        ..Work::default()
    };
    surroundings(rank) + core(rank) + beside
}

/// Attention itself. Flash: `4 t s a d / tp / 2` causal FLOP a forward pass. Otherwise the full
/// square, and a softmax traffic of `by_softmax t s a / tp` bytes. Recomputing the core saves
/// nothing under flash attention, which recomputes itself already.
#[must_use]
pub fn core(rank: &Rank<'_>) -> Work {
    let network = &rank.job.transformer;
    let pairs = pairs(rank);
    let square = 4.0 * pairs * network.attention_width() as f64;
    let speed = &rank.job.framework.speed;
    let softmax_bytes = match rank.combination.attention_kernel {
        AttentionKernel::Flash1 | AttentionKernel::Flash2 => {
            return Work {
                attention: Flops::new(square / 2.0),
                ..Work::default()
            };
        }
        AttentionKernel::MegatronFused => speed.softmax_bytes_fused,
        AttentionKernel::Torch => speed.softmax_bytes_torch,
    };
    Work {
        attention: Flops::new(square),
        softmax: Bytes::new(softmax_bytes * pairs * network.heads as f64),
        ..Work::default()
    }
}

/// Query, key, value and output, `m t (by_attention a d + 2 w k d) / tp` bytes, and without flash
/// attention the attention matrix, `6 t s a / tp` bytes with Megatron's fused softmax, 8 with plain
/// operators.
#[must_use]
pub fn saved(rank: &Rank<'_>) -> Saved {
    let (network, habits) = (&rank.job.transformer, &rank.job.framework.memory);
    let element = habits.attention_bytes * network.attention_width() as f64
        + (rank.width * (2.0 * network.key_value_width() as f64)).value();
    let projections = habits.activation_factor * rank.tokens * element / rank.tensor_parallel;
    let matrix_bytes = match rank.combination.attention_kernel {
        AttentionKernel::Flash1 | AttentionKernel::Flash2 => 0.0,
        AttentionKernel::MegatronFused => 6.0,
        AttentionKernel::Torch => 8.0,
    };
    let core = Bytes::new(matrix_bytes * pairs(rank) * network.heads as f64);
    let mut dropped = [Bytes::ZERO; Recompute::COUNT];
    dropped[Recompute::AttentionCore as usize] = core;
    Saved {
        kept: saved_around(rank) + Bytes::new(projections) + core,
        dropped,
    }
}

/// Pairs of a query and a key on one rank, for each head of the whole network, `t s / tp`.
fn pairs(rank: &Rank<'_>) -> f64 {
    rank.tokens * rank.job.workload.sequence_length as f64 / rank.tensor_parallel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::fixture;
    use crate::layout::{RmsNormKernel, SequenceParallel};

    #[test]
    fn projections_are_split_and_grouped() {
        // 2 * 8 * (8 + 4), on two ranks.
        let parameters = parameters(&fixture::job().transformer);
        assert_eq!(parameters, Parameters::split(192));
        assert!(fixture::close(parameters.on_rank(2.0), 96.0));
    }

    #[test]
    fn flash_attention_works_on_half_the_square() {
        let (job, combination) = (fixture::job(), fixture::combination());
        let work = work(&Rank::new(&job, &combination));
        // 2 t W / tp with t = 4; 4 t s a d / tp / 2; (12 t h + 36 t h / tp) elements of 2 bytes.
        assert_eq!(work.products, Flops::new(768.0));
        assert_eq!(work.attention, Flops::new(128.0));
        assert_eq!(work.softmax, Bytes::ZERO);
        assert_eq!(work.elementwise, Bytes::new(1920.0));
        assert_eq!(work.norms, Bytes::new(3200.0));
        // Keys and values: 2 tensors of t k d / tp elements of 2 bytes.
        assert_eq!(work.key_values, Bytes::new(32.0));
    }

    #[test]
    fn plain_attention_keeps_and_streams_its_matrix() {
        let job = fixture::job();
        let combination = crate::layout::Combination {
            attention_kernel: AttentionKernel::Torch,
            ..fixture::combination()
        };
        let rank = Rank::new(&job, &combination);
        assert_eq!(core(&rank).attention, Flops::new(256.0));
        assert_eq!(core(&rank).softmax, Bytes::new(160.0));
        // 448 around the block, 160 of query, key, value and output, 8 bytes t s a / tp.
        let saved = saved(&rank);
        assert_eq!(saved.kept, Bytes::new(448.0 + 160.0 + 128.0));
        let dropped = saved.dropped[Recompute::AttentionCore as usize];
        assert_eq!(dropped, Bytes::new(128.0));
    }

    #[test]
    fn sequence_parallelism_and_the_norm_kernel_save_memory_around_the_block() {
        let job = fixture::job();
        let combination = crate::layout::Combination {
            sequence_parallel: SequenceParallel::On,
            rmsnorm_kernel: RmsNormKernel::Fused,
            ..fixture::combination()
        };
        // t h (12 / 2 + 4 / 2) / 2.
        let saved = saved(&Rank::new(&job, &combination));
        assert_eq!(saved.kept, Bytes::new(128.0 + 160.0));
    }
}
