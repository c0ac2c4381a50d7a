//! A layer of one kind: what its blocks add up to.

use super::block::Work;
use super::components::{StepTime, TimeComponent};
use super::compute::{self, Passes};
use super::rank::{ExpertShare, Rank};
use super::{communication, expert_parallel, experts};
use crate::layout::Recompute;
use crate::quantity::{Bytes, Seconds};
use crate::transformer::LayerKind;

/// The coefficients of a layer of one kind, for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerCosts {
    /// Time, forward and backward.
    pub time: StepTime,
    /// Extra time under each mode of [`Recompute::ALL`].
    pub recompute: [Seconds; Recompute::COUNT],
    /// Parameters on one GPU, without those of routed experts.
    pub parameters: f64,
    /// Parameters of routed experts on one GPU.
    pub expert_parameters: f64,
    /// Activations.
    pub memory: LayerMemory,
}

/// What one layer keeps for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerMemory {
    /// Activations kept without recomputation, `A`.
    pub activations: Bytes,
    /// Activations kept under each mode of [`Recompute::ALL`], `C`.
    pub kept: [Bytes; Recompute::COUNT],
    /// Memory of the one layer that each mode recomputes at a time, `W`.
    pub workspace: [Bytes; Recompute::COUNT],
}

impl LayerCosts {
    /// Adds up the blocks of a layer.
    #[must_use]
    pub fn new(rank: &Rank<'_>, kind: LayerKind) -> Self {
        let parameters = kind.parameters(&rank.job.transformer);
        let held = Held {
            parameters: parameters.on_rank(rank.tensor_parallel),
            expert_parameters: parameters.experts / rank.combination.expert_ranks() as f64,
            share: rank.experts.filter(|_| kind.has_experts()),
        };
        let work = kind.sum(|block| block.work(rank));
        let time = time(rank, &work, &held, Passes::TRAINING);
        let again = |mode: Recompute| match mode {
            Recompute::Full => {
                self::time(rank, &work, &held, Passes::RECOMPUTED).total() - time.total()
            }
            Recompute::FeedForward | Recompute::AttentionCore | Recompute::Light => {
                let repeated = kind.sum(|block| block.repeated(rank, mode));
                let experts = held.share.filter(|_| mode == Recompute::FeedForward);
                sum(compute::device(rank, &repeated, Passes::AGAIN))
                    + compute::launch(rank, &repeated, Passes::AGAIN)
                    + experts.map_or(Seconds::ZERO, |share| of_experts(rank, &share).total())
            }
        };
        Self {
            time,
            recompute: std::array::from_fn(|mode| again(Recompute::ALL[mode])),
            parameters: held.parameters,
            expert_parameters: held.expert_parameters,
            memory: LayerMemory::new(rank, kind),
        }
    }

    /// Every duration times `factor`.
    pub(super) fn slow_down(&mut self, factor: f64) {
        self.time = self.time.scaled(factor);
        for extra in &mut self.recompute {
            *extra = *extra * factor;
        }
    }
}

impl LayerMemory {
    /// Adds up the blocks of a layer. A fully checkpointed layer keeps its input, `w t h / u`, and
    /// needs one layer's worth while it recomputes.
    #[must_use]
    pub fn new(rank: &Rank<'_>, kind: LayerKind) -> Self {
        let saved = kind.sum(|block| block.saved(rank));
        let mut kept = [saved.kept; Recompute::COUNT];
        for (kept, &dropped) in kept.iter_mut().zip(&saved.dropped) {
            *kept = *kept - dropped;
        }
        let mut workspace = saved.dropped;
        kept[Recompute::Full as usize] = rank.boundary();
        workspace[Recompute::Full as usize] = saved.kept;
        Self {
            activations: saved.kept,
            kept,
            workspace,
        }
    }
}

/// What a layer has on one GPU.
struct Held {
    parameters: f64,
    expert_parameters: f64,
    share: Option<ExpertShare>,
}

/// Time of `work` by `passes`: the GPU's own, what host time adds where it does not hide behind that, on
/// the network, and what sharded weights add where they do not hide behind the rest. Host time hides
/// behind the exchange of keys and values, but not behind collectives: the host waits for the ranks of its group, which launch as late as it does.
fn time(rank: &Rank<'_>, work: &Work, held: &Held, passes: Passes) -> StepTime {
    let speed = &rank.job.framework.speed;
    let device = compute::device(rank, work, passes);
    let mut time = StepTime::of(device);
    let tensor_parallel = communication::tensor_parallel(rank, work, passes);
    let attention = time[TimeComponent::Attention];
    let context_parallel = communication::context_parallel(rank, work, attention);
    time[TimeComponent::TensorParallel] = tensor_parallel;
    time[TimeComponent::ContextParallel] = context_parallel;
    let mut computing = sum(device) + context_parallel;
    let mut host = compute::launch(rank, work, passes);
    let mut traffic = tensor_parallel;
    let mut sharded = communication::sharded_traffic(rank, rank.replicas(), held.parameters);
    if let Some(share) = &held.share {
        let products = experts::products(rank, share, passes);
        let around = experts::around(rank, share, passes);
        let sent = expert_parallel::all_to_all(rank, share, passes);
        let split = expert_parallel::expert_tensor_parallel(rank, share, passes);
        time[TimeComponent::Experts] = products;
        time[TimeComponent::Elementwise] += around;
        time[TimeComponent::AllToAll] = sent;
        time[TimeComponent::TensorParallel] += split;
        computing += products + around;
        host += compute::launch_experts(rank, share, passes);
        traffic += sent + split;
        let replicas = rank.replicas_of_experts();
        sharded += communication::sharded_traffic(rank, replicas, held.expert_parameters);
    }
    let launch = exposed(computing, host, speed.launch_norm);
    time[TimeComponent::Launch] = launch;
    let busy = computing + launch + traffic;
    time[TimeComponent::WeightGathering] = exposed(busy, sharded, speed.sharded_norm);
    time
}

