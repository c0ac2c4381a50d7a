//! The combinations among which the reasons of an infeasible instance are looked for.

use crate::axis::Axis;
use crate::instance::Instance;
use crate::layout::{Checkpointing, RmsNormKernel, Schedule};
use crate::layout_space::LayoutSpace;

/// Values to try on every axis: those that the instance lists, everything legal, and what some rule
/// excludes but a repair could allow.
#[derive(Debug, Clone)]
pub(super) struct Universe {
    /// Codes by axis, in the order of [`Axis::ALL`]; listed ones first.
    values: [Vec<u32>; Axis::COUNT],
    /// Whether the listed values of an axis are a requirement.
    limited: [bool; Axis::COUNT],
}

/// Largest tensor-parallel degree tried beyond a node.
const LARGEST_TENSOR_PARALLEL: u32 = 64;
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

/// Tensor-parallel degrees that divide the GPUs, whether or not heads and nodes allow them.
#[must_use]
pub fn tensor_parallel_degrees(instance: &Instance) -> Vec<u32> {
    divisors(u64::from(instance.job.cluster.gpus))
        .filter(|&degree| degree <= LARGEST_TENSOR_PARALLEL)
        .collect()
}

/// Context-parallel degrees that divide the GPUs, whether or not they divide the sequence.
#[must_use]
pub fn context_parallel_degrees(instance: &Instance) -> Vec<u32> {
    let gpus = instance.job.cluster.gpus;
    powers_of_two(u64::from(LARGEST_CONTEXT_PARALLEL))
        .filter(|&degree| gpus.is_multiple_of(degree))
        .collect()
}

impl Universe {
    /// The values for an instance.
    pub(super) fn new(instance: &Instance) -> Self {
        let listed = instance.space.listed();
        let limited = Axis::ALL.map(|axis| listed.contains(axis) || axis == Axis::RmsNormKernel);
        let values = Axis::ALL.map(|axis| {
            let mut values = instance.space.values(axis).to_vec();
            let mut further = further_values(instance, axis);
            further.sort_unstable();
            for code in further {
                if !values.contains(&code) {
                    values.push(code);
                }
            }
            values
        });
        Self { values, limited }
    }

    /// The codes of an axis.
    pub(super) fn values(&self, axis: Axis) -> &[u32] {
        &self.values[axis as usize]
    }

    /// Whether a value of the axis that is not listed breaks a requirement of its own.
    pub(super) const fn is_limited(&self, axis: Axis) -> bool {
        self.limited[axis as usize]
    }
}

/// Values besides the listed ones. Degrees include what another number of GPUs would allow.
fn further_values(instance: &Instance, axis: Axis) -> Vec<u32> {
    let job = &instance.job;
    let layers = u64::from(job.transformer.layers);
    let batch = job.workload.global_batch;
    let mut values = unlisted_values(instance, axis);
    match axis {
        Axis::TensorParallel => {
            let node = job.cluster.gpus_per_node;
            values.extend(tensor_parallel_degrees(instance));
            values.extend(divisors(job.transformer.heads).filter(|&degree| degree <= node));
        }
        Axis::PipelineParallel => {
            values.extend(divisors(layers));
            values.extend(powers_of_two(layers));
        }
        Axis::DataParallel => {
            values.extend(divisors(batch.min(MOST_REPLICAS)));
            values.extend(powers_of_two(batch.min(MOST_REPLICAS)));
        }
        Axis::ContextParallel => values.extend(powers_of_two(u64::from(LARGEST_CONTEXT_PARALLEL))),
        Axis::Schedule => values.push(Schedule::OneForwardOneBackward as u32),
        _ => {}
    }
    values
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
