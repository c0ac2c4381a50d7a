//! Interval fixing: of a group only the intervals that may be part of a plan as good as the best known.
//!
//! 1. `tau*` and `delta*`: the least `max_s T_s` and `max_s D_s` of any plan, each on its own.
//! 2. `S(tau) = min sum_s T_s` with `T_s <= tau`. The plans of `S(tau*)` and of some values above are
//!    incumbents: `UB`. `LB2 = min_tau a tau + b S(tau) + w delta* + constant` bounds the group from below.
//! 3. With forward sums `F` and backward sums `G` an interval stays if
//!    `a max(T, tau*) + b (F + T + G) + w max(D, delta*) + constant <= UB`; repeated until nothing changes.
//!
//! A group whose stages in the middle are equal has so few plans that each is tried instead.

use super::data::{Group, Layers, Partition};
use super::equal_middle::equal_middle_splits;
use super::plan::{Plan, plan_of, value};
use super::tables::{Costs, Interval, NO_WAY, bottleneck, ceilings};
use crate::deadline::{Deadline, TimeOver};

/// What is left of a group.
#[derive(Debug, Clone)]
pub(super) struct Presolved {
    /// Index of the group.
    pub(super) group: usize,
    /// The intervals that each stage may have.
    pub(super) intervals: Vec<Vec<Interval>>,
    /// `tau*`.
    pub(super) slowest: i64,
    /// `delta*`.
    pub(super) delta: i64,
    /// `LB2`: no plan of the group is below this.
    pub(super) lower_bound: i64,
    /// The best plan that was met.
    pub(super) incumbent: Option<Plan>,
}

impl Presolved {
    /// Adds what is left of another piece of the group.
    pub(super) fn add(&mut self, other: Self) {
        for (intervals, others) in self.intervals.iter_mut().zip(other.intervals) {
            intervals.extend(others);
            intervals.sort_by_key(|it| (it.start, it.end));
            intervals.dedup();
        }
        self.slowest = self.slowest.min(other.slowest);
        self.delta = self.delta.min(other.delta);
        self.lower_bound = self.lower_bound.min(other.lower_bound);
        let objective = |plan: &Option<Plan>| plan.as_ref().map_or(i64::MAX, |it| it.objective);
        if objective(&other.incumbent) < objective(&self.incumbent) {
            self.incumbent = other.incumbent;
        }
    }
}

/// Whether the best plan of a group bounds what is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Incumbents {
    /// Yes.
    Bound,
    /// No: side rows may forbid it.
    MayBeForbidden,
}

/// Values of `tau` beyond `tau*` that are tried.
const FURTHER: usize = 32;

/// What may be part of a plan of objective at most `limit`; `None` if nothing.
pub(super) fn presolve(
    group: &Group,
    index: usize,
    layers: &Layers,
    (limit, incumbents): (i64, Incumbents),
    deadline: Deadline,
) -> Result<Option<Presolved>, TimeOver> {
    if group.partition == Partition::EqualMiddle && group.stages.len() > 2 {
        return presolve_equal_middle(group, index, layers, (limit, incumbents), deadline);
    }
    let count = layers.count() as usize;
    let ceilings = ceilings(group, layers, limit);
    let mut intervals = Costs::new(group, layers).intervals(ceilings, deadline)?;
    let Some((mut slowest, mut delta)) = maxima(&intervals, count) else {
        return Ok(None);
    };
    let scan = Scan::of(group, index, layers, &intervals, (slowest, delta), deadline)?;
    let Some(mut scan) = scan else {
        return Ok(None);
    };
    let limit = match incumbents {
        Incumbents::Bound => limit.min(scan.incumbent.objective),
        Incumbents::MayBeForbidden => limit,
    };
    loop {
        deadline.check()?;
        let forward = forward(&intervals, count, i64::MAX);
        let backward = backward(&intervals, count);
        let before: usize = intervals.iter().map(Vec::len).sum();
        for (stage, intervals) in intervals.iter_mut().enumerate() {
            intervals.retain(|it| {
                let (to, from) = (forward[stage][it.start], backward[stage + 1][it.end]);
                to < NO_WAY
                    && from < NO_WAY
                    && value(
                        group,
                        slowest.max(it.time),
                        to + it.time + from,
                        delta.max(it.delta),
                    ) <= limit
            });
        }
        let Some(narrowed) = maxima(&intervals, count) else {
            return Ok(None);
        };
        (slowest, delta) = narrowed;
        if intervals.iter().map(Vec::len).sum::<usize>() == before {
            break;
        }
    }
    let narrowed = Scan::of(group, index, layers, &intervals, (slowest, delta), deadline)?;
    let Some(narrowed) = narrowed else {
        return Ok(None);
    };
    if narrowed.incumbent.objective < scan.incumbent.objective {
        scan.incumbent = narrowed.incumbent;
    }
    Ok((narrowed.lower_bound <= limit).then_some(Presolved {
        group: index,
        intervals,
        slowest,
        delta,
        lower_bound: narrowed.lower_bound,
        incumbent: Some(scan.incumbent),
    }))
}

