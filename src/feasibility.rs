//! Which rules a finished layout breaks, and by how much.
//!
//! Written apart from the programs and sharing nothing with them but the cost model, so that it
//! can vouch for their answers.

use crate::axis::{Axis, FlaggedCombination};
use crate::cost_model::{self, Costs, memory};
use crate::framework::{FusedRmsNorm, Partition};
use crate::instance::Instance;
use crate::layout::{
    Checkpointing, Combination, Layout, RmsNormKernel, Schedule, SequenceParallel, Sharding,
};
use crate::plan::Violation;
use crate::rule::Rule;

/// Every rule that the layout breaks; empty for a layout that can run.
#[must_use]
pub fn check(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let mut violations = check_choices(instance, &layout.combination);
    violations.extend(check_stages(instance, layout));
    violations.extend(check_listed(instance, layout));
    violations.extend(check_constraints(instance, layout));
    violations.retain(|violation| !is_relaxed(instance, &violation.rule));
    let memory_is_limited = !instance.space.relaxed.contains(Rule::MemoryCapacity);
    if memory_is_limited
        && violations
            .iter()
            .all(|violation| !makes_costs_meaningless(&violation.rule))
    {
        violations.extend(check_memory(instance, layout));
    }
    violations
}

/// Whether the rule is one that the instance does not apply.
fn is_relaxed(instance: &Instance, rule: &str) -> bool {
    let name = rule.split('(').next().unwrap_or(rule);
    let mut relaxed = instance.space.relaxed.iter();
    relaxed.any(|rule| rule.as_str() == name)
}

/// Without whole micro-batches or with too few stages there is no memory to speak of.
fn makes_costs_meaningless(rule: &str) -> bool {
    rule == Rule::LayersCoverStages.as_str() || rule == Rule::GlobalBatchDivisible.as_str()
}

fn violation(rule: Rule, message: String) -> Violation {
    Violation {
        rule: rule.as_str().to_owned(),
        message,
    }
}

/// Rules on the choices that hold for the whole job.
#[expect(clippy::too_many_lines, reason = "one short paragraph a rule")]
fn check_choices(instance: &Instance, cell: &Combination) -> Vec<Violation> {
    let job = &instance.job;
    let mut found = Vec::new();
    let mut report = |rule, message| found.push(violation(rule, message));
    let (tp, pp) = (
        u64::from(cell.tensor_parallel),
        u64::from(cell.pipeline_parallel),
    );

    let gpus = u64::from(job.cluster.gpus);
    if cell.gpus() != gpus {
        report(
            Rule::GpuCount,
            format!(
                "tensor x pipeline x data x context parallel is {tp} x {pp} x {} x {} = {}, but the job has {gpus} GPUs",
                cell.data_parallel,
                cell.context_parallel,
                cell.gpus()
            ),
        );
    }
    let heads = job.transformer.heads;
    if !heads.is_multiple_of(tp) {
        let divisors: Vec<String> = (1..=heads)
            .filter(|d| heads.is_multiple_of(*d))
            .map(|d| d.to_string())
            .collect();
        report(
            Rule::HeadsDivisible,
            format!(
                "{heads} attention heads cannot be split among {tp} tensor-parallel ranks; possible are {}",
                divisors.join(", ")
            ),
        );
    }
    let groups = job.transformer.key_value_heads;
    if !groups.is_multiple_of(tp) && !tp.is_multiple_of(groups) {
        report(
            Rule::KeyValueHeadsDivisible,
            format!(
                "{groups} key-value heads are neither a multiple nor a divisor of {tp} tensor-parallel ranks"
            ),
        );
    }
    let node = u64::from(job.cluster.gpus_per_node);
    if !node.is_multiple_of(tp) {
        report(
            Rule::TensorParallelWithinNode,
            format!("{tp} tensor-parallel ranks do not fit evenly into nodes of {node} GPUs"),
        );
    }
    let at_once = u64::from(cell.data_parallel) * u64::from(cell.micro_batch);
    let batch = job.workload.global_batch;
    if !batch.is_multiple_of(at_once) {
        let above = (batch / at_once + 1) * at_once;
        let nearest = match batch / at_once {
            0 => format!("nearest is {above}"),
            steps => format!("nearest are {} and {above}", steps * at_once),
        };
        report(
            Rule::GlobalBatchDivisible,
            format!(
                "the global batch of {batch} is not a multiple of {} replicas x micro-batch {} = {at_once}; {nearest}",
                cell.data_parallel, cell.micro_batch,
            ),
        );
    }
    let sequence = job.workload.sequence_length;
    let context = u64::from(cell.context_parallel);
    if context > 1 && !sequence.is_multiple_of(2 * context) {
        report(
            Rule::SequenceDivisible,
            format!(
                "a sequence of {sequence} tokens is not a multiple of 2 x context parallel {context}"
            ),
        );
    }
    if cell.sequence_parallel == SequenceParallel::On {
        if tp == 1 {
            report(
                Rule::SequenceParallelNeedsTensorParallel,
                "sequence parallelism splits among tensor-parallel ranks, and there is only 1"
                    .to_owned(),
            );
        } else if !sequence.is_multiple_of(tp * context) {
            report(
                Rule::SequenceDivisible,
                format!(
                    "a sequence of {sequence} tokens cannot be split among {tp} tensor-parallel ranks"
                ),
            );
        }
    }
    if cell.virtual_stages > 1 {
        check_interleaving(instance, cell, &mut report);
    }
    let shards_gradients = matches!(
        cell.sharding,
        Sharding::Gradients | Sharding::Parameters | Sharding::Hybrid
    );
    if shards_gradients && pp > 1 {
        report(
            Rule::ShardingExcludesPipeline,
            format!("{} does not go with {pp} pipeline stages", cell.sharding),
        );
    }
    if cell.expert_parallel > 1 {
        report(
            Rule::ExpertsDivisible,
            format!(
                "expert parallel {} needs a mixture of experts",
                cell.expert_parallel
            ),
        );
    }
    found
}

