//! The values among which the reasons of an infeasible instance are looked for: those that the
//! instance lists, everything legal, and what some rule excludes but a repair could allow.

use crate::axis::Axis;
use crate::instance::Instance;
use crate::layout::{Checkpointing, RmsNormKernel, Schedule};
use crate::layout_space::{LayoutSpace, largest_tensor_parallel};

/// Largest context-parallel degree tried.
const LARGEST_CONTEXT_PARALLEL: u32 = 16;
/// Most replicas tried.
const MOST_REPLICAS: u64 = 1 << 16;

/// The values of an axis without the instance's list: everything legal, both `RMSNorm` kernels, every
/// mode of checkpointing. Listed values stay.
#[must_use]
pub fn unlisted_values(instance: &Instance, axis: Axis) -> Vec<u32> {
    let legal = LayoutSpace::everything_legal(&instance.job);
    let mut values = legal.values(axis).to_vec();
    match axis {
        Axis::RmsNormKernel => {
            values.extend(RmsNormKernel::ALL.iter().map(|&kernel| kernel as u32));
        }
        Axis::Checkpointing => values.push(Checkpointing::AttentionCore as u32),
        _ => {}
    }
    values.extend(instance.space.values(axis));
    values.sort_unstable();
    values.dedup();
    values
}

/// Tensor-parallel degrees that divide the GPUs, whether or not heads and domains allow them.
pub(super) fn tensor_parallel_degrees(instance: &Instance) -> Vec<u32> {
    let cluster = &instance.job.cluster;
    divisors(u64::from(cluster.gpus))
        .filter(|&degree| degree <= largest_tensor_parallel(cluster))
        .collect()
}

/// Context-parallel degrees that divide the GPUs, whether or not they divide the sequence.
pub(super) fn context_parallel_degrees(instance: &Instance) -> Vec<u32> {
    let gpus = instance.job.cluster.gpus;
    powers_of_two(u64::from(LARGEST_CONTEXT_PARALLEL))
        .filter(|&degree| gpus.is_multiple_of(degree))
        .collect()
}

/// The values of every axis, listed ones first. Degrees include what another number of GPUs would
/// allow.
pub(super) fn all_values(instance: &Instance) -> [Vec<u32>; Axis::COUNT] {
    Axis::ALL.map(|axis| {
        let mut values = instance.space.values(axis).to_vec();
        let mut further = unlisted_values(instance, axis);
        further.extend(degrees(instance, axis));
        further.sort_unstable();
        further.dedup();
        further.retain(|code| !values.contains(code));
        values.extend(further);
        values
    })
}

/// What rules or the number of GPUs exclude.
fn degrees(instance: &Instance, axis: Axis) -> Vec<u32> {
    let job = &instance.job;
    let layers = u64::from(job.transformer.layers);
    let replicas = job.workload.global_batch.min(MOST_REPLICAS);
    match axis {
        Axis::TensorParallel => {
            let most = largest_tensor_parallel(&job.cluster);
            let of_heads = divisors(job.transformer.heads).filter(|&degree| degree <= most);
            of_heads.chain(tensor_parallel_degrees(instance)).collect()
        }
        Axis::PipelineParallel => divisors(layers).chain(powers_of_two(layers)).collect(),
        Axis::DataParallel => divisors(replicas).chain(powers_of_two(replicas)).collect(),
        Axis::ContextParallel => powers_of_two(u64::from(LARGEST_CONTEXT_PARALLEL)).collect(),
        Axis::Schedule => vec![Schedule::OneForwardOneBackward as u32],
        _ => Vec::new(),
    }
}

fn divisors(number: u64) -> impl Iterator<Item = u32> {
    (1..=number)
        .take_while(move |divisor| divisor * divisor <= number)
        .filter(move |&divisor| number.is_multiple_of(divisor))
        .flat_map(move |divisor| [divisor, number / divisor])
        .filter_map(|divisor| u32::try_from(divisor).ok())
}

fn powers_of_two(most: u64) -> impl Iterator<Item = u32> {
    (0..32)
        .map(|exponent| 1_u32 << exponent)
        .take_while(move |&power| u64::from(power) <= most)
}