/// `tau*` and `delta*`.
fn maxima(intervals: &[Vec<Interval>], count: usize) -> Option<(i64, i64)> {
    let slowest = bottleneck(intervals, count, |it| it.time)?;
    Some((slowest, bottleneck(intervals, count, |it| it.delta)?))
}

/// Least sums of times of the stages before each, to each position.
fn forward(intervals: &[Vec<Interval>], count: usize, ceiling: i64) -> Vec<Vec<i64>> {
    let mut sums = vec![vec![NO_WAY; count + 1]; intervals.len() + 1];
    sums[0][0] = 0;
    for (stage, intervals) in intervals.iter().enumerate() {
        let (before, after) = sums.split_at_mut(stage + 1);
        for it in intervals.iter().filter(|it| it.time <= ceiling) {
            let to = &mut after[0][it.end];
            let way = before[stage][it.start];
            *to = (*to).min(if way < NO_WAY { way + it.time } else { NO_WAY });
        }
    }
    sums
}

/// Least sums of times of each stage and those after it, from each position.
fn backward(intervals: &[Vec<Interval>], count: usize) -> Vec<Vec<i64>> {
    let mut sums = vec![vec![NO_WAY; count + 1]; intervals.len() + 1];
    sums[intervals.len()][count] = 0;
    for (stage, intervals) in intervals.iter().enumerate().rev() {
        let (before, after) = sums.split_at_mut(stage + 1);
        for it in intervals {
            let from = &mut before[stage][it.start];
            let way = after[0][it.end];
            *from = (*from).min(if way < NO_WAY { way + it.time } else { NO_WAY });
        }
    }
    sums
}

/// What `S(tau)` says for some values of `tau`.
struct Scan {
    incumbent: Plan,
    lower_bound: i64,
}

impl Scan {
    fn of(
        group: &Group,
        index: usize,
        layers: &Layers,
        intervals: &[Vec<Interval>],
        (slowest, delta): (i64, i64),
        deadline: Deadline,
    ) -> Result<Option<Self>, TimeOver> {
        let count = layers.count() as usize;
        let free = forward(intervals, count, i64::MAX)[intervals.len()][count];
        let times = intervals.iter().flatten().map(|it| it.time);
        let mut times: Vec<i64> = times.filter(|&time| time > slowest).collect();
        times.sort_unstable();
        times.dedup();
        let mut incumbent: Option<Plan> = None;
        let mut lower_bound = i64::MAX;
        for (tried, &tau) in std::iter::once(&slowest).chain(&times).enumerate() {
            let least = value(group, tau, free, delta);
            let known = incumbent.as_ref().map_or(i64::MAX, |plan| plan.objective);
            if tried > FURTHER || least >= known.min(lower_bound) {
                lower_bound = lower_bound.min(least);
                break;
            }
            deadline.check()?;
            let sums = forward(intervals, count, tau);
            lower_bound = lower_bound.min(value(group, tau, sums[intervals.len()][count], delta));
            let lengths = lengths(intervals, &sums, count, tau);
            let plan = lengths.and_then(|lengths| plan_of(group, index, layers, &lengths));
            let Some(plan) = plan else {
                return Ok(None);
            };
            if plan.objective < known {
                incumbent = Some(plan);
            }
        }
        Ok(incumbent.map(|incumbent| Self {
            incumbent,
            lower_bound,
        }))
    }
}