fn check_interleaving(
    instance: &Instance,
    cell: &Combination,
    report: &mut impl FnMut(Rule, String),
) {
    let pp = u64::from(cell.pipeline_parallel);
    if pp == 1 || cell.schedule != Schedule::OneForwardOneBackward {
        report(
            Rule::InterleavingNeedsPipeline,
            format!(
                "{} virtual stages interleave a 1f1b pipeline; this one has {pp} stages and schedule {}",
                cell.virtual_stages, cell.schedule
            ),
        );
    }
    let micro_batches = cell.micro_batches(instance.job.workload.global_batch);
    if micro_batches < pp || !micro_batches.is_multiple_of(pp) {
        report(
            Rule::InterleavingMicroBatches,
            format!(
                "interleaving needs a multiple of {pp} micro-batches, and there are {micro_batches}: the global batch has to be a multiple of {}",
                pp * u64::from(cell.data_parallel) * u64::from(cell.micro_batch)
            ),
        );
    }
}

/// Rules on the layers of each stage.
fn check_stages(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let cell = &layout.combination;
    let mut found = Vec::new();
    let layers: u32 = layout.stages.iter().map(|stage| stage.layers).sum();
    let least = layout
        .stages
        .iter()
        .map(|stage| stage.layers)
        .min()
        .unwrap_or(0);
    let total = instance.job.transformer.layers;
    if layout.stages.len() != cell.pipeline_parallel as usize || layers != total {
        found.push(violation(
            Rule::LayersCoverStages,
            format!(
                "{} stages hold {layers} layers; the network has {total} on {} stages",
                layout.stages.len(),
                cell.pipeline_parallel
            ),
        ));
    } else if least < cell.virtual_stages {
        found.push(violation(
            Rule::LayersCoverStages,
            format!(
                "a stage holds {least} layers, fewer than its {} model chunks",
                cell.virtual_stages
            ),
        ));
    } else if let Some(message) = interleaving_broken(layout, total) {
        found.push(violation(Rule::LayersCoverStages, message));
    } else if cell.virtual_stages > 1 {
        // An interleaved pipeline has its own cut, whatever the framework's usual one.
    } else if let Some(message) = partition_broken(instance.job.framework.partition, layout) {
        found.push(violation(Rule::LayersCoverStages, message));
    }
    let checkpointed = layout
        .stages
        .iter()
        .any(|stage| stage.checkpointed_layers() > 0);
    let excluded = instance.job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing;
    if checkpointed && excluded && cell.rmsnorm_kernel == RmsNormKernel::Fused {
        found.push(violation(
            Rule::RmsNormKernelExcludesCheckpointing,
            format!(
                "the fused RMSNorm kernel of {} does not work in checkpointed layers",
                instance.job.framework.name
            ),
        ));
    }
    found
}

/// How the layers of the stages contradict equal model chunks, if the pipeline is interleaved.
fn interleaving_broken(layout: &Layout, total: u32) -> Option<String> {
    let (stages, chunks) = (
        layout.combination.pipeline_parallel,
        layout.combination.virtual_stages,
    );
    if chunks == 1 {
        return None;
    }
    let pieces = stages * chunks;
    let with_ends = |index: u32| u32::from(index == 0) + u32::from(index + 1 == stages);
    let same = |count: &dyn Fn(u32, u32) -> u32| {
        let mut counts = (0..)
            .zip(&layout.stages)
            .map(|(index, stage)| count(index, stage.layers));
        let first = counts.next().unwrap_or(0);
        first.is_multiple_of(chunks) && counts.all(|other| other == first)
    };
    let even = same(&|_, layers| layers) || same(&|index, layers| layers + with_ends(index));
    (!even).then(|| {
        format!(
            "an interleaved pipeline has equal model chunks: {stages} stages x {chunks} chunks = {pieces} \
             must divide {total} layers, or {} with embedding and head as a layer each, evenly over the stages",
            total + 2
        )
    })
}

