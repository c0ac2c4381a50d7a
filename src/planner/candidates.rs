//! Walks the layout space and names the rules that each combination breaks.

use std::time::Instant;

use crate::axis::{Axis, FlaggedCombination};
use crate::cost_model::pipeline::{even_partition, interleaved_partition};
use crate::framework::FusedRmsNorm;
use crate::instance::Instance;
use crate::layout::{Checkpointing, Combination, Layout, RmsNormKernel, Stage};
use crate::rule::{Rule, RuleSet};

use super::constraints;

/// Combinations up to which the program carries those that break a rule as columns too.
pub const LITERAL_LIMIT: u64 = 20_000;

/// Combinations that are listed whatever the time, so that a limit changes nothing in usual spaces: it
/// takes a tenth of a second.
pub const LEAST_LISTED: usize = 100_000;

/// The combinations that a program decides among.
#[derive(Debug, Clone)]
pub struct Candidates {
    /// In the order that breaks ties: earlier wins among equals.
    pub entries: Vec<(FlaggedCombination, RuleSet)>,
    /// Rules whose violators were left out.
    pub applied_before: Vec<Rule>,
    /// Whether the time was over before all were listed.
    pub is_cut: bool,
}

/// Lists the combinations of the space. A space of up to [`LITERAL_LIMIT`] is listed whole, so
/// that the program itself excludes what breaks a rule; of a larger one, only the combinations
/// that break none of the rules on discrete choices.
///
/// Order, and so the tie rule: less tensor, then pipeline, then context parallelism, fewer
/// virtual stages, smaller micro-batch, fewer checkpointed layers, then the remaining axes in
/// order of their codes.
#[must_use]
pub fn list(instance: &Instance) -> Candidates {
    list_until(instance, None)
}

/// The same, as far as it gets until `deadline`, and at least [`LEAST_LISTED`] of them.
#[must_use]
pub fn list_until(instance: &Instance, deadline: Option<Instant>) -> Candidates {
    let space = &instance.space;
    let literal = space.combinations() <= LITERAL_LIMIT;
    let mut walk = Walk {
        instance,
        literal,
        codes: [0; Axis::COUNT],
        by_degrees: RuleSet::EMPTY,
        deadline,
        is_cut: false,
        entries: Vec::new(),
    };
    walk.visit(0);
    let applied_before = if literal {
        Vec::new()
    } else {
        structural_rules(instance)
    };
    Candidates {
        entries: walk.entries,
        is_cut: walk.is_cut,
        applied_before,
    }
}

/// Every rule but memory and, where the instance has none, rows of the user's own.
fn structural_rules(instance: &Instance) -> Vec<Rule> {
    let applies = |rule: &Rule| match rule {
        Rule::MemoryCapacity => false,
        Rule::Constraint => !instance.space.constraints.is_empty(),
        _ => true,
    };
    Rule::ALL.into_iter().filter(applies).collect()
}

/// The axes from the outermost loop to the innermost. Data parallelism comes early: with the GPU
/// count it cuts most.
const ORDER: [Axis; Axis::COUNT] = [
    Axis::TensorParallel,
    Axis::PipelineParallel,
    Axis::ContextParallel,
    Axis::ExpertParallel,
    Axis::DataParallel,
    Axis::VirtualStages,
    Axis::MicroBatch,
    Axis::Checkpointing,
    Axis::SequenceParallel,
    Axis::Sharding,
    Axis::RmsNormKernel,
    Axis::AttentionKernel,
    Axis::Schedule,
];

/// Axes decided when all are but the flags.
const DEGREES: usize = 7;

/// A walk through the space.
struct Walk<'a> {
    instance: &'a Instance,
    /// Whether what breaks a rule is listed too.
    literal: bool,
    codes: [u32; Axis::COUNT],
    /// What the degrees break.
    by_degrees: RuleSet,
    deadline: Option<Instant>,
    is_cut: bool,
    entries: Vec<(FlaggedCombination, RuleSet)>,
}

