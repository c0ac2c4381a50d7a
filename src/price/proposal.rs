//! What is proposed for a price: changes with a name.

use std::fmt;

use crate::axis::Axis;
use crate::change::Change;
use crate::constraint::{Constraint, Decision};
use crate::framework::{CheckpointRule, Partition};
use crate::instance::Instance;
use crate::layout::{AttentionKernel, Checkpointing, Recompute, RmsNormKernel, Sharding};
use crate::quantity::Bytes;
use crate::rules::{Remedy, Rule};

/// Changes of an instance that are priced together.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    key: String,
    words: String,
    changes: Vec<Change>,
}

/// Why an instance leaves nothing to change.
pub type Idle = &'static str;

/// The memory that is offered.
const MORE_MEMORY: Bytes = Bytes::new(8e9);
/// The risk that is offered.
const MORE_RISK: f64 = 0.5;

impl Proposal {
    fn new(key: impl Into<String>, words: impl Into<String>, changes: Vec<Change>) -> Self {
        Self {
            key: key.into(),
            words: words.into(),
            changes,
        }
    }

    /// The name in JSON.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What changes.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The instance with all the changes.
    #[must_use]
    pub fn apply(&self, instance: &Instance) -> Instance {
        let changes = self.changes.iter();
        changes.fold(instance.clone(), |after, change| change.apply(&after))
    }

    /// More memory on every GPU.
    #[must_use]
    pub fn memory(instance: &Instance, more: Bytes) -> Self {
        let from = instance.job.cluster.accelerator.usable_memory;
        let to = from + more;
        let words = format!("+{} GB per GPU", gigabytes(more));
        Self::new("memory", words, vec![Change::Memory { from, to }])
    }

    /// More nodes.
    #[must_use]
    pub fn nodes(instance: &Instance, more: u32) -> Self {
        let cluster = &instance.job.cluster;
        let from = cluster.gpus;
        let to = from + more * cluster.gpus_per_node;
        let words = match more {
            1 => "+1 node".to_owned(),
            more => format!("+{more} nodes"),
        };
        Self::new("nodes", words, vec![Change::Gpus { from, to }])
    }

    /// The same under another key, with something added to its words.
    #[must_use]
    pub(super) fn called(self, key: &str, addition: &str) -> Self {
        let words = format!("{}, {addition}", self.words);
        Self::new(key, words, self.changes)
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words)
    }
}

/// Everything that is priced, in the order that breaks ties, and what leaves nothing to change.
pub(super) fn proposals(instance: &Instance) -> Vec<(Proposal, Option<Idle>)> {
    let mut all = of_the_machine(instance);
    all.extend(of_the_training(instance));
    all.push(fused_kernels(instance));
    let modes = Recompute::ALL.iter();
    all.extend(modes.map(|&mode| recompute(instance, mode)));
    all.extend(of_the_framework(instance));
    let zero_3 = opened(instance, Axis::Sharding, Sharding::Parameters as u32);
    all.push(unless_tried("zero-3", "ZeRO-3", vec![zero_3]));
    let (from, to) = (instance.max_oom_risk, MORE_RISK);
    let words = format!("accepted risk {:.0} %", to * 100.0);
    all.push((
        Proposal::new("max-oom-risk", words, vec![Change::OomRisk { from, to }]),
        (from >= to).then_some("accepted already"),
    ));
    all
}

fn of_the_machine(instance: &Instance) -> Vec<(Proposal, Option<Idle>)> {
    let cluster = &instance.job.cluster;
    let (from, to) = (cluster.gpus, cluster.gpus * 2);
    let (inter, intra) = (cluster.inter_node_bandwidth, cluster.intra_node_bandwidth);
    let is_one_node = cluster.gpus <= cluster.gpus_per_node;
    vec![
        (Proposal::memory(instance, MORE_MEMORY), None),
        (Proposal::nodes(instance, 1), None),
        (
            Proposal::new(
                "twice-nodes",
                "twice the nodes",
                vec![Change::Gpus { from, to }],
            ),
            (cluster.gpus == cluster.gpus_per_node).then_some("that is one node more"),
        ),
        (
            Proposal::new(
                "twice-inter-node-bandwidth",
                "twice the network between nodes",
                vec![Change::InterNodeBandwidth {
                    from: inter,
                    to: inter * 2.0,
                }],
            ),
            is_one_node.then_some("the job has one node"),
        ),
        (
            Proposal::new(
                "twice-intra-node-bandwidth",
                "twice the network within nodes",
                vec![Change::IntraNodeBandwidth {
                    from: intra,
                    to: intra * 2.0,
                }],
            ),
            None,
        ),
    ]
}