/// How the layers of the stages contradict the framework's partition, if they do.
fn partition_broken(partition: Partition, layout: &Layout) -> Option<String> {
    let layers: Vec<u32> = layout.stages.iter().map(|stage| stage.layers).collect();
    let total: u32 = layers.iter().sum();
    let stages = layers.len() as u32;
    match partition {
        Partition::Free => None,
        Partition::Equal => layers
            .windows(2)
            .any(|pair| pair[0] != pair[1])
            .then(|| format!("the framework puts the same number of layers on each of {stages} stages")),
        Partition::Even => {
            let even = |stage: u32| total / stages + u32::from(stage < total % stages);
            (0..stages).any(|stage| layers[stage as usize] != even(stage)).then(|| {
                "the framework cuts the layers evenly, the remainder to the early stages".to_owned()
            })
        }
        Partition::FirstAndLast => layers
            .get(1..layers.len().saturating_sub(1))
            .is_some_and(|middle| middle.windows(2).any(|pair| pair[0] != pair[1]))
            .then(|| "the framework puts the same number of layers on every stage but the first and the last".to_owned()),
        Partition::EmbeddingAndHead => {
            let items = |stage: u32| layers[stage as usize] + u32::from(stage == 0) + u32::from(stage + 1 == stages);
            let even = |stage: u32| (total + 2) / stages + u32::from(stage < (total + 2) % stages);
            (0..stages)
                .any(|stage| items(stage) != even(stage))
                .then(|| "the framework cuts embedding, layers and head evenly, the remainder to the early stages".to_owned())
        }
    }
}

/// The checkpointing flags that describe some layer.
fn flags(layout: &Layout) -> Vec<Checkpointing> {
    let used = |flag: &Checkpointing| {
        layout.stages.iter().any(|stage| match flag.recompute() {
            None => stage.checkpointed_layers() < stage.layers,
            Some(mode) => stage.recomputed[mode as usize] > 0,
        })
    };
    Checkpointing::ALL.iter().copied().filter(used).collect()
}

/// Values that the instance does not list, and combinations that it forbids. Layers that are
/// checkpointed in different ways have to be permitted each.
fn check_listed(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let flags = flags(layout).into_iter();
    let candidates: Vec<FlaggedCombination> = flags
        .map(|checkpointing| FlaggedCombination {
            combination: layout.combination,
            checkpointing,
        })
        .collect();
    let mut found = Vec::new();
    for axis in Axis::ALL {
        // What the user leaves open may be anything legal, also what is not tried.
        if !instance.space.is_listed(axis) {
            continue;
        }
        let listed = instance.space.values(axis);
        let mut codes: Vec<u32> = candidates.iter().map(|one| one.code(axis)).collect();
        codes.dedup();
        for code in codes.into_iter().filter(|code| !listed.contains(code)) {
            let values: Vec<String> = listed.iter().map(|&code| axis.show(code)).collect();
            found.push(violation(
                Rule::AllowedValues,
                format!(
                    "{axis} = {} is not among the values to try: {}",
                    axis.show(code),
                    values.join(", ")
                ),
            ));
        }
    }
    for (index, assignment) in instance.space.forbidden.iter().enumerate() {
        if candidates.iter().any(|one| assignment.matches(one)) {
            found.push(Violation {
                rule: format!("{}({index})", Rule::Forbidden),
                message: format!("the instance forbids {assignment}"),
            });
        }
    }
    found
}

/// Rows of the user's own that do not hold.
fn check_constraints(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let batch = instance.job.workload.global_batch;
    let rows = instance.space.constraints.iter();
    let broken = rows.filter_map(|row| {
        let left = row.left(layout, batch);
        (!row.holds(left)).then(|| Violation {
            rule: row.rule(),
            message: format!(
                "{row} is {left}, and has to be {} {}",
                row.comparison.words(),
                row.right
            ),
        })
    });
    broken.collect()
}

/// Stages whose peak exceeds what the accepted risk allows.
fn check_memory(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let job = &instance.job;
    let costs = Costs::new(job, &layout.combination);
    let prediction = cost_model::evaluate(job, &costs, &layout.stages);
    let error = job.cluster.calibration.memory;
    let capacity = prediction.memory.capacity;
    let limit = memory::admissible_peak(capacity, error, instance.max_oom_risk);
    let stages = prediction.memory.stages.iter().enumerate();
    stages
        .filter(|(_, stage)| stage.peak() > limit)
        .map(|(index, stage)| {
            let (peak, risk) = (stage.peak(), instance.max_oom_risk * 100.0);
            Violation {
                rule: format!("{}({index})", Rule::MemoryCapacity),
                message: format!(
                    "stage {index} needs {peak}, {:.1} GiB more than the {limit} that an accepted risk of {risk} % leaves of {capacity}",
                    (peak - limit).gib()
                ),
            }
        })
        .collect()
}
