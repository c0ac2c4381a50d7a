//! The program over what the presolve leaves; see the module [`staged`](super) for the mathematics.

use super::StagedError;
use super::columns::{Columns, add_columns};
use super::data::{Data, Excluded};
use super::plan::{Plan, plan_of};
use super::presolve::Presolved;
use crate::model::Sense::{AtMost, Equal};
use crate::model::{ColumnId, Direction, Expression, Model};
use crate::solve::Point;

/// A program and the places of its columns.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) model: Model,
    data: &'a Data,
    groups: Vec<Columns<'a>>,
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
