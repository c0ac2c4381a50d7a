//! The least recomputation with which a stage fits, by trying counts.

use super::budget::{Budget, TooLarge};
use super::problem::{Problem, Way};

/// Recomputed layers of a stage by mode, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Recomputed {
    /// Time that they add to the stage.
    pub(super) extra: i64,
    /// Memory of the stage.
    pub(super) memory: i64,
    /// Layers by mode.
    pub(super) counts: [i64; 3],
}

/// The recomputation of least extra time with which so many layers fit; of equal time that of least
/// memory, then the first counts. `None` if none fits.
pub(super) fn least(
    problem: &Problem,
    way: Way,
    stage: usize,
    layers: i64,
    budget: &Budget,
) -> Result<Option<Recomputed>, TooLarge> {
    let mut counts = [0; 3];
    match way {
        Way::None => {}
        Way::All(mode) => counts[mode] = layers,
        Way::Count(mode, count) => counts[mode] = count.min(layers),
        Way::Mix => {
            let mut trial = Trial {
                problem,
                stage,
                layers,
                best: None,
            };
            trial.visit(&problem.modes, counts, budget)?;
            return Ok(trial.best);
        }
    }
    let found = recomputed(problem, stage, layers, counts);
    Ok((found.memory <= problem.capacity).then_some(found))
}

fn recomputed(problem: &Problem, stage: usize, layers: i64, counts: [i64; 3]) -> Recomputed {
    let times = problem.units.recompute_time.iter().zip(counts);
    Recomputed {
        extra: times.map(|(time, count)| time * count).sum(),
        memory: problem.memory(stage, layers, counts),
        counts,
    }
}

struct Trial<'a> {
    problem: &'a Problem<'a>,
    stage: usize,
    layers: i64,
    best: Option<Recomputed>,
}

impl Trial<'_> {
    /// Tries every count of the first mode, and with each the other modes. Each further layer takes
    /// longer, so counts end where the best is exceeded.
    fn visit(
        &mut self,
        modes: &[usize],
        mut counts: [i64; 3],
        budget: &Budget,
    ) -> Result<(), TooLarge> {
        let Some((&mode, others)) = modes.split_first() else {
            self.offer(counts);
            return Ok(());
        };
        let left = self.layers - counts.iter().sum::<i64>();
        if others.is_empty() {
            // The last mode's least count that fits, directly: one that is not needed adds workspace.
            self.offer(counts);
            counts[mode] = 1;
            let problem = self.problem;
            let missing = problem.memory(self.stage, self.layers, counts) - problem.capacity;
            let in_flight = problem.units.stages[self.stage].in_flight;
            let gain = in_flight * (problem.units.activations - problem.units.kept[mode]);
            if missing > 0 && gain > 0 {
                counts[mode] += (missing + gain - 1) / gain;
            }
            if counts[mode] <= left {
                self.offer(counts);
            }
            return budget.spend(1);
        }
        for count in 0..=left {
            counts[mode] = count;
            let least = recomputed(self.problem, self.stage, self.layers, counts).extra;
            if self.best.is_some_and(|best| least > best.extra) {
                break;
            }
            self.visit(others, counts, budget)?;
        }
        Ok(())
    }

    fn offer(&mut self, counts: [i64; 3]) {
        let found = recomputed(self.problem, self.stage, self.layers, counts);
        if found.memory <= self.problem.capacity && self.best.is_none_or(|best| found < best) {
            self.best = Some(found);
        }
    }
}
