//! The changes that are priced.

use std::fmt;

use crate::axis::Axis;
use crate::constraint::{Constraint, Decision};
use crate::framework::{CheckpointRule, Partition};
use crate::instance::Instance;
use crate::layout::{AttentionKernel, Checkpointing, Recompute, RmsNormKernel, Sharding};
use crate::quantity::Bytes;

/// A change of an instance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// More memory on every GPU.
    Memory(Bytes),
    /// The least further memory with which there is a layout.
    LeastMemory(Bytes),
    /// More nodes.
    Nodes(u32),
    /// The fewest further nodes with which there is a layout.
    FewestNodes(u32),
    /// Twice the nodes.
    TwiceNodes,
    /// Twice the bandwidth between nodes.
    InterNode,
    /// Twice the bandwidth within a node.
    IntraNode,
    /// Half the sequence length at the same tokens a step.
    HalfSequence,
    /// Twice the sequence length at the same tokens a step.
    TwiceSequence,
    /// Twice the sequences of a step.
    TwiceBatch,
    /// Fused attention and `RMSNorm` among the kernels.
    FusedKernels,
    /// A further way to checkpoint.
    Recompute(Recompute),
    /// Any number of layers on each stage.
    FreePartition,
    /// Any checkpointed layers on each stage.
    FreeCheckpointing,
    /// Weights sharded among replicas.
    FullSharding,
    /// A larger accepted probability of running out of memory.
    Risk(f64),
}

/// The memory that is offered.
const MORE_MEMORY: Bytes = Bytes::new(8e9);
/// The risk that is offered.
const MORE_RISK: f64 = 0.5;

impl Change {
    /// Every change that is priced, in the order that breaks ties.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Memory(MORE_MEMORY),
            Self::Nodes(1),
            Self::TwiceNodes,
            Self::InterNode,
            Self::IntraNode,
            Self::HalfSequence,
            Self::TwiceSequence,
            Self::TwiceBatch,
            Self::FusedKernels,
        ];
        all.extend(Recompute::ALL.iter().map(|&mode| Self::Recompute(mode)));
        all.extend([
            Self::FreePartition,
            Self::FreeCheckpointing,
            Self::FullSharding,
            Self::Risk(MORE_RISK),
        ]);
        all
    }

    /// The name in JSON.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Memory(_) => "memory".to_owned(),
            Self::LeastMemory(_) => "least-memory".to_owned(),
            Self::Nodes(_) => "nodes".to_owned(),
            Self::FewestNodes(_) => "fewest-nodes".to_owned(),
            Self::TwiceNodes => "twice-nodes".to_owned(),
            Self::InterNode => "twice-inter-node-bandwidth".to_owned(),
            Self::IntraNode => "twice-intra-node-bandwidth".to_owned(),
            Self::HalfSequence => "half-sequence".to_owned(),
            Self::TwiceSequence => "twice-sequence".to_owned(),
            Self::TwiceBatch => "twice-global-batch".to_owned(),
            Self::FusedKernels => "fused-kernels".to_owned(),
            Self::Recompute(mode) => format!("checkpointing-{mode}"),
            Self::FreePartition => "free-partition".to_owned(),
            Self::FreeCheckpointing => "free-checkpointing".to_owned(),
            Self::FullSharding => "zero-3".to_owned(),
            Self::Risk(_) => "max-oom-risk".to_owned(),
        }
    }

    /// The changed instance, or why there is nothing to change.
    ///
    /// # Errors
    ///
    /// The reason, for the user, where the instance has already what the change would give.
    pub fn apply(&self, instance: &Instance) -> Result<Instance, &'static str> {
        let counted = |row: &Constraint| {
            let mut terms = row.terms.iter();
            terms.any(|term| term.decision == Decision::CheckpointedLayers)
        };
        if matches!(self, Self::Recompute(_) | Self::FreeCheckpointing)
            && instance.space.constraints.iter().any(counted)
        {
            // A stage that mixes ways to checkpoint cannot keep such a row.
            return Err("a constraint counts the checkpointed layers");
        }
        match *self {
            Self::FusedKernels => fused_kernels(instance),
            Self::Recompute(mode) => recompute(instance, mode),
            Self::FullSharding => open(
                instance,
                Axis::Sharding,
                Sharding::Parameters as u32,
                "tried already",
            ),
            Self::Risk(risk) if instance.max_oom_risk >= risk => Err("accepted already"),
            Self::Risk(max_oom_risk) => Ok(Instance {
                max_oom_risk,
                ..instance.clone()
            }),
            _ => self.apply_to_job(instance),
        }
    }

    fn apply_to_job(&self, instance: &Instance) -> Result<Instance, &'static str> {
        let mut job = instance.job.clone();
        let (cluster, workload) = (&mut job.cluster, &mut job.workload);
        match *self {
            Self::Memory(more) | Self::LeastMemory(more) => {
                cluster.accelerator.usable_memory += more;
            }
            Self::Nodes(more) | Self::FewestNodes(more) => {
                cluster.gpus += more * cluster.gpus_per_node;
            }
            Self::TwiceNodes if cluster.gpus == cluster.gpus_per_node => {
                return Err("that is one node more");
            }
            Self::TwiceNodes => cluster.gpus *= 2,
            Self::InterNode if cluster.gpus <= cluster.gpus_per_node => {
                return Err("the job has one node");
            }
            Self::InterNode => cluster.inter_node_bandwidth = cluster.inter_node_bandwidth * 2.0,
            Self::IntraNode => cluster.intra_node_bandwidth = cluster.intra_node_bandwidth * 2.0,
            Self::HalfSequence if !workload.sequence_length.is_multiple_of(2) => {
                return Err("the sequence is odd");
            }
            Self::HalfSequence => {
                workload.sequence_length /= 2;
                workload.global_batch *= 2;
            }
            Self::TwiceSequence if !workload.global_batch.is_multiple_of(2) => {
                return Err("the batch is odd");
            }
            Self::TwiceSequence => {
                workload.sequence_length *= 2;
                workload.global_batch /= 2;
            }
            Self::TwiceBatch => workload.global_batch *= 2,
            Self::FreePartition if job.framework.partition == Partition::Free => {
                return Err("the framework takes any already");
            }
            Self::FreePartition => job.framework.partition = Partition::Free,
            Self::FreeCheckpointing if job.framework.checkpoint_rule == CheckpointRule::Free => {
                return Err("the framework takes any already");
            }
            Self::FreeCheckpointing => job.framework.checkpoint_rule = CheckpointRule::Free,
            _ => {}
        }
        Ok(instance.with_job(job))
    }
}

