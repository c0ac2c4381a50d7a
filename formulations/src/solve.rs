//! From a [`Model`] to an [`Outcome`] through `good_lp` and `HiGHS`.
//!
//! `good_lp` builds the problem; options, bound and counts are passed to and from `HiGHS` directly.
//! Every run uses one thread, a fixed seed and a relative gap of zero (by default `HiGHS` stops at
//! 1e-4 and calls that optimal), so that equal models give equal answers, and many models can be
//! solved side by side on threads of the caller.

use std::time::{Duration, Instant};

use good_lp::{Expression, ProblemVariables, Solver, variable};
use highs::{HighsModelStatus, HighsSolutionStatus, SolvedModel};

use crate::deadline::Deadline;
use crate::model::{ColumnId, Direction, Domain, Model, Sense};

mod outcome;
#[cfg(test)]
mod tests;
mod total;

pub use outcome::{Outcome, Point, Statistics};
pub use total::total;

/// Beyond this many whole columns presolve is off: where thousands of columns are alike but for
/// their cost, its search for dominated ones takes quadratic time (50,000 columns: 54 s with it,
/// 2.6 s without).
const LARGEST_TO_PRESOLVE: usize = 4000;

/// When to stop, and from which seed to start.
#[derive(Debug, Clone, Copy)]
pub struct SolverOptions {
    /// When the search has to end, over all runs of the solver.
    pub deadline: Deadline,
    /// An answer is optimal when no other can be better by more than this. A formulation with an
    /// integer objective sets its own value below one.
    pub absolute_gap: f64,
    /// Seed of the solver's random choices.
    pub random_seed: i32,
}

impl Default for SolverOptions {
    fn default() -> Self {
        Self {
            deadline: Deadline::NEVER,
            absolute_gap: 1e-6,
            random_seed: 0,
        }
    }
}

/// Why the solver gave no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// The model has a number that is not one, or bounds that cross.
    #[error("the solver refuses the model `{model}`: {cause}")]
    Refused {
        /// Name of the model.
        model: String,
        /// What the solver said.
        cause: String,
    },
    /// The objective has no best value.
    #[error("the objective of the model `{model}` has no limit")]
    Unbounded {
        /// Name of the model.
        model: String,
    },
    /// The solver stopped in a state that is none of the outcomes.
    #[error("the solver stopped on the model `{model}` with status `{status}`")]
    Stopped {
        /// Name of the model.
        model: String,
        /// The solver's status.
        status: String,
    },
}

/// Solves a model.
///
/// # Errors
/// When the model is not one (crossed bounds, not-a-number), has no bounded optimum, or the solver
/// fails. Being infeasible or out of time is an [`Outcome`].
pub fn solve(model: &Model, options: &SolverOptions) -> Result<Outcome<Point>, SolveError> {
    if model.columns().is_empty() {
        return Ok(solve_without_columns(model));
    }
    let (solved, time) = run(model, options)?;
    let statistics = Statistics {
        runs: 1,
        iterations: u64::try_from(solved.simplex_iteration_count()).unwrap_or(0),
        time,
    };
    total::count(statistics);
    let stopped = || SolveError::Stopped {
        model: model.name().into(),
        status: format!("{:?}", solved.status()),
    };
    match solved.status() {
        HighsModelStatus::Optimal => Ok(Outcome::Optimal {
            solution: point(model, &solved),
            statistics,
        }),
        HighsModelStatus::Infeasible => Ok(Outcome::Infeasible { statistics }),
        HighsModelStatus::Unbounded => Err(SolveError::Unbounded {
            model: model.name().into(),
        }),
        HighsModelStatus::UnboundedOrInfeasible => decide_unbounded(model, options, statistics),
        HighsModelStatus::ReachedTimeLimit
        | HighsModelStatus::ReachedSolutionLimit
        | HighsModelStatus::ReachedIterationLimit
        | HighsModelStatus::ReachedMemoryLimit
        | HighsModelStatus::ReachedInterrupt => Ok(at_limit(model, &solved, statistics)),
        _ => Err(stopped()),
    }
}

/// Presolve may find that one of the two holds without telling which: without an objective only
/// infeasibility is left.
fn decide_unbounded(
    model: &Model,
    options: &SolverOptions,
    mut statistics: Statistics,
) -> Result<Outcome<Point>, SolveError> {
    if model.objective().is_empty() {
        return Ok(Outcome::Infeasible { statistics });
    }
    let outcome = solve(&model.without_objective(), options)?;
    statistics.add(outcome.statistics());
    match outcome {
        Outcome::Infeasible { .. } => Ok(Outcome::Infeasible { statistics }),
        Outcome::Unknown { .. } => Ok(Outcome::Unknown {
            bound: None,
            statistics,
        }),
        _ => Err(SolveError::Unbounded {
            model: model.name().into(),
        }),
    }
}

