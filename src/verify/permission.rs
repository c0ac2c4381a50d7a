//! Whether the framework permits the layers and recomputation of a layout's stages.

use crate::layout::Layout;

use super::problem::{Problem, Way};

/// Whether the stages hold the layers as the framework cuts them and recompute as it can.
pub(super) fn permitted(problem: &Problem, layout: &Layout) -> bool {
    let stages: Vec<(i64, [i64; 3])> = layout
        .stages
        .iter()
        .map(|stage| (i64::from(stage.layers), stage.recomputed.map(i64::from)))
        .collect();
    let within = |(&(layers, _), &(fewest, most)): (&(i64, _), &(i64, i64))| {
        (fewest..=most).contains(&layers)
    };
    stages.len() == problem.stages()
        && stages.iter().map(|stage| stage.0).sum::<i64>() == problem.layers
        && stages.iter().zip(&problem.windows).all(within)
        && problem.keeps_rows(&stages)
        && (!problem.equal_middle || has_equal_middle(&stages))
        && problem
            .ways()
            .into_iter()
            .any(|way| follows(problem, way, &stages))
}

fn has_equal_middle(stages: &[(i64, [i64; 3])]) -> bool {
    let middle = stages.get(1..stages.len() - 1).unwrap_or_default();
    middle.windows(2).all(|pair| pair[0].0 == pair[1].0)
}

/// Whether the stages recompute in this way.
fn follows(problem: &Problem, way: Way, stages: &[(i64, [i64; 3])]) -> bool {
    stages.iter().all(|&(layers, counts)| {
        let only = |mode: usize, count: i64| {
            let mut wanted = [0; 3];
            wanted[mode] = count;
            counts == wanted
        };
        match way {
            Way::None => counts == [0; 3],
            Way::All(mode) => only(mode, layers),
            Way::Count(mode, count) => only(mode, count.min(layers)),
            Way::Mix => {
                let used = |mode: &usize| counts[*mode] > 0;
                counts.iter().sum::<i64>() <= layers
                    && (0..3)
                        .filter(used)
                        .all(|mode| problem.modes.contains(&mode))
            }
        }
    })
}
