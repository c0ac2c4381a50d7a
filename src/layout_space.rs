//! Which values each axis may take.

use crate::axis::{Assignment, Axis, AxisSet, FlaggedCombination};
use crate::cluster::Cluster;
use crate::constraint::Constraint;
use crate::framework::TensorParallelReach;
use crate::framework::support::{Aspect, Support};
use crate::job::Job;
use crate::layout::{AttentionKernel, Checkpointing, Schedule, Sharding};

/// The values that may be tried on each axis, and combinations that may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutSpace {
    /// Codes by axis, in the order of [`Axis::ALL`]; ascending, without repetition, not empty.
    values: [Vec<u32>; Axis::COUNT],
    /// Axes whose values the user lists.
    listed: AxisSet,
    /// Combinations that the user rules out.
    pub forbidden: Vec<Assignment>,
    /// Rows of the user's own.
    pub constraints: Vec<Constraint>,
    /// Rules that are not applied, as `rules::relaxed` reads them; none in an instance that is read.
    pub relaxed: u128,
}

/// Largest micro-batch tried unless the instance lists others.
const LARGEST_MICRO_BATCH: u32 = 16;
/// Most model chunks a pipeline rank tried unless the instance lists others.
const MOST_VIRTUAL_STAGES: u32 = 8;
/// Most `NVLink` domains of a tensor-parallel group tried unless the instance lists others.
const MOST_DOMAINS: u32 = 2;
/// Largest context-parallel degree tried unless the instance lists others.
const LARGEST_CONTEXT_PARALLEL: u32 = 16;

impl LayoutSpace {
    /// Everything legal for the job that its framework has: each degree up to its natural limit, the
    /// best kernels, every sharding stage and recompute mode.
    #[must_use]
    pub fn everything_legal(job: &Job) -> Self {
        let gpus = job.cluster.gpus;
        let divisors = |most: u32| divisors(gpus, most);
        let anywhere = job.framework.tensor_parallel_reach == TensorParallelReach::Anywhere;
        let mut tensor = divisors(largest_tensor_parallel(&job.cluster));
        tensor.retain(|&degree| {
            job.transformer.heads.is_multiple_of(u64::from(degree))
                && (anywhere || job.cluster.is_within_domain(degree))
        });
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
        let experts = match &job.transformer.experts {
            None => vec![1],
            Some(experts) => {
                let mut degrees = divisors(u32::try_from(experts.experts).unwrap_or(u32::MAX));
                degrees.retain(|&degree| experts.experts.is_multiple_of(u64::from(degree)));
                degrees
            }
        };
        let has_light_outputs =
            job.transformer.experts.is_some() || job.transformer.latent_attention.is_some();
        let usual = |axis: Axis| match axis {
            Axis::TensorParallel => tensor.clone(),
            Axis::PipelineParallel => divisors(job.transformer.layers),
            Axis::DataParallel => divisors(gpus),
            Axis::ContextParallel => Vec::clone(&context),
            Axis::ExpertParallel => experts.clone(),
            Axis::ExpertTensorParallel => vec![1],
            Axis::VirtualStages => (1..=MOST_VIRTUAL_STAGES.min(job.transformer.layers)).collect(),
            Axis::MicroBatch => Vec::clone(&micro_batch),
            Axis::SequenceParallel => vec![0, 1],
            Axis::Sharding => vec![
                Sharding::None as u32,
                Sharding::OptimizerStates as u32,
                Sharding::Gradients as u32,
                Sharding::Parameters as u32,
            ],
            Axis::AttentionKernel => vec![usual_flash(job) as u32],
            Axis::RmsNormKernel => vec![job.framework.usual_rmsnorm as u32],
            // Flash attention recomputes its core anyway: that mode is of use to other kernels only.
            Axis::Checkpointing => {
                let usual = [
                    Checkpointing::None,
                    Checkpointing::Full,
                    Checkpointing::FeedForward,
                ];
                let light = has_light_outputs.then_some(Checkpointing::Light);
                usual
                    .into_iter()
                    .chain(light)
                    .map(|flag| flag as u32)
                    .collect()
            }
            Axis::Schedule => vec![Schedule::OneForwardOneBackward as u32],
        };
        let axes = &job.framework.axes;
        Self {
            values: Axis::ALL.map(|axis| supported(axes, axis, usual(axis))),
            listed: AxisSet::EMPTY,
            forbidden: Vec::new(),
            constraints: Vec::new(),
            relaxed: 0,
        }
    }

