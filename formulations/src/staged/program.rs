//! The program over the cells that survive the screening.
//!
//! With the tables of [`tables`](super::tables) the layers of a stage are written in unary: `layer(c,s,j)`
//! says that stage `s` of cell `c` has at least `j` layers, so that `T_s` may be any table. See the
//! module [`staged`](super) for the rows.

use super::StagedError;
use super::data::{Cell, Data, Partition, Scope, SideRow};
use super::plan::{Plan, plan_of, stage_delta};
use super::tables::Tables;
use crate::model::{ColumnId, Direction, Model, Sense};
use crate::solve::Point;

/// A program and the places of its columns.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) model: Model,
    cells: Vec<CellColumns>,
}

#[derive(Debug)]
struct CellColumns {
    cell: usize,
    selected: ColumnId,
    excess_time: Option<ColumnId>,
    excess_delta: Option<ColumnId>,
    /// `layer(c,s,j)` for `j` from the second number of layers of the window on.
    layers: Vec<Vec<ColumnId>>,
}

/// Terms of `sum_j values[j] (n_s = j)` in unary: the first value with `x_c`, then the differences.
fn unary(
    columns: &CellColumns,
    stage: usize,
    values: impl Iterator<Item = i64>,
) -> Vec<(ColumnId, f64)> {
    let ladder = std::iter::once(columns.selected).chain(columns.layers[stage].iter().copied());
    let mut before = 0;
    (ladder.zip(values))
        .map(|(column, value)| {
            let difference = value - before;
            before = value;
            (column, difference as f64)
        })
        .collect()
}

/// Builds the program over some cells.
pub(super) fn program(data: &Data, survivors: &[&Tables]) -> Program {
    let mut model = Model::new("staged", Direction::Minimise);
    let cells: Vec<CellColumns> = (survivors.iter())
        .map(|tables| add_columns(&mut model, &data.cells[tables.cell], tables))
        .collect();
    set_objective(&mut model, data, survivors, &cells);
    let selected = cells.iter().map(|columns| (columns.selected, 1.0));
    model.add_row("select_one", selected, Sense::Equal, 1.0);
    for (&tables, columns) in survivors.iter().zip(&cells) {
        let cell = &data.cells[tables.cell];
        add_layers(&mut model, columns, tables, data.layers);
        add_ladders(&mut model, columns, tables);
        add_stage_times(&mut model, columns, tables);
        add_stage_deltas(&mut model, columns, tables, cell);
        if cell.partition == Partition::EqualMiddle {
            add_equal_middle(&mut model, columns, tables);
        }
    }
    for row in &data.side_rows {
        add_side_row(&mut model, row, survivors, &cells);
    }
    Program { model, cells }
}

fn add_columns(model: &mut Model, cell: &Cell, tables: &Tables) -> CellColumns {
    let c = tables.cell;
    let selected = model.add_binary(format!("x({c})"));
    let mut excess = |weight: i64, name: &str| {
        (weight != 0).then(|| model.add_continuous(format!("{name}({c})"), 0.0, f64::INFINITY))
    };
    let excess_time = excess(cell.weights.slowest, "excess_time");
    let excess_delta = excess(cell.weights.delta, "excess_delta");
    let layers = (tables.stages.iter().enumerate())
        .map(|(s, table)| {
            (table.lower + 1..=table.upper())
                .map(|j| model.add_binary(format!("layer({c},{s},{j})")))
                .collect()
        })
        .collect();
    CellColumns {
        cell: c,
        selected,
        excess_time,
        excess_delta,
        layers,
    }
}

