//! The pipeline: how layers are cut, how many micro-batches are in flight, what the bubble costs.

use crate::framework::Partition;
use crate::job::Job;
use crate::layout::{Combination, Recompute, Schedule, Stage};
use crate::transformer::Transformer;

/// Layers of each stage when the framework cuts the network itself; `None` when its rule allows
/// no cut into `stages`.
///
/// The paper's framework cuts the list [embedding, `L` layers, head] evenly, the remainder to the
/// early stages; an even cut does so with the layers alone. Equal stages need `L` divisible, or
/// `L + 2` where embedding and head take the place of a layer. First-and-last takes as many as the
/// middle stages less one for embedding and head. Where any cut is free, it is the first of equal,
/// equal with embedding and head, and even.
#[must_use]
pub fn even_partition(
    partition: Partition,
    transformer: &Transformer,
    stages: u32,
) -> Option<Vec<u32>> {
    let layers = transformer.layers;
    let cut = match partition {
        Partition::Equal => equal(layers, stages)?,
        Partition::EqualOrEndsLess => {
            equal(layers, stages).or_else(|| ends_less(layers, stages))?
        }
        Partition::ByCost => by_cost(transformer, stages),
        Partition::Even => even(layers, stages),
        Partition::EmbeddingAndHead => with_embedding_and_head(layers, stages)?,
        Partition::FirstAndLast => {
            equal(layers, stages).or_else(|| first_and_last(layers, stages))?
        }
        Partition::Free => equal(layers, stages)
            .or_else(|| ends_less(layers, stages).filter(|cut| leaves_no_stage_empty(cut)))
            .unwrap_or_else(|| even(layers, stages)),
    };
    Some(cut).filter(|cut| leaves_no_stage_empty(cut))
}

/// Layers of each stage when the framework cuts the network of a combination itself; `None` when its
/// rule allows no cut, or one that leaves a model chunk empty.
///
/// An interleaved pipeline is cut so that all chunks are equal, or would be if embedding and head
/// counted as a layer each (Megatron-LM's rule); where any cut is free, else evenly over the stages, or
/// with no more layers on the first than its leading ones of another kind need.
#[must_use]
pub fn framework_cut(
    partition: Partition,
    transformer: &Transformer,
    combination: &Combination,
) -> Option<Vec<u32>> {
    let (stages, chunks) = (combination.pipeline_parallel, combination.virtual_stages);
    let is_free = partition == Partition::Free;
    let layers = transformer.layers;
    let cut = if chunks == 1 {
        even_partition(partition, transformer, stages)
    } else {
        let free = || is_free.then(|| even(layers, stages));
        equal_chunks(layers, stages, chunks).or_else(free)
    };
    let fits = |cut: &Vec<u32>| first_short_stage(transformer, combination, cut).is_none();
    let leading = || {
        is_free
            .then(|| leading_first(transformer, combination))
            .flatten()
    };
    cut.filter(fits).or_else(leading).filter(fits)
}

/// As few layers on the first stage as its leading ones of another kind need, the others evenly over the
/// other stages.
fn leading_first(transformer: &Transformer, combination: &Combination) -> Option<Vec<u32>> {
    let others = combination
        .pipeline_parallel
        .checked_sub(1)
        .filter(|&it| it > 0)?;
    let first = fewest_layers(transformer, combination, 0);
    let rest = transformer.layers.checked_sub(first)?;
    let mut cut = vec![first];
    cut.extend(even(rest, others));
    Some(cut)
}

/// One layer fewer on the first and the last stage than on the others, if `stages` divides `L + 2`.
fn ends_less(layers: u32, stages: u32) -> Option<Vec<u32>> {
    let divides = (layers + 2).is_multiple_of(stages);
    divides
        .then(|| with_embedding_and_head(layers, stages))
        .flatten()
}

