//! The program over what the presolve leaves; see the module [`staged`](super) for the mathematics.

use super::StagedError;
use super::data::{Counts, Data, Excluded, Group, Partition, RecomputeRule, SideRow};
use super::hull::lower_hull;
use super::plan::{Plan, plan_of};
use super::presolve::Presolved;
use super::recompute::saved;
use crate::model::Sense::{AtLeast, AtMost, Equal};
use crate::model::{ColumnId, Direction, Expression, Model};
use crate::solve::Point;

/// A program and the places of its columns.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) model: Model,
    data: &'a Data,
    groups: Vec<Columns<'a>>,
}

/// The columns of a group.
#[derive(Debug)]
struct Columns<'a> {
    data: &'a Data,
    group: &'a Group,
    presolved: &'a Presolved,
    selected: ColumnId,
    excess_time: Option<ColumnId>,
    excess_delta: Option<ColumnId>,
    stages: Vec<StageColumns>,
}

/// The columns of a stage.
#[derive(Debug, Default)]
struct StageColumns {
    /// First position at which the stage may end, and one beyond the layers of [`Self::boundary`].
    ends: (usize, usize),
    /// `boundary(c,s,j)` from the first position on.
    boundary: Vec<ColumnId>,
    /// `recomputed(c,s,m)` and its upper bound, where the mode is of use.
    recomputed: Vec<Option<(ColumnId, i64)>>,
    /// Sizes of workspaces, ascending, with their columns.
    workspaces: Vec<(i64, ColumnId)>,
}

/// Builds the program over some groups, and over combinations that rules exclude.
pub(super) fn program<'a>(
    data: &'a Data,
    presolved: &'a [Presolved],
    excluded: &[Excluded],
) -> Program<'a> {
    let mut model = Model::new("staged", Direction::Minimise);
    let groups: Vec<Columns> = (presolved.iter())
        .map(|presolved| add_columns(&mut model, data, presolved))
        .collect();
    let alone: Vec<ColumnId> = (data.groups.len()..)
        .zip(excluded)
        .map(|(index, _)| model.add_binary(format!("x({index})")))
        .collect();
    let least = presolved.iter().map(|presolved| presolved.lower_bound);
    let constant = data.units.objective * least.min().unwrap_or(0) as f64;
    let selected = groups.iter().map(|columns| columns.selected);
    let all: Vec<ColumnId> = selected.clone().chain(alone.iter().copied()).collect();
    model.row("select_one", sum(&all), Equal, 1.0);
    let above = groups
        .iter()
        .map(|it| it.objective() - constant * it.selected);
    model.objective_is("step_time", above.sum::<Expression>() + constant);
    let values = presolved.iter().map(|it| &data.groups[it.group].values);
    let values = values.chain(excluded.iter().map(|excluded| &excluded.values));
    add_axes(&mut model, data, &all, &values.collect::<Vec<_>>());
    add_rules(&mut model, data, &alone, excluded);
    for columns in &groups {
        columns.add_boundaries(&mut model);
        columns.add_recomputation(&mut model);
        columns.add_memory(&mut model);
        columns.add_maxima(&mut model);
        columns.add_cuts(&mut model);
    }
    for row in &data.side_rows {
        let left: Expression = groups.iter().map(|columns| columns.side_row(row)).sum();
        model.row(&row.name, left, row.sense, row.right as f64);
    }
    Program {
        model,
        data,
        groups,
    }
}

fn sum(columns: &[ColumnId]) -> Expression {
    columns.iter().map(|&column| Expression::from(column)).sum()
}

/// `link_axis(v)`: the column of a value of an axis is the sum of the combinations that have it.
fn add_axes(model: &mut Model, data: &Data, all: &[ColumnId], values: &[&Vec<usize>]) {
    for (index, axis) in data.axes.iter().enumerate() {
        let mut with_value = vec![Expression::ZERO; axis.values.len()];
        for (&column, values) in all.iter().zip(values) {
            with_value[values[index]] += column;
        }
        for (value, combinations) in axis.values.iter().zip(with_value) {
            if combinations != Expression::ZERO {
                let one_hot = model.add_continuous(format!("{}({value})", axis.name), 0.0, 1.0);
                model.row(
                    format!("link_{}({value})", axis.name),
                    combinations,
                    Equal,
                    one_hot,
                );
            }
        }
    }
}

/// A rule: the selected combination breaks it by nothing.
fn add_rules(model: &mut Model, data: &Data, alone: &[ColumnId], excluded: &[Excluded]) {
    let mut amounts = vec![Expression::ZERO; data.rules.len()];
    for (&column, excluded) in alone.iter().zip(excluded) {
        for &(rule, amount) in &excluded.broken {
            let is_memory = data.rules[rule] == data.names.memory;
            let unit = if is_memory { data.units.memory } else { 1.0 };
            amounts[rule] += unit * amount as f64 * column;
        }
    }
    for (name, amount) in data.rules.iter().zip(amounts) {
        if amount != Expression::ZERO {
            model.row(name, amount, AtMost, 0.0);
        }
    }
}

