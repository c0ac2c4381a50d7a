//! The same by enumeration of every distribution and every recomputation, in integers. Shares nothing
//! with the program, the bounds or the dynamic program; for small data only.

use super::*;

/// The canonical best plan; `None` if there is none.
pub(super) fn oracle(data: &Data) -> Option<Plan> {
    let plans = (0..data.groups.len()).filter_map(|index| group_oracle(data, index));
    plans.min_by_key(|plan| (plan.objective, data.groups[plan.group].rank, plan.group))
}

/// The canonical best plan of one group.
pub(super) fn group_oracle(data: &Data, index: usize) -> Option<Plan> {
    let mut enumeration = Enumeration {
        data,
        index,
        group: &data.groups[index],
        layers: Vec::new(),
        recomputed: Vec::new(),
        best: None,
    };
    enumeration.stages_from(data.layers.count());
    enumeration.best.map(|(_, plan)| plan)
}

/// `(objective, sum T, unevenness, lateness, layers, (memory, counts) of each stage)`.
type Key = (i64, i64, i64, i64, Vec<i64>, Vec<(i64, Counts)>);

struct Enumeration<'a> {
    data: &'a Data,
    index: usize,
    group: &'a Group,
    layers: Vec<i64>,
    recomputed: Vec<Counts>,
    best: Option<(Key, Plan)>,
}

impl Enumeration<'_> {
    fn stages_from(&mut self, left: i64) {
        if self.layers.len() == self.group.stages.len() {
            if left == 0 {
                self.offer();
            }
            return;
        }
        for own in 0..=left {
            let start = (self.data.layers.count() - left) as usize;
            let layers = self.data.layers.between(start, start + own as usize);
            for counts in all_counts(self.group, &layers) {
                self.layers.push(own);
                self.recomputed.push(counts);
                self.stages_from(left - own);
                self.layers.pop();
                self.recomputed.pop();
            }
        }
    }

    fn offer(&mut self) {
        let group = self.group;
        let count = group.stages.len() as i64;
        let (mut times, mut deltas, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        let (mut unevenness, mut lateness, mut start) = (0, 0, 0);
        for (index, stage) in group.stages.iter().enumerate() {
            let (own, counts) = (self.layers[index], self.recomputed[index]);
            let (mut time, mut activation, mut memory, mut delta) = (stage.extra_time, 0, 0, 0);
            for j in start..start + own as usize {
                let kind = &group.kinds[self.data.layers.kind(j)];
                time += kind.time;
                delta += kind.delta;
                memory += kind.memory;
                activation += kind.activation;
            }
            start += own as usize;
            let mut workspace = 0;
            for (mode, &count) in group.modes.iter().zip(&counts) {
                time += count * mode.extra_time;
                activation += count * (mode.activation - group.kinds[mode.kind].activation);
                workspace = workspace.max(if count > 0 { mode.workspace } else { 0 });
            }
            memory += stage.in_flight * activation + workspace;
            memories.push((memory + stage.fixed_memory, counts));
            times.push(time);
            deltas.push(delta + stage.extra_delta);
            unevenness += (count * own - self.data.layers.count()).pow(2);
            lateness += index as i64 * own;
        }
        let total: i64 = times.iter().sum();
        let slowest = times.into_iter().max().unwrap_or(0);
        let delta = deltas.into_iter().max().unwrap_or(0);
        let weights = &group.weights;
        let plan = Plan {
            group: self.index,
            layers: self.layers.clone(),
            recomputed: self.recomputed.clone(),
            objective: weights.slowest * slowest
                + weights.total * total
                + weights.delta * delta
                + group.constant,
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

/// Every way to recompute at most so many layers of each kind by the modes of a group.
pub(super) fn all_counts(group: &Group, layers: &data::KindCounts) -> Vec<Counts> {
    let mut all = vec![([0; MAX_MODES], *layers)];
    for (index, mode) in group.modes.iter().enumerate() {
        let extended = all.into_iter().flat_map(|(counts, left)| {
            (0..=left[mode.kind]).map(move |count| {
                let (mut counts, mut left) = (counts, left);
                counts[index] = count;
                left[mode.kind] -= count;
                (counts, left)
            })
        });
        all = extended.collect();
    }
    all.into_iter().map(|(counts, _)| counts).collect()
}