/// The cut of nanotron (`models/base.py`): a stage ends with the block by which the weights of all so far
/// pass its share of the total; a layer counts `4 h^2 + 3 h f`, the head `V h`.
fn by_cost(transformer: &Transformer, stages: u32) -> Vec<u32> {
    let attention = 4 * transformer.hidden * transformer.attention_width();
    let layer = (attention + transformer.feed_forward_weights()) as f64;
    let total = f64::from(transformer.layers) * layer + transformer.embedding_weights() as f64;
    let mut cut = vec![0; stages as usize];
    let mut stage = 0;
    for block in 1..=transformer.layers {
        cut[stage as usize] += 1;
        let share = f64::from(stage + 1) / f64::from(stages);
        if stage + 1 < stages && f64::from(block) * layer > total * share {
            stage += 1;
        }
    }
    cut
}

/// Layers of each stage where all of its `chunks` model chunks are equal, or would be if embedding and
/// head counted as a layer each; `None` if `stages chunks` divides neither `L` nor `L + 2`.
fn equal_chunks(layers: u32, stages: u32, chunks: u32) -> Option<Vec<u32>> {
    let all = u64::from(stages) * u64::from(chunks);
    if u64::from(layers).is_multiple_of(all) {
        return equal(layers, stages);
    }
    if (u64::from(layers) + 2).is_multiple_of(all) {
        return with_embedding_and_head(layers, stages);
    }
    None
}

/// Layers of each model chunk of a stage that holds `layers`, in the order of the forward pass.
///
/// Sizes differ by one layer at most, and early chunks take the smaller: they keep most in flight. The
/// chunk with the head has one of the smaller too, so that its work and that of the others differ least.
/// A chunk with embedding or head may hold no layer.
fn chunks(combination: &Combination, stage: u32, layers: u32) -> Vec<u32> {
    let count = combination.virtual_stages;
    let (size, larger) = (layers / count, layers % count);
    let has_head = stage + 1 == combination.pipeline_parallel;
    let end = count - u32::from(has_head && larger > 0);
    (0..count)
        .map(|chunk| size + u32::from((end - larger..end).contains(&chunk)))
        .collect()
}

/// Layers of every model chunk of stages with so many layers, in the order of the forward pass: the first
/// chunk of every stage, then the second of every stage, and so on.
#[must_use]
pub fn chunks_in_order(combination: &Combination, layers: &[u32]) -> Vec<u32> {
    let of_stages: Vec<Vec<u32>> = (0..)
        .zip(layers)
        .map(|(stage, &layers)| chunks(combination, stage, layers))
        .collect();
    (0..combination.virtual_stages as usize)
        .flat_map(|chunk| of_stages.iter().map(move |stage| stage[chunk]))
        .collect()
}

/// The fewest layers of a stage without an empty model chunk: each holds a layer, or embedding or head in
/// an interleaved pipeline. The first chunk of the first stage holds all leading layers of another kind,
/// and no other chunk is smaller.
#[must_use]
pub fn fewest_layers(transformer: &Transformer, combination: &Combination, stage: u32) -> u32 {
    let ends = u32::from(stage == 0) + u32::from(stage + 1 == combination.pipeline_parallel);
    let filled = match combination.virtual_stages {
        1 => 1,
        chunks => chunks.saturating_sub(ends),
    };
    let leading = match stage {
        0 => transformer.order().leading,
        _ => 0,
    };
    filled.max(leading.saturating_mul(combination.virtual_stages))
}

/// The first stage with fewer layers than that.
#[must_use]
pub fn first_short_stage(
    transformer: &Transformer,
    combination: &Combination,
    cut: &[u32],
) -> Option<u32> {
    let is_short = |stage, layers| layers < fewest_layers(transformer, combination, stage);
    let mut stages = (0..).zip(cut);
    let found = stages.find(|&(stage, &layers)| is_short(stage, layers));
    found.map(|(stage, _)| stage)
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
/// Interleaved: `(v - 1) pp + 2 (pp - stage - 1) + 1` chunks, at most `M v`. Zero bubble 1p keeps `pp`
/// and 2p `2 pp - 1` on every stage, whose weights' gradients wait (Qi et al., arXiv 2401.10241, table
/// 2); all-forward-all-backward all.
///
/// That many chunks of mean size are what an interleaved stage keeps where its chunks are equal, and
/// no less than it keeps where they grow from the first to the last: see [`head_as_layer`] for the rest.
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
        Schedule::ZeroBubble1p if v == 1 => pp,
        Schedule::OneForwardOneBackward if v == 1 => behind,
        Schedule::OneForwardOneBackward | Schedule::ZeroBubble1p => (v - 1) * pp + 2 * behind - 1,
    };
    chunks.min(micro_batches * v)
}

