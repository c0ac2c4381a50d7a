//! Tokens on their way to experts and back.

use crate::framework::Dispatcher;
use crate::job::Job;
use crate::quantity::{Bytes, BytesPerSecond, Seconds};

use super::compute::Passes;
use super::rank::{ExpertShare, Rank};

/// All-to-alls of a layer: a dispatch and a combine in each pass over collectives, each of
/// `lambda (local / bw_within + remote / bw_across) + lat`, times the share that does not hide. `local` and `remote` are
/// the bytes that a rank sends within its `NVLink` domain and beyond: with `g` of `ep` ranks in each of
/// `n` domains and `X = w h t / u` bytes of tokens, `X K (g-1)/ep` and `X K (ep-g)/ep` where every expert gets a
/// copy; `X K (1-1/g)` and `X (n-1)(1-(1-1/n)^K)` where every domain does (Liu et al., arXiv 2412.19437, section 3.2).
#[must_use]
pub fn all_to_all(rank: &Rank<'_>, share: &ExpertShare, passes: Passes) -> Seconds {
    let (job, combination) = (rank.job, rank.combination);
    let ranks = f64::from(combination.expert_parallel);
    if combination.expert_parallel <= 1 {
        return Seconds::ZERO;
    }
    let room = job.cluster.domain() / combination.expert_tensor_parallel.max(1);
    let near = f64::from(room.clamp(1, combination.expert_parallel));
    let domains = ranks / near;
    let copies = job.transformer.experts.map_or(1, |it| it.experts_per_token) as f64;
    let tokens = rank.width * (share.sent * job.transformer.hidden as f64);
    let (local, remote) = match job.framework.speed.dispatcher {
        Dispatcher::AllToAll => (
            copies * (near - 1.0) / ranks,
            copies * (ranks - near) / ranks,
        ),
        Dispatcher::Deduplicated => (
            copies * (1.0 - 1.0 / near),
            (domains - 1.0) * (1.0 - (1.0 - 1.0 / domains).powf(copies)),
        ),
    };
    let efficiency = &job.cluster.efficiency;
    let within = job.cluster.intra_node_bandwidth * efficiency.all_to_all_within;
    let latency = if domains > 1.0 {
        efficiency.all_to_all_latency_across
    } else {
        efficiency.all_to_all_latency
    };
    let transfer = tokens * local / within + tokens * remote / across(job);
    let each = transfer * job.workload.load_imbalance + latency;
    each * (2.0 * passes.collectives * job.framework.speed.all_to_all_exposed)
}

/// What each GPU reaches of its node's ports in an all-to-all.
fn across(job: &Job) -> BytesPerSecond {
    let cluster = &job.cluster;
    let share = cluster.inter_node_bandwidth / f64::from(cluster.gpus_per_node);
    share * cluster.efficiency.all_to_all_across
}

/// Gathering of rows before and scattering of sums after experts that several ranks share: two
/// transfers of `w h R (etp-1)/etp` bytes in each pass.
#[must_use]
pub fn expert_tensor_parallel(rank: &Rank<'_>, share: &ExpertShare, passes: Passes) -> Seconds {
    let (job, ranks) = (rank.job, rank.combination.expert_tensor_parallel);
    if ranks <= 1 {
        return Seconds::ZERO;
    }
    let bandwidth = if job.cluster.is_within_domain(ranks) {
        job.cluster.intra_node_bandwidth
    } else {
        job.cluster
            .across_domains(f64::from(job.cluster.domain().min(ranks)))
    };
    let ranks = f64::from(ranks);
    let rows = rank.width * (share.rows * job.transformer.hidden as f64);
    let bytes: Bytes = rows * ((ranks - 1.0) / ranks * job.workload.load_imbalance);
    bytes / bandwidth * (2.0 * passes.collectives)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::cost_model::fixture;
    use crate::layout::SequenceParallel;
    use crate::transformer::Experts;

    /// DeepSeek-V3's experts on H100 nodes: 4,096 tokens of 7,168, 8 of 256 experts.
    fn time(ranks: u32, dispatcher: Dispatcher) -> f64 {
        let (mut job, mut combination) = (fixture::job(), fixture::combination());
        job.cluster = catalog::cluster("dgx-h100-80gb").expect("it is in the catalog");
        job.cluster.gpus = 256;
        job.transformer.hidden = 7168;
        job.transformer.experts = Some(Experts {
            experts: 256,
            experts_per_token: 8,
            expert_width: 2048,
            shared_expert_width: 2048,
            dense_layers: 3,
            expert_interval: 1,
            router_biases: 1,
            shared_expert_gates: 0,
        });
        job.workload.load_imbalance = 1.0;
        job.workload.sequence_length = 4096;
        job.framework.speed.dispatcher = dispatcher;
        combination.tensor_parallel = 1;
        combination.sequence_parallel = SequenceParallel::Off;
        combination.micro_batch = 1;
        combination.expert_parallel = ranks;
        combination.data_parallel = 256;
        let rank = Rank::new(&job, &combination);
        let share = rank.experts.expect("the network has experts");
        all_to_all(&rank, &share, Passes::AGAIN).value() / 2.0
    }

    #[test]
    fn an_all_to_all_takes_what_was_measured() {
        // Liu et al., arXiv 2603.07685, table 7: 9,164 us on 64 ranks, 1,265 us within a node.
        let across = time(64, Dispatcher::AllToAll);
        assert!((across / 9.164e-3 - 1.0).abs() < 0.25, "{across}");
        let within = time(8, Dispatcher::AllToAll);
        assert!((within / 1.265e-3 - 1.0).abs() < 0.25, "{within}");
        // A copy to each of eight nodes: fewer bytes on the network, as many within.
        assert!(time(64, Dispatcher::Deduplicated) < across);
    }
}
