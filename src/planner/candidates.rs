//! Walks the layout space and names the rules that each combination breaks.

use crate::axis::{Axis, Candidate};
use crate::cost_model::pipeline::{even_partition, interleaved_partition};
use crate::framework::FusedRmsNorm;
use crate::instance::Instance;
use crate::layout::{Cell, Checkpointing, Layout, RmsNormKernel, Stage};
use crate::rule::{Rule, RuleSet};

use super::constraints;

/// Combinations up to which the program carries those that break a rule as columns too.
pub const LITERAL_LIMIT: u64 = 20_000;

/// The combinations that a program decides among.
#[derive(Debug, Clone)]
pub struct Candidates {
    /// In the order that breaks ties: earlier wins among equals.
    pub entries: Vec<(Candidate, RuleSet)>,
    /// Rules whose violators were left out.
    pub applied_before: Vec<Rule>,
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
    let space = &instance.space;
    let literal = space.combinations() <= LITERAL_LIMIT;
    let mut entries = Vec::new();
    let mut codes = [0; Axis::COUNT];
    walk(instance, literal, 0, &mut codes, &mut entries);
    let applied_before = if literal {
        Vec::new()
    } else {
        structural_rules(instance)
    };
    Candidates {
        entries,
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

fn walk(
    instance: &Instance,
    literal: bool,
    depth: usize,
    codes: &mut [u32; Axis::COUNT],
    entries: &mut Vec<(Candidate, RuleSet)>,
) {
    let Some(&axis) = ORDER.get(depth) else {
        let candidate = Candidate::from_codes(codes);
        let broken = broken_rules(instance, &candidate);
        if literal || broken.is_empty() {
            entries.push((candidate, broken));
        }
        return;
    };
    for &code in instance.space.values(axis) {
        codes[axis as usize] = code;
        if !literal && axis == Axis::DataParallel && !fills_cluster(instance, codes) {
            continue;
        }
        walk(instance, literal, depth + 1, codes, entries);
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
pub fn broken_rules(instance: &Instance, candidate: &Candidate) -> RuleSet {
    let job = &instance.job;
    let cell = &candidate.cell;
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
    broken.insert_if(
        Rule::SequenceDivisible,
        sequence_remainder(instance, cell) != 0,
    );
    broken.insert_if(Rule::LayersCoverStages, partition(instance, cell).is_none());
    broken.insert_if(
        Rule::SequenceParallelNeedsTensorParallel,
        candidate.code(Axis::SequenceParallel) == 1 && tp == 1,
    );
    broken.insert_if(
        Rule::InterleavingNeedsPipeline,
        interleaved && (pp == 1 || candidate.code(Axis::Schedule) != 0),
    );
    broken.insert_if(
        Rule::InterleavingMicroBatches,
        interleaved && (micro_batches < pp || !micro_batches.is_multiple_of(pp)),
    );
    broken.insert_if(
        Rule::ShardingExcludesPipeline,
        candidate.code(Axis::Sharding) >= 2 && pp > 1,
    );
    broken.insert_if(Rule::ExpertsDivisible, cell.expert_parallel > 1);
    broken.insert_if(
        Rule::RmsNormKernelExcludesCheckpointing,
        job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing
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
pub fn batch_remainder(instance: &Instance, cell: &Cell) -> u64 {
    let at_once = u64::from(cell.data_parallel) * u64::from(cell.micro_batch);
    instance.job.workload.global_batch % at_once
}

/// 0 where `tp` divides the key-value heads or is a multiple of them.
#[must_use]
pub fn key_value_remainder(instance: &Instance, cell: &Cell) -> u64 {
    let (groups, tp) = (
        instance.job.transformer.key_value_heads,
        u64::from(cell.tensor_parallel),
    );
    (groups % tp).min(tp % groups)
}

/// Tokens of the sequence left over when it is split.
#[must_use]
pub fn sequence_remainder(instance: &Instance, cell: &Cell) -> u64 {
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
pub fn partition(instance: &Instance, cell: &Cell) -> Option<Vec<u32>> {
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
pub fn layout(instance: &Instance, candidate: &Candidate) -> Option<Layout> {
    let cut = partition(instance, &candidate.cell)?;
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
        cell: candidate.cell,
        stages: stages.collect(),
    })
}