/// What the last stage keeps in flight beside its layers: the head counts as a layer of its chunk where
/// the chunks of the pipeline differ, recomputed if all layers are, all by one mode.
///
/// With `F` chunks in flight of mean size `n / v` a stage never keeps more than `F n / v` layers if
/// each chunk keeps no less than the one before, recomputed layers in the early ones: forward passes
/// run from the first chunk on and backward passes from the last, so that what is in flight above `n`
/// layers for `pp` micro-batches is largest where both begin. The chunk with the head is one of the
/// smaller, so that the bound holds with one layer more; it is exact where all others are larger.
#[must_use]
pub fn head_as_layer(combination: &Combination, stages: &[Stage]) -> Stage {
    let mut head = Stage::default();
    if combination.virtual_stages == 1 || has_equal_chunks(combination, stages) {
        return head;
    }
    head.layers = 1;
    for mode in Recompute::ALL {
        let is_recomputed = |stage: &Stage| stage.recomputed[*mode as usize] == stage.layers;
        head.recomputed[*mode as usize] = u32::from(stages.iter().all(is_recomputed));
    }
    head
}

/// Whether all model chunks of all stages hold the same number of layers.
fn has_equal_chunks(combination: &Combination, stages: &[Stage]) -> bool {
    let first = stages.first().map_or(0, |stage| stage.layers);
    first.is_multiple_of(combination.virtual_stages) && stages.iter().all(|it| it.layers == first)
}

