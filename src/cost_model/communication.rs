//! Time on the network: collectives within a layer, between stages, among replicas.

use crate::cluster::even_share;
use crate::job::Job;
use crate::layout::SequenceParallel;
use crate::quantity::{Bytes, Seconds};
use crate::workload::Precision;

use super::block::Work;
use super::compute::Passes;
use super::rank::{Rank, Replicas};

/// Tensor-parallel collectives of a layer, each of
/// `x 2 (tp-1)/tp w t h / bw + 2 (tp-1) lat`, `lat` within a domain or across, `x` the share of
/// sequence-parallel transfers that the framework does not hide behind matrix products. An all-reduce and the pair reduce-scatter,
/// all-gather of sequence parallelism move the same bytes. A group that does not lie within an `NVLink`
/// domain uses the network between nodes.
#[must_use]
pub fn tensor_parallel(rank: &Rank<'_>, work: &Work, passes: Passes) -> Seconds {
    let (job, tp) = (rank.job, rank.tensor_parallel);
    let (cluster, degree) = (&job.cluster, rank.combination.tensor_parallel);
    let (efficiency, speed) = (&cluster.efficiency, &job.framework.speed);
    let (bandwidth, hop) = if cluster.is_within_domain(degree) {
        (cluster.intra_node_bandwidth, efficiency.collective_latency)
    } else {
        let neighbours = f64::from(even_share(degree, cluster.domain()));
        let bandwidth = cluster.across_domains(neighbours / speed.tensor_parallel_across);
        (bandwidth, efficiency.collective_latency_across)
    };
    let shown = match rank.combination.sequence_parallel {
        SequenceParallel::On => speed.tensor_parallel_exposed,
        SequenceParallel::Off => 1.0,
    };
    let message = rank.width * rank.hidden_elements();
    let transfer = message * (shown * 2.0 * (tp - 1.0) / tp) / bandwidth;
    let latency = hop * (2.0 * (tp - 1.0));
    (transfer + latency) * (passes.collectives * work.collectives)
}

/// Exchange of keys and values around the ring of context-parallel ranks, as far as `attention`
/// does not hide it: `cp - 1` hops of `2 w t k d / tp` bytes forward and twice that backward
/// (Liu et al., Ring Attention, arXiv 2310.01889). The latency of each hop is never hidden.
#[must_use]
pub fn context_parallel(rank: &Rank<'_>, work: &Work, attention: Seconds) -> Seconds {
    let cluster = &rank.job.cluster;
    let hops = 3.0 * (f64::from(rank.combination.context_parallel) - 1.0);
    let degrees = rank.combination;
    let group = degrees
        .tensor_parallel
        .saturating_mul(degrees.context_parallel);
    let bandwidth = if cluster.is_within_domain(group) {
        cluster.intra_node_bandwidth
    } else {
        // The node at the end of a domain passes on the chunks of all its tensor-parallel ranks.
        let passing = rank.tensor_parallel.min(f64::from(cluster.gpus_per_node));
        cluster.across_domains(f64::from(cluster.gpus_per_node) / passing)
    };
    let latency = cluster.efficiency.collective_latency * hops;
    Seconds::ZERO.max(work.key_values * hops / bandwidth - attention) + latency
}

/// Transfers of one stage for one micro-batch: `w t h / u` bytes an interface. Where stages lie
/// in different domains the `min(g_node, G/pp)` GPUs of a node share its network; a job within one
/// `NVLink` domain uses that. Interleaving passes every interface `v` times.
#[must_use]
pub fn pipeline_transfer(rank: &Rank<'_>) -> Seconds {
    let (job, combination) = (rank.job, rank.combination);
    if combination.pipeline_parallel == 1 {
        return Seconds::ZERO;
    }
    let cluster = &job.cluster;
    let transfer = if cluster.gpus > cluster.domain() {
        let stage_gpus = f64::from(cluster.gpus) / f64::from(combination.pipeline_parallel);
        let sharing = f64::from(cluster.gpus_per_node).min(stage_gpus);
        rank.boundary() * sharing / cluster.inter_node_bandwidth
    } else {
        rank.boundary() / cluster.intra_node_bandwidth
    };
    let hop =
        transfer * job.framework.speed.transfer_exposed + cluster.efficiency.pipeline_hop_latency;
    hop * f64::from(combination.virtual_stages)
}

/// Congestion of the network with size, `(G / 64)^gamma`.
fn congestion(job: &Job) -> f64 {
    (f64::from(job.cluster.gpus) / 64.0).powf(job.cluster.efficiency.congestion)
}

