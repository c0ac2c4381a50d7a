//! The canonical plan of a cell under side rows, where the dynamic program cannot go: the same rule,
//! one program for each of its terms, with what is decided fixed by a row.

use super::StagedError;
use super::bounds::{Scratch, fits};
use super::data::Data;
use super::plan::Plan;
use super::program::{inexact, program};
use super::search::Clock;
use super::tables::{Tables, tables};
use crate::model::Sense;
use crate::solve::{self, Outcome, Statistics};

/// What a cell has.
#[derive(Debug)]
pub(super) enum Canonical {
    /// Its canonical plan.
    Plan(Plan),
    /// No plan within the limit.
    NoPlan,
    /// Nobody knows: the time is over.
    TimeOver,
}

/// The canonical plan of a cell, of objective at most `limit`.
pub(super) fn canonical(
    data: &Data,
    index: usize,
    limit: i64,
    clock: &Clock,
    statistics: &mut Statistics,
) -> Result<Canonical, StagedError> {
    let mut scratch = Scratch::default();
    let cell = &data.cells[index];
    if !fits(cell, data.layers, &mut scratch) {
        return Ok(Canonical::NoPlan);
    }
    let Some(tables) = tables(cell, index, data.layers, limit, &mut scratch) else {
        return Ok(Canonical::NoPlan);
    };
    let group = [&tables];
    let mut program = program(data, &group);
    let Some(options) = clock.options() else {
        return Ok(Canonical::TimeOver);
    };
    let outcome = solve::solve(&program.model, &options)?;
    statistics.add(outcome.statistics());
    let mut plan = match outcome {
        Outcome::Optimal { solution, .. } => program.decode(data, &group, &solution)?,
        Outcome::Infeasible { .. } => return Ok(Canonical::NoPlan),
        _ => return Ok(Canonical::TimeOver),
    };
    if plan.objective > limit {
        return Ok(Canonical::NoPlan);
    }
    let objective = program.model.objective().to_vec();
    let best = (plan.objective - program.offset()) as f64;
    program
        .model
        .add_row("best_objective", objective, Sense::AtMost, best + 0.25);
    let stages = tables.stages.len() as i64;
    let terms: [&dyn Fn(usize, i64) -> i64; 3] = [
        &|stage, layers| time_above_least(&tables, stage, layers),
        &|_, layers| (stages * layers - data.layers).pow(2),
        &|stage, layers| stage as i64 * layers,
    ];
    for (name, value) in ["total_time", "unevenness", "lateness"]
        .into_iter()
        .zip(terms)
    {
        let row = program.sum_over_stages(&tables, value);
        program.model.set_objective(name, row.clone(), 0.0);
        let Some(options) = clock.options() else {
            return Ok(Canonical::TimeOver);
        };
        let outcome = solve::solve(&program.model, &options)?;
        statistics.add(outcome.statistics());
        plan = match outcome {
            Outcome::Optimal { solution, .. } => program.plan_at(data, &group, &solution)?,
            Outcome::Infeasible { .. } => return Err(inexact(format!("`{name}` has no minimum"))),
            _ => return Ok(Canonical::TimeOver),
        };
        let least: i64 = (plan.layers.iter().enumerate())
            .map(|(stage, &layers)| value(stage, layers))
            .sum();
        program.model.add_row(
            format!("least_{name}"),
            row,
            Sense::AtMost,
            least as f64 + 0.25,
        );
    }
    Ok(Canonical::Plan(plan))
}

/// `T_s(n)` less a constant of the stage, to keep the numbers small.
fn time_above_least(tables: &Tables, stage: usize, layers: i64) -> i64 {
    let table = &tables.stages[stage];
    table.time(layers) - table.times[0]
}
