//! The exact optimum of one group without side rows, by dynamic programming over its stages: the oracle of
//! the program. It knows no bound from outside unless it is told one.
//!
//! For fixed ceilings `tau` and `delta` of the two maxima, `F_s(i) = min over j of T_s(i, j) + F_{s+1}(j)`
//! with `T_s(i, j) <= tau`, `D_s(i, j) <= delta` is the least sum of times of the stages from `s` on with the
//! layers from `i` on. An optimal plan is found where the ceilings are its own maxima, so it suffices to
//! try the times and deltas that occur, as far as `a tau + b F_0(0) + w delta + constant` can still win.
//!
//! The cost of the recursion is a tuple, so that the plan found is the canonical one: of equal
//! objective the least `sum_s T_s`, then the least `sum_s (S n_s - L)^2` (most even), then the least
//! `sum_s s n_s` (earliest layers), then the fewest layers on the first stage where they differ.

use super::data::{Group, Layers, Partition};
use super::equal_middle::equal_middle_splits;
use super::plan::{Plan, on_stages, plan_of, stage_time, value};
use super::tables::{Ceilings, Costs, Interval, bottleneck, ceilings};
use crate::deadline::{Deadline, TimeOver};

/// `(sum T, sum (S n - L)^2, sum s n)`.
type Cost = (i64, i64, i64);

/// What makes one plan of a group better than another of the same group.
pub(super) type Key = (i64, Cost, Vec<i64>);

/// The canonical optimum of a group, ignoring side rows; `None` if no plan fits. `index` is the number
/// that the plan shall bear.
#[must_use]
pub fn optimum(group: &Group, index: usize, layers: &Layers) -> Option<Plan> {
    optimum_within(group, index, layers, i64::MAX, Deadline::NEVER).unwrap_or_default()
}

/// The canonical optimum of a group if its objective is at most `limit`.
///
/// # Errors
/// [`TimeOver`] when the time is over before it is known.
pub fn optimum_within(
    group: &Group,
    index: usize,
    layers: &Layers,
    limit: i64,
    deadline: Deadline,
) -> Result<Option<Plan>, TimeOver> {
    if group.partition == Partition::EqualMiddle && group.stages.len() > 2 {
        return equal_middle_optimum(group, index, layers, limit, deadline);
    }
    let recursion = Recursion::new(group, layers, limit, deadline)?;
    Ok(match best_lengths(recursion, layers, limit)? {
        Some(lengths) => plan_of(group, index, layers, &lengths),
        None => None,
    })
}

/// The layers of the stages of the best plan.
fn best_lengths(
    mut recursion: Recursion,
    layers: &Layers,
    limit: i64,
) -> Result<Option<Vec<i64>>, TimeOver> {
    let (group, count) = (recursion.group, recursion.count);
    let slowest = bottleneck(&recursion.intervals, count, |it| it.time);
    let delta = bottleneck(&recursion.intervals, count, |it| it.delta);
    let (Some(slowest), Some(delta)) = (slowest, delta) else {
        return Ok(None);
    };
    // An own incumbent: the best of the plans whose slowest stage is least slow.
    let ceilings_of_first = Ceilings {
        time: slowest,
        ..Ceilings::NONE
    };
    let Some(cost) = recursion.run(ceilings_of_first)? else {
        return Ok(None);
    };
    let (objective, _) = recursion.plan(cost, ceilings_of_first);
    let limit = limit.min(objective);
    let ceilings = ceilings(group, layers, limit);
    for intervals in &mut recursion.intervals {
        intervals.retain(|it| it.time <= ceilings.time && it.delta <= ceilings.delta);
    }
    recursion.best(limit, slowest, delta)
}

struct Recursion<'a> {
    group: &'a Group,
    count: usize,
    intervals: Vec<Vec<Interval>>,
    /// `F_s(i)` for `s = 0..=S`.
    costs: Vec<Vec<Option<Cost>>>,
    deadline: Deadline,
}

impl<'a> Recursion<'a> {
    fn new(
        group: &'a Group,
        layers: &Layers,
        limit: i64,
        deadline: Deadline,
    ) -> Result<Self, TimeOver> {
        let count = layers.count() as usize;
        let mut costs = vec![vec![None; count + 1]; group.stages.len() + 1];
        costs[group.stages.len()][count] = Some((0, 0, 0));
        let ceilings = ceilings(group, layers, limit);
        Ok(Self {
            group,
            count,
            intervals: Costs::new(group, layers).intervals(ceilings, deadline)?,
            costs,
            deadline,
        })
    }