/// Pipeline fills that a step pays, by framework and schedule: `beta` under 1F1B (1 in theory),
/// `beta max(1/v, i)` interleaved (1/v in theory: Narayanan et al., arXiv 2104.04473, equation 3; `i`,
/// the least that interleaved runs showed), measured rates under zero-bubble schedules (Qi et al.,
/// arXiv 2401.10241, table 4).
#[must_use]
pub fn fill_share(job: &Job, cell: &Combination) -> f64 {
    let (speed, v) = (&job.framework.speed, f64::from(cell.virtual_stages));
    match cell.schedule {
        Schedule::OneForwardOneBackward | Schedule::AllForwardAllBackward => {
            speed.bubble * speed.bubble_interleaved.max(1.0 / v)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::cost_model::fixture;

    fn combination(stages: u32, chunks: u32) -> Combination {
        Combination {
            pipeline_parallel: stages,
            virtual_stages: chunks,
            schedule: Schedule::OneForwardOneBackward,
            ..fixture::combination()
        }
    }

    /// Chunks of the forward passes of a stage in their order: groups of as many micro-batches as
    /// stages run through one chunk after the other. Backward passes run from the last chunk on.
    fn passes(one: &Combination, micro_batches: u32) -> Vec<usize> {
        let (stages, chunks) = (one.pipeline_parallel, one.virtual_stages);
        let of_group = move |_| (0..chunks).flat_map(move |chunk| (0..stages).map(move |_| chunk));
        let passes = (0..micro_batches / stages).flat_map(of_group);
        passes.map(|chunk| chunk as usize).collect()
    }

    /// The most that a stage keeps at a time, `kept` by each chunk, step by step through the schedule.
    fn simulated_peak(one: &Combination, stage: u32, micro_batches: u32, kept: &[f64]) -> f64 {
        let forward = passes(one, micro_batches);
        let backward = forward.iter().map(|chunk| kept.len() - 1 - chunk);
        let behind = one.pipeline_parallel - stage - 1;
        let warm_up = 2 * behind + (one.virtual_stages - 1) * one.pipeline_parallel;
        let warm_up = (warm_up as usize).min(forward.len());
        let (mut now, mut peak) = (0.0, 0.0_f64);
        let mut passes = forward.iter();
        for &chunk in passes.by_ref().take(warm_up) {
            now += kept[chunk];
        }
        for chunk in backward {
            peak = peak.max(now);
            if let Some(&next) = passes.next() {
                now += kept[next];
                peak = peak.max(now);
            }
            now -= kept[chunk];
        }
        peak
    }

    /// Recomputed layers of each chunk, the early ones first, as evenly as their layers allow.
    fn recomputed_by_chunk(chunks: &[u32], recomputed: u32) -> Vec<u32> {
        let mut counts = vec![0; chunks.len()];
        for _ in 0..recomputed {
            let open = (0..chunks.len()).filter(|&chunk| counts[chunk] < chunks[chunk]);
            let least = open.min_by_key(|&chunk| (counts[chunk], chunk));
            counts[least.expect("no more than all layers are recomputed")] += 1;
        }
        counts
    }

    #[test]
    fn no_stage_keeps_more_than_its_bound() {
        const KEPT: f64 = 0.125;
        let mut exact = 0;
        let network = fixture::job().transformer;
        for (stages, chunks, groups) in (2..=5)
            .flat_map(|pp| (2..=4).map(move |v| (pp, v)))
            .flat_map(|(pp, v)| (1..=3).map(move |groups| (pp, v, groups)))
        {
            let one = combination(stages, chunks);
            let micro_batches = groups * stages;
            for (stage, layers) in (0..stages)
                .flat_map(|stage| (0..=2).map(move |more| (stage, more)))
                .flat_map(|(stage, more)| {
                    let least = fewest_layers(&network, &one, stage) + more * chunks;
                    (least..least + chunks).map(move |layers| (stage, layers))
                })
            {
                let sizes = super::chunks(&one, stage, layers);
                assert_eq!(sizes.iter().sum::<u32>(), layers);
                let in_flight = chunks_in_flight(&one, stage, u64::from(micro_batches)) as f64
                    / f64::from(chunks);
                let is_last = stage + 1 == stages;
                for recomputed in 0..=layers {
                    let counts = recomputed_by_chunk(&sizes, recomputed);
                    let kept = sizes
                        .iter()
                        .zip(counts)
                        .map(|(&size, again)| f64::from(size - again) + KEPT * f64::from(again));
                    let kept: Vec<f64> = kept.collect();
                    let mut mean = kept.iter().sum::<f64>();
                    if is_last && !layers.is_multiple_of(chunks) {
                        mean += if recomputed == layers { KEPT } else { 1.0 };
                    }
                    let peak = simulated_peak(&one, stage, micro_batches, &kept);
                    let bound = in_flight * mean;
                    assert!(
                        peak <= bound + 1e-9,
                        "{one:?} {stage} {layers} {recomputed}: {peak} > {bound}"
                    );
                    exact += u32::from((peak - bound).abs() < 1e-9);
                    if layers.is_multiple_of(chunks) && recomputed == 0 {
                        assert!((peak - bound).abs() < 1e-9, "equal chunks are exact");
                    }
                }
            }
        }
        assert!(exact > 500, "{exact}");
    }

    #[test]
    fn zero_bubble_schedules_keep_as_much_on_every_stage() {
        let kept = |schedule| {
            let one = Combination {
                schedule,
                ..combination(4, 1)
            };
            [0, 1, 2, 3].map(|stage| chunks_in_flight(&one, stage, 16))
        };
        assert_eq!(kept(Schedule::OneForwardOneBackward), [4, 3, 2, 1]);
        assert_eq!(kept(Schedule::ZeroBubble1p), [4; 4]);
        assert_eq!(kept(Schedule::ZeroBubble2p), [7; 4]);
    }

    #[test]
    fn chunks_differ_by_a_layer_and_the_head_has_one_of_the_smaller() {
        let check = |stage: u32, chunks: u32, layers: u32, expected: &[u32]| {
            assert_eq!(
                super::chunks(&combination(4, chunks), stage, layers),
                expected
            );
        };
        check(0, 1, 7, &[7]);
        check(1, 4, 8, &[2, 2, 2, 2]);
        check(0, 4, 3, &[0, 1, 1, 1]);
        check(2, 4, 6, &[1, 1, 2, 2]);
        check(3, 4, 3, &[1, 1, 1, 0]);
        check(3, 4, 6, &[1, 2, 2, 1]);
    }

    #[test]
    fn empty_chunks_are_those_without_layer_embedding_or_head() {
        let network = fixture::job().transformer;
        for (chunks, layers) in (1..=4).flat_map(|v| (0..=6).map(move |layers| (v, layers))) {
            for stage in 0..4 {
                let one = combination(4, chunks);
                let mut cut = [8; 4];
                cut[stage as usize] = layers;
                let sizes = (0..).zip(super::chunks(&one, stage, layers));
                let holds_more = |chunk: u32| {
                    let place = chunk * 4 + stage;
                    chunks > 1 && (place == 0 || place + 1 == 4 * chunks)
                };
                let is_empty = sizes
                    .clone()
                    .any(|(chunk, size)| size == 0 && !holds_more(chunk));
                let found = first_short_stage(&network, &one, &cut);
                assert_eq!(found, is_empty.then_some(stage));
            }
        }
    }

    #[test]
    fn frameworks_cut_interleaved_pipelines_by_their_rule() {
        let check = |partition, layers, (stages, chunks), expected: Option<Vec<u32>>| {
            let mut transformer = fixture::job().transformer;
            transformer.layers = layers;
            let cut = framework_cut(partition, &transformer, &combination(stages, chunks));
            assert_eq!(cut, expected, "{layers} layers, {stages} x {chunks}");
        };
        let mut meta = vec![8; 16];
        (meta[0], meta[15]) = (7, 7);
        check(Partition::EmbeddingAndHead, 126, (16, 8), Some(meta));
        check(Partition::Even, 32, (4, 4), Some(vec![8; 4]));
        check(Partition::Even, 33, (4, 4), None);
        check(Partition::Free, 33, (4, 4), Some(vec![9, 8, 8, 8]));
        check(Partition::Free, 15, (4, 4), Some(vec![4, 4, 4, 3]));
        check(Partition::Free, 13, (4, 4), None);
    }

    /// Layers by stage as `first, middle x times, last`.
    fn ends(first: u32, middle: u32, last: u32, stages: usize) -> Vec<u32> {
        let mut cut = vec![middle; stages];
        (cut[0], cut[stages - 1]) = (first, last);
        cut
    }

    #[test]
    fn megatron_lm_demands_equal_stages_or_one_layer_fewer_at_the_ends() {
        let partition = catalog::framework("megatron-lm-2023").map(|it| it.partition);
        let partition = partition.expect("it is in the catalog");
        let check = |(layers, stages): (u32, u32), expected: Option<Vec<u32>>| {
            let mut transformer = catalog::model("llama-7b").expect("it is in the catalog");
            transformer.layers = layers;
            assert_eq!(
                even_partition(partition, &transformer, stages),
                expected,
                "{layers}"
            );
        };
        check((96, 8), Some(vec![12; 8]));
        check((126, 16), Some(ends(7, 8, 7, 16)));
        check((30, 8), Some(ends(3, 4, 3, 8)));
        check((22, 8), Some(ends(2, 3, 2, 8)));
        check((30, 4), Some(ends(7, 8, 7, 4)));
        check((31, 4), None);
    }

    #[test]
    fn a_cut_by_cost_leaves_room_for_the_head() {
        let mut transformer = catalog::model("llama-3-8b").expect("it is in the catalog");
        // The head costs as much as 2.2 layers: 128,256 / (4 x 4,096 + 3 x 14,336) in units of h.
        let mut check = |layers: u32, stages: u32, expected: Option<&[u32]>| {
            transformer.layers = layers;
            let cut = even_partition(Partition::ByCost, &transformer, stages);
            assert_eq!(cut.as_deref(), expected, "{layers} on {stages}");
        };
        check(32, 1, Some(&[32]));
        check(32, 2, Some(&[18, 14]));
        check(32, 4, Some(&[9, 9, 8, 6]));
        // The last stages would hold no layer.
        check(16, 16, None);
    }
}