impl Walk<'_> {
    fn visit(&mut self, depth: usize) {
        if depth == DEGREES {
            let is_over = |deadline: Instant| deadline <= Instant::now();
            self.is_cut |= self.entries.len() >= LEAST_LISTED && self.deadline.is_some_and(is_over);
            if self.is_cut {
                return;
            }
            let degrees = FlaggedCombination::from_codes(&self.codes);
            self.by_degrees = broken_by_degrees(self.instance, &degrees.combination);
            let relaxed = self.instance.space.relaxed;
            if !self.literal && !self.by_degrees.without(relaxed).is_empty() {
                return;
            }
        }
        let Some(&axis) = ORDER.get(depth) else {
            let candidate = FlaggedCombination::from_codes(&self.codes);
            let broken = self
                .by_degrees
                .union(broken_by_flags(self.instance, &candidate))
                .without(self.instance.space.relaxed);
            if self.literal || broken.is_empty() {
                self.entries.push((candidate, broken));
            }
            return;
        };
        let space = &self.instance.space;
        let is_open = self.literal || space.relaxed.contains(Rule::GpuCount);
        for &code in space.values(axis) {
            self.codes[axis as usize] = code;
            let is_full = axis != Axis::DataParallel || fills_cluster(self.instance, &self.codes);
            if is_open || is_full {
                self.visit(depth + 1);
            }
        }
        self.codes[axis as usize] = space.values(axis).first().copied().unwrap_or(0);
    }
}

/// Whether the degrees chosen so far multiply to the job's GPUs.
fn fills_cluster(instance: &Instance, codes: &[u32; Axis::COUNT]) -> bool {
    let degrees = [
        Axis::TensorParallel,
        Axis::PipelineParallel,
        Axis::ContextParallel,
        Axis::DataParallel,
    ];
    let product = degrees.iter().fold(1_u64, |product, &axis| {
        product.saturating_mul(u64::from(codes[axis as usize]))
    });
    product == u64::from(instance.job.cluster.gpus)
}

/// The rules on discrete choices that the candidate breaks.
#[must_use]
pub fn broken_rules(instance: &Instance, candidate: &FlaggedCombination) -> RuleSet {
    broken_by_degrees(instance, &candidate.combination)
        .union(broken_by_flags(instance, candidate))
        .without(instance.space.relaxed)
}

/// The rules that degrees, virtual stages and the micro-batch break whatever the other choices.
fn broken_by_degrees(instance: &Instance, cell: &Combination) -> RuleSet {
    let job = &instance.job;
    let tp = u64::from(cell.tensor_parallel);
    let pp = u64::from(cell.pipeline_parallel);
    let interleaved = cell.virtual_stages > 1;
    let micro_batches = cell.micro_batches(job.workload.global_batch);
    let mut broken = RuleSet::EMPTY;
    broken.insert_if(Rule::GpuCount, cell.gpus() != u64::from(job.cluster.gpus));
    broken.insert_if(
        Rule::HeadsDivisible,
        !job.transformer.heads.is_multiple_of(tp),
    );
    broken.insert_if(
        Rule::KeyValueHeadsDivisible,
        key_value_remainder(instance, cell) != 0,
    );
    broken.insert_if(
        Rule::TensorParallelWithinNode,
        !u64::from(job.cluster.gpus_per_node).is_multiple_of(tp),
    );
    broken.insert_if(
        Rule::GlobalBatchDivisible,
        batch_remainder(instance, cell) != 0,
    );
    broken.insert_if(Rule::LayersCoverStages, partition(instance, cell).is_none());
    broken.insert_if(Rule::InterleavingNeedsPipeline, interleaved && pp == 1);
    broken.insert_if(
        Rule::InterleavingMicroBatches,
        interleaved && (micro_batches < pp || !micro_batches.is_multiple_of(pp)),
    );
    broken.insert_if(Rule::ExpertsDivisible, cell.expert_parallel > 1);
    broken
}

