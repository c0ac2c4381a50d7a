//! The output layer and the loss.

use super::block::Parameters;
use super::compute::{gemm_throughput, streaming, wide_gemm_throughput};
use super::rank::Rank;
use super::{LayerCosts, StageExtra};
use crate::framework::Logits;
use crate::quantity::{Bytes, Flops, Seconds};

/// `V h`, padded, tied or not, its bias, and the norms outside the layers.
#[must_use]
pub fn parameters(rank: &Rank<'_>) -> Parameters {
    let network = &rank.job.transformer;
    Parameters::new(
        rank.vocabulary * network.hidden + network.output_bias_parameters(),
        network.outer_norm_parameters(),
    )
}

/// What the last stage holds and does besides its layers: head and loss, and for each layer that predicts
/// further tokens one more of both, a layer, its projection of `2 h^2` weights with three norms, and on a
/// stage apart from the embedding a copy of that (DeepSeek-V3, arXiv 2412.19437, section 2.2; Megatron-LM,
/// `core/transformer/multi_token_prediction.py`).
#[must_use]
pub fn extra(rank: &Rank<'_>, layer: &LayerCosts) -> StageExtra {
    let network = &rank.job.transformer;
    let own = parameters(rank).on_rank(rank.tensor_parallel);
    let further = f64::from(network.prediction_layers);
    if network.prediction_layers == 0 {
        return StageExtra {
            parameters: own,
            head: time(rank),
            logits: saved(rank),
            ..StageExtra::default()
        };
    }
    let hidden = network.hidden as f64;
    let projection = 2.0 * hidden * hidden / rank.tensor_parallel;
    let norms = 3.0 * network.normalization.parameters() as f64 * hidden;
    let copy = match rank.combination.pipeline_parallel {
        1 => 0.0,
        _ => (rank.vocabulary * network.hidden) as f64 / rank.tensor_parallel,
    };
    let product = Flops::new(6.0 * rank.tokens * projection) / gemm_throughput(rank.job);
    StageExtra {
        parameters: own + further * (layer.parameters + projection + norms) + copy,
        expert_parameters: further * layer.expert_parameters,
        head: time(rank) * (1.0 + further) + (layer.time.total() + product) * further,
        logits: saved(rank) * (1.0 + further) + layer.memory.activations * further,
        ..StageExtra::default()
    }
}

/// Time of a micro-batch: `6 t h V / tp` FLOP in 16 bits; `by_logit t V` bytes in device memory, over `tp` where
/// logits stay sharded; `(tp-1)/tp w t V` bytes on the network where they are gathered.
#[must_use]
pub fn time(rank: &Rank<'_>) -> Seconds {
    let (job, tp) = (rank.job, rank.tensor_parallel);
    let work = 6.0 * logits(rank) * job.transformer.hidden as f64 / tp;
    let traffic = job.framework.speed.logit_bytes * logits(rank) / logit_split(rank);
    let gathered = match job.framework.memory.logits {
        Logits::Sharded => Bytes::ZERO,
        Logits::Gathered => rank.width * ((tp - 1.0) / tp * logits(rank)),
    };
    Flops::new(work) / wide_gemm_throughput(job)
        + Bytes::new(traffic) / streaming(job)
        + gathered / job.cluster.intra_node_bandwidth
}

/// Logits, their softmax and gradients: `(by_logit + by_gathered [tp > 1]) t V` bytes in a
/// framework that gathers them, `by_logit t V / tp` in one that keeps them sharded. Megatron-LM keeps
/// bf16 logits and an fp32 copy that it works on in place, 6 bytes (`tensor_parallel/cross_entropy.py`).
#[must_use]
pub fn saved(rank: &Rank<'_>) -> Bytes {
    let habits = &rank.job.framework.memory;
    let gathers = rank.combination.tensor_parallel > 1 && habits.logits == Logits::Gathered;
    let gathered = if gathers {
        habits.logit_bytes_gathered
    } else {
        0.0
    };
    Bytes::new((habits.loss_bytes() + gathered) * logits(rank) / logit_split(rank))
}

/// Logits of a micro-batch, `t V`, with those of the padding.
fn logits(rank: &Rank<'_>) -> f64 {
    rank.tokens * rank.vocabulary as f64
}

/// Tensor-parallel ranks among which the logits are split.
fn logit_split(rank: &Rank<'_>) -> f64 {
    match rank.job.framework.memory.logits {
        Logits::Gathered => 1.0,
        Logits::Sharded => rank.tensor_parallel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::fixture;

    #[test]
    fn gathered_logits_cost_memory_and_traffic() {
        let (mut job, combination) = (fixture::job(), fixture::combination());
        job.framework.memory.logits = Logits::Gathered;
        // 6 t h V / tp FLOP, 30 t V bytes streamed, (tp-1)/tp 2 t V bytes sent, at 1,000 a second.
        let rank = Rank::new(&job, &combination);
        // The matrix and the norm before it.
        assert_eq!(parameters(&rank), Parameters::new(256, 8));
        assert!(fixture::close(time(&rank).value(), 3.072 + 3.84 + 0.128));
        assert_eq!(saved(&rank), Bytes::new(24.0 * 128.0));
    }

    #[test]
    fn sharded_logits_are_split() {
        let (mut job, combination) = (fixture::job(), fixture::combination());
        job.framework.memory.logits = Logits::Sharded;
        let rank = Rank::new(&job, &combination);
        assert!(fixture::close(time(&rank).value(), 3.072 + 1.92));
        assert_eq!(saved(&rank), Bytes::new(18.0 * 128.0 / 2.0));
    }
}
