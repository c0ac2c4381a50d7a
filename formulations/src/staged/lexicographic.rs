//! The canonical plan of a cell under side rows, where the dynamic program cannot go: the same rule,
//! one program for each of its terms, with what is decided fixed by a row.

use super::StagedError;
use super::bounds::{Scratch, fits};
use super::data::Data;
use super::limits::Clock;
use super::plan::Plan;
use super::program::{Program, inexact, program};
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

/// `sum_s value(s, n_s)` is minimised next.
struct Term<'a> {
    name: String,
    value: Box<dyn Fn(usize, i64) -> i64 + 'a>,
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
    let Some(outcome) = run(&program, clock, statistics)? else {
        return Ok(Canonical::TimeOver);
    };
    let mut plan = match outcome {
        Outcome::Optimal { solution, .. } => program.decode(data, &group, &solution)?,
        Outcome::Infeasible { .. } => return Ok(Canonical::NoPlan),
        _ => return Ok(Canonical::TimeOver),
    };
    if plan.objective > limit {
        return Ok(Canonical::NoPlan);
    }
    let objective = program.model.objective().to_vec();
    let best = plan.objective as f64 - program.model.constant() + 0.25;
    program
        .model
        .add_row("best_objective", objective, Sense::AtMost, best);
    for term in terms(&tables, data.layers) {
        let row = program.sum_over_stages(&tables, &term.value);
        program.model.set_objective(&term.name, row.clone(), 0.0);
        plan = match run(&program, clock, statistics)? {
            Some(Outcome::Optimal { solution, .. }) => program.plan_at(data, &group, &solution)?,
            Some(Outcome::Infeasible { .. }) => {
                return Err(inexact(format!("`{}` has no minimum", term.name)));
            }
            _ => return Ok(Canonical::TimeOver),
        };
        let values = plan.layers.iter().enumerate();
        let least: i64 = values
            .map(|(stage, &layers)| (term.value)(stage, layers))
            .sum();
        let name = format!("least_{}", term.name);
        program
            .model
            .add_row(name, row, Sense::AtMost, least as f64 + 0.25);
    }
    Ok(Canonical::Plan(plan))
}

fn run(
    program: &Program,
    clock: &Clock,
    statistics: &mut Statistics,
) -> Result<Option<Outcome<solve::Point>>, StagedError> {
    let Some(options) = clock.options() else {
        return Ok(None);
    };
    let outcome = solve::solve(&program.model, &options)?;
    statistics.add(outcome.statistics());
    Ok(Some(outcome))
}

/// The terms of the rule after the objective, in their order.
fn terms(tables: &Tables, layers: i64) -> Vec<Term<'_>> {
    let stages = tables.stages.len() as i64;
    // Less a constant of the stage, to keep the numbers small.
    let time = |stage: usize, own| tables.stages[stage].time(own) - tables.stages[stage].times[0];
    let mut terms = vec![
        Term {
            name: "total_time".into(),
            value: Box::new(time),
        },
        Term {
            name: "unevenness".into(),
            value: Box::new(move |_, own| (stages * own - layers).pow(2)),
        },
        Term {
            name: "lateness".into(),
            value: Box::new(|stage, own| stage as i64 * own),
        },
    ];
    // The first layers in lexicographic order: several stages at once, as digits of a number.
    let mut first = 0;
    while first < tables.stages.len() {
        let (end, weights) = digits_from(tables, first);
        terms.push(Term {
            name: format!("layers({first})"),
            value: Box::new(move |stage, own| {
                let digit = stage
                    .checked_sub(first)
                    .and_then(|place| weights.get(place));
                digit.map_or(0, |weight| weight * (own - tables.stages[stage].lower))
            }),
        });
        first = end;
    }
    terms
}

/// The stages whose layers make one number of moderate size: the end of their range, and their weights.
fn digits_from(tables: &Tables, first: usize) -> (usize, Vec<i64>) {
    const LARGEST: i64 = 1_000_000;
    let width = |stage: usize| tables.stages[stage].times.len() as i64;
    let mut end = first + 1;
    let mut product = width(first);
    while end < tables.stages.len() && product * width(end) <= LARGEST {
        product *= width(end);
        end += 1;
    }
    let mut weights = vec![1; end - first];
    for place in (0..weights.len() - 1).rev() {
        weights[place] = weights[place + 1] * width(first + place + 1);
    }
    (end, weights)
}
