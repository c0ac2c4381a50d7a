//! Memory besides activations: the training state, what a framework takes, and the risk that a
//! peak does not fit.

use crate::cluster::MemoryError;
use crate::framework::MainGradients;
use crate::quantity::{Bytes, ElementWidth};

use super::rank::{Rank, Replicas};

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
    /// the framework keeps it, `o` of the optimizer, with a copy of narrow gradients where it makes one;
    /// with ZeRO-1 that is `2 + g + o / (dp cp)` (Rajbhandari et al., arXiv 1910.02054, section 5).
    /// Megatron-LM: `6 + 12 / (dp cp)` in bf16, `4 + 16 / (dp cp)` in fp16.
    #[must_use]
    pub fn new(rank: &Rank<'_>, replicas: Replicas) -> Self {
        let (workload, state) = (&rank.job.workload, rank.combination.sharding.state());
        let habits = &rank.job.framework.memory;
        let gradients = habits.gradients(workload.precision);
        let wide = ElementWidth::THIRTY_TWO_BITS.bytes();
        let is_copied = habits.main_gradients == MainGradients::Copied
            && workload.optimizer.needs_wide_gradients()
            && gradients < wide;
        let copy = if is_copied { wide } else { 0.0 };
        let optimizer = workload.optimizer.bytes_per_parameter() + copy;
        Self {
            weights: workload.precision.weights().bytes() / replicas.ranks(state.weights),
            gradients: gradients / replicas.ranks(state.gradients),
            optimizer: optimizer / replicas.ranks(state.optimizer),
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

/// What a process takes beside its tensors, whatever the number of layers: a constant, and buffers of
/// each communicator with several ranks.
#[must_use]
pub fn fixed(rank: &Rank<'_>) -> Bytes {
    let combination = rank.combination;
    let degrees = [
        combination.tensor_parallel,
        combination.pipeline_parallel,
        combination.data_parallel,
        combination.context_parallel,
        combination.expert_parallel,
    ];
    let communicators = degrees.iter().filter(|&&degree| degree > 1).count() as f64;
    let habits = &rank.job.framework.memory;
    habits.fixed + habits.communicator * communicators
}

/// Tensors that are there whatever the number of layers: workspaces of the GPU's libraries, `by_working
/// t h` bytes of working buffers, activations between stages that stay allocated (of `w t h / u` bytes, `r`
/// a stage or `r` a model chunk), and of sharded layers of `layer_parameters` each the gathered weights of two and
/// the gradient of one (torchtitan on 8 and on 128 GPUs differ by 15.2 GiB; 16 bytes a parameter less are 14.0).
#[must_use]
pub fn buffers(rank: &Rank<'_>, layer_parameters: f64) -> Bytes {
    let (job, combination) = (rank.job, rank.combination);
    let habits = &job.framework.memory;
    let working = Bytes::new(habits.working_bytes * rank.hidden_elements());
    let retained = match (combination.pipeline_parallel, combination.virtual_stages) {
        (1, _) => 0.0,
        (_, 1) => habits.retained_boundaries,
        (_, chunks) => habits.retained_boundaries_interleaved * f64::from(chunks),
    };
    let precision = job.workload.precision;
    let gathered = if combination.sharding.state().weights.splits() {
        let bytes = GATHERED_LAYERS * precision.weights().bytes() + habits.gradients(precision);
        Bytes::new(bytes * layer_parameters)
    } else {
        Bytes::ZERO
    };
    let gpu = &job.cluster.accelerator;
    let grouped = match rank.experts {
        Some(_) => gpu.workspace_experts,
        None => Bytes::ZERO,
    };
    gpu.workspace + grouped + rank.boundary() * retained + (gathered + working)
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
    use crate::catalog;
    use crate::cost_model::fixture;
    use crate::layout::{Combination, Sharding};
    use crate::workload::{Optimizer, Precision};

    fn state(rank: &Rank<'_>) -> StateBytes {
        StateBytes::new(rank, rank.replicas())
    }

    #[test]
    fn each_part_of_the_state_is_split_over_its_group() {
        let job = fixture::job();
        let check = |sharding: Sharding, expected: [f64; 3]| {
            let combination = Combination {
                sharding,
                ..fixture::combination()
            };
            let bytes = state(&Rank::new(&job, &combination));
            let [weights, gradients, optimizer] = expected;
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
        assert_eq!(fixed(&Rank::new(&job, &combination)), Bytes::new(1030.0));
        let replicated = buffers(&Rank::new(&job, &combination), 100.0);
        combination.sharding = Sharding::Parameters;
        let sharded = buffers(&Rank::new(&job, &combination), 100.0);
        assert_eq!(sharded - replicated, Bytes::new(800.0));
    }

    #[test]
    fn activations_between_stages_stay_allocated() {
        let (mut job, mut combination) = (fixture::job(), fixture::combination());
        let habits = &mut job.framework.memory;
        (
            habits.retained_boundaries,
            habits.retained_boundaries_interleaved,
        ) = (3.0, 2.0);
        job.cluster.accelerator.workspace = Bytes::new(5.0);
        let mut check = |stages: u32, chunks: u32, expected: f64| {
            (combination.pipeline_parallel, combination.virtual_stages) = (stages, chunks);
            let found = buffers(&Rank::new(&job, &combination), 0.0);
            assert_eq!(found, Bytes::new(5.0 + expected), "{stages} x {chunks}");
        };
        // 2 t h bytes each.
        check(1, 1, 0.0);
        check(2, 1, 3.0 * 64.0);
        check(2, 4, 8.0 * 64.0);
    }

    #[test]
    fn states_have_the_widths_of_precision_and_framework() {
        let mut job = fixture::job();
        let framework = catalog::framework("megatron-lm").expect("it is in the catalog");
        job.framework = framework;
        let mut check = |precision, optimizer, sharding, expected: f64| {
            (job.workload.precision, job.workload.optimizer) = (precision, optimizer);
            let combination = Combination {
                sharding,
                ..fixture::combination()
            };
            let total = state(&Rank::new(&job, &combination)).total();
            assert!(
                fixture::close(total, expected),
                "{precision} {optimizer} {sharding}: {total}"
            );
        };
        // Four replicas.
        let (whole, split) = (Sharding::None, Sharding::OptimizerStates);
        check(Precision::Bf16, Optimizer::Adam, whole, 18.0);
        check(Precision::Bf16, Optimizer::Adam, split, 6.0 + 12.0 / 4.0);
        check(Precision::Fp16, Optimizer::Adam, whole, 20.0);
        check(Precision::Fp16, Optimizer::Adam, split, 4.0 + 16.0 / 4.0);
        check(Precision::Fp16, Optimizer::AdamBf16, split, 4.0 + 6.0 / 4.0);
        check(
            Precision::Fp16,
            Optimizer::AdamBf16Moments,
            split,
            4.0 + 8.0 / 4.0,
        );
        job.framework.memory.set_gradients(2.0);
        (job.workload.precision, job.workload.optimizer) = (Precision::Bf16, Optimizer::Adam);
        let combination = fixture::combination();
        let narrow = state(&Rank::new(&job, &combination));
        assert_eq!((narrow.gradients, narrow.optimizer), (2.0, 4.0));
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
