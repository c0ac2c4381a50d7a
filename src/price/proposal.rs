//! What is proposed for a price: changes with a name.

use std::fmt;

use crate::axis::Axis;
use crate::change::Change;
use crate::constraint::{Constraint, Decision};
use crate::framework::{CheckpointRule, Partition};
use crate::instance::Instance;
use crate::layout::{AttentionKernel, Checkpointing, Recompute, RmsNormKernel, Sharding};
use crate::layout_space::usual_flash;
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
pub(super) type Reason = &'static str;

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
pub(super) fn proposals(instance: &Instance) -> Vec<(Proposal, Option<Reason>)> {
    let mut all = of_the_job(instance);
    let kernels = [
        (Axis::AttentionKernel, usual_flash(&instance.job) as u32),
        (Axis::RmsNormKernel, RmsNormKernel::Fused as u32),
    ];
    all.push(opened(instance, "fused-kernels", "fused kernels", &kernels));
    let modes = Recompute::ALL.iter();
    all.extend(modes.map(|&mode| recompute(instance, mode)));
    let framework = &instance.job.framework;
    let any = "the framework takes any already";
    let is_cut_freely = framework.partition == Partition::Free;
    all.push((
        freed(
            Rule::LayersCoverStages,
            "free-partition",
            "any layers on each stage",
        ),
        is_cut_freely.then_some(any),
    ));
    let checkpoints_any = framework.checkpoint_rule == CheckpointRule::Free;
    all.push((
        freed(
            Rule::CheckpointingByFramework,
            "free-checkpointing",
            "any checkpointing on each stage",
        ),
        counted(instance).or(checkpoints_any.then_some(any)),
    ));
    let zero_3 = [(Axis::Sharding, Sharding::Parameters as u32)];
    all.push(opened(instance, "zero-3", "ZeRO-3", &zero_3));
    let (from, to) = (instance.max_oom_risk, MORE_RISK);
    let words = format!("accepted risk {:.0} %", to * 100.0);
    let braver = Proposal::new("max-oom-risk", words, vec![Change::OomRisk { from, to }]);
    all.push((braver, (from >= to).then_some("accepted already")));
    all
}

/// Changes of machine and training.
fn of_the_job(instance: &Instance) -> Vec<(Proposal, Option<Reason>)> {
    let (cluster, workload) = (&instance.job.cluster, &instance.job.workload);
    let (gpus, node) = (cluster.gpus, cluster.gpus_per_node);
    let (inter, intra) = (cluster.inter_node_bandwidth, cluster.intra_node_bandwidth);
    let (tokens, batch) = (workload.sequence_length, workload.global_batch);
    let gpus_to = |to: u32| Change::Gpus { from: gpus, to };
    let tokens_to = |to: u64| Change::SequenceLength { from: tokens, to };
    let batch_to = |to: u64| Change::GlobalBatch { from: batch, to };
    let inter = Change::InterNodeBandwidth {
        from: inter,
        to: inter * 2.0,
    };
    let intra = Change::IntraNodeBandwidth {
        from: intra,
        to: intra * 2.0,
    };
    let mut all = vec![
        (Proposal::memory(instance, MORE_MEMORY), None),
        (Proposal::nodes(instance, 1), None),
    ];
    let mut propose = |key: &str, words: &str, changes: Vec<Change>, idle: Option<Reason>| {
        all.push((Proposal::new(key, words, changes), idle));
    };
    let idle = (gpus == node).then_some("that is one node more");
    propose(
        "twice-nodes",
        "twice the nodes",
        vec![gpus_to(gpus * 2)],
        idle,
    );
    let idle = (gpus <= node).then_some("the job has one node");
    let words = "twice the network between nodes";
    propose("twice-inter-node-bandwidth", words, vec![inter], idle);
    let words = "twice the network within nodes";
    propose("twice-intra-node-bandwidth", words, vec![intra], None);
    let idle = (!tokens.is_multiple_of(2)).then_some("the sequence is odd");
    let changes = vec![tokens_to(tokens / 2), batch_to(batch * 2)];
    let words = "half the sequence, twice the batch";
    propose("half-sequence", words, changes, idle);
    let idle = (!batch.is_multiple_of(2)).then_some("the batch is odd");
    let changes = vec![tokens_to(tokens * 2), batch_to(batch / 2)];
    let words = "twice the sequence, half the batch";
    propose("twice-sequence", words, changes, idle);
    let words = "twice the global batch";
    propose("twice-global-batch", words, vec![batch_to(batch * 2)], None);
    all
}

/// A framework that does without a rule.
fn freed(rule: Rule, key: &str, words: &str) -> Proposal {
    let changes = match rule.definition().remedy {
        Remedy::Framework(change) => vec![Change::Framework(change)],
        _ => Vec::new(),
    };
    Proposal::new(key, words, changes)
}

/// A stage that mixes ways to checkpoint cannot keep a constraint that counts its layers.
fn counted(instance: &Instance) -> Option<Reason> {
    let counts = |row: &Constraint| {
        let mut terms = row.terms.iter();
        terms.any(|term| term.decision == Decision::CheckpointedLayers)
    };
    let mut rows = instance.space.constraints.iter();
    rows.any(counts)
        .then_some("a constraint counts the checkpointed layers")
}

/// Further values to try, as far as they are not tried already.
fn opened(
    instance: &Instance,
    key: &str,
    words: &str,
    values: &[(Axis, u32)],
) -> (Proposal, Option<Reason>) {
    let missing = values.iter().filter_map(|&(axis, code)| {
        let from = instance.space.values(axis).to_vec();
        (!from.contains(&code)).then(|| Change::Values {
            axis,
            to: from.iter().copied().chain([code]).collect(),
            from,
        })
    });
    let changes: Vec<Change> = missing.collect();
    let axes = &instance.job.framework.axes;
    let is_lacking = values.iter().any(|&(axis, code)| !axes.has(axis, code));
    let idle = if changes.is_empty() {
        Some("tried already")
    } else {
        is_lacking.then_some("the framework does not have it")
    };
    (Proposal::new(key, words, changes), idle)
}

fn recompute(instance: &Instance, mode: Recompute) -> (Proposal, Option<Reason>) {
    let flags = Checkpointing::ALL.iter();
    let flag = flags
        .copied()
        .find(|flag| flag.recompute() == Some(mode))
        .unwrap_or(Checkpointing::None);
    let (proposal, tried) = opened(
        instance,
        &format!("checkpointing-{mode}"),
        &format!("{mode} checkpointing"),
        &[(Axis::Checkpointing, flag as u32)],
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