/// Reduction of gradients and gathering of weights after the backward pass, seconds a parameter
/// of the largest stage (linear in it):
/// across domains `[4 (R-1)/R (g_node/g) / bw_nic + 1e-6 alpha] (G/64)^gamma`, within a domain
/// `4 (R-1)/R / bw_nvlink + 1e-6 alpha (G/64)^gamma`, the first terms times the share that the
/// framework does not hide behind the backward pass; `R` replicas (`dp cp`, of experts `tp dp cp / (ep etp)`), `g` of them in
/// a domain of nodes of `g_node`. What is sharded moves in every micro-batch instead ([`sharded_traffic`]): of gradients
/// that are, half of this traffic; of weights that are, all of it within their group, so that
/// `R / n` groups of `n` ranks reduce, each rank its `n`-th part.
#[must_use]
pub fn data_parallel(rank: &Rank<'_>, replicas: Replicas) -> Seconds {
    let (job, state) = (rank.job, rank.combination.sharding.state());
    let (all, in_domain) = (replicas.all, replicas.in_domain);
    let group = replicas.ranks(state.weights);
    let ranks = all / group;
    if ranks <= 1.0 {
        return Seconds::ZERO;
    }
    let share = if state.gradients.splits() && !state.weights.splits() {
        // The weights alone.
        0.5
    } else {
        1.0 / group
    };
    let traffic = Bytes::new(job.framework.speed.reduction_bytes * share * (ranks - 1.0) / ranks);
    let congestion = congestion(job);
    let hops = job.cluster.efficiency.ring_hop * (1e-6 * share * (ranks - 1.0)) * congestion;
    let transfer = if all <= in_domain {
        traffic / job.cluster.intra_node_bandwidth
    } else {
        traffic / job.cluster.across_domains(in_domain) * congestion
    };
    transfer * job.framework.speed.reduction_exposed + hops
}

