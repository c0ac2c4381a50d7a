//! What the format fixes: the order of the combinations and the axes of every rule.

use crate::axis::Axis;
use crate::rule::Rule;

/// Name and version of the format.
pub const SCHEMA: &str = "parlayout/certificate/v1";

/// The axes, the slowest first. A combination's position is its number in this order, counted from
/// 0 as the digits of a mixed radix; of equal objective the earlier combination wins.
pub(crate) const ORDER: [Axis; Axis::COUNT] = [
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

/// The rules on discrete choices that have a table, with the axes that decide them in [`ORDER`].
///
/// A table has one amount for each combination of the values of its axes, the last axis fastest: 0
/// where the rule holds, else by how much it is broken.
pub(crate) const RULES: [(Rule, &[Axis]); 13] = [
    (
        Rule::GpuCount,
        &[
            Axis::TensorParallel,
            Axis::PipelineParallel,
            Axis::ContextParallel,
            Axis::DataParallel,
        ],
    ),
    (Rule::HeadsDivisible, &[Axis::TensorParallel]),
    (Rule::KeyValueHeadsDivisible, &[Axis::TensorParallel]),
    (Rule::TensorParallelWithinNode, &[Axis::TensorParallel]),
    (
        Rule::GlobalBatchDivisible,
        &[Axis::DataParallel, Axis::MicroBatch],
    ),
    (
        Rule::SequenceDivisible,
        &[
            Axis::TensorParallel,
            Axis::ContextParallel,
            Axis::SequenceParallel,
        ],
    ),
    (
        Rule::LayersCoverStages,
        &[Axis::PipelineParallel, Axis::VirtualStages],
    ),
    (
        Rule::SequenceParallelNeedsTensorParallel,
        &[Axis::TensorParallel, Axis::SequenceParallel],
    ),
    (
        Rule::InterleavingNeedsPipeline,
        &[Axis::PipelineParallel, Axis::VirtualStages, Axis::Schedule],
    ),
    (
        Rule::InterleavingMicroBatches,
        &[
            Axis::PipelineParallel,
            Axis::DataParallel,
            Axis::VirtualStages,
            Axis::MicroBatch,
        ],
    ),
    (
        Rule::ShardingExcludesPipeline,
        &[Axis::PipelineParallel, Axis::Sharding],
    ),
    (Rule::ExpertsDivisible, &[Axis::ExpertParallel]),
    (
        Rule::RmsNormKernelExcludesCheckpointing,
        &[Axis::Checkpointing, Axis::RmsNormKernel],
    ),
];