fn of_the_training(instance: &Instance) -> Vec<(Proposal, Option<Idle>)> {
    let workload = &instance.job.workload;
    let (sequence, batch) = (workload.sequence_length, workload.global_batch);
    let length = |to: u64| Change::SequenceLength { from: sequence, to };
    let sequences = |to: u64| Change::GlobalBatch { from: batch, to };
    vec![
        (
            Proposal::new(
                "half-sequence",
                "half the sequence, twice the batch",
                vec![length(sequence / 2), sequences(batch * 2)],
            ),
            (!sequence.is_multiple_of(2)).then_some("the sequence is odd"),
        ),
        (
            Proposal::new(
                "twice-sequence",
                "twice the sequence, half the batch",
                vec![length(sequence * 2), sequences(batch / 2)],
            ),
            (!batch.is_multiple_of(2)).then_some("the batch is odd"),
        ),
        (
            Proposal::new(
                "twice-global-batch",
                "twice the global batch",
                vec![sequences(batch * 2)],
            ),
            None,
        ),
    ]
}

fn of_the_framework(instance: &Instance) -> Vec<(Proposal, Option<Idle>)> {
    let framework = &instance.job.framework;
    let freed = |rule: Rule, key: &str, words: &str, is_free: bool| {
        let changes = match rule.definition().remedy {
            Remedy::Framework(change) => vec![Change::Framework(change)],
            _ => Vec::new(),
        };
        (
            Proposal::new(key, words, changes),
            is_free.then_some("the framework takes any already"),
        )
    };
    let (partition, idle) = freed(
        Rule::LayersCoverStages,
        "free-partition",
        "any layers on each stage",
        framework.partition == Partition::Free,
    );
    let (checkpointing, takes_any) = freed(
        Rule::CheckpointingByFramework,
        "free-checkpointing",
        "any checkpointing on each stage",
        framework.checkpoint_rule == CheckpointRule::Free,
    );
    vec![
        (partition, idle),
        (checkpointing, counted(instance).or(takes_any)),
    ]
}

/// A stage that mixes ways to checkpoint cannot keep a constraint that counts its layers.
fn counted(instance: &Instance) -> Option<Idle> {
    let counts = |row: &Constraint| {
        let mut terms = row.terms.iter();
        terms.any(|term| term.decision == Decision::CheckpointedLayers)
    };
    let mut rows = instance.space.constraints.iter();
    rows.any(counts)
        .then_some("a constraint counts the checkpointed layers")
}

/// One more value to try on an axis; `None` if it is tried already.
fn opened(instance: &Instance, axis: Axis, code: u32) -> Option<Change> {
    let from = instance.space.values(axis).to_vec();
    (!from.contains(&code)).then(|| Change::Values {
        axis,
        to: from.iter().copied().chain([code]).collect(),
        from,
    })
}

fn unless_tried(key: &str, words: &str, changes: Vec<Option<Change>>) -> (Proposal, Option<Idle>) {
    let changes: Vec<Change> = changes.into_iter().flatten().collect();
    let idle = changes.is_empty().then_some("tried already");
    (Proposal::new(key, words, changes), idle)
}

/// The fused kernels, where only others are tried.
fn fused_kernels(instance: &Instance) -> (Proposal, Option<Idle>) {
    let kernels = [
        (Axis::AttentionKernel, AttentionKernel::Flash2 as u32),
        (Axis::RmsNormKernel, RmsNormKernel::Fused as u32),
    ];
    let missing = kernels.map(|(axis, code)| opened(instance, axis, code));
    unless_tried("fused-kernels", "fused kernels", missing.to_vec())
}

fn recompute(instance: &Instance, mode: Recompute) -> (Proposal, Option<Idle>) {
    let flags = Checkpointing::ALL.iter();
    let flag = flags
        .copied()
        .find(|flag| flag.recompute() == Some(mode))
        .unwrap_or(Checkpointing::None);
    let (proposal, tried) = unless_tried(
        &format!("checkpointing-{mode}"),
        &format!("{mode} checkpointing"),
        vec![opened(instance, Axis::Checkpointing, flag as u32)],
    );
    let flash = |&code: &u32| AttentionKernel::ALL[code as usize].is_flash();
    let kernels = instance.space.values(Axis::AttentionKernel);
    let is_useless = mode == Recompute::AttentionCore && kernels.iter().all(flash);
    let useless = is_useless.then_some("flash attention recomputes its core anyway");
    (proposal, counted(instance).or(useless).or(tried))
}

/// Gigabytes with at most one decimal.
fn gigabytes(amount: Bytes) -> f64 {
    (amount.value() / 1e8).round() / 10.0
}