fn add_columns<'a>(model: &mut Model, data: &'a Data, presolved: &'a Presolved) -> Columns<'a> {
    let (c, group) = (presolved.group, &data.groups[presolved.group]);
    let selected = model.add_binary(format!("x({c})"));
    let mut excess = |weight: i64, name: &str| {
        (weight != 0).then(|| model.add_continuous(format!("{name}({c})"), 0.0, f64::INFINITY))
    };
    let excess_time = excess(group.weights.slowest, "excess_time");
    let excess_delta = excess(group.weights.delta, "excess_delta");
    let stages = (0..group.stages.len()).map(|s| {
        let ends = presolved.intervals[s].iter().map(|it| it.end);
        let first = ends.clone().min().unwrap_or(0);
        let last = ends.max().unwrap_or(0);
        let boundary = first..if s + 1 < group.stages.len() {
            last
        } else {
            first
        };
        let boundary = boundary.map(|j| model.add_binary(format!("boundary({c},{s},{j})")));
        let boundary = boundary.collect();
        let recomputed = most_recomputed(data, group, presolved, s);
        let mut recomputed_columns = Vec::new();
        let mut sizes = Vec::new();
        for (m, (mode, &most)) in group.modes.iter().zip(&recomputed).enumerate() {
            recomputed_columns.push((most > 0).then(|| {
                let name = format!("recomputed({c},{s},{},{m})", mode.kind);
                sizes.push(mode.workspace);
                (model.add_integer(name, 0.0, most as f64), most)
            }));
        }
        sizes.retain(|&size| size > 0);
        sizes.sort_unstable();
        sizes.dedup();
        let workspaces = sizes
            .into_iter()
            .map(|size| (size, model.add_binary(format!("workspace({c},{s},{size})"))));
        StageColumns {
            ends: (first, last),
            boundary,
            recomputed: recomputed_columns,
            workspaces: workspaces.collect(),
        }
    });
    let stages = stages.collect();
    Columns {
        data,
        group,
        presolved,
        selected,
        excess_time,
        excess_delta,
        stages,
    }
}

/// Most layers that a stage may recompute by each mode: none unless some interval left must.
fn most_recomputed(data: &Data, group: &Group, presolved: &Presolved, stage: usize) -> Counts {
    let mut most = Counts::default();
    let intervals = &presolved.intervals[stage];
    if group.recompute == RecomputeRule::None || intervals.iter().all(|it| it.extra == 0) {
        return most;
    }
    for (index, mode) in group.modes.iter().enumerate() {
        let used = match group.recompute {
            RecomputeRule::Uniform { mode, .. } | RecomputeRule::AllLayers { mode } => {
                mode == index
            }
            RecomputeRule::Free | RecomputeRule::None => saved(group, mode) > 0,
        };
        let counts = intervals.iter().map(|it| match group.modes.len() {
            // The least that fits, which is the only mode's share of the extra time.
            1 => it.extra / mode.extra_time,
            _ => data.layers.between(it.start, it.end)[mode.kind],
        });
        most[index] = if used { counts.max().unwrap_or(0) } else { 0 };
    }
    most
}

