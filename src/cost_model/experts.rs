//! Router, routed and shared experts.
//!
//! Counts of operators and tensors as of Megatron-LM's `core/transformer/moe`; the efficiencies were fitted to 404
//! measured runs of mixtures of experts from twelve sources, each judged without itself.

use super::block::{Parameters, Saved, Work, saved_around, surroundings};
use super::compute::{Passes, gemm_throughput, streaming};
use super::feed_forward;
use super::rank::{ExpertShare, Rank};
use crate::layout::Recompute;
use crate::quantity::{Bytes, Flops, FlopsPerSecond, Seconds};
use crate::transformer::Transformer;

/// Router and gates on every rank, shared experts `m h f_s` split as a dense block is, routed experts
/// `E m h f_e`, with `m` matrices each, and their biases.
#[must_use]
pub fn parameters(transformer: &Transformer) -> Parameters {
    let Some(experts) = transformer.experts else {
        return Parameters::default();
    };
    let count = experts.experts;
    let routed = transformer.routed_expert_weights(count) + transformer.routed_expert_biases(count);
    Parameters {
        experts: routed as f64,
        ..Parameters::new(
            transformer.shared_expert_weights(),
            transformer.router_parameters(),
        )
    }
}

/// Work beside the routed experts: the router, `2 t h E / u` FLOP a forward pass, the shared experts as a
/// dense block of their width, and the block's surroundings.
#[must_use]
pub fn work(rank: &Rank<'_>) -> Work {
    let (Some(share), Some(experts)) = (rank.experts, rank.job.transformer.experts) else {
        return Work::default();
    };
    let router = 2.0 * share.sent * (rank.job.transformer.hidden * experts.experts) as f64;
    let beside = Work {
        products: Flops::new(router),
        ..surroundings(rank)
    };
    beside + feed_forward::inside(rank, experts.shared_expert_width)
}

/// Time of the routed experts' products by `passes`: of a forward pass
/// `lambda 2 R m h f / (peak eta ge) (1 + M0 / M)`, and `kappa w (E_l m h f + R (2 h + m f)) / B` of their
/// traffic, which does not hide behind the products of few tokens; gradients are accumulated in fp32, 10
/// bytes a parameter and micro-batch.
#[must_use]
pub fn products(rank: &Rank<'_>, share: &ExpertShare, passes: Passes) -> Seconds {
    let (job, hidden) = (rank.job, rank.job.transformer.hidden as f64);
    let (efficiency, speed) = (&job.cluster.efficiency, &job.framework.speed);
    let matrices = job.transformer.feed_forward.matrices() as f64;
    let each = matrices * hidden * share.width;
    let work = job.workload.load_imbalance * 2.0 * share.rows * each;
    let few = 1.0 + efficiency.expert_tokens / share.rows_each();
    let reached = throughput(rank);
    let weights = share.local * each;
    let rows = share.rows * (2.0 * hidden + matrices * share.width);
    let traffic = rank.width * (speed.expert_traffic * (weights + rows));
    let accumulated = if passes.trains() {
        Bytes::new(ACCUMULATION * weights)
    } else {
        Bytes::ZERO
    };
    Flops::new(work * few) * passes.work / reached
        + (traffic * passes.work + accumulated) / streaming(job)
}

/// Bytes of an fp32 gradient read and written, and of the 16-bit one added to it.
const ACCUMULATION: f64 = 10.0;

/// Throughput of experts with many tokens, `peak eta ge`, in 8 bits times what experts reach of it.
fn throughput(rank: &Rank<'_>) -> FlopsPerSecond {
    let (job, efficiency) = (rank.job, &rank.job.cluster.efficiency);
    let gpu = &job.cluster.accelerator;
    let is_narrow = gpu.peak(job.workload.precision) > gpu.peak_bf16;
    let narrow = if is_narrow {
        efficiency.expert_fp8
    } else {
        1.0
    };
    gemm_throughput(job) * (efficiency.expert_gemm * narrow)
}