/// Layers of each stage of the plan that attains the sums.
fn lengths(
    intervals: &[Vec<Interval>],
    sums: &[Vec<i64>],
    count: usize,
    ceiling: i64,
) -> Option<Vec<i64>> {
    let mut end = count;
    let mut lengths = vec![0; intervals.len()];
    for (stage, intervals) in intervals.iter().enumerate().rev() {
        let attains = |it: &&Interval| {
            it.end == end
                && it.time <= ceiling
                && sums[stage][it.start] + it.time == sums[stage + 1][end]
        };
        let interval = intervals.iter().find(attains)?;
        lengths[stage] = (interval.end - interval.start) as i64;
        end = interval.start;
    }
    Some(lengths)
}

fn presolve_equal_middle(
    group: &Group,
    index: usize,
    layers: &Layers,
    (limit, incumbents): (i64, Incumbents),
    deadline: Deadline,
) -> Result<Option<Presolved>, TimeOver> {
    let mut costs = Costs::new(group, layers);
    let mut ways: Vec<(i64, Vec<Interval>)> = Vec::new();
    for lengths in equal_middle_splits(group, layers.count()) {
        deadline.check()?;
        let mut start = 0;
        let stages = lengths.iter().enumerate().map(|(stage, &length)| {
            let end = start + length as usize;
            let interval = costs.interval(stage, start, end);
            start = end;
            interval
        });
        if let Some(way) = stages.collect::<Option<Vec<_>>>() {
            let most = |of: fn(&Interval) -> i64| way.iter().map(of).max().unwrap_or(0);
            let total = way.iter().map(|it| it.time).sum();
            let objective = value(group, most(|it| it.time), total, most(|it| it.delta));
            ways.push((objective, way));
        }
    }
    Ok(of_ways(group, index, layers, (limit, incumbents), ways))
}

/// What is left of a group of which all ways are known.
fn of_ways(
    group: &Group,
    index: usize,
    layers: &Layers,
    (limit, incumbents): (i64, Incumbents),
    mut ways: Vec<(i64, Vec<Interval>)>,
) -> Option<Presolved> {
    let lower_bound = ways.iter().map(|way| way.0).min()?;
    let limit = match incumbents {
        Incumbents::Bound => limit.min(lower_bound),
        Incumbents::MayBeForbidden => limit,
    };
    let best = ways.iter().find(|way| way.0 == lower_bound)?;
    let lengths: Vec<i64> = (best.1.iter())
        .map(|it| (it.end - it.start) as i64)
        .collect();
    let incumbent = plan_of(group, index, layers, &lengths);
    ways.retain(|way| way.0 <= limit);
    let least = |of: fn(&Interval) -> i64| {
        let most = ways.iter().map(|way| way.1.iter().map(of).max());
        most.min().flatten()
    };
    let (slowest, delta) = (least(|it| it.time)?, least(|it| it.delta)?);
    let intervals = (0..group.stages.len()).map(|stage| {
        let mut of_stage: Vec<Interval> = ways.iter().map(|way| way.1[stage]).collect();
        of_stage.sort_by_key(|it| (it.start, it.end));
        of_stage.dedup();
        of_stage
    });
    Some(Presolved {
        group: index,
        intervals: intervals.collect(),
        slowest,
        delta,
        lower_bound,
        incumbent,
    })
}
