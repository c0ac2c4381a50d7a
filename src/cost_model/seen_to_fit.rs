//! Layouts that were seen to fit into memory: what a run has shown of its own layout wins over what is
//! predicted of it, and says nothing of others.

use crate::axis::{Axis, FlaggedCombination};
use crate::cluster::MemoryError;
use crate::job::Job;
use crate::layout::Combination;

/// What decides the memory of a job's combination, as the keys of a cluster's `seen_to_fit` say it:
/// the GPU and its memory, the framework, the network's shape, the batch, and every axis.
#[must_use]
pub fn key(job: &Job, combination: &Combination) -> String {
    let (cluster, network, workload) = (&job.cluster, &job.transformer, &job.workload);
    let flagged = FlaggedCombination::plain(*combination);
    let axes = Axis::ALL.into_iter();
    let axes = axes.filter(|&axis| axis != Axis::Checkpointing);
    let axes: Vec<String> = axes
        .map(|axis| format!("{axis}={}", axis.show(flagged.code(axis))))
        .collect();
    format!(
        "{} GPUs with {:.0} MB, {}, {} layers of {} with {} of {} heads and {}, vocabulary {}, {} sequences of {} in {}: {}",
        cluster.gpus,
        cluster.accelerator.usable_memory.value() / 1e6,
        job.framework.name,
        network.layers,
        network.hidden,
        network.key_value_heads,
        network.heads,
        network.feed_forward_width,
        network.vocabulary,
        workload.global_batch,
        workload.sequence_length,
        workload.precision.as_str(),
        axes.join(",")
    )
}

/// The error of a combination's predicted peaks: the cluster's, its median raised where a run of the
/// combination was seen to fit.
#[must_use]
pub fn memory_error(job: &Job, combination: &Combination) -> MemoryError {
    let (mut error, seen) = (job.cluster.calibration.memory, &job.cluster.seen_to_fit);
    if !seen.is_empty() {
        error.shift += seen.get(&key(job, combination)).copied().unwrap_or(0.0);
    }
    error
}
