//! Which values each axis may take.

use crate::axis::{Assignment, Axis, Candidate};
use crate::job::Job;
use crate::layout::{AttentionKernel, Checkpointing, RmsNormKernel, Schedule, Sharding};
use crate::rule::RuleSet;

/// The values that may be tried on each axis, and combinations that may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutSpace {
    /// Codes by axis, in the order of [`Axis::ALL`]; ascending, without repetition, not empty.
    values: [Vec<u32>; Axis::COUNT],
    /// Combinations that the user rules out.
    pub forbidden: Vec<Assignment>,
    /// Rules that are not applied: what an explanation drops to see what a rule costs. Empty in
    /// every instance that is read; [`Formulation::LayoutChoice`] applies all rules.
    ///
    /// [`Formulation::LayoutChoice`]: crate::plan::Formulation::LayoutChoice
    pub relaxed: RuleSet,
}

/// Largest micro-batch tried unless the instance lists others.
const LARGEST_MICRO_BATCH: u32 = 16;
/// Most model chunks a pipeline rank tried unless the instance lists others.
const MOST_VIRTUAL_STAGES: u32 = 8;
/// Largest context-parallel degree tried unless the instance lists others.
const LARGEST_CONTEXT_PARALLEL: u32 = 16;

impl LayoutSpace {
    /// Everything legal for the job: each degree up to its natural limit, the best kernels, every
    /// sharding stage and recompute mode.
    #[must_use]
    pub fn everything_legal(job: &Job) -> Self {
        let gpus = job.cluster.gpus;
        let divisors = |most: u32| {
            (1..=most.min(gpus))
                .filter(|d| gpus.is_multiple_of(*d))
                .collect()
        };
        let tensor: Vec<u32> = (1..=job.cluster.gpus_per_node.min(gpus))
            .filter(|&d| {
                gpus.is_multiple_of(d) && job.transformer.heads.is_multiple_of(u64::from(d))
            })
            .collect();
        let micro_batch = (1..=LARGEST_MICRO_BATCH)
            .filter(|&b| job.workload.global_batch.is_multiple_of(u64::from(b)))
            .collect();
        let context = (0..16)
            .map(|exponent| 1_u32 << exponent)
            .take_while(|&cp| cp <= LARGEST_CONTEXT_PARALLEL)
            .filter(|&cp| {
                cp == 1
                    || job
                        .workload
                        .sequence_length
                        .is_multiple_of(2 * u64::from(cp))
            })
            .filter(|&cp| gpus.is_multiple_of(cp))
            .collect();
        let values = Axis::ALL.map(|axis| match axis {
            Axis::TensorParallel => tensor.clone(),
            Axis::PipelineParallel => divisors(job.transformer.layers),
            Axis::DataParallel => divisors(gpus),
            Axis::ContextParallel => Vec::clone(&context),
            Axis::ExpertParallel => vec![1],
            Axis::VirtualStages => (1..=MOST_VIRTUAL_STAGES.min(job.transformer.layers)).collect(),
            Axis::MicroBatch => Vec::clone(&micro_batch),
            Axis::SequenceParallel => vec![0, 1],
            Axis::Sharding => vec![
                Sharding::None as u32,
                Sharding::OptimizerStates as u32,
                Sharding::Gradients as u32,
                Sharding::Parameters as u32,
            ],
            Axis::AttentionKernel => vec![AttentionKernel::Flash2 as u32],
            Axis::RmsNormKernel => vec![RmsNormKernel::Fused as u32],
            Axis::Checkpointing => (0..Checkpointing::ALL.len() as u32).collect(),
            Axis::Schedule => vec![Schedule::OneForwardOneBackward as u32],
        });
        Self {
            values,
            forbidden: Vec::new(),
            relaxed: RuleSet::EMPTY,
        }
    }

    /// Replaces the values of one axis.
    pub fn restrict(&mut self, axis: Axis, mut codes: Vec<u32>) {
        codes.sort_unstable();
        codes.dedup();
        self.values[axis as usize] = codes;
    }

    /// The codes that may be tried on `axis`, ascending.
    #[must_use]
    pub fn values(&self, axis: Axis) -> &[u32] {
        &self.values[axis as usize]
    }

    /// Combinations over all axes, legal or not (saturating).
    #[must_use]
    pub fn combinations(&self) -> u64 {
        self.values.iter().fold(1, |product: u64, codes| {
            product.saturating_mul(codes.len() as u64)
        })
    }

    /// Whether every value of the candidate is listed and no forbidden combination matches.
    #[must_use]
    pub fn admits(&self, candidate: &Candidate) -> bool {
        Axis::ALL
            .iter()
            .all(|&axis| self.values(axis).contains(&candidate.code(axis)))
            && !self
                .forbidden
                .iter()
                .any(|assignment| assignment.matches(candidate))
    }
}
