//! What each stage costs with each run of consecutive layers that it can have.
//!
//! An interval `i..j` of layers is a stage that starts at position `i` and ends before `j`. Its least extra
//! time `R_s(i, j)` depends on the number of layers of each kind alone and does not fall as the interval
//! grows.

use super::data::{Group, Layers};
use super::plan::{stage_delta, stage_time, value};
use super::recompute::least_recompute;
use crate::deadline::{Deadline, TimeOver};

/// Consecutive layers as a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: usize,
    pub(super) end: usize,
    /// `T_s` with the least recomputation.
    pub(super) time: i64,
    /// `R_s`.
    pub(super) extra: i64,
    /// `D_s`.
    pub(super) delta: i64,
}

/// What no stage may exceed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceilings {
    pub(super) time: i64,
    pub(super) delta: i64,
}

impl Ceilings {
    pub(super) const NONE: Self = Self {
        time: i64::MAX,
        delta: i64::MAX,
    };
}

/// Costs of the stages of a group, each computed once for each number of layers of each kind.
pub(super) struct Costs<'a> {
    group: &'a Group,
    layers: &'a Layers,
    /// Of each position a number whose differences tell the layers between apart by their kinds.
    codes: Vec<usize>,
    /// Of each stage and difference of codes.
    known: Vec<Vec<Known>>,
}

/// Starts of intervals between two looks at the clock.
const STARTS_UNTIMED: i64 = 64;

/// What is known of a stage with some layers.
#[derive(Debug, Clone, Copy)]
enum Known {
    Nothing,
    TooLarge,
    Fits(Interval),
}

impl<'a> Costs<'a> {
    pub(super) fn new(group: &'a Group, layers: &'a Layers) -> Self {
        let count = layers.count() as usize;
        let all = layers.all();
        let code = |position: usize| {
            let before = layers.between(0, position);
            let digits = before.iter().zip(&all).rev();
            digits.fold(0, |code, (&own, &most)| code * (most + 1) + own) as usize
        };
        let codes: Vec<usize> = (0..=count).map(code).collect();
        let width = codes[count] + 1;
        Self {
            group,
            layers,
            codes,
            known: vec![vec![Known::Nothing; width]; group.stages.len()],
        }
    }

    /// The cheapest stage of these layers; `None` if it does not fit.
    pub(super) fn interval(&mut self, stage: usize, start: usize, end: usize) -> Option<Interval> {
        let (group, layers) = (self.group, self.layers);
        let known = &mut self.known[stage][self.codes[end] - self.codes[start]];
        if let Known::Nothing = known {
            let counts = layers.between(start, end);
            let least = least_recompute(group, &group.stages[stage], &counts);
            *known = least.map_or(Known::TooLarge, |least| {
                Known::Fits(Interval {
                    start,
                    end,
                    time: stage_time(group, stage, &counts, least.extra_time),
                    extra: least.extra_time,
                    delta: stage_delta(group, stage, &counts),
                })
            });
        }
        match *known {
            Known::Fits(interval) => Some(Interval {
                start,
                end,
                ..interval
            }),
            _ => None,
        }
    }

    /// The intervals of each stage that fit, lie below the ceilings and can be reached from the first.
    /// Starts and ends ascend.
    pub(super) fn intervals(
        &mut self,
        ceilings: Ceilings,
        deadline: Deadline,
    ) -> Result<Vec<Vec<Interval>>, TimeOver> {
        let count = self.layers.count();
        let stages = &self.group.stages;
        let mut least_after: i64 = stages.iter().map(|stage| stage.lower_layers).sum();
        let mut most_after: i64 = stages.iter().map(|it| it.upper_layers.min(count)).sum();
        let mut reached = vec![false; count as usize + 1];
        reached[0] = true;
        let mut all = Vec::with_capacity(stages.len());
        for (index, stage) in stages.iter().enumerate() {
            least_after -= stage.lower_layers;
            most_after -= stage.upper_layers.min(count);
            let mut next = vec![false; reached.len()];
            let mut intervals = Vec::new();
            for start in (0..=count).filter(|&start| reached[start as usize]) {
                if start % STARTS_UNTIMED == 0 {
                    deadline.check()?;
                }
                let first = (start + stage.lower_layers).max(count - most_after);
                let last = (start + stage.upper_layers).min(count - least_after);
                for end in first..=last {
                    let interval = self.interval(index, start as usize, end as usize);
                    let below =
                        |it: &Interval| it.time <= ceilings.time && it.delta <= ceilings.delta;
                    let Some(interval) = interval.filter(below) else {
                        break;
                    };
                    next[interval.end] = true;
                    intervals.push(interval);
                }
            }
            reached = next;
            all.push(intervals);
        }
        Ok(all)
    }
}

/// No way to a position.
pub(super) const NO_WAY: i64 = i64::MAX / 4;

/// `min max` of a value of the intervals over all ways from the first layer to the last; `None` if none.
pub(super) fn bottleneck(
    intervals: &[Vec<Interval>],
    count: usize,
    value: impl Fn(&Interval) -> i64,
) -> Option<i64> {
    let mut reached = vec![NO_WAY; count + 1];
    reached[0] = i64::MIN;
    for stage in intervals {
        let mut next = vec![NO_WAY; count + 1];
        for interval in stage {
            let way = reached[interval.start].max(value(interval));
            next[interval.end] = next[interval.end].min(way);
        }
        reached = next;
    }
    Some(reached[count]).filter(|&way| way < NO_WAY)
}

/// What a stage may have at most in a plan of objective at most `limit`, were the others nothing but
/// their layers.
pub(super) fn ceilings(group: &Group, layers: &Layers, limit: i64) -> Ceilings {
    if limit == i64::MAX {
        return Ceilings::NONE;
    }
    let of_layers = group.kinds.iter().zip(layers.all());
    let (mut total, mut delta) = (0, 0);
    for (kind, count) in of_layers {
        total += kind.time * count;
        delta += kind.delta * count;
    }
    let stages = group.stages.len() as i64;
    for stage in group.stages.iter() {
        total += stage.extra_time;
        delta += stage.extra_delta;
    }
    // No largest is below the mean.
    let least = [total.div_euclid(stages), delta.div_euclid(stages)];
    let spare = limit - value(group, least[0], total, least[1]);
    let ceiling = |weight: i64, least: i64| match weight {
        0 => i64::MAX,
        _ => least + spare.div_euclid(weight),
    };
    Ceilings {
        time: ceiling(group.weights.slowest, least[0]),
        delta: ceiling(group.weights.delta, least[1]),
    }
}
