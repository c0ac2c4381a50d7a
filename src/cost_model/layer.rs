//! A layer of one kind: what its blocks add up to.

use super::block::Work;
use super::communication;
use super::components::{StepTime, TimeComponent};
use super::compute::{self, Passes};
use super::rank::Rank;
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
    /// Parameters on one GPU.
    pub parameters: f64,
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
        let parameters = kind.sum(|block| block.parameters(&rank.job.transformer));
        let parameters = parameters.on_rank(rank.tensor_parallel);
        let work = kind.sum(|block| block.work(rank));
        let time = time(rank, &work, parameters, Passes::TRAINING);
        let again = |mode: Recompute| match mode {
            Recompute::Full => {
                self::time(rank, &work, parameters, Passes::RECOMPUTED).total() - time.total()
            }
            Recompute::FeedForward | Recompute::AttentionCore => {
                let repeated = kind.sum(|block| block.repeated(rank, mode));
                compute::device(rank, &repeated, Passes::AGAIN).total()
                    + compute::launch(rank, &repeated, Passes::AGAIN)
            }
        };
        Self {
            time,
            recompute: std::array::from_fn(|mode| again(Recompute::ALL[mode])),
            parameters,
            memory: LayerMemory::new(rank, kind),
        }
    }

    /// Every duration times `factor`.
    pub(super) fn slow_down(&mut self, factor: f64) {
        self.time = self.time.scaled(factor);
        self.recompute = self.recompute.map(|extra| extra * factor);
    }
}

impl LayerMemory {
    /// Adds up the blocks of a layer. A fully checkpointed layer keeps its input, `w t h / u`, and
    /// needs one layer's worth while it recomputes.
    #[must_use]
    pub fn new(rank: &Rank<'_>, kind: LayerKind) -> Self {
        let saved = kind.sum(|block| block.saved(rank));
        let mut kept = saved.dropped.map(|dropped| saved.kept - dropped);
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

/// Time of `work` by `passes`: the GPU's own, then on the network, then what host time and sharded
/// weights add where they do not hide behind the rest.
fn time(rank: &Rank<'_>, work: &Work, parameters: f64, passes: Passes) -> StepTime {
    let speed = &rank.job.framework.speed;
    let mut time = compute::device(rank, work, passes);
    time[TimeComponent::TensorParallel] = communication::tensor_parallel(rank, work, passes);
    time[TimeComponent::ContextParallel] =
        communication::context_parallel(rank, work, time[TimeComponent::Attention]);
    let launch = compute::launch(rank, work, passes);
    time[TimeComponent::Launch] = exposed(time.total(), launch, speed.launch_norm);
    let sharded = communication::sharded_traffic(rank, parameters);
    time[TimeComponent::WeightGathering] = exposed(time.total(), sharded, speed.sharded_norm);
    time
}

/// What `other` adds to `work` when the two overlap as a `p`-norm, `(w^p + o^p)^(1/p) - w`: all of
/// it with `p = 1`; with a large `p` only what exceeds the work.
fn exposed(work: Seconds, other: Seconds, norm: f64) -> Seconds {
    let (longer, shorter) = (work.max(other), if work > other { other } else { work });
    if norm <= 1.0 || longer == Seconds::ZERO {
        return other;
    }
    let ratio = shorter / longer;
    longer * (1.0 + ratio.powf(norm)).powf(1.0 / norm) - work
}
