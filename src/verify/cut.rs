//! How a framework cuts the layers into stages where it leaves no freedom.

use crate::framework::Partition;

/// Layers of each stage of an interleaved pipeline: equal, or equal if embedding and head counted as
/// a layer each.
pub(super) fn interleaved(layers: i64, stages: i64, chunks: i64) -> Vec<i64> {
    if layers % (stages * chunks) == 0 {
        vec![layers / stages; stages as usize]
    } else {
        ends_lighter((layers + 2) / stages, 0, stages)
    }
}

/// Layers of each stage by the framework's own cut.
///
/// - `equal`: all alike. `even`: as even as can be, the remainder to the early stages.
/// - `embedding-and-head`: the list [embedding, layers, head] as even as can be, likewise.
/// - `first-and-last`: all alike, or as many on the stages between as the list of embedding, layers
///   and head gives a stage at most and leaves two for the ends, which share the rest.
/// - `free`: all alike, or the list with embedding and head where that leaves no stage empty, or even.
pub(super) fn own(partition: Partition, layers: i64, stages: i64) -> Vec<i64> {
    let all_alike = layers % stages == 0;
    let listed = ends_lighter((layers + 2) / stages, (layers + 2) % stages, stages);
    match partition {
        Partition::EmbeddingAndHead => listed,
        Partition::Free if !all_alike && listed.iter().all(|&count| count > 0) => listed,
        Partition::FirstAndLast if !all_alike => {
            let between = stages - 2;
            let share = (layers + 1 + stages) / stages;
            let most = if between > 0 {
                share.min((layers - 2) / between)
            } else {
                share
            };
            let rest = layers - most * between;
            let mut cut = vec![most; stages as usize];
            cut[0] = rest - rest / 2;
            cut[stages as usize - 1] = rest / 2;
            cut
        }
        _ => even(layers, stages),
    }
}

fn even(layers: i64, stages: i64) -> Vec<i64> {
    let own = |stage| layers / stages + i64::from(stage < layers % stages);
    (0..stages).map(own).collect()
}

/// `share` on each stage, one more on the first `more`, one less on the first and on the last.
fn ends_lighter(share: i64, more: i64, stages: i64) -> Vec<i64> {
    let own = |stage| {
        share + i64::from(stage < more) - i64::from(stage == 0) - i64::from(stage == stages - 1)
    };
    (0..stages).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::pipeline::{even_partition, interleaved_partition};

    #[test]
    fn cuts_are_those_of_the_cost_model() {
        let partitions = [
            Partition::Equal,
            Partition::Even,
            Partition::EmbeddingAndHead,
            Partition::FirstAndLast,
            Partition::Free,
        ];
        for (layers, stages) in (1..30_u32).flat_map(|l| (1..=l).map(move |stages| (l, stages))) {
            for partition in partitions {
                if let Some(cut) = even_partition(partition, layers, stages) {
                    let cut: Vec<i64> = cut.into_iter().map(i64::from).collect();
                    let found = own(partition, i64::from(layers), i64::from(stages));
                    assert_eq!(found, cut, "{partition:?} {layers} {stages}");
                }
            }
            for chunks in 2..5 {
                if let Some(cut) = interleaved_partition(layers, stages, chunks) {
                    let cut: Vec<i64> = cut.into_iter().map(i64::from).collect();
                    let found =
                        interleaved(i64::from(layers), i64::from(stages), i64::from(chunks));
                    assert_eq!(found, cut, "{layers} {stages} {chunks}");
                }
            }
        }
    }
}
