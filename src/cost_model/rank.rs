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
    /// Its part of a layer's experts, in a network that has some.
    pub experts: Option<ExpertShare>,
}

/// One GPU's part of the experts of a layer, where all ranks have as many tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpertShare {
    /// Tokens that the rank sends to experts, each to `K` of them: `t / u`.
    pub sent: f64,
    /// Experts on the rank, `E / ep`.
    pub local: f64,
    /// Tokens that those work on, `R = t K etp / u`.
    pub rows: f64,
    /// Width of an expert on the rank, `f_e / etp`.
    pub width: f64,
}

impl ExpertShare {
    fn new(job: &Job, combination: &Combination, sent: f64) -> Option<Self> {
        let experts = job.transformer.experts?;
        let ep = f64::from(combination.expert_parallel);
        let etp = f64::from(combination.expert_tensor_parallel);
        Some(Self {
            sent,
            local: experts.experts as f64 / ep,
            rows: sent * experts.experts_per_token as f64 * etp,
            width: experts.expert_width as f64 / etp,
        })
    }

    /// Tokens that one expert works on, `M = t K ep etp / (u E)`.
    #[must_use]
    pub fn rows_each(&self) -> f64 {
        self.rows / self.local
    }
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
        let tokens = sequences / f64::from(combination.context_parallel);
        let sequence_split = match combination.sequence_parallel {
            SequenceParallel::On => tensor_parallel,
            SequenceParallel::Off => 1.0,
        };
        Self {
            job,
            combination,
            tokens,
            tensor_parallel,
            vocabulary: job.transformer.vocabulary.next_multiple_of(multiple),
            sequence_split,
            width: job.workload.precision.activations(),
            experts: ExpertShare::new(job, combination, tokens / sequence_split),
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

    /// The ranks that hold the same part of the network, `R = dp cp`, where they are spread evenly over
    /// `NVLink` domains.
    #[must_use]
    pub fn replicas(&self) -> Replicas {
        let cell = self.combination;
        let room = self.job.cluster.domain() / cell.tensor_parallel;
        let all = cell.data_parallel.saturating_mul(cell.context_parallel);
        Replicas {
            all: f64::from(cell.data_parallel) * f64::from(cell.context_parallel),
            in_domain: f64::from(even_share(all, room)),
        }
    }

    /// The ranks that hold the same routed experts, `edp = tp dp cp / (ep etp)`; one at least, also where that
    /// breaks a rule.
    #[must_use]
    pub fn replicas_of_experts(&self) -> Replicas {
        let ranks = self.combination.expert_ranks().max(1);
        let all = (self.combination.stage_ranks() / ranks).max(1);
        let room = u64::from(self.job.cluster.domain()) / ranks;
        let [all, room] = [all, room].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
        Replicas {
            all: f64::from(all),
            in_domain: f64::from(even_share(all, room)),
        }
    }
}

/// Ranks that hold the same parameters, and may split their state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replicas {
    /// All of them.
    pub all: f64,
    /// Those in one `NVLink` domain.
    pub in_domain: f64,
}

impl Replicas {
    /// The ranks of a group.
    #[must_use]
    pub const fn ranks(self, group: ShardGroup) -> f64 {
        match group {
            ShardGroup::Whole => 1.0,
            ShardGroup::Domain => self.in_domain,
            ShardGroup::Replicas => self.all,
        }
    }
}