/// Traffic of sharded gradients and weights for one layer of `P` parameters on the GPU and one
/// micro-batch: `by_sharded P (n-1)/n / bw + lat log2 n` in groups of `n` ranks; those within
/// an `NVLink` domain use that, others have their share of its ports.
///
/// Full sharding gathers 16-bit weights before the forward and again before the backward pass and
/// scatters gradients after it: 6 bytes a parameter; 4 where products take 8 bits, which are gathered
/// (torchao, `float8/fsdp_utils.py`). Sharded gradients alone are a third of that.
#[must_use]
pub fn sharded_traffic(rank: &Rank<'_>, replicas: Replicas, parameters: f64) -> Seconds {
    let (job, state) = (rank.job, rank.combination.sharding.state());
    if !state.gradients.splits() {
        return Seconds::ZERO;
    }
    let part = match (state.weights.splits(), job.workload.precision) {
        (true, Precision::Bf16 | Precision::Fp16) => 1.0,
        (true, Precision::Fp8) => 2.0 / 3.0,
        (false, _) => 1.0 / 3.0,
    };
    let shards = replicas.ranks(state.gradients);
    let speed = &job.framework.speed;
    let traffic = Bytes::new(part * speed.sharded_bytes * parameters * (shards - 1.0) / shards);
    let in_domain = replicas.in_domain;
    let bandwidth = if shards <= in_domain {
        job.cluster.intra_node_bandwidth
    } else {
        job.cluster.across_domains(in_domain)
    };
    traffic / bandwidth + speed.sharded_latency * shards.log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::fixture;
    use crate::layout::{Combination, Sharding};
    use crate::quantity::BytesPerSecond;

    #[test]
    fn what_is_sharded_moves_in_every_micro_batch_instead() {
        let job = fixture::job();
        let check = |sharding: Sharding, per_step: f64, per_micro_batch: f64| {
            let combination = Combination {
                sharding,
                ..fixture::combination()
            };
            let rank = Rank::new(&job, &combination);
            let reduced = data_parallel(&rank, rank.replicas()).value();
            assert!(fixture::close(reduced, per_step), "{sharding}: {reduced}");
            let moved = sharded_traffic(&rank, rank.replicas(), 100.0).value();
            assert!(
                fixture::close(moved, per_micro_batch),
                "{sharding}: {moved}"
            );
        };
        // Four replicas, two on each node, which has half of a node's 1,000 bytes a second each:
        // 4 * 3/4 bytes a parameter.
        check(Sharding::None, 3.0 / 500.0, 0.0);
        check(Sharding::OptimizerStates, 3.0 / 500.0, 0.0);
        // The weights' half; 6/3 * 3/4 bytes over a port that two rings share.
        check(Sharding::Gradients, 1.5 / 500.0, 150.0 * 2.0 / 1e3);
        check(Sharding::Parameters, 0.0, 450.0 * 2.0 / 1e3);
        // Two nodes reduce halves; 6 * 1/2 bytes within the node.
        check(Sharding::Hybrid, 4.0 * 0.5 * 0.5 / 500.0, 300.0 / 1e3);
    }

    #[test]
    fn groups_ask_for_the_domain_and_ports_for_the_node() {
        let check = |degree: u32, domain: Option<u32>, gpus: u32, bandwidth: f64| {
            let mut job = fixture::job();
            (job.cluster.gpus, job.cluster.nvlink_domain) = (gpus, domain);
            // 4 GPUs a node have 250 bytes a second each.
            job.cluster.intra_node_bandwidth = BytesPerSecond::new(4e3);
            let combination = Combination {
                tensor_parallel: degree,
                ..fixture::combination()
            };
            let rank = Rank::new(&job, &combination);
            let work = Work {
                collectives: 1.0,
                ..Work::default()
            };
            let tp = f64::from(degree);
            let message = (rank.width * rank.hidden_elements()).value();
            let expected = 2.0 * (2.0 * (tp - 1.0) / tp * message) / bandwidth;
            let time = tensor_parallel(&rank, &work, Passes::TRAINING).value();
            assert!(
                fixture::close(time, expected),
                "{degree}: {time} {expected}"
            );
        };
        // Within a node; within a domain of several; across nodes, over the ports of one of them;
        // across domains of two nodes each.
        check(4, None, 64, 4e3);
        check(8, Some(16), 64, 4e3);
        check(8, None, 64, 1e3);
        check(16, Some(8), 64, 2e3);
        // Three of four GPUs: some groups lie on two nodes, unless there is but one.
        check(3, None, 24, 750.0);
        check(3, None, 3, 4e3);
        check(3, Some(8), 24, 4e3);
        // Never faster than within the domain.
        check(128, Some(64), 1024, 4e3);
    }

    #[test]
    fn a_framework_hides_transfers_but_no_latency() {
        let mut job = fixture::job();
        job.framework.speed.tensor_parallel_exposed = 0.5;
        job.framework.speed.reduction_exposed = 0.25;
        job.cluster.efficiency.collective_latency = Seconds::new(0.1);
        job.cluster.efficiency.collective_latency_across = Seconds::new(1.0);
        let work = Work {
            collectives: 1.0,
            ..Work::default()
        };
        let time = |tensor_parallel, sequence_parallel| {
            let combination = Combination {
                tensor_parallel,
                sequence_parallel,
                ..fixture::combination()
            };
            tensor_parallel_time(&job, &combination, &work)
        };
        // Two collectives of 64 bytes over 1,000 a second, and two hops each.
        assert!(fixture::close(time(2, SequenceParallel::Off), 0.128 + 0.4));
        assert!(fixture::close(time(2, SequenceParallel::On), 0.064 + 0.4));
        // Across nodes of four GPUs every hop takes longer.
        assert!(time(8, SequenceParallel::On) > 28.0);
        let combination = fixture::combination();
        let rank = Rank::new(&job, &combination);
        let reduced = data_parallel(&rank, rank.replicas()).value();
        assert!(fixture::close(reduced, 3.0 / 500.0 / 4.0));
    }

    fn tensor_parallel_time(job: &Job, combination: &Combination, work: &Work) -> f64 {
        let rank = Rank::new(job, combination);
        tensor_parallel(&rank, work, Passes::TRAINING).value()
    }

    #[test]
    fn replicas_shard_within_a_domain() {
        let mut job = fixture::job();
        job.cluster.nvlink_domain = Some(12);
        let check = |replicas: u32, expected: f64| {
            let combination = Combination {
                data_parallel: replicas,
                sharding: Sharding::Hybrid,
                ..fixture::combination()
            };
            let rank = Rank::new(&job, &combination);
            let split = rank.replicas().ranks(combination.sharding.state().weights);
            assert!(fixture::close(split, expected), "{replicas}: {split}");
        };
        // Two ranks each, six of which have room: evenly over domains.
        check(4, 4.0);
        check(6, 6.0);
        check(8, 4.0);
        check(12, 6.0);
    }

    #[test]
    fn stages_exchange_boundary_activations() {
        let (job, combination) = (fixture::job(), fixture::combination());
        // 2 t h bytes by each of the four GPUs of a node.
        let transfer = pipeline_transfer(&Rank::new(&job, &combination));
        assert!(fixture::close(transfer.value(), 64.0 * 4.0 / 1e3));
    }

    #[test]
    fn attention_hides_the_ring_of_keys_and_values() {
        let job = fixture::job();
        let combination = Combination {
            context_parallel: 2,
            ..fixture::combination()
        };
        let rank = Rank::new(&job, &combination);
        let work = Work {
            key_values: Bytes::new(100.0),
            ..Work::default()
        };
        // One hop forward, two backward.
        let exchanged = context_parallel(&rank, &work, Seconds::new(0.1));
        assert!(fixture::close(exchanged.value(), 0.2));
        assert_eq!(
            context_parallel(&rank, &work, Seconds::new(1.0)),
            Seconds::ZERO
        );
    }
}