/// The rules that the other choices break, together with the degrees.
fn broken_by_flags(instance: &Instance, candidate: &FlaggedCombination) -> RuleSet {
    let cell = &candidate.combination;
    let mut broken = RuleSet::EMPTY;
    broken.insert_if(
        Rule::SequenceDivisible,
        sequence_remainder(instance, cell) != 0,
    );
    broken.insert_if(
        Rule::SequenceParallelNeedsTensorParallel,
        candidate.code(Axis::SequenceParallel) == 1 && cell.tensor_parallel == 1,
    );
    broken.insert_if(
        Rule::InterleavingNeedsPipeline,
        cell.virtual_stages > 1 && candidate.code(Axis::Schedule) != 0,
    );
    broken.insert_if(
        Rule::ShardingExcludesPipeline,
        candidate.code(Axis::Sharding) >= 2 && cell.pipeline_parallel > 1,
    );
    broken.insert_if(
        Rule::RmsNormKernelExcludesCheckpointing,
        instance.job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing
            && cell.rmsnorm_kernel == RmsNormKernel::Fused
            && candidate.checkpointing != Checkpointing::None,
    );
    let forbidden = instance
        .space
        .forbidden
        .iter()
        .any(|assignment| assignment.matches(candidate));
    broken.insert_if(Rule::Forbidden, forbidden);
    broken.insert_if(Rule::Constraint, constraints::breaks_cell(instance, cell));
    broken
}

/// `gb mod (dp b)`: 0 for whole micro-batches on every replica.
#[must_use]
pub fn batch_remainder(instance: &Instance, cell: &Combination) -> u64 {
    let at_once = u64::from(cell.data_parallel) * u64::from(cell.micro_batch);
    instance.job.workload.global_batch % at_once
}

/// 0 where `tp` divides the key-value heads or is a multiple of them.
#[must_use]
pub fn key_value_remainder(instance: &Instance, cell: &Combination) -> u64 {
    let (groups, tp) = (
        instance.job.transformer.key_value_heads,
        u64::from(cell.tensor_parallel),
    );
    (groups % tp).min(tp % groups)
}

/// Tokens of the sequence left over when it is split.
#[must_use]
pub fn sequence_remainder(instance: &Instance, cell: &Combination) -> u64 {
    let sequence = instance.job.workload.sequence_length;
    let context = u64::from(cell.context_parallel);
    let zigzag = if context > 1 {
        sequence % (2 * context)
    } else {
        0
    };
    let split = match cell.sequence_parallel {
        crate::layout::SequenceParallel::On => {
            sequence % (u64::from(cell.tensor_parallel) * context)
        }
        crate::layout::SequenceParallel::Off => 0,
    };
    zigzag.max(split)
}

/// Layers of each stage by the framework's own cut; `None` if there is none that gives every
/// model chunk a layer.
#[must_use]
pub fn partition(instance: &Instance, cell: &Combination) -> Option<Vec<u32>> {
    let layers = instance.job.transformer.layers;
    if cell.pipeline_parallel > layers {
        return None;
    }
    let cut = if cell.virtual_stages > 1 {
        interleaved_partition(layers, cell.pipeline_parallel, cell.virtual_stages)
    } else {
        even_partition(
            instance.job.framework.partition,
            layers,
            cell.pipeline_parallel,
        )
    };
    cut.filter(|cut| cut.iter().all(|&count| count >= cell.virtual_stages))
}

/// The candidate's layout: the framework's own cut, every layer checkpointed alike.
#[must_use]
pub fn layout(instance: &Instance, candidate: &FlaggedCombination) -> Option<Layout> {
    let cut = partition(instance, &candidate.combination)?;
    let stages = cut.into_iter().map(|layers| {
        let mut stage = Stage {
            layers,
            recomputed: [0; 3],
        };
        if let Some(mode) = candidate.checkpointing.recompute() {
            stage.recomputed[mode as usize] = layers;
        }
        stage
    });
    Some(Layout {
        combination: candidate.combination,
        stages: stages.collect(),
    })
}
