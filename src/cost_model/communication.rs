//! Time on the network: collectives within a layer, between stages, among replicas.

use crate::framework::Logits;
use crate::job::Job;
use crate::layout::{Combination, Sharding};
use crate::quantity::{Bytes, BytesPerSecond, Seconds};

use super::compute::Passes;
use super::memory::{sequence_split, tokens};

/// Tensor-parallel collectives of a layer: `passes [2 (tp-1)/tp 2 t h / bw + 2 (tp-1) lat_coll]`. An
/// all-reduce and the pair reduce-scatter, all-gather of sequence parallelism move the same
/// bytes. A group larger than a node uses the network between nodes.
#[must_use]
pub fn tensor_parallel(job: &Job, cell: &Combination, passes: Passes) -> Seconds {
    let ranks = f64::from(cell.tensor_parallel);
    let message = 2.0 * tokens(job, cell) * job.transformer.hidden as f64;
    let bandwidth = if cell.tensor_parallel > job.cluster.gpus_per_node {
        job.cluster.inter_node_bandwidth / job.framework.speed.tensor_parallel_across
    } else {
        job.cluster.intra_node_bandwidth
    };
    let transfer = Bytes::new(2.0 * (ranks - 1.0) / ranks * message) / bandwidth;
    let latency = job.cluster.efficiency.collective_latency * (2.0 * (ranks - 1.0));
    (transfer + latency) * passes.collectives
}

/// The head's collective on gathered logits, `(tp-1)/tp 2 t V` bytes; none on sharded ones.
#[must_use]
pub fn head(job: &Job, cell: &Combination) -> Seconds {
    if job.framework.memory.logits == Logits::Sharded {
        return Seconds::ZERO;
    }
    let ranks = f64::from(cell.tensor_parallel);
    let logits = 2.0 * tokens(job, cell) * job.transformer.vocabulary as f64;
    Bytes::new((ranks - 1.0) / ranks * logits) / job.cluster.intra_node_bandwidth
}

/// Exchange of keys and values around the ring of context-parallel ranks, as far as `attention`
/// does not hide it: `cp - 1` hops of `4 t kv_width / tp` bytes forward and twice that backward
/// (Liu et al., Ring Attention, arXiv 2310.01889). The latency of each hop is never hidden.
#[must_use]
pub fn context_parallel(job: &Job, cell: &Combination, attention: Seconds) -> Seconds {
    let hops = f64::from(cell.context_parallel) - 1.0;
    let width = job.transformer.key_value_width() as f64 / f64::from(cell.tensor_parallel);
    let traffic = Bytes::new(3.0 * hops * 4.0 * tokens(job, cell) * width);
    let group = cell.tensor_parallel * cell.context_parallel;
    let bandwidth = if group <= job.cluster.gpus_per_node {
        job.cluster.intra_node_bandwidth
    } else {
        // Each node passes on the chunks of all its tensor-parallel ranks at once.
        job.cluster.inter_node_bandwidth / f64::from(cell.tensor_parallel)
    };
    let latency = job.cluster.efficiency.collective_latency * (3.0 * hops);
    Seconds::ZERO.max(traffic / bandwidth - attention) + latency
}

/// Transfers of one stage for one micro-batch: `2 t h / u` bytes an interface. Where stages lie
/// on different nodes the `min(g_node, G/pp)` GPUs of a node share its network; a job within one
/// node uses the node's own. Interleaving passes every interface `v` times.
#[must_use]
pub fn pipeline_transfer(job: &Job, cell: &Combination) -> Seconds {
    if cell.pipeline_parallel == 1 {
        return Seconds::ZERO;
    }
    let cluster = &job.cluster;
    let message =
        Bytes::new(2.0 * tokens(job, cell) * job.transformer.hidden as f64 / sequence_split(cell));
    let transfer = if cluster.gpus > cluster.gpus_per_node {
        let stage_gpus = f64::from(cluster.gpus) / f64::from(cell.pipeline_parallel);
        let sharing = f64::from(cluster.gpus_per_node).min(stage_gpus);
        message * sharing / cluster.inter_node_bandwidth
    } else {
        message / cluster.intra_node_bandwidth
    };
    let hop =
        transfer * job.framework.speed.transfer_exposed + cluster.efficiency.pipeline_hop_latency;
    hop * f64::from(cell.virtual_stages)
}