/// One more forward pass of the routed experts, with the tokens sent to them once more.
fn of_experts(rank: &Rank<'_>, share: &ExpertShare) -> StepTime {
    let again = Passes::AGAIN;
    StepTime::of([
        (
            TimeComponent::Experts,
            experts::products(rank, share, again),
        ),
        (
            TimeComponent::Elementwise,
            experts::around(rank, share, again),
        ),
        (
            TimeComponent::AllToAll,
            expert_parallel::all_to_all(rank, share, again),
        ),
        (
            TimeComponent::TensorParallel,
            expert_parallel::expert_tensor_parallel(rank, share, again),
        ),
        (
            TimeComponent::Launch,
            compute::launch_experts(rank, share, again),
        ),
    ])
}

/// Sum of some components.
fn sum<const N: usize>(amounts: [(TimeComponent, Seconds); N]) -> Seconds {
    amounts.iter().map(|&(_, amount)| amount).sum()
}

/// What `other` adds to `work` when the two overlap as a `p`-norm, `(w^p + o^p)^(1/p) - w`: all of
/// it with `p = 1`; with a large `p` only what exceeds the work.
fn exposed(work: Seconds, other: Seconds, norm: f64) -> Seconds {
    let (longer, shorter) = (work.max(other), if work > other { other } else { work });
    if norm <= 1.0 || shorter == Seconds::ZERO {
        return other;
    }
    let ratio = shorter / longer;
    longer * (1.0 + ratio.powf(norm)).powf(1.0 / norm) - work
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::fixture;

    #[test]
    fn a_dense_layer_is_the_sum_of_its_blocks() {
        let (mut job, combination) = (fixture::job(), fixture::combination());
        job.framework.speed.sharded_norm = 1.0;
        let layer = LayerCosts::new(&Rank::new(&job, &combination), LayerKind::DENSE);
        assert!(fixture::close(layer.parameters, 96.0 + 192.0 + 16.0));
        let parts = [
            // 3 (768 + 1536) FLOP, 3.5 * 128 FLOP, 1920 + 1536 and 2 * 3200 bytes, at 1,000 a second.
            (TimeComponent::Gemm, 6.912),
            (TimeComponent::Attention, 0.448),
            (TimeComponent::Elementwise, 3.456),
            (TimeComponent::RmsNorm, 6.4),
            // Four collectives of 2 (tp-1)/tp 2 t h bytes.
            (TimeComponent::TensorParallel, 4.0 * 0.064),
            (TimeComponent::Launch, 0.9),
        ];
        let expected = StepTime::of(parts.map(|(component, time)| (component, Seconds::new(time))));
        for (component, time) in layer.time.components() {
            let expected = expected[component].value();
            assert!(
                fixture::close(time.value(), expected),
                "{component:?}: {time:?}"
            );
        }
        // A forward pass again: a third, but for attention (1 of 3.5) and collectives (half).
        let full = (6.912 + 3.456 + 6.4 + 0.9) / 3.0 + 0.128 + 0.128;
        assert!(fixture::close(
            layer.recompute[Recompute::Full as usize].value(),
            full
        ));
        let block = 1.024 + 0.768 / 3.0 + 0.9 / 6.0;
        let repeated = layer.recompute[Recompute::FeedForward as usize];
        assert!(fixture::close(repeated.value(), block));
    }

    #[test]
    fn a_checkpointed_layer_keeps_its_input() {
        let (job, combination) = (fixture::job(), fixture::combination());
        let memory = LayerMemory::new(&Rank::new(&job, &combination), LayerKind::DENSE);
        assert_eq!(memory.activations, Bytes::new(624.0 + 704.0));
        // 2 t h; all but the inner activations; all, as flash attention has no matrix; all but two outputs of norms.
        let kept = [64.0, 1328.0 - 256.0, 1328.0, 1328.0 - 128.0].map(Bytes::new);
        assert_eq!(memory.kept, kept);
        assert_eq!(
            memory.workspace,
            [1328.0, 256.0, 0.0, 128.0].map(Bytes::new)
        );
    }

    #[test]
    fn overlap_hides_what_is_shorter() {
        let (work, other) = (Seconds::new(3.0), Seconds::new(4.0));
        assert_eq!(exposed(work, other, 1.0), other);
        assert!(fixture::close(exposed(work, other, 2.0).value(), 2.0));
        assert_eq!(exposed(Seconds::ZERO, Seconds::ZERO, 2.0), Seconds::ZERO);
    }
}
