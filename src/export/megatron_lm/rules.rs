//! What Megatron-LM refuses, checked before a job is launched.

use crate::instance::Instance;
use crate::layout::{Combination, Layout, Schedule, Sharding};

/// Every reason why Megatron-LM cannot run the layout, with what would be right.
pub(super) fn broken(instance: &Instance, layout: &Layout) -> Vec<String> {
    let cell = &layout.combination;
    let checks = [
        schedule(cell),
        experts(cell),
        heads(instance, cell),
        query_groups(instance, cell),
        sequence(instance, cell),
        interleaving(instance, cell),
        fsdp_stages(cell),
        hybrid(instance, cell),
    ];
    checks.into_iter().flatten().collect()
}

/// Whether more than the optimizer states is split, which Megatron-FSDP does.
pub(super) const fn is_fsdp(cell: &Combination) -> bool {
    !matches!(cell.sharding, Sharding::None | Sharding::OptimizerStates)
}

/// Data-parallel ranks of one model-parallel rank within a node.
pub(super) fn data_parallel_within_node(instance: &Instance, cell: &Combination) -> u32 {
    let model_parallel = cell.tensor_parallel * cell.context_parallel;
    let within_node = instance.job.cluster.gpus_per_node / model_parallel;
    within_node.clamp(1, cell.data_parallel)
}

fn schedule(cell: &Combination) -> Option<String> {
    (cell.schedule != Schedule::OneForwardOneBackward).then(|| {
        format!(
            "`schedule = \"{}\"` does not exist there: use `1f1b`",
            cell.schedule
        )
    })
}

fn experts(cell: &Combination) -> Option<String> {
    (cell.expert_parallel > 1).then(|| {
        format!(
            "`expert_parallel = {}` needs a mixture of experts: use 1",
            cell.expert_parallel
        )
    })
}

fn heads(instance: &Instance, cell: &Combination) -> Option<String> {
    let heads = instance.job.transformer.heads;
    (!heads.is_multiple_of(u64::from(cell.tensor_parallel))).then(|| {
        format!(
            "{heads} attention heads do not divide by `tensor_parallel = {}`: use a divisor of \
             {heads}",
            cell.tensor_parallel
        )
    })
}

fn query_groups(instance: &Instance, cell: &Combination) -> Option<String> {
    let groups = instance.job.transformer.key_value_heads;
    let tensor_parallel = u64::from(cell.tensor_parallel);
    let fits = groups.is_multiple_of(tensor_parallel) || tensor_parallel.is_multiple_of(groups);
    (!fits).then(|| {
        format!(
            "{groups} query groups are neither a multiple nor a divisor of `tensor_parallel = \
             {tensor_parallel}`: use a divisor or a multiple of {groups}"
        )
    })
}

fn sequence(instance: &Instance, cell: &Combination) -> Option<String> {
    let length = instance.job.workload.sequence_length;
    let parts = 2 * u64::from(cell.context_parallel);
    (cell.context_parallel > 1 && !length.is_multiple_of(parts)).then(|| {
        format!(
            "a sequence of {length} tokens does not divide by 2 x `context_parallel = {}`: use a \
             smaller power of two",
            cell.context_parallel
        )
    })
}

fn interleaving(instance: &Instance, cell: &Combination) -> Option<String> {
    if cell.virtual_stages == 1 {
        return None;
    }
    let stages = u64::from(cell.pipeline_parallel);
    let batch = instance.job.workload.global_batch;
    let micro_batches = cell.micro_batches(batch);
    if stages == 1 {
        return Some(format!(
            "`virtual_stages = {}` needs several pipeline stages: use 1",
            cell.virtual_stages
        ));
    }
    (micro_batches < stages).then(|| {
        let least = stages * u64::from(cell.data_parallel) * u64::from(cell.micro_batch);
        format!(
            "`virtual_stages = {}` needs at least as many micro-batches as the {stages} stages, \
             and there are {micro_batches}: use a global batch of at least {least}, or \
             `virtual_stages = 1`",
            cell.virtual_stages
        )
    })
}

fn fsdp_stages(cell: &Combination) -> Option<String> {
    (is_fsdp(cell) && cell.pipeline_parallel > 1).then(|| {
        format!(
            "`sharding = \"{}\"` excludes pipeline stages there: use `zero-1`, or \
             `pipeline_parallel = 1`",
            cell.sharding
        )
    })
}

fn hybrid(instance: &Instance, cell: &Combination) -> Option<String> {
    let within_node = data_parallel_within_node(instance, cell);
    let divides = cell.data_parallel.is_multiple_of(within_node);
    (cell.sharding == Sharding::Hybrid && !divides).then(|| {
        format!(
            "`sharding = \"hsdp\"` needs `data_parallel` ({}) to be a multiple of the {within_node} \
             replicas in a node: use `zero-3`",
            cell.data_parallel
        )
    })
}