/// Replicas among which gradients are reduced, and how many of them share a node.
fn replicas(job: &Job, cell: &Combination) -> (f64, f64) {
    let ranks = f64::from(cell.data_parallel) * f64::from(cell.context_parallel);
    let in_node = (job.cluster.gpus_per_node / cell.tensor_parallel).max(1);
    (ranks, ranks.min(f64::from(in_node)))
}

/// Congestion of the network with size, `(G / 64)^gamma`.
fn congestion(job: &Job) -> f64 {
    (f64::from(job.cluster.gpus) / 64.0).powf(job.cluster.efficiency.congestion)
}

/// Bandwidth of one replica's ring among `in_node` neighbours on a node, which the
/// `g_node / in_node` rings of that node share.
fn ring_bandwidth(job: &Job, in_node: f64) -> BytesPerSecond {
    job.cluster.inter_node_bandwidth * (in_node / f64::from(job.cluster.gpus_per_node))
}

/// Reduction of gradients and gathering of weights after the backward pass, seconds a parameter
/// of the largest stage (linear in it):
/// across nodes `[4 (R-1)/R (g_node/g) / bw_nic + 1e-6 alpha] (G/64)^gamma`, within a node
/// `4 (R-1)/R / bw_nvlink + 1e-6 alpha (G/64)^gamma`, `R = dp cp` replicas, `g` of them on
/// a node. ZeRO-3 moves this traffic into every micro-batch, ZeRO-2 the gradients' half of it
/// ([`sharded_traffic`]); with HSDP only
/// the replicas on different nodes reduce, each its node's share.
#[must_use]
pub fn data_parallel(job: &Job, cell: &Combination) -> Seconds {
    let (all, in_node) = replicas(job, cell);
    let (ranks, share) = match cell.sharding {
        Sharding::Parameters => return Seconds::ZERO,
        Sharding::Hybrid => (all / in_node, 1.0 / in_node),
        // The weights alone: gradients are scattered in every micro-batch.
        Sharding::Gradients => (all, 0.5),
        Sharding::None | Sharding::OptimizerStates => (all, 1.0),
    };
    let traffic = Bytes::new(job.framework.speed.reduction_bytes * share * (ranks - 1.0) / ranks);
    let hops = job.cluster.efficiency.ring_hop * (1e-6 * share * (ranks - 1.0)) * congestion(job);
    let transfer = if all <= in_node {
        traffic / job.cluster.intra_node_bandwidth
    } else {
        traffic / ring_bandwidth(job, in_node) * congestion(job)
    };
    transfer + hops
}

/// Traffic of fully sharded weights for one layer and micro-batch:
/// `by_sharded W / tp (R-1)/R / bw + lat log2 R`, where ranks of one node use its own network and
/// others share the node's ports among their `tp` rings.
///
/// ZeRO-3 gathers 16-bit weights before the forward and again before the backward pass and
/// scatters gradients after it: 6 bytes a parameter. HSDP does so within a node. ZeRO-2 scatters
/// gradients only, a third of that.
#[must_use]
pub fn sharded_traffic(job: &Job, cell: &Combination) -> Seconds {
    let (ranks, in_node) = replicas(job, cell);
    let shards = match cell.sharding {
        Sharding::Parameters | Sharding::Gradients => ranks,
        Sharding::Hybrid => in_node,
        Sharding::None | Sharding::OptimizerStates => return Seconds::ZERO,
    };
    let part = if cell.sharding == Sharding::Gradients {
        1.0 / 3.0
    } else {
        1.0
    };
    let speed = &job.framework.speed;
    let tp = f64::from(cell.tensor_parallel);
    let weights = job.transformer.layer_weights() as f64 / tp;
    let traffic = Bytes::new(part * speed.sharded_bytes * weights * (shards - 1.0) / shards);
    let transfer = if shards <= in_node {
        traffic / job.cluster.intra_node_bandwidth
    } else {
        traffic * tp / job.cluster.inter_node_bandwidth
    };
    transfer + speed.sharded_latency * shards.log2()
}