    /// The layers of the stages of the best plan.
    fn best(
        &mut self,
        mut limit: i64,
        slowest: i64,
        delta: i64,
    ) -> Result<Option<Vec<i64>>, TimeOver> {
        let mut best: Option<Key> = None;
        let weights = self.group.weights;
        let times = self.values(weights.slowest, slowest, |it| it.time);
        let deltas = self.values(weights.delta, delta, |it| it.delta);
        let Some((free, ..)) = self.run(Ceilings::NONE)? else {
            return Ok(None);
        };
        for &time in &times {
            let floor = if time == i64::MAX { slowest } else { time };
            if value(self.group, floor, free, delta) > limit {
                break;
            }
            let of_time = self.run(Ceilings {
                time,
                ..Ceilings::NONE
            })?;
            let Some((total, ..)) = of_time else { continue };
            for &most in &deltas {
                let ceilings = Ceilings { time, delta: most };
                let least = if most == i64::MAX { delta } else { most };
                if value(self.group, floor, total, least) > limit {
                    break;
                }
                let Some(cost) = self.run(ceilings)? else {
                    continue;
                };
                let (objective, lengths) = self.plan(cost, ceilings);
                let key = (objective, cost, lengths);
                if objective <= limit && best.as_ref().is_none_or(|best| key < *best) {
                    limit = objective;
                    best = Some(key);
                }
            }
        }
        Ok(best.map(|best| best.2))
    }

    /// The values that occur from a floor on, ascending; no ceiling at all where the weight is zero.
    fn values(&self, weight: i64, floor: i64, of: impl Fn(&Interval) -> i64) -> Vec<i64> {
        if weight == 0 {
            return vec![i64::MAX];
        }
        let all = self.intervals.iter().flatten().map(of);
        let mut values: Vec<i64> = all.filter(|&value| value >= floor).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Cost of the stages from one on if it has the interval; `None` where there is no way.
    fn cost(&self, stage: usize, interval: &Interval, ceilings: Ceilings) -> Option<Cost> {
        if interval.time > ceilings.time || interval.delta > ceilings.delta {
            return None;
        }
        let rest = self.costs[stage + 1][interval.end]?;
        let own = (interval.end - interval.start) as i64;
        let uneven = self.intervals.len() as i64 * own - self.count as i64;
        Some((
            rest.0 + interval.time,
            rest.1 + uneven * uneven,
            rest.2 + stage as i64 * own,
        ))
    }

    /// `F_0(0)` under the ceilings.
    fn run(&mut self, ceilings: Ceilings) -> Result<Option<Cost>, TimeOver> {
        self.deadline.check()?;
        for stage in (0..self.intervals.len()).rev() {
            let mut costs = std::mem::take(&mut self.costs[stage]);
            costs.fill(None);
            for interval in &self.intervals[stage] {
                let cost = self.cost(stage, interval, ceilings);
                let best = &mut costs[interval.start];
                if cost.is_some_and(|cost| best.is_none_or(|best| cost < best)) {
                    *best = cost;
                }
            }
            self.costs[stage] = costs;
        }
        Ok(self.costs[0][0])
    }

    /// Objective and layers of the stages of the last run.
    fn plan(&self, cost: Cost, ceilings: Ceilings) -> (i64, Vec<i64>) {
        let way = self.way(ceilings);
        let largest = |of: fn(&Interval) -> i64| way.iter().map(of).max().unwrap_or(0);
        let (slowest, delta) = (largest(|it| it.time), largest(|it| it.delta));
        let lengths = way.iter().map(|it| (it.end - it.start) as i64);
        (value(self.group, slowest, cost.0, delta), lengths.collect())
    }

    /// The stages of the last run, the fewest layers first where costs are equal.
    fn way(&self, ceilings: Ceilings) -> Vec<Interval> {
        let mut start = 0;
        let stages = self.intervals.iter().enumerate();
        let attaining = stages.filter_map(|(stage, intervals)| {
            let attains = |it: &&Interval| {
                it.start == start && self.cost(stage, it, ceilings) == self.costs[stage][start]
            };
            let interval = *intervals.iter().find(attains)?;
            start = interval.end;
            Some(interval)
        });
        attaining.collect()
    }
}

/// The same when all stages in the middle have the same layers: few enough to try each.
fn equal_middle_optimum(
    group: &Group,
    index: usize,
    layers: &Layers,
    limit: i64,
    deadline: Deadline,
) -> Result<Option<Plan>, TimeOver> {
    let mut best: Option<(Key, Plan)> = None;
    for lengths in equal_middle_splits(group, layers.count()) {
        deadline.check()?;
        let plan = plan_of(group, index, layers, &lengths);
        let Some(plan) = plan.filter(|plan| plan.objective <= limit) else {
            continue;
        };
        let key = key_of(group, &plan, layers);
        if best.as_ref().is_none_or(|best| key < best.0) {
            best = Some((key, plan));
        }
    }
    Ok(best.map(|best| best.1))
}

/// What makes one plan of a group better than another of the same group.
pub(super) fn key_of(group: &Group, plan: &Plan, layers: &Layers) -> Key {
    let count = plan.layers.len() as i64;
    let mut cost = (0, 0, 0);
    for (stage, counts) in on_stages(layers, &plan.layers).iter().enumerate() {
        let own = plan.layers[stage];
        let pairs = group.modes.iter().zip(&plan.recomputed[stage]);
        let extra: i64 = pairs.map(|(mode, count)| mode.extra_time * count).sum();
        cost.0 += stage_time(group, stage, counts, extra);
        cost.1 += (count * own - layers.count()).pow(2);
        cost.2 += stage as i64 * own;
    }
    (plan.objective, cost, plan.layers.clone())
}
