//! What tells the layouts of an answer apart.
//!
//! An answer lists the best layout of each *class*. Usually every combination is a class of its own;
//! diverse answers differ in the values of some axes.

use std::collections::HashMap;

use crate::axis::{AxisSet, FlaggedCombination};

/// The class of each combination: two share one if they have the same values on all of `axes`.
/// Without axes every combination is a class of its own.
pub(crate) fn classes(
    candidates: impl Iterator<Item = FlaggedCombination>,
    axes: AxisSet,
) -> Vec<usize> {
    if axes.is_empty() {
        return candidates.enumerate().map(|(index, _)| index).collect();
    }
    let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
    let class = |candidate: FlaggedCombination| {
        let key = axes.iter().map(|axis| candidate.code(axis)).collect();
        let next = known.len();
        *known.entry(key).or_insert(next)
    };
    candidates.map(class).collect()
}

/// The least known objectives of the classes.
#[derive(Debug)]
pub(crate) struct Thresholds {
    count: usize,
    /// Objectives of the `count` best classes with their class, the least first.
    best: Vec<(i64, usize)>,
    /// The least objective of each class.
    of_class: Vec<i64>,
}

impl Thresholds {
    /// For the `count` best of so many classes.
    pub(crate) fn new(count: usize, classes: usize) -> Self {
        Self {
            count: count.min(classes).max(1),
            best: Vec::new(),
            of_class: vec![i64::MAX; classes],
        }
    }

    /// Takes note of a plan.
    pub(crate) fn offer(&mut self, objective: i64, class: usize) {
        self.of_class[class] = self.of_class[class].min(objective);
        if let Some(known) = self.best.iter().position(|entry| entry.1 == class) {
            if self.best[known].0 <= objective {
                return;
            }
            self.best.remove(known);
        }
        let place = self.best.partition_point(|entry| entry.0 <= objective);
        self.best.insert(place, (objective, class));
        self.best.truncate(self.count);
    }

    /// What is above this is not among the best.
    pub(crate) fn limit(&self) -> i64 {
        let last = self.best.get(self.count - 1);
        last.map_or(i64::MAX, |entry| entry.0)
    }

    /// What of a class is above this is not among the best, or not the best of its class.
    pub(crate) fn limit_of(&self, class: usize) -> i64 {
        self.limit().min(self.of_class[class])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::fixture;
    use crate::layout::Checkpointing;

    #[test]
    fn classes_differ_in_the_axes_named() {
        let candidate = |tensor_parallel: u32, micro_batch: u32| {
            let mut combination = fixture::llama_13b_layout().combination;
            (combination.tensor_parallel, combination.micro_batch) = (tensor_parallel, micro_batch);
            FlaggedCombination {
                combination,
                checkpointing: Checkpointing::None,
            }
        };
        let all = [candidate(1, 1), candidate(2, 1), candidate(1, 2)];
        let check = |axes: AxisSet, expected: [usize; 3]| {
            assert_eq!(classes(all.into_iter(), axes), expected);
        };
        check(AxisSet::EMPTY, [0, 1, 2]);
        let tensor = AxisSet::EMPTY.with(Axis::TensorParallel);
        check(tensor, [0, 1, 0]);
        check(tensor.with(Axis::MicroBatch), [0, 1, 2]);
        check(AxisSet::EMPTY.with(Axis::Schedule), [0, 0, 0]);
    }

    #[test]
    fn the_limit_is_that_of_the_last_class() {
        let mut thresholds = Thresholds::new(2, 3);
        thresholds.offer(10, 0);
        thresholds.offer(8, 0);
        assert_eq!(thresholds.limit(), i64::MAX);
        thresholds.offer(12, 1);
        assert_eq!(thresholds.limit(), 12);
        thresholds.offer(9, 2);
        assert_eq!(thresholds.limit(), 9);
        assert_eq!([0, 1, 2].map(|class| thresholds.limit_of(class)), [8, 9, 9]);
    }
}
