//! The canonical plan of a group under side rows, where the dynamic program cannot go: the same rule,
//! one program for each of its terms, with what is decided fixed by a row.

use super::StagedError;
use super::limits::Clock;
use super::plan::Plan;
use super::presolve::{Incumbents, Presolved};
use super::program::{Program, inexact, program};
use super::search::presolve_pieces;
use super::side_rows::Prepared;
use crate::deadline::TimeOver;
use crate::model::{Expression, Sense};
use crate::solve::{self, Outcome, Statistics};

/// What a group has.
#[derive(Debug)]
pub(super) enum Canonical {
    /// Its canonical plan.
    Plan(Plan),
    /// No plan within the limit.
    NoPlan,
    /// Nobody knows: the time is over.
    TimeOver,
}

/// An expression that is minimised next.
struct Term {
    name: String,
    value: Expression,
}

/// The canonical plan of a group, of objective at most `limit`.
pub(super) fn canonical(
    prepared: &Prepared<'_>,
    index: usize,
    limit: i64,
    clock: &Clock,
    statistics: &mut Statistics,
) -> Result<Canonical, StagedError> {
    let data = prepared.data;
    let incumbents = Incumbents::MayBeForbidden;
    let presolved = match presolve_pieces(prepared, index, limit, incumbents, clock.deadline()) {
        Ok(Some(presolved)) => [presolved],
        Ok(None) => return Ok(Canonical::NoPlan),
        Err(TimeOver) => return Ok(Canonical::TimeOver),
    };
    let mut program = program(data, &presolved, &[]);
    let mut plan = match run(&program, clock, statistics)? {
        Some(Outcome::Optimal { solution, .. }) => program.decode(&solution)?,
        Some(Outcome::Infeasible { .. }) => return Ok(Canonical::NoPlan),
        _ => return Ok(Canonical::TimeOver),
    };
    if plan.objective > limit {
        return Ok(Canonical::NoPlan);
    }
    let unit = data.units.objective;
    let objective = program.model.objective().to_vec();
    let best = (plan.objective as f64 + 0.25) * unit - program.model.constant();
    program
        .model
        .add_row("best_objective", objective, Sense::AtMost, best);
    for term in terms(&mut program, &presolved[0]) {
        program.model.objective_is(&term.name, term.value.clone());
        let least = match run(&program, clock, statistics)? {
            Some(Outcome::Optimal { solution, .. }) => {
                plan = program.plan_at(&solution)?;
                solution.objective
            }
            Some(Outcome::Infeasible { .. }) => {
                return Err(inexact(format!("`{}` has no minimum", term.name)));
            }
            _ => return Ok(Canonical::TimeOver),
        };
        let name = format!("least_{}", term.name);
        program.model.row(
            name,
            term.value,
            Sense::AtMost,
            least + 1e-6 * (1.0 + least.abs()),
        );
    }
    Ok(Canonical::Plan(plan))
}

fn run(
    program: &Program,
    clock: &Clock,
    statistics: &mut Statistics,
) -> Result<Option<Outcome<solve::Point>>, StagedError> {
    let Ok(options) = clock.options() else {
        return Ok(None);
    };
    let outcome = solve::solve(&program.model, &options)?;
    statistics.add(outcome.statistics());
    Ok(Some(outcome))
}

/// The terms of the rule after the objective, in their order.
fn terms(program: &mut Program, presolved: &Presolved) -> Vec<Term> {
    let stages = presolved.intervals.len();
    let term = |name: String, value| Term { name, value };
    let late = (0..stages).map(|s| s as f64 * program.layers(s));
    let late = term("lateness".into(), late.sum());
    let mut terms = vec![
        term("total_time".into(), program.extra_time()),
        term("unevenness".into(), unevenness(program, presolved)),
        late,
    ];
    // The first layers in lexicographic order: several stages at once, as digits of a number.
    let mut first = 0;
    while first < stages {
        let (end, weights) = digits_from(presolved, first);
        let digits = (first..end).zip(weights);
        let number = digits.map(|(s, weight)| weight as f64 * program.layers(s));
        terms.push(term(format!("layers({first})"), number.sum()));
        first = end;
    }
    terms
}

/// `sum_s (S n_s - L)^2`, by columns that say which number of layers a stage has.
fn unevenness(program: &mut Program, presolved: &Presolved) -> Expression {
    let stages = presolved.intervals.len() as i64;
    let all: i64 = presolved.intervals[presolved.intervals.len() - 1]
        .iter()
        .map(|it| it.end as i64)
        .fold(0, i64::max);
    let mut unevenness = Expression::ZERO;
    for (s, intervals) in presolved.intervals.iter().enumerate() {
        let mut lengths: Vec<i64> = (intervals.iter())
            .map(|it| (it.end - it.start) as i64)
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        let (mut one, mut sum) = (Expression::ZERO, Expression::ZERO);
        for length in lengths {
            let has = program.model.add_binary(format!("has({s},{length})"));
            one += has;
            sum += length as f64 * has;
            unevenness += (stages * length - all).pow(2) as f64 * has;
        }
        program
            .model
            .row(format!("has_one({s})"), one, Sense::Equal, 1.0);
        let layers = program.layers(s);
        program
            .model
            .row(format!("has_layers({s})"), sum, Sense::Equal, layers);
    }
    unevenness
}

/// The stages whose layers make one number of moderate size: the end of their range, and their weights.
fn digits_from(presolved: &Presolved, first: usize) -> (usize, Vec<i64>) {
    const LARGEST: i64 = 100_000;
    let width = |stage: usize| {
        let lengths = presolved.intervals[stage].iter();
        1 + lengths
            .map(|it| (it.end - it.start) as i64)
            .max()
            .unwrap_or(0)
    };
    let mut end = first + 1;
    let mut product = width(first);
    while end < presolved.intervals.len() && product * width(end) <= LARGEST {
        product *= width(end);
        end += 1;
    }
    let mut weights = vec![1; end - first];
    for place in (0..weights.len() - 1).rev() {
        weights[place] = weights[place + 1] * width(first + place + 1);
    }
    (end, weights)
}