impl Columns<'_> {
    /// `boundary(c,s,j)`: whether layer `j` lies on a stage up to `stage`, counted from one.
    fn boundary(&self, stage: usize, layer: usize) -> Expression {
        let Some(stage) = stage.checked_sub(1) else {
            return Expression::ZERO;
        };
        let columns = &self.stages[stage];
        match layer.checked_sub(columns.ends.0) {
            None => self.selected.into(),
            Some(place) => columns
                .boundary
                .get(place)
                .map_or(Expression::ZERO, |&column| column.into()),
        }
    }

    /// `sum_j weight(j) (boundary(c,s,j) - boundary(c,s-1,j))`.
    fn on_stage(&self, stage: usize, weight: impl Fn(usize) -> f64) -> Expression {
        let from = stage
            .checked_sub(1)
            .map_or(0, |before| self.stages[before].ends.0);
        let mut left = Expression::ZERO;
        let mut fixed = 0.0;
        for layer in from..self.stages[stage].ends.1 {
            let weight = weight(layer);
            if layer < self.stages[stage].ends.0 {
                fixed += weight;
            } else {
                left += weight * self.boundary(stage + 1, layer);
            }
            left -= weight * self.boundary(stage, layer);
        }
        left + fixed * self.selected
    }

    fn recomputed(&self, stage: usize, weight: impl Fn(usize) -> f64) -> Expression {
        let columns = self.stages[stage].recomputed.iter().enumerate();
        let used = columns.filter_map(|(mode, column)| Some((mode, column.as_ref()?.0)));
        used.map(|(mode, column)| weight(mode) * column).sum()
    }

    fn kind(&self, layer: usize) -> &super::data::Kind {
        &self.group.kinds[self.data.layers.kind(layer)]
    }

    /// `sum_κ (P + f A) n`.
    fn load(&self, stage: usize) -> Expression {
        let (unit, in_flight) = (self.data.units.memory, self.group.stages[stage].in_flight);
        self.on_stage(stage, |j| {
            unit * (self.kind(j).memory + in_flight * self.kind(j).activation) as f64
        })
    }

    fn extra_time(&self, stage: usize) -> Expression {
        let unit = self.data.units.time;
        self.recomputed(stage, |m| unit * self.group.modes[m].extra_time as f64)
    }

    fn name(&self, row: &str, stage: usize) -> String {
        format!("{row}({},{stage})", self.presolved.group)
    }

    /// What the group adds to the objective, without the constant of the model.
    fn objective(&self) -> Expression {
        let (group, units) = (self.group, &self.data.units);
        let weights = &group.weights;
        let all = self.data.layers.all();
        let layers: i64 = (group.kinds.iter().zip(all))
            .map(|(it, n)| it.time * n)
            .sum();
        let stages: i64 = group.stages.iter().map(|stage| stage.extra_time).sum();
        let presolved = self.presolved;
        let fixed = super::plan::value(group, presolved.slowest, layers + stages, presolved.delta);
        let mut objective = units.objective * fixed as f64 * self.selected;
        let per_time = units.objective / units.time;
        for (weight, excess) in [
            (weights.slowest, self.excess_time),
            (weights.delta, self.excess_delta),
        ] {
            if let Some(excess) = excess {
                objective += per_time * weight as f64 * excess;
            }
        }
        let extra: Expression = (0..group.stages.len()).map(|s| self.extra_time(s)).sum();
        objective + per_time * weights.total as f64 * extra
    }

    /// `ordered`, `at_most`, `at_least` and `equal_middle`: the boundaries are a distribution that is left.
    fn add_boundaries(&self, model: &mut Model) {
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
    fn add_recomputation(&self, model: &mut Model) {
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
    fn add_memory(&self, model: &mut Model) {
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
    fn add_maxima(&self, model: &mut Model) {
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
    fn add_cuts(&self, model: &mut Model) {
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
        let point = |it: &super::tables::Interval| {
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

    /// What the group adds to the left side of a row of the caller.
    fn side_row(&self, row: &SideRow) -> Expression {
        let own = row.groups.get(self.presolved.group).copied().unwrap_or(0);
        let mut left = own as f64 * self.selected;
        for term in &row.layers {
            if let Some(stage) = term.stage.of(self.stages.len()) {
                left += term.coefficient as f64 * self.on_stage(stage, |_| 1.0);
            }
        }
        for stage in 0..self.stages.len() {
            left += self.recomputed(stage, |_| row.recomputed as f64);
        }
        left
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
fn windows(intervals: &[super::tables::Interval], first: usize, last: usize) -> Vec<Window> {
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

impl Program<'_> {
    /// The layers of a stage of the first group, for further objectives.
    pub(super) fn layers(&self, stage: usize) -> Expression {
        self.groups[0].on_stage(stage, |_| 1.0)
    }

    /// `sum_s T_s` of the first group, but for what does not vary.
    pub(super) fn extra_time(&self) -> Expression {
        let columns = &self.groups[0];
        (0..columns.stages.len())
            .map(|s| columns.extra_time(s))
            .sum()
    }

    /// What a bound of the model says of the objective, rounded up to what an integer can be.
    pub(super) fn integer_bound(&self, bound: f64) -> i64 {
        (bound / self.data.units.objective - 1e-3).ceil() as i64
    }

    /// The plan of a point, checked in integers.
    pub(super) fn plan_at(&self, point: &Point) -> Result<Plan, StagedError> {
        let selected = |columns: &&Columns| point.integer(columns.selected) == 1;
        let mut chosen = self.groups.iter().filter(selected);
        let (Some(columns), None) = (chosen.next(), chosen.next()) else {
            return Err(inexact("not exactly one combination is selected".into()));
        };
        let mut start = 0;
        let lengths = columns.stages.iter().map(|stage| {
            let beyond = stage.boundary.iter().map(|&column| point.integer(column));
            let end = stage.ends.0 as i64 + beyond.sum::<i64>();
            let length = end - start;
            start = end;
            length
        });
        let lengths: Vec<i64> = lengths.collect();
        if lengths.iter().any(|&length| length < 0) {
            return Err(inexact(format!(
                "a stage has fewer than no layers: {lengths:?}"
            )));
        }
        let index = columns.presolved.group;
        let plan = plan_of(columns.group, index, &self.data.layers, &lengths)
            .ok_or_else(|| inexact(format!("the layers {lengths:?} do not fit")))?;
        match super::check_plan(self.data, &plan).into_iter().next() {
            Some(broken) => Err(inexact(broken)),
            None => Ok(plan),
        }
    }

    /// The plan of a point whose cost, computed anew in integers, equals what the solver says, to the
    /// tolerance of its rows.
    pub(super) fn decode(&self, point: &Point) -> Result<Plan, StagedError> {
        let plan = self.plan_at(point)?;
        let claimed = point.objective / self.data.units.objective;
        let found = plan.objective as f64;
        if (claimed - found).abs() > 0.5 + 1e-6 * found.abs() {
            return Err(inexact(format!(
                "the objective is {found} and not {claimed}"
            )));
        }
        Ok(plan)
    }
}

pub(super) fn inexact(cause: String) -> StagedError {
    StagedError::Inexact { cause }
}
