//! By how much a combination breaks each rule on discrete choices: the checker's own arithmetic.

use crate::axis::Axis;
use crate::framework::{FusedRmsNorm, Partition};
use crate::job::Job;
use crate::layout::{Checkpointing, RmsNormKernel, Schedule, SequenceParallel, Sharding};
use crate::rule::Rule;

/// One code for each axis, by position in [`Axis::ALL`].
pub(super) type Codes = [u32; Axis::COUNT];

/// By how much the combination breaks the rule, in the unit of the rule; 0 where it holds. Only the
/// axes of the rule are read. Amounts beyond 63 bits stop there.
///
/// - `gpu_count`: GPUs too many, negative: too few.
/// - `heads_divisible`, `key_value_heads_divisible`: heads left over.
/// - `tensor_parallel_within_node`: GPUs of a node left over.
/// - `global_batch_divisible`, `sequence_divisible`: sequences, tokens left over.
/// - `layers_cover_stages`: fewest further layers with which the framework has a cut.
/// - `interleaving_micro_batches`: micro-batches missing to the stages, or left over.
/// - the others: conditions broken, or how far the degree is above 1.
pub(super) fn amount(rule: Rule, job: &Job, codes: &Codes) -> i64 {
    let at = |axis: Axis| u64::from(codes[axis as usize]);
    let tp = at(Axis::TensorParallel);
    let pp = at(Axis::PipelineParallel);
    let interleaved = at(Axis::VirtualStages) > 1;
    let amount = match rule {
        Rule::GpuCount => return gpu_excess(job, codes),
        Rule::HeadsDivisible => job.transformer.heads % tp,
        Rule::KeyValueHeadsDivisible => {
            let heads = job.transformer.key_value_heads;
            (heads % tp).min(tp % heads)
        }
        Rule::TensorParallelWithinNode => u64::from(job.cluster.gpus_per_node) % tp,
        Rule::GlobalBatchDivisible => {
            job.workload.global_batch % (at(Axis::DataParallel) * at(Axis::MicroBatch))
        }
        Rule::SequenceDivisible => sequence_left_over(job, codes),
        Rule::LayersCoverStages => layers_missing(job, pp, at(Axis::VirtualStages)),
        Rule::SequenceParallelNeedsTensorParallel => {
            u64::from(is(codes, Axis::SequenceParallel, SequenceParallel::On as u32) && tp == 1)
        }
        Rule::InterleavingNeedsPipeline if interleaved => {
            let usual = Schedule::OneForwardOneBackward as u32;
            u64::from(pp == 1) + u64::from(!is(codes, Axis::Schedule, usual))
        }
        Rule::InterleavingMicroBatches if interleaved => {
            let at_once = at(Axis::DataParallel) * at(Axis::MicroBatch);
            let micro_batches = job.workload.global_batch / at_once;
            if micro_batches < pp {
                pp - micro_batches
            } else {
                micro_batches % pp
            }
        }
        Rule::ShardingExcludesPipeline => {
            let kept = [Sharding::None as u32, Sharding::OptimizerStates as u32];
            if kept.contains(&codes[Axis::Sharding as usize]) {
                0
            } else {
                pp - 1
            }
        }
        Rule::ExpertsDivisible => at(Axis::ExpertParallel) - 1,
        Rule::RmsNormKernelExcludesCheckpointing => u64::from(
            job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing
                && is(codes, Axis::RmsNormKernel, RmsNormKernel::Fused as u32)
                && !is(codes, Axis::Checkpointing, Checkpointing::None as u32),
        ),
        _ => 0,
    };
    i64::try_from(amount).unwrap_or(i64::MAX)
}

fn is(codes: &Codes, axis: Axis, code: u32) -> bool {
    codes[axis as usize] == code
}

fn gpu_excess(job: &Job, codes: &Codes) -> i64 {
    let degrees = [
        Axis::TensorParallel,
        Axis::PipelineParallel,
        Axis::ContextParallel,
        Axis::DataParallel,
    ];
    let product = degrees.iter().fold(1_i64, |product, &axis| {
        product.saturating_mul(i64::from(codes[axis as usize]))
    });
    product - i64::from(job.cluster.gpus)
}

fn sequence_left_over(job: &Job, codes: &Codes) -> u64 {
    let sequence = job.workload.sequence_length;
    let cp = u64::from(codes[Axis::ContextParallel as usize]);
    let tp = u64::from(codes[Axis::TensorParallel as usize]);
    let context = if cp > 1 { sequence % (2 * cp) } else { 0 };
    let split = if is(codes, Axis::SequenceParallel, SequenceParallel::On as u32) {
        sequence % (tp * cp)
    } else {
        0
    };
    context.max(split)
}

/// Fewest further layers with which `stages` stages of `chunks` chunks can be cut; 0 if they can now.
///
/// Interleaved, all chunks have as many layers, or would if embedding and head counted as one each:
/// `L = k S v`, or `L + 2 = k S v` with `k > 1`, since a chunk of embedding or head alone has no layer.
/// Otherwise an equal cut needs `S` to divide `L`; the list [embedding, layers, head] in even parts
/// leaves the last of several stages a layer from `2 (S - 1)` on; any other cut needs a layer a stage.
fn layers_missing(job: &Job, stages: u64, chunks: u64) -> u64 {
    let layers = u64::from(job.transformer.layers);
    let missing_to = |least: u64| least.saturating_sub(layers);
    let to_multiple = |count: u64, of: u64| (of - count % of) % of;
    if chunks > 1 {
        let pieces = stages * chunks;
        let padded = layers + 2;
        let with_ends = padded + to_multiple(padded, pieces);
        let with_ends = with_ends.max(2 * pieces) - padded;
        return to_multiple(layers, pieces).min(with_ends);
    }
    match job.framework.partition {
        Partition::Equal => to_multiple(layers, stages),
        Partition::EmbeddingAndHead => missing_to(stages.max(2 * stages - 2)),
        Partition::Even | Partition::FirstAndLast | Partition::Free => missing_to(stages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::pipeline::{even_partition, interleaved_partition};

    /// The cut that the cost model makes, if it makes one.
    fn has_cut(partition: Partition, layers: u32, stages: u32, chunks: u32) -> bool {
        let cut = if chunks > 1 {
            interleaved_partition(layers, stages, chunks)
        } else if stages > layers {
            None
        } else {
            even_partition(partition, layers, stages)
        };
        cut.is_some_and(|cut| cut.iter().all(|&layers| layers >= chunks))
    }

    #[test]
    fn missing_layers_are_the_fewest_with_which_there_is_a_cut() {
        let mut job = crate::certificate::job::blank();
        let partitions = [
            Partition::Equal,
            Partition::Even,
            Partition::EmbeddingAndHead,
            Partition::FirstAndLast,
            Partition::Free,
        ];
        for partition in partitions {
            job.framework.partition = partition;
            for (layers, stages, chunks) in (1..20_u32)
                .flat_map(|layers| (1..12_u32).map(move |stages| (layers, stages)))
                .flat_map(|(layers, stages)| (1..5_u32).map(move |v| (layers, stages, v)))
            {
                job.transformer.layers = layers;
                let missing = layers_missing(&job, u64::from(stages), u64::from(chunks)) as u32;
                let first = (layers..1000).find(|&l| has_cut(partition, l, stages, chunks));
                assert_eq!(
                    first,
                    Some(layers + missing),
                    "{partition:?} {layers} {stages} {chunks}"
                );
            }
        }
    }
}
