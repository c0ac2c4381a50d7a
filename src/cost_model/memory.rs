//! Memory besides activations: the training state, what a framework takes, and the risk that a
//! peak does not fit.

use crate::cluster::MemoryError;
use crate::quantity::Bytes;

use super::rank::Rank;

/// Bytes a parameter on one GPU: weights, gradients, optimizer states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateBytes {
    /// Weights in the format of the matrix products.
    pub weights: f64,
    /// Gradients.
    pub gradients: f64,
    /// Master weights and moments.
    pub optimizer: f64,
}

impl StateBytes {
    /// `w + g + o`, each over the ranks that split it: `w` bytes of a weight, `g` of a gradient as
    /// the framework keeps it, `o` of the optimizer; with ZeRO-1 that is `2 + g + o / dp`
    /// (Rajbhandari et al., arXiv 1910.02054, section 5).
    #[must_use]
    pub fn new(rank: &Rank<'_>) -> Self {
        let (job, state) = (rank.job, rank.combination.sharding.state());
        Self {
            weights: job.workload.precision.weights().bytes() / rank.ranks(state.weights),
            gradients: job.framework.memory.gradient_bytes / rank.ranks(state.gradients),
            optimizer: job.workload.optimizer.bytes_per_parameter() / rank.ranks(state.optimizer),
        }
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> f64 {
        self.weights + self.gradients + self.optimizer
    }
}

/// Layers whose weights are gathered at a time where they are sharded: the one that computes and
/// the one that is fetched.
const GATHERED_LAYERS: f64 = 2.0;

/// What the framework takes whatever the number of layers: a constant, `by_working t h` bytes of
/// working buffers, buffers of each communicator with several ranks, and the gathered weights of
/// sharded layers of `layer_parameters` each.
#[must_use]
pub fn fixed(rank: &Rank<'_>, layer_parameters: f64) -> Bytes {
    let (job, combination) = (rank.job, rank.combination);
    let degrees = [
        combination.tensor_parallel,
        combination.pipeline_parallel,
        combination.data_parallel,
        combination.context_parallel,
    ];
    let communicators = degrees.iter().filter(|&&degree| degree > 1).count() as f64;
    let habits = &job.framework.memory;
    let working = Bytes::new(habits.working_bytes * rank.hidden_elements());
    let gathered = if combination.sharding.state().weights.splits() {
        job.workload.precision.weights() * (GATHERED_LAYERS * layer_parameters)
    } else {
        Bytes::ZERO
    };
    habits.fixed + habits.communicator * communicators + (gathered + working)
}

/// Probability that a GPU with `capacity` runs out of memory at a predicted `peak`: logistic in
/// `ln(peak / capacity)`, `1 / (1 + exp(-(ln(peak / capacity) - shift) / scale))`.
#[must_use]
pub fn oom_probability(peak: Bytes, capacity: Bytes, error: MemoryError) -> f64 {
    1.0 / (1.0 + (-((peak / capacity).ln() - error.shift) / error.scale).exp())
}

/// The largest peak whose probability of running out of memory is at most `risk`: the inverse of
/// [`oom_probability`].
#[must_use]
pub fn admissible_peak(capacity: Bytes, error: MemoryError, risk: f64) -> Bytes {
    capacity * (error.shift + error.scale * (risk / (1.0 - risk)).ln()).exp()
}
