//! Attention and its projections.
//!
//! Arithmetic counts by Korthikanti et al. (arXiv 2205.05198), appendix A; traffic and efficiencies
//! fitted to the step times of Hagemann et al. (arXiv 2311.05610).

use super::block::{Parameters, Saved, Work, saved_around, surroundings};
use super::rank::Rank;
use crate::framework::Selective;
use crate::layout::{AttentionKernel, Recompute};
use crate::quantity::{Bytes, ElementWidth, Flops};
use crate::transformer::Transformer;

/// Query, key, value and output projections, `2 h (a + k) d`: `4 h^2` without grouped queries; biases of
/// the first three and sinks are split with them, that of the output and norms of queries and keys are
/// not. Latent projections down are whole on every rank, with their biases.
#[must_use]
pub fn parameters(transformer: &Transformer) -> Parameters {
    let biases = transformer.query_key_value_biases();
    let (split, whole) = match transformer.latent_attention {
        None => (biases, 0),
        Some(_) => (0, biases),
    };
    Parameters::new(
        transformer.attention_weights_split() + split + transformer.attention_sink_parameters(),
        transformer.attention_weights_duplicated()
            + whole
            + transformer.attention_output_biases()
            + transformer.query_key_norm_parameters(),
    )
}

/// Projections of `2 t W / tp` FLOP a forward pass (latent ones down, which every tensor-parallel rank has, of
/// `2 t W / u`), attention itself ([`core`]), elementwise operators of `36 w t h / tp` bytes besides the
/// block's surroundings, and keys and values of `2 w t k d / tp` bytes a hop, latent `w t a (d_n + d_r + d_v) / tp`.
#[must_use]
pub fn work(rank: &Rank<'_>) -> Work {
    let network = &rank.job.transformer;
    let weights = network.attention_weights_split() as f64 / rank.tensor_parallel;
    let down = network.attention_weights_duplicated() as f64 / rank.sequence_split;
    let inside = 36.0 * rank.hidden_elements() / rank.tensor_parallel;
    let key_values = rank.tokens * network.keys_and_values_width() as f64;
    let beside = Work {
        products: Flops::new(2.0 * rank.tokens * (weights + down)),
        elementwise: rank.width * inside,
        key_values: rank.width * (key_values / rank.tensor_parallel),
        ..Work::default()
    };
    surroundings(rank) + core(rank) + beside
}

/// Attention itself. Flash: `4 t s a d / tp / 2` causal FLOP a forward pass, latent `2 t s a (d_n + d_r + d_v) / tp /
/// 2`, `s` as windows leave it. Otherwise the full square, and a softmax traffic of `by_softmax t s a / tp` bytes. Recomputing the core saves
/// nothing under flash attention, which recomputes itself already.
#[must_use]
pub fn core(rank: &Rank<'_>) -> Work {
    let network = &rank.job.transformer;
    let pairs = pairs(rank);
    let width = network.score_width() + network.value_width_all();
    let square = 2.0 * pairs * width as f64;
    let speed = &rank.job.framework.speed;
    let softmax_bytes = match rank.combination.attention_kernel {
        AttentionKernel::MegatronFused => speed.softmax_bytes_fused,
        AttentionKernel::Torch => speed.softmax_bytes_torch,
        _ => {
            return Work {
                attention: Flops::new(square / 2.0),
                ..Work::default()
            };
        }
    };
    Work {
        attention: Flops::new(square),
        softmax: Bytes::new(softmax_bytes * pairs * network.heads as f64),
        ..Work::default()
    }
}