/// The least lower bound is moved into the constant, so that the solver sees small numbers.
fn set_objective(model: &mut Model, data: &Data, survivors: &[&Tables], cells: &[CellColumns]) {
    let bounds = survivors.iter().map(|tables| tables.lower_bound);
    let constant = bounds.min().unwrap_or(0);
    let mut terms = Vec::new();
    for (&tables, columns) in survivors.iter().zip(cells) {
        let weights = &data.cells[tables.cell].weights;
        let floor = tables.floors.objective(&data.cells[tables.cell], 0) - constant;
        terms.push((columns.selected, floor as f64));
        terms.extend(
            columns
                .excess_time
                .map(|column| (column, weights.slowest as f64)),
        );
        terms.extend(
            columns
                .excess_delta
                .map(|column| (column, weights.delta as f64)),
        );
        for (stage, table) in tables.stages.iter().enumerate() {
            let extra = table
                .recompute
                .iter()
                .map(|recompute| recompute.extra_time * weights.total);
            terms.extend(unary(columns, stage, extra));
        }
    }
    model.set_objective("objective", terms, constant as f64);
}

/// `sum_s n_s = L x_c`.
fn add_layers(model: &mut Model, columns: &CellColumns, tables: &Tables, layers: i64) {
    let lower: i64 = tables.stages.iter().map(|table| table.lower).sum();
    let mut terms = vec![(columns.selected, (lower - layers) as f64)];
    terms.extend(columns.layers.iter().flatten().map(|&column| (column, 1.0)));
    model.add_row(
        format!("all_layers({})", columns.cell),
        terms,
        Sense::Equal,
        0.0,
    );
}

/// `layer(c,s,j+1) <= layer(c,s,j)`, the first at most `x_c`.
fn add_ladders(model: &mut Model, columns: &CellColumns, tables: &Tables) {
    let c = columns.cell;
    for (s, (ladder, table)) in columns.layers.iter().zip(&tables.stages).enumerate() {
        let mut below = columns.selected;
        for (&column, j) in ladder.iter().zip(table.lower + 1..) {
            let terms = [(column, 1.0), (below, -1.0)];
            model.add_row(format!("ladder({c},{s},{j})"), terms, Sense::AtMost, 0.0);
            below = column;
        }
    }
}

/// `T_s(n_s) <= tau* x_c + excess_time(c)`, where it can bind.
fn add_stage_times(model: &mut Model, columns: &CellColumns, tables: &Tables) {
    let Some(excess) = columns.excess_time else {
        return;
    };
    let floor = tables.floors.slowest;
    for (s, table) in tables.stages.iter().enumerate() {
        if table.times.last().is_some_and(|&time| time <= floor) {
            continue;
        }
        let mut terms = unary(columns, s, table.times.iter().map(|&time| time - floor));
        terms.push((excess, -1.0));
        model.add_row(
            format!("stage_time({},{s})", columns.cell),
            terms,
            Sense::AtMost,
            0.0,
        );
    }
}

/// `D_s(n_s) <= delta* x_c + excess_delta(c)`, where it can bind.
fn add_stage_deltas(model: &mut Model, columns: &CellColumns, tables: &Tables, cell: &Cell) {
    let Some(excess) = columns.excess_delta else {
        return;
    };
    let floor = tables.floors.delta;
    for (s, table) in tables.stages.iter().enumerate() {
        if stage_delta(cell, s, table.upper()) <= floor {
            continue;
        }
        let deltas = (table.lower..=table.upper()).map(|n| stage_delta(cell, s, n) - floor);
        let mut terms = unary(columns, s, deltas);
        terms.push((excess, -1.0));
        model.add_row(
            format!("stage_delta({},{s})", columns.cell),
            terms,
            Sense::AtMost,
            0.0,
        );
    }
}

/// `n_s = n_{s+1}` for the stages in the middle.
fn add_equal_middle(model: &mut Model, columns: &CellColumns, tables: &Tables) {
    let layers = |s: usize| {
        let table = &tables.stages[s];
        unary(columns, s, table.lower..=table.upper())
    };
    for s in 1..tables.stages.len().saturating_sub(2) {
        let mut terms = layers(s);
        terms.extend(layers(s + 1).into_iter().map(|(column, a)| (column, -a)));
        model.add_row(
            format!("equal_middle({},{s})", columns.cell),
            terms,
            Sense::Equal,
            0.0,
        );
    }
}

