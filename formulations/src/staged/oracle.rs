//! The same by enumeration of every distribution and every recomputation, in integers. Shares nothing
//! with the program, the bounds or the dynamic program; for small data only.

use super::data::{Cell, Counts, Data};
use super::plan::{Plan, check_plan};

/// The canonical best plan; `None` if there is none.
#[must_use]
pub fn oracle(data: &Data) -> Option<Plan> {
    let plans = (0..data.cells.len()).filter_map(|index| cell_oracle(data, index));
    plans.min_by_key(|plan| (plan.objective, data.cells[plan.cell].rank, plan.cell))
}

/// The canonical best plan of one cell.
pub(super) fn cell_oracle(data: &Data, index: usize) -> Option<Plan> {
    let mut enumeration = Enumeration {
        data,
        index,
        cell: &data.cells[index],
        layers: Vec::new(),
        recomputed: Vec::new(),
        best: None,
    };
    enumeration.stages_from(data.layers);
    enumeration.best.map(|(_, plan)| plan)
}

/// `(objective, sum T, unevenness, lateness, layers, (memory, counts) of each stage)`.
type Key = (i64, i64, i64, i64, Vec<i64>, Vec<(i64, Counts)>);

struct Enumeration<'a> {
    data: &'a Data,
    index: usize,
    cell: &'a Cell,
    layers: Vec<i64>,
    recomputed: Vec<Counts>,
    best: Option<(Key, Plan)>,
}

impl Enumeration<'_> {
    fn stages_from(&mut self, left: i64) {
        if self.layers.len() == self.cell.stages.len() {
            if left == 0 {
                self.offer();
            }
            return;
        }
        for own in 0..=left {
            for counts in all_counts(self.cell.modes.len(), own) {
                self.layers.push(own);
                self.recomputed.push(counts);
                self.stages_from(left - own);
                self.layers.pop();
                self.recomputed.pop();
            }
        }
    }

    fn offer(&mut self) {
        let cell = self.cell;
        let count = cell.stages.len() as i64;
        let (mut times, mut deltas, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        let (mut unevenness, mut lateness) = (0, 0);
        for (index, stage) in cell.stages.iter().enumerate() {
            let (own, counts) = (self.layers[index], self.recomputed[index]);
            let mut time = own * cell.layer.time + stage.extra_time;
            let mut activation = own * cell.layer.activation;
            let mut workspace = 0;
            for (mode, &count) in cell.modes.iter().zip(&counts) {
                time += count * mode.extra_time;
                activation += count * (mode.activation - cell.layer.activation);
                workspace = workspace.max(if count > 0 { mode.workspace } else { 0 });
            }
            let memory = own * cell.layer.memory + stage.in_flight * activation + workspace;
            memories.push((memory + stage.fixed_memory, counts));
            times.push(time);
            deltas.push(own * cell.layer.delta + stage.extra_delta);
            unevenness += (count * own - self.data.layers).pow(2);
            lateness += index as i64 * own;
        }
        let total: i64 = times.iter().sum();
        let slowest = times.into_iter().max().unwrap_or(0);
        let delta = deltas.into_iter().max().unwrap_or(0);
        let weights = &cell.weights;
        let plan = Plan {
            cell: self.index,
            layers: self.layers.clone(),
            recomputed: self.recomputed.clone(),
            objective: weights.slowest * slowest
                + weights.total * total
                + weights.delta * delta
                + cell.constant,
        };
        if !check_plan(self.data, &plan).is_empty() {
            return;
        }
        let key = (
            plan.objective,
            total,
            unevenness,
            lateness,
            plan.layers.clone(),
            memories,
        );
        if self.best.as_ref().is_none_or(|best| key < best.0) {
            self.best = Some((key, plan));
        }
    }
}

/// Every way to recompute at most so many layers by so many modes.
fn all_counts(modes: usize, layers: i64) -> Vec<Counts> {
    let mut all = vec![[0; super::MAX_MODES]];
    for mode in 0..modes {
        let extended = all.iter().flat_map(|counts| {
            let left = layers - counts.iter().sum::<i64>();
            (0..=left).map(move |count| {
                let mut counts = *counts;
                counts[mode] = count;
                counts
            })
        });
        all = extended.collect();
    }
    all
}