/// Query, key, value and output, `m t (by_attention a d + 2 w k d) / tp` bytes, with latent attention what is
/// projected up, `m t (by_attention/2 + w) a (d_n + d_r + d_v) / tp`, and what is projected down before and after its norms,
/// `m w t (2 r_q + 2 r_k + d_r) / u`; with flash attention the
/// fp32 logarithm of each softmax's sum, `4 t a / tp`, and without it the attention matrix, `by_matrix t s
/// a / tp`. Dropout of attention adds a mask and its output, 3 bytes (Korthikanti et al., arXiv
/// 2205.05198, section 4.1).
#[must_use]
pub fn saved(rank: &Rank<'_>) -> Saved {
    let (network, habits) = (&rank.job.transformer, &rank.job.framework.memory);
    let width = network.score_width() + network.value_width_all();
    let element = habits.attention_bytes / 2.0 * width as f64
        + (rank.width * network.keys_and_values_width() as f64).value();
    let mut projections = habits.activation_factor * rank.tokens * element / rank.tensor_parallel;
    if let Some(latent) = network.latent_attention {
        let normed = latent.query_rank + latent.key_value_rank;
        let down = (rank.width * (network.latent_width() + normed) as f64).value();
        projections += habits.activation_factor * rank.tokens * down / rank.sequence_split;
    }
    let by_matrix = match rank.combination.attention_kernel {
        AttentionKernel::MegatronFused => Some(habits.matrix_bytes_fused),
        AttentionKernel::Torch => Some(habits.matrix_bytes_torch),
        _ => None,
    };
    let has_dropout = network.numerics.attention_dropout > 0.0;
    let by_dropout = if has_dropout { 3.0 } else { 0.0 };
    let per_pair = by_matrix.map_or(0.0, |bytes| bytes + by_dropout);
    let core = Bytes::new(per_pair * pairs(rank) * network.heads as f64);
    let sums = match by_matrix {
        Some(_) => Bytes::ZERO,
        None => {
            ElementWidth::THIRTY_TWO_BITS
                * (rank.tokens * network.heads as f64 / rank.tensor_parallel)
        }
    };
    let kept = saved_around(rank) + Bytes::new(projections) + sums + core;
    let mut dropped = [Bytes::ZERO; Recompute::COUNT];
    dropped[Recompute::AttentionCore as usize] = match habits.selective {
        Selective::AllButAttention => core,
        Selective::EverySecondProduct => kept - rank.boundary() - second_products(rank) - sums,
    };
    Saved { kept, dropped }
}

/// Queries, keys and values that latent attention projects up, `w t a (2 d_n + 2 d_r + d_v) / tp` bytes, and
/// the products that do so again, of `2 t (r_q a (d_n + d_r) + r_k a (d_n + d_v)) / tp` FLOP; nothing otherwise.
pub(super) fn projected_up(rank: &Rank<'_>) -> (Bytes, Work) {
    let network = &rank.job.transformer;
    if network.latent_attention.is_none() {
        return (Bytes::ZERO, Work::default());
    }
    let width = network.score_width() + network.keys_and_values_width();
    let tokens = rank.tokens / rank.tensor_parallel;
    let output = network.value_width_all() * network.hidden;
    let weights = (network.attention_weights_split() - output) as f64;
    let work = Work {
        products: Flops::new(2.0 * tokens * weights),
        ..Work::default()
    };
    let factor = rank.job.framework.memory.activation_factor;
    (rank.width * (factor * tokens * width as f64), work)
}

/// Query, value and attention's output, `w t (2 a d + k d) / tp`.
fn second_products(rank: &Rank<'_>) -> Bytes {
    let network = &rank.job.transformer;
    let width =
        network.score_width() + network.value_width_all() + network.keys_and_values_width() / 2;
    rank.width * (rank.tokens * width as f64 / rank.tensor_parallel)
}

/// Pairs of a query and a key on one rank, for each head of the whole network, `t s / tp`, `s` the mean over
/// layers as windows leave it.
fn pairs(rank: &Rank<'_>) -> f64 {
    let job = rank.job;
    rank.tokens * job.transformer.attended(job.workload.sequence_length) / rank.tensor_parallel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::fixture;
    use crate::job::Job;
    use crate::layout::{Combination, RmsNormKernel, SequenceParallel};

    #[test]
    fn projections_are_split_and_grouped() {
        // 2 * 8 * (8 + 4), on two ranks.
        let parameters = parameters(&fixture::job().transformer);
        assert_eq!(parameters, Parameters::new(192, 0));
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
    fn dropout_keeps_masks() {
        let (mut job, combination) = (fixture::job(), fixture::combination());
        let torch = Combination {
            attention_kernel: AttentionKernel::MegatronFused,
            ..combination
        };
        let kept = |job: &Job, combination| saved(&Rank::new(job, combination)).kept;
        let (flash, matrix) = (kept(&job, &combination), kept(&job, &torch));
        job.transformer.numerics.hidden_dropout = 0.1;
        job.transformer.numerics.attention_dropout = 0.1;
        // A byte an element of t h; beside that 3 bytes t s a / tp.
        assert_eq!(kept(&job, &combination) - flash, Bytes::new(32.0));
        assert_eq!(kept(&job, &torch) - matrix, Bytes::new(32.0 + 48.0));
    }

    #[test]
    fn plain_attention_keeps_and_streams_its_matrix() {
        let job = fixture::job();
        let combination = Combination {
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
        let combination = Combination {
            sequence_parallel: SequenceParallel::On,
            rmsnorm_kernel: RmsNormKernel::Fused,
            ..fixture::combination()
        };
        // t h (12 / 2 + 4 / 2) / 2; 16 bytes of sums.
        let saved = saved(&Rank::new(&job, &combination));
        assert_eq!(saved.kept, Bytes::new(128.0 + 160.0 + 16.0));
    }
}
