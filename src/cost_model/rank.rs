//! What one GPU sees of a micro-batch.

use crate::cluster::even_share;
use crate::job::Job;
use crate::layout::{Combination, SequenceParallel, ShardGroup};
use crate::quantity::{Bytes, ElementWidth};

/// One GPU's part of a micro-batch.
#[derive(Debug, Clone, Copy)]
pub struct Rank<'a> {
    /// What is trained, on what.
    pub job: &'a Job,
    /// The choices that hold for the whole job.
    pub combination: &'a Combination,
    /// Tokens of a micro-batch on one rank, `t = b s / cp`.
    pub tokens: f64,
    /// Tensor-parallel ranks, `tp`.
    pub tensor_parallel: f64,
    /// Entries of the vocabulary, padded where the framework does: a multiple of its own times `tp`.
    pub vocabulary: u64,
    /// `u`: the ranks among which the parts outside the tensor-parallel regions are split.
    pub sequence_split: f64,
    /// Width of activations.
    pub width: ElementWidth,
}

impl<'a> Rank<'a> {
    /// A GPU of a job under these choices.
    #[must_use]
    pub fn new(job: &'a Job, combination: &'a Combination) -> Self {
        let tensor_parallel = f64::from(combination.tensor_parallel);
        let multiple = match job.framework.memory.vocabulary_multiple {
            0 | 1 => 1,
            multiple => u64::from(multiple) * u64::from(combination.tensor_parallel),
        };
        let sequences = f64::from(combination.micro_batch) * job.workload.sequence_length as f64;
        Self {
            job,
            combination,
            tokens: sequences / f64::from(combination.context_parallel),
            tensor_parallel,
            vocabulary: job.transformer.vocabulary.next_multiple_of(multiple),
            sequence_split: match combination.sequence_parallel {
                SequenceParallel::On => tensor_parallel,
                SequenceParallel::Off => 1.0,
            },
            width: job.workload.precision.activations(),
        }
    }

    /// Elements of the activations between two blocks, all tokens of them, `t h`.
    #[must_use]
    pub fn hidden_elements(&self) -> f64 {
        self.tokens * self.job.transformer.hidden as f64
    }

    /// Bytes of the activations between two blocks that the rank holds, `w t h / u`.
    #[must_use]
    pub fn boundary(&self) -> Bytes {
        self.width * (self.hidden_elements() / self.sequence_split)
    }

    /// Data- and context-parallel ranks, `R = dp cp`.
    #[must_use]
    pub fn replicas(&self) -> f64 {
        f64::from(self.combination.data_parallel) * f64::from(self.combination.context_parallel)
    }

    /// Those of them that share an `NVLink` domain, where they are spread evenly over domains.
    #[must_use]
    pub fn replicas_in_domain(&self) -> f64 {
        let cell = self.combination;
        let room = self.job.cluster.domain() / cell.tensor_parallel;
        f64::from(even_share(
            cell.data_parallel.saturating_mul(cell.context_parallel),
            room,
        ))
    }

    /// The ranks of a group.
    #[must_use]
    pub fn ranks(&self, group: ShardGroup) -> f64 {
        match group {
            ShardGroup::Whole => 1.0,
            ShardGroup::Domain => self.replicas_in_domain(),
            ShardGroup::Replicas => self.replicas(),
        }
    }
}