/// The instance with one more value to try on an axis.
fn open(
    instance: &Instance,
    axis: Axis,
    code: u32,
    reason: &'static str,
) -> Result<Instance, &'static str> {
    if instance.space.values(axis).contains(&code) {
        return Err(reason);
    }
    let mut after = instance.clone();
    after.space.open(axis, code);
    Ok(after)
}

/// The fused kernels, where only others are tried.
fn fused_kernels(instance: &Instance) -> Result<Instance, &'static str> {
    let lacks = |axis: Axis, code: u32| !instance.space.values(axis).contains(&code);
    let kernels = [
        (Axis::AttentionKernel, AttentionKernel::Flash2 as u32),
        (Axis::RmsNormKernel, RmsNormKernel::Fused as u32),
    ];
    let missing: Vec<_> = kernels
        .into_iter()
        .filter(|&(axis, code)| lacks(axis, code))
        .collect();
    if missing.is_empty() {
        return Err("tried already");
    }
    let mut after = instance.clone();
    for (axis, code) in missing {
        after.space.open(axis, code);
    }
    Ok(after)
}

fn recompute(instance: &Instance, mode: Recompute) -> Result<Instance, &'static str> {
    let flash = |&code: &u32| AttentionKernel::ALL[code as usize].is_flash();
    let kernels = instance.space.values(Axis::AttentionKernel);
    if mode == Recompute::AttentionCore && kernels.iter().all(flash) {
        return Err("flash attention recomputes its core anyway");
    }
    let flag = Checkpointing::ALL
        .iter()
        .find(|flag| flag.recompute() == Some(mode));
    let Some(&flag) = flag else {
        return Err("there is no such flag");
    };
    open(instance, Axis::Checkpointing, flag as u32, "tried already")
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(more) => write!(f, "+{} GB a GPU", gigabytes(*more)),
            Self::LeastMemory(more) => {
                write!(f, "+{} GB a GPU, the least that fits", gigabytes(*more))
            }
            Self::FewestNodes(more) => write!(f, "+{more} nodes, the fewest that fit"),
            Self::Nodes(1) => f.write_str("+1 node"),
            Self::Nodes(more) => write!(f, "+{more} nodes"),
            Self::TwiceNodes => f.write_str("twice the nodes"),
            Self::InterNode => f.write_str("twice the network between nodes"),
            Self::IntraNode => f.write_str("twice the network within nodes"),
            Self::HalfSequence => f.write_str("half the sequence, twice the batch"),
            Self::TwiceSequence => f.write_str("twice the sequence, half the batch"),
            Self::TwiceBatch => f.write_str("twice the global batch"),
            Self::FusedKernels => f.write_str("fused kernels"),
            Self::Recompute(mode) => write!(f, "{mode} checkpointing"),
            Self::FreePartition => f.write_str("any layers on each stage"),
            Self::FreeCheckpointing => f.write_str("any checkpointing on each stage"),
            Self::FullSharding => f.write_str("ZeRO-3"),
            Self::Risk(risk) => write!(f, "accepted risk {:.0} %", risk * 100.0),
        }
    }
}

/// Gigabytes with at most one decimal.
fn gigabytes(amount: Bytes) -> f64 {
    (amount.value() / 1e8).round() / 10.0
}