    /// The same wishes for another job: what the user lists stays, every other axis takes what is
    /// legal for the job.
    #[must_use]
    pub fn for_job(&self, job: &Job) -> Self {
        let mut space = Self {
            values: Self::everything_legal(job).values,
            ..self.clone()
        };
        for axis in self.listed.iter() {
            space.values[axis as usize].clone_from(&self.values[axis as usize]);
        }
        if !self.listed.contains(Axis::Checkpointing) {
            space.open_attention_core(&job.framework.axes);
        }
        space
    }

    /// The axes whose values the user lists.
    #[must_use]
    pub const fn listed(&self) -> AxisSet {
        self.listed
    }

    /// Replaces the values of one axis by those that the user lists.
    pub fn restrict(&mut self, axis: Axis, codes: Vec<u32>) {
        self.listed = self.listed.with(axis);
        self.set(axis, codes);
    }

    /// Adds a value to those that may be tried on an axis.
    pub fn open(&mut self, axis: Axis, code: u32) {
        let mut codes = self.values(axis).to_vec();
        codes.push(code);
        self.set(axis, codes);
    }

    fn set(&mut self, axis: Axis, mut codes: Vec<u32>) {
        codes.sort_unstable();
        codes.dedup();
        self.values[axis as usize] = codes;
    }

    /// Whether the user lists the values of an axis.
    #[must_use]
    pub fn is_listed(&self, axis: Axis) -> bool {
        self.listed.contains(axis)
    }

    /// Adds recomputation of the attention core where a kernel is listed that gains by it and the
    /// framework has it.
    pub fn open_attention_core(&mut self, axes: &Support) {
        let kernels = self.values(Axis::AttentionKernel);
        let gains = kernels
            .iter()
            .any(|&code| !AttentionKernel::ALL[code as usize].is_flash());
        let core = Checkpointing::AttentionCore as u32;
        if gains && axes.has(Axis::Checkpointing, core) {
            self.open(Axis::Checkpointing, core);
        }
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
    pub fn admits(&self, candidate: &FlaggedCombination) -> bool {
        Axis::ALL
            .iter()
            .all(|&axis| self.values(axis).contains(&candidate.code(axis)))
            && !self
                .forbidden
                .iter()
                .any(|assignment| assignment.matches(candidate))
    }
}

/// Largest tensor-parallel degree tried unless the instance lists others.
#[must_use]
pub fn largest_tensor_parallel(cluster: &Cluster) -> u32 {
    MOST_DOMAINS * cluster.domain()
}

/// The framework's usual kernel of attention if that keeps no matrix, else `FlashAttention` 2.
#[must_use]
pub fn usual_flash(job: &Job) -> AttentionKernel {
    let usual = job.framework.usual_attention;
    if usual.is_flash() {
        usual
    } else {
        AttentionKernel::Flash2
    }
}

/// Those of the usual values that the framework has; where it has none of them, its own.
fn supported(axes: &Support, axis: Axis, usual: Vec<u32>) -> Vec<u32> {
    let has = |code: &u32| axes.has(axis, *code);
    let mut values: Vec<u32> = usual.iter().copied().filter(has).collect();
    if values.is_empty() {
        values = axes.of(Aspect::Axis(axis)).0.clone().unwrap_or(usual);
        values.sort_unstable();
    }
    values
}

/// The divisors of `number` up to `most`, ascending, found in pairs.
fn divisors(number: u32, most: u32) -> Vec<u32> {
    let pairs = (1..=number.isqrt()).filter(|&small| number.is_multiple_of(small));
    let mut found: Vec<u32> = pairs.flat_map(|small| [small, number / small]).collect();
    found.retain(|&divisor| divisor <= most);
    found.sort_unstable();
    found.dedup();
    found
}
