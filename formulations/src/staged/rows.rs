//! The rows of a group, a function a family: see the module [`staged`](super) for the mathematics.

use super::columns::Columns;
use super::data::{Partition, RecomputeRule};
use super::hull::lower_hull;
use super::recompute::saved;
use super::tables::Interval;
use crate::model::Sense::{AtLeast, AtMost, Equal};
use crate::model::{ColumnId, Expression, Model};

impl Columns<'_> {
    /// `ordered`, `at_most`, `at_least` and `equal_middle`: the boundaries are a distribution that is left.
    pub(super) fn add_boundaries(&self, model: &mut Model) {
        let c = self.presolved.group;
        for (s, columns) in self.stages.iter().enumerate() {
            let mut before = self.selected;
            for (j, &column) in (columns.ends.0..).zip(&columns.boundary) {
                model.row(format!("ordered({c},{s},{j})"), column, AtMost, before);
                before = column;
            }
        }
        for s in 1..self.stages.len() {
            let (first, last) = self.stages[s - 1].ends;
            let windows = windows(&self.presolved.intervals[s], first, last);
            for (i, window) in (first..=last).zip(windows) {
                let (from, to) = (self.boundary(s, i), self.boundary(s + 1, window.most));
                if to != Expression::ZERO && to != from {
                    model.row(format!("at_most({c},{s},{i})"), to, AtMost, from.clone());
                }
                if i < last {
                    let from = from.clone();
                    let to = self.boundary(s + 1, window.least_after - 1);
                    if to != Expression::from(self.selected) && to != from {
                        model.row(format!("at_least({c},{s},{i})"), from, AtMost, to);
                    }
                }
            }
        }
        if self.group.partition == Partition::EqualMiddle {
            for s in 1..self.stages.len().saturating_sub(2) {
                let (one, next) = (self.on_stage(s, |_| 1.0), self.on_stage(s + 1, |_| 1.0));
                model.row(self.name("equal_middle", s), one, Equal, next);
            }
        }
    }

    /// `at_most_all` and `uses`, and what the rule of the group prescribes.
    pub(super) fn add_recomputation(&self, model: &mut Model) {
        for (s, columns) in self.stages.iter().enumerate() {
            if columns.recomputed.iter().all(Option::is_none) {
                continue;
            }
            let layers =
                |kind| self.on_stage(s, |j| f64::from(u8::from(self.data.layers.kind(j) == kind)));
            match self.group.recompute {
                RecomputeRule::AllLayers { .. } => {
                    let recomputed = self.recomputed(s, |_| 1.0);
                    model.row(self.name("recompute_all", s), recomputed, Equal, layers(0));
                }
                RecomputeRule::Uniform { count, .. } => self.add_same_count(model, s, count),
                RecomputeRule::Free | RecomputeRule::None => {}
            }
            for kind in 0..self.group.kinds.len() {
                let of_kind = |m: usize| f64::from(u8::from(self.group.modes[m].kind == kind));
                let recomputed = self.recomputed(s, of_kind);
                if !recomputed.terms().is_empty() {
                    let name = format!("at_most_all({},{s},{kind})", self.presolved.group);
                    model.row(name, recomputed, AtMost, layers(kind));
                }
            }
            let modes = self.group.modes.iter().zip(&columns.recomputed).enumerate();
            for (m, (mode, column)) in modes {
                let sizes = columns.workspaces.iter();
                let workspace = sizes.clone().find(|it| it.0 == mode.workspace);
                if let (&Some((column, most)), Some(&(_, workspace))) = (column, workspace) {
                    let name = format!("uses({},{s},{m})", self.presolved.group);
                    model.row(name, column, AtMost, most as f64 * workspace);
                }
            }
            for pair in columns.workspaces.windows(2) {
                let name = format!("nested({},{s},{})", self.presolved.group, pair[1].0);
                model.row(name, pair[1].1, AtMost, pair[0].1);
            }
        }
    }

    /// `same_count`: a stage recomputes `count` layers, or all where it has fewer.
    fn add_same_count(&self, model: &mut Model, stage: usize, count: i64) {
        let recomputed = self.recomputed(stage, |_| 1.0);
        let (layers, all) = (self.on_stage(stage, |_| 1.0), self.selected);
        let name = |row: &str| self.name(row, stage);
        let lengths = self.presolved.intervals[stage].iter();
        let lengths = lengths.map(|it| (it.end - it.start) as i64);
        let most = lengths.clone().max().unwrap_or(0);
        if lengths.min().unwrap_or(0) >= count {
            model.row(name("same_count"), recomputed, Equal, count as f64 * all);
        } else if most <= count {
            model.row(name("same_count"), recomputed, Equal, layers);
        } else {
            let fewer = model.add_binary(name("fewer"));
            let (count, spare) = (count as f64, (most - count) as f64);
            let least = count * all - count * fewer;
            model.row(name("same_count"), recomputed.clone(), AtLeast, least);
            model.row(name("no_more"), recomputed.clone(), AtMost, count * all);
            let least = layers - spare * all + spare * fewer;
            model.row(name("all_of_fewer"), recomputed, AtLeast, least);
        }
    }

    /// `capacity`: what the layers take, less what recomputing saves, with the workspace.
    pub(super) fn add_memory(&self, model: &mut Model) {
        let unit = self.data.units.memory;
        for (s, (stage, columns)) in self.group.stages.iter().zip(&self.stages).enumerate() {
            let in_flight = stage.in_flight;
            let saving =
                |m: usize| unit * (in_flight * saved(self.group, &self.group.modes[m])) as f64;
            let mut taken = self.load(s) - self.recomputed(s, saving);
            let mut before = 0;
            for &(size, column) in &columns.workspaces {
                taken += unit * (size - before) as f64 * column;
                before = size;
            }
            let capacity = unit * (self.group.capacity - stage.fixed_memory) as f64;
            if self.largest(&taken) > capacity {
                let capacity = capacity * self.selected;
                model.row(
                    self.name(&self.data.names.memory, s),
                    taken,
                    AtMost,
                    capacity,
                );
            }
        }
    }

    /// No less than an expression can be: its positive terms alone.
    fn largest(&self, expression: &Expression) -> f64 {
        let most = |column: ColumnId| {
            let recomputed = self
                .stages
                .iter()
                .flat_map(|it| it.recomputed.iter().flatten());
            let mut recomputed = recomputed.filter(|it| it.0 == column);
            recomputed.next().map_or(1.0, |it| it.1 as f64)
        };
        let terms = expression.terms();
        let positive = terms.into_iter().filter(|&(_, by)| by > 0.0);
        positive.map(|(column, by)| by * most(column)).sum()
    }

    /// `stage_time` and `stage_delta`, where the stage is not decided.
    pub(super) fn add_maxima(&self, model: &mut Model) {
        let unit = self.data.units.time;
        for (s, stage) in self.group.stages.iter().enumerate() {
            let time = self.on_stage(s, |j| unit * self.kind(j).time as f64) + self.extra_time(s);
            let delta = self.on_stage(s, |j| unit * self.kind(j).delta as f64);
            for (name, value, extra, floor, excess) in [
                (
                    "stage_time",
                    time,
                    stage.extra_time,
                    self.presolved.slowest,
                    self.excess_time,
                ),
                (
                    "stage_delta",
                    delta,
                    stage.extra_delta,
                    self.presolved.delta,
                    self.excess_delta,
                ),
            ] {
                let above = value + unit * (extra - floor) as f64 * self.selected;
                if let Some(excess) = excess
                    && above
                        .terms()
                        .iter()
                        .any(|&(column, by)| column != self.selected || by > 0.0)
                {
                    model.row(self.name(name, s), above, AtMost, excess);
                }
            }
        }
    }

    /// `recompute_floor` and `least_objective`.
    pub(super) fn add_cuts(&self, model: &mut Model) {
        if self.group.recompute == RecomputeRule::Free {
            for s in 0..self.stages.len() {
                let extra = self.extra_time(s);
                if !extra.terms().is_empty() {
                    self.add_recompute_floors(model, s, &extra);
                }
            }
        }
        let least = self.data.units.objective * self.presolved.lower_bound as f64;
        let above = self.objective() - least * self.selected;
        let is_cut = |&(column, by): &(ColumnId, f64)| column == self.selected && by < 0.0;
        if above.terms().iter().any(is_cut) {
            let name = format!("least_objective({})", self.presolved.group);
            model.row(name, above, AtLeast, 0.0);
        }
    }

    /// `recompute_floor(c,s,i)`: the edges of the lower hull of extra times over loads.
    fn add_recompute_floors(&self, model: &mut Model, stage: usize, extra: &Expression) {
        let (units, in_flight) = (&self.data.units, self.group.stages[stage].in_flight);
        let point = |it: &Interval| {
            let counts = self.data.layers.between(it.start, it.end);
            let kinds = self.group.kinds.iter().zip(counts);
            let load: i64 = kinds
                .map(|(kind, n)| n * (kind.memory + in_flight * kind.activation))
                .sum();
            (load, it.extra)
        };
        let points = self.presolved.intervals[stage].iter().map(point);
        for (index, edge) in lower_hull(points.collect()).into_iter().enumerate() {
            let slope = edge.slope * units.time / units.memory;
            // Rounding may not cut off what it touches.
            let intercept = units.time * (edge.intercept + edge.intercept.abs() * 1e-9 + 1e-6);
            let floor = slope * self.load(stage) - intercept * self.selected;
            let name = format!("recompute_floor({},{stage},{index})", self.presolved.group);
            model.row(name, extra.clone(), AtLeast, floor);
        }
    }
}

/// Where a stage ends, given where it starts.
struct Window {
    /// Furthest end of a stage that starts at a position or before: `E_s(i)`.
    most: usize,
    /// Nearest end of one that starts after it: `F_s(i + 1)`.
    least_after: usize,
}

/// The windows of the positions from `first` to `last`.
fn windows(intervals: &[Interval], first: usize, last: usize) -> Vec<Window> {
    let (mut windows, mut most): (Vec<Window>, usize) = (Vec::new(), 0);
    for i in first..=last {
        let ends = intervals.iter().filter(|it| it.start == i).map(|it| it.end);
        most = ends.fold(most, usize::max);
        windows.push(Window {
            most,
            least_after: usize::MAX,
        });
    }
    let mut least = usize::MAX;
    for i in (first..=last).rev() {
        windows[i - first].least_after = least;
        let ends = intervals.iter().filter(|it| it.start == i).map(|it| it.end);
        least = ends.fold(least, usize::min);
    }
    windows
}