fn at_limit(model: &Model, solved: &SolvedModel, statistics: Statistics) -> Outcome<Point> {
    let bound = solved
        .double_info_value(c"mip_dual_bound")
        .ok()
        .filter(|bound| bound.is_finite())
        .map(|bound| bound + model.constant());
    if solved.primal_solution_status() != HighsSolutionStatus::Feasible {
        return Outcome::Unknown { bound, statistics };
    }
    let solution = point(model, solved);
    let unbounded = match model.direction() {
        Direction::Minimise => f64::NEG_INFINITY,
        Direction::Maximise => f64::INFINITY,
    };
    let bound = bound.unwrap_or(unbounded);
    Outcome::Feasible {
        gap: (solution.objective - bound).abs(),
        solution,
        bound,
        statistics,
    }
}

fn point(model: &Model, solved: &SolvedModel) -> Point {
    let solution = solved.get_solution();
    let values = (model.columns().iter().zip(solution.columns()))
        .map(|(column, &value)| match column.domain {
            Domain::Continuous => value,
            Domain::Integer | Domain::Binary => value.round() + 0.0,
        })
        .collect();
    Point {
        values,
        objective: solved.objective_value() + model.constant(),
    }
}

/// `HiGHS` calls a model without columns empty, whatever its rows say.
fn solve_without_columns(model: &Model) -> Outcome<Point> {
    let statistics = Statistics::default();
    let holds = model.rows().iter().all(|row| match row.sense {
        Sense::AtMost => 0.0 <= row.right,
        Sense::Equal => row.right == 0.0,
        Sense::AtLeast => 0.0 >= row.right,
    });
    if !holds {
        return Outcome::Infeasible { statistics };
    }
    Outcome::Optimal {
        solution: Point {
            values: Vec::new(),
            objective: model.constant(),
        },
        statistics,
    }
}

/// Runs the solver; the time is that within it, without building the problem.
fn run(model: &Model, options: &SolverOptions) -> Result<(SolvedModel, Duration), SolveError> {
    let refused = |cause: String| SolveError::Refused {
        model: model.name().into(),
        cause,
    };
    let mut highs = build(model).map_err(refused)?;
    let time_limit = options
        .deadline
        .left()
        .map_or(f64::INFINITY, |limit| limit.as_secs_f64());
    // Another thread count than the first of a process is an error in HiGHS, so it is always one.
    let whole = [("threads", 1), ("random_seed", options.random_seed)];
    let real = [
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", options.absolute_gap),
        ("time_limit", time_limit),
    ];
    let integers = (model.columns().iter()).filter(|column| column.domain != Domain::Continuous);
    if integers.count() > LARGEST_TO_PRESOLVE {
        let off = highs.try_set_option("presolve", "off");
        off.map_err(|_| refused("option `presolve` = off".into()))?;
    }
    // Programs come with their optimum nearly known: a search for any feasible point is wasted.
    let off = highs.try_set_option("mip_heuristic_run_feasibility_jump", false);
    off.map_err(|_| refused("option `mip_heuristic_run_feasibility_jump` = false".into()))?;
    for (name, value) in whole {
        highs
            .try_set_option(name, value)
            .map_err(|_| refused(format!("option `{name}` = {value}")))?;
    }
    for (name, value) in real {
        highs
            .try_set_option(name, value)
            .map_err(|_| refused(format!("option `{name}` = {value}")))?;
    }
    let start = Instant::now();
    let solved = highs.try_solve().map_err(|status| SolveError::Stopped {
        model: model.name().into(),
        status: format!("{status:?}"),
    })?;
    Ok((solved, start.elapsed()))
}

fn build(model: &Model) -> Result<highs::Model, String> {
    let mut variables = ProblemVariables::new();
    let handles: Vec<_> = (model.columns().iter())
        .map(|column| {
            let definition = variable().min(column.lower).max(column.upper);
            variables.add(match column.domain {
                Domain::Continuous => definition,
                Domain::Integer | Domain::Binary => definition.integer(),
            })
        })
        .collect();
    let expression = |terms: &[(ColumnId, f64)]| {
        let mut sum = Expression::with_capacity(terms.len());
        for &(column, coefficient) in terms {
            sum.add_mul(coefficient, handles[column.index()]);
        }
        sum
    };
    let objective = expression(model.objective());
    let unsolved = match model.direction() {
        Direction::Minimise => variables.minimise(objective),
        Direction::Maximise => variables.maximise(objective),
    };
    let mut problem = Solver::create_model(&mut good_lp::highs, unsolved);
    for row in model.rows() {
        let left = expression(&row.terms);
        let constraint = match row.sense {
            Sense::AtMost => left.leq(row.right),
            Sense::Equal => left.eq(row.right),
            Sense::AtLeast => left.geq(row.right),
        };
        good_lp::SolverModel::add_constraint(&mut problem, constraint);
    }
    problem.try_into_inner().map_err(|error| error.to_string())
}