/// Time of the operators around the experts by `passes`: of a forward pass
/// `kp (lambda R (20 h + 10 f) + 24 t E / u) / B` for permutation, activation and router.
#[must_use]
pub fn around(rank: &Rank<'_>, share: &ExpertShare, passes: Passes) -> Seconds {
    let job = rank.job;
    let hidden = job.transformer.hidden as f64;
    let (each, imbalance) = (
        20.0 * hidden + 10.0 * share.width,
        job.workload.load_imbalance,
    );
    let experts = job.transformer.experts.map_or(0, |it| it.experts) as f64;
    let bytes = imbalance * share.rows * each + 24.0 * share.sent * experts;
    Bytes::new(job.framework.speed.permutation * bytes) * passes.work / streaming(job)
}

/// Activations: around the block; of the router `8 t E / u` bytes; of the rows that the experts work on their
/// inputs, `lambda R w h`, and what is between the matrices, `lambda R by_feed_forward f`; of shared experts as of a dense
/// block.
#[must_use]
pub fn saved(rank: &Rank<'_>) -> Saved {
    let (Some(share), Some(experts)) = (rank.experts, rank.job.transformer.experts) else {
        return Saved::default();
    };
    let habits = &rank.job.framework.memory;
    let hidden = rank.job.transformer.hidden as f64;
    let rows = rank.job.workload.load_imbalance * share.rows;
    let each = feed_forward::bytes_between(rank) * share.width + (rank.width * hidden).value();
    let router = 8.0 * share.sent * experts.experts as f64;
    let routed = Bytes::new(habits.activation_factor * rows * each + router);
    let shared = feed_forward::between(rank, experts.shared_expert_width);
    let mut dropped = [Bytes::ZERO; Recompute::COUNT];
    dropped[Recompute::FeedForward as usize] = routed + shared;
    Saved {
        kept: saved_around(rank) + routed + shared,
        dropped,
    }
}

/// Outputs of the activation function, `lambda R w f` bytes, and the traffic of it once more: a third of `9 w
/// lambda R f` bytes.
pub(super) fn activated(rank: &Rank<'_>) -> (Bytes, Work) {
    let Some(share) = rank.experts else {
        return (Bytes::ZERO, Work::default());
    };
    let job = rank.job;
    let elements = job.workload.load_imbalance * share.rows * share.width;
    let work = Work {
        elementwise: rank.width * (9.0 * elements),
        ..Work::default()
    };
    let factor = job.framework.memory.activation_factor;
    (rank.width * (factor * elements), work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::fixture;
    use crate::transformer::Experts;

    #[test]
    fn experts_are_shared_out_and_rows_follow_the_tokens() {
        let (mut job, mut combination) = (fixture::job(), fixture::combination());
        job.transformer.experts = Some(Experts {
            experts: 4,
            experts_per_token: 2,
            expert_width: 6,
            shared_expert_width: 0,
            dense_layers: 0,
            expert_interval: 1,
            router_biases: 0,
            shared_expert_gates: 0,
        });
        job.workload.load_imbalance = 1.5;
        combination.expert_parallel = 2;
        combination.expert_tensor_parallel = 2;
        let rank = Rank::new(&job, &combination);
        let share = rank.experts.expect("the network has experts");
        // 4 tokens, not split along the sequence; 2 experts each, of which two ranks hold halves; 8 ranks.
        assert!(fixture::close(share.sent, 4.0));
        assert!(fixture::close(share.rows, 16.0));
        assert!(fixture::close(share.rows_each(), 8.0));
        assert!(fixture::close(share.width, 3.0));
        assert!(fixture::close(rank.replicas_of_experts().all, 2.0));
        let parameters = parameters(&job.transformer);
        assert!(fixture::close(parameters.experts, 4.0 * 3.0 * 8.0 * 6.0));
        assert!(fixture::close(parameters.replicated, 32.0));
        // 448 around the block, 8 t E; 1.5 x 16 rows of 8 f + 2 h bytes.
        let saved = saved(&rank);
        assert_eq!(saved.kept, Bytes::new(448.0 + 128.0 + 24.0 * (24.0 + 16.0)));
        assert_eq!(
            saved.kept - saved.dropped[Recompute::FeedForward as usize],
            Bytes::new(448.0)
        );
    }
}
