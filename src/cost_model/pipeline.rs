//! The pipeline: how layers are cut, how many micro-batches are in flight, what the bubble costs.

use crate::framework::Partition;
use crate::job::Job;
use crate::layout::{Combination, Schedule};

/// Layers of each stage when the framework cuts the network itself; `None` when its rule allows
/// no cut into `stages`.
///
/// The paper's framework cuts the list [embedding, `L` layers, head] evenly, the remainder to the
/// early stages; an even cut does so with the layers alone. Equal stages need `L` divisible.
/// First-and-last takes as many as the middle stages less one for embedding and head. Where any cut
/// is free, it is the first of equal, counted with embedding and head, and even that leaves no stage
/// empty.
#[must_use]
pub fn even_partition(partition: Partition, layers: u32, stages: u32) -> Option<Vec<u32>> {
    let cut = match partition {
        Partition::Equal => equal(layers, stages)?,
        Partition::Even => even(layers, stages),
        Partition::EmbeddingAndHead => with_embedding_and_head(layers, stages)?,
        Partition::FirstAndLast => {
            equal(layers, stages).or_else(|| first_and_last(layers, stages))?
        }
        Partition::Free => equal(layers, stages)
            .or_else(|| {
                with_embedding_and_head(layers, stages).filter(|cut| leaves_no_stage_empty(cut))
            })
            .unwrap_or_else(|| even(layers, stages)),
    };
    Some(cut).filter(|cut| leaves_no_stage_empty(cut))
}

/// Layers of each stage of an interleaved pipeline with `chunks` model chunks a stage: all chunks
/// have the same number of layers, or would have if embedding and head counted as a layer each.
/// `None` if `stages chunks` divides neither `L` nor `L + 2` (Megatron-LM's rule).
#[must_use]
pub fn interleaved_partition(layers: u32, stages: u32, chunks: u32) -> Option<Vec<u32>> {
    if layers.is_multiple_of(stages * chunks) {
        return equal(layers, stages);
    }
    (layers + 2).is_multiple_of(stages * chunks).then(|| {
        let mut cut = vec![(layers + 2) / stages; stages as usize];
        cut[0] -= 1;
        cut[stages as usize - 1] -= 1;
        cut
    })
}

fn leaves_no_stage_empty(cut: &[u32]) -> bool {
    cut.iter().all(|&count| count > 0)
}

fn equal(layers: u32, stages: u32) -> Option<Vec<u32>> {
    layers
        .is_multiple_of(stages)
        .then(|| vec![layers / stages; stages as usize])
}

fn even(layers: u32, stages: u32) -> Vec<u32> {
    (0..stages)
        .map(|stage| layers / stages + u32::from(stage < layers % stages))
        .collect()
}

fn with_embedding_and_head(layers: u32, stages: u32) -> Option<Vec<u32>> {
    let (share, remainder) = ((layers + 2) / stages, (layers + 2) % stages);
    (0..stages)
        .map(|stage| {
            let items = share + u32::from(stage < remainder);
            items.checked_sub(u32::from(stage == 0) + u32::from(stage + 1 == stages))
        })
        .collect()
}

fn first_and_last(layers: u32, stages: u32) -> Option<Vec<u32>> {
    let middle = stages.checked_sub(2)?;
    if middle == 0 {
        return Some(even(layers, stages));
    }
    let share = (layers + 2).div_ceil(stages);
    (1..=share).rev().find_map(|count| {
        let rest = layers
            .checked_sub(count * middle)
            .filter(|&rest| rest >= 2)?;
        let mut cut = vec![count; stages as usize];
        cut[0] = rest.div_ceil(2);
        cut[stages as usize - 1] = rest / 2;
        Some(cut)
    })
}

/// Model chunks (one of `v` a rank) whose activations stage `stage` keeps at its peak.
///
/// 1F1B: `min(M, pp - stage)` micro-batches (Narayanan et al., arXiv 2104.04473, section 2.2).
/// Interleaved: `(v - 1) pp + 2 (pp - stage - 1) + 1` chunks, at most `M v`. Zero bubble 2p keeps
/// `2 pp - 1` on every stage (Qi et al., arXiv 2401.10241, table 2); all-forward-all-backward all.
#[must_use]
pub fn chunks_in_flight(cell: &Combination, stage: u32, micro_batches: u64) -> u64 {
    let (pp, v) = (
        u64::from(cell.pipeline_parallel),
        u64::from(cell.virtual_stages),
    );
    let behind = pp - u64::from(stage);
    let chunks = match cell.schedule {
        Schedule::AllForwardAllBackward => return micro_batches * v,
        Schedule::ZeroBubble2p => 2 * pp - 1,
        Schedule::OneForwardOneBackward | Schedule::ZeroBubble1p if v == 1 => behind,
        Schedule::OneForwardOneBackward | Schedule::ZeroBubble1p => (v - 1) * pp + 2 * behind - 1,
    };
    chunks.min(micro_batches * v)
}

/// Pipeline fills that a step pays, by framework and schedule: `beta` under 1F1B (1 in theory),
/// `beta (i + (1 - i) / v)` interleaved (`i` = 0 in theory: Narayanan et al., arXiv 2104.04473,
/// equation 3), measured rates under zero-bubble schedules (Qi et al., arXiv 2401.10241, table 4).
#[must_use]
pub fn fill_share(job: &Job, cell: &Combination) -> f64 {
    let (speed, v) = (&job.framework.speed, f64::from(cell.virtual_stages));
    match cell.schedule {
        Schedule::OneForwardOneBackward | Schedule::AllForwardAllBackward => {
            speed.bubble * (speed.bubble_interleaved + (1.0 - speed.bubble_interleaved) / v)
        }
        Schedule::ZeroBubble1p => speed.bubble_zero_1p,
        Schedule::ZeroBubble2p => speed.bubble_zero_2p,
    }
}

/// The number of fills nearest to `share` of which `v` are a multiple of a twentieth: with it step
/// times stay whole numbers of a quantum in the programs.
#[must_use]
pub fn countable_fills(share: f64, cell: &Combination) -> f64 {
    let steps = f64::from(cell.virtual_stages) * FILL_STEPS;
    (share * steps).round() / steps
}

/// Steps of the schedule's bubble multiplier between 0 and 1.
pub const FILL_STEPS: f64 = 20.0;
