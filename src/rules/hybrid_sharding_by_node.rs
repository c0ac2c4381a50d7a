//! HSDP shards within a node: its replicas come in whole nodes.

use super::{Applies, Case, Definition, MEGATRON_LM};
use crate::axis::Axis;
use crate::instance::Instance;
use crate::layout::{Combination, Sharding};

pub(super) const RULE: Definition = Definition {
    name: "hybrid_sharding_by_node",
    demands: "with HSDP, data parallel is a multiple of the replicas in a node",
    axes: &[
        Axis::TensorParallel,
        Axis::DataParallel,
        Axis::ContextParallel,
        Axis::Sharding,
    ],
    amount: |case| match case.combination().sharding {
        Sharding::Hybrid => u64::from(case.combination().data_parallel % within_node(case)),
        _ => 0,
    },
    message: |case| {
        format!(
            "`sharding = \"hsdp\"` needs `data_parallel` ({}) to be a multiple of the {} replicas in a node: use `zero-3`",
            case.combination().data_parallel,
            within_node(case)
        )
    },
    applies: Applies::InExports,
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `num_distributed_optimizer_instances`",
    ..Definition::USUAL
};

fn within_node(case: &Case) -> u32 {
    data_parallel_within_node(case.instance, case.combination())
}

/// Data-parallel ranks of one model-parallel rank within a node.
#[must_use]
pub fn data_parallel_within_node(instance: &Instance, combination: &Combination) -> u32 {
    let model_parallel = combination.tensor_parallel * combination.context_parallel;
    let within_node = instance.job.cluster.gpus_per_node / model_parallel;
    within_node.clamp(1, combination.data_parallel)
}
