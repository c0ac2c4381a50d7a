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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::fixture;
    use crate::layout::{Combination, Sharding};

    #[test]
    fn each_part_of_the_state_is_split_over_its_group() {
        let job = fixture::job();
        let check = |sharding: Sharding, state: [f64; 3]| {
            let combination = Combination {
                sharding,
                ..fixture::combination()
            };
            let bytes = StateBytes::new(&Rank::new(&job, &combination));
            let [weights, gradients, optimizer] = state;
            let expected = StateBytes {
                weights,
                gradients,
                optimizer,
            };
            assert_eq!(bytes, expected, "{sharding}");
        };
        // Four replicas, two of them on a node.
        check(Sharding::None, [2.0, 4.0, 12.0]);
        check(Sharding::OptimizerStates, [2.0, 4.0, 3.0]);
        check(Sharding::Gradients, [2.0, 1.0, 3.0]);
        check(Sharding::Parameters, [0.5, 1.0, 3.0]);
        check(Sharding::Hybrid, [1.0, 2.0, 6.0]);
    }

    #[test]
    fn sharded_weights_are_gathered_two_layers_at_a_time() {
        let job = fixture::job();
        let mut combination = fixture::combination();
        // The constant and three communicators.
        let replicated = fixed(&Rank::new(&job, &combination), 100.0);
        assert_eq!(replicated, Bytes::new(1030.0));
        combination.sharding = Sharding::Parameters;
        let sharded = fixed(&Rank::new(&job, &combination), 100.0);
        assert_eq!(sharded, Bytes::new(1030.0 + 400.0));
    }

    #[test]
    fn the_admissible_peak_has_the_accepted_risk() {
        let error = MemoryError {
            shift: 0.01,
            scale: 0.02,
        };
        let capacity = Bytes::from_gib(80.0);
        let peak = admissible_peak(capacity, error, 0.1);
        assert!((oom_probability(peak, capacity, error) - 0.1).abs() < 1e-12);
    }
}