/// A row of the caller. Where it applies to some cells only, its right side is multiplied by the sum of
/// their `x_c`, so that it is empty elsewhere.
fn add_side_row(model: &mut Model, row: &SideRow, survivors: &[&Tables], cells: &[CellColumns]) {
    let (scoped, right) = match row.scope {
        Scope::Every => (0, row.right),
        Scope::Only(_) => (row.right, 0),
    };
    let mut terms = Vec::new();
    for (&tables, columns) in survivors.iter().zip(cells) {
        if !row.scope.contains(tables.cell) {
            continue;
        }
        let own = row.cells.get(tables.cell).copied().unwrap_or(0) - scoped;
        terms.push((columns.selected, own as f64));
        for term in &row.layers {
            let Some(stage) = term.stage.of(tables.stages.len()) else {
                continue;
            };
            let table = &tables.stages[stage];
            let values = (table.lower..=table.upper()).map(|n| n * term.coefficient);
            terms.extend(unary(columns, stage, values));
        }
        if row.recomputed != 0 {
            for (stage, table) in tables.stages.iter().enumerate() {
                let counts = table.recompute.iter();
                let counts = counts.map(|recompute| recompute.counts.iter().sum::<i64>());
                terms.extend(unary(
                    columns,
                    stage,
                    counts.map(|count| count * row.recomputed),
                ));
            }
        }
    }
    model.add_row(&row.name, terms, row.sense, right as f64);
}

impl Program {
    /// Width of a model over these tables, in columns.
    pub(super) fn columns(tables: &Tables) -> usize {
        let ladders = tables.stages.iter().map(|table| table.times.len() - 1);
        ladders.sum::<usize>() + 3
    }

    /// What a bound of the model says of the objective, rounded up to what an integer can be.
    pub(super) fn integer_bound(bound: f64) -> i64 {
        (bound - 1e-3).ceil() as i64
    }

    /// Terms of `sum_s values(s, n_s)` for the one cell of a program.
    pub(super) fn sum_over_stages(
        &self,
        tables: &Tables,
        value: impl Fn(usize, i64) -> i64,
    ) -> Vec<(ColumnId, f64)> {
        let mut terms = Vec::new();
        for columns in self
            .cells
            .iter()
            .filter(|columns| columns.cell == tables.cell)
        {
            for (stage, table) in tables.stages.iter().enumerate() {
                let values = (table.lower..=table.upper()).map(|layers| value(stage, layers));
                terms.extend(unary(columns, stage, values));
            }
        }
        terms
    }

    /// The plan of a point, checked in integers.
    pub(super) fn plan_at(
        &self,
        data: &Data,
        survivors: &[&Tables],
        point: &Point,
    ) -> Result<Plan, StagedError> {
        let selected = |pair: &(&CellColumns, &&Tables)| point.integer(pair.0.selected) == 1;
        let mut chosen = self.cells.iter().zip(survivors).filter(selected);
        let (Some((columns, tables)), None) = (chosen.next(), chosen.next()) else {
            return Err(inexact("not exactly one cell is selected".into()));
        };
        let layers: Vec<i64> = (tables.stages.iter().zip(&columns.layers))
            .map(|(table, ladder)| {
                let above = ladder.iter().map(|&column| point.integer(column));
                table.lower + above.sum::<i64>()
            })
            .collect();
        let plan = plan_of(&data.cells[columns.cell], columns.cell, &layers)
            .ok_or_else(|| inexact(format!("the layers {layers:?} do not fit")))?;
        match super::check_plan(data, &plan).into_iter().next() {
            Some(broken) => Err(inexact(broken)),
            None => Ok(plan),
        }
    }

    /// The plan of a point whose cost, computed anew in integers, equals what the solver says.
    pub(super) fn decode(
        &self,
        data: &Data,
        survivors: &[&Tables],
        point: &Point,
    ) -> Result<Plan, StagedError> {
        let plan = self.plan_at(data, survivors, point)?;
        let claimed = point.objective;
        if (claimed - plan.objective as f64).abs() > 0.5 {
            let found = plan.objective;
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
