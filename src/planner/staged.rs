//! Plans with the program `staged`: the combination, the layers of every stage and how many of them
//! are checkpointed, together.

use std::time::{Duration, Instant};

use formulations::model::Model;
use formulations::solve::{Outcome as Solved, SolverOptions};
use formulations::staged::bounds::{Scratch, balance_bound, bottleneck_bound_with};
use formulations::staged::{self as program, Data, Plan as ProgramPlan};

use crate::axis::AxisSet;
use crate::instance::Instance;
use crate::layout::{Combination, Layout};
use crate::plan::{Extent, Formulation, Outcome, Plan, Proof};
use crate::quantity::Mfu;

use super::classes::{self, Thresholds};
use super::cost_table::CostTable;
use super::layout_choice::{NEGLIGIBLE_RISK, SOLVER};
use super::objective::least_step_time;
use super::staged_cells::{Choice, Variant, choices, quick_objective, relaxed, variants};
use super::{Best, Deadline, PlanError, PlanOptions, Pruning, constraints, infeasibility, verify};

/// What is proven of a choice before the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceBound {
    /// No distribution of the layers fits.
    Infeasible,
    /// It takes at least so many units of time, which is more than a known plan.
    Pruned(i64),
    /// It may be the best.
    Open(i64),
}

/// The choices of a table, screened.
#[derive(Debug)]
pub struct Screening {
    /// The choices.
    pub choices: Vec<Choice>,
    /// What is proven of each.
    pub bounds: Vec<ChoiceBound>,
    /// The class of each: an answer lists the best layouts of different classes.
    classes: Vec<usize>,
}

/// Bounds every choice. Those that may be among the `count` best stay open.
#[must_use]
pub fn screen(table: &CostTable, count: usize, pruning: Pruning) -> Screening {
    screen_diverse(table, count, AxisSet::EMPTY, pruning)
}

/// Bounds every choice. Those that may be the best of one of the `count` best classes stay open.
///
/// Choices are visited in order of the first bound (perfect balance, no recomputation). The second
/// bound and a quick plan are computed only for those that the plans known so far leave open.
fn screen_diverse(table: &CostTable, count: usize, axes: AxisSet, pruning: Pruning) -> Screening {
    let layers = i64::from(table.instance.job.transformer.layers);
    let choices = choices(table);
    let classes = classes::classes(choices.iter().map(Choice::candidate), axes);
    let first: Vec<i64> = choices
        .iter()
        .map(|choice| balance_bound(&relaxed(table, choice).cell, layers))
        .collect();
    let mut order: Vec<usize> = (0..choices.len()).collect();
    order.sort_by_key(|&index| (first[index], index));
    let mut bounds: Vec<ChoiceBound> = first.into_iter().map(ChoiceBound::Pruned).collect();
    let mut scratch = Scratch::default();
    let mut known = Thresholds::new(count, classes.iter().max().map_or(0, |last| last + 1));
    for index in order {
        let ChoiceBound::Pruned(bound) = bounds[index] else {
            continue;
        };
        if pruning == Pruning::ByBounds {
            if bound > known.limit() {
                break;
            }
            if bound > known.limit_of(classes[index]) {
                continue;
            }
        }
        let relaxed = relaxed(table, &choices[index]).cell;
        let Some(bound) = bottleneck_bound_with(&relaxed, layers, &mut scratch) else {
            bounds[index] = ChoiceBound::Infeasible;
            continue;
        };
        bounds[index] = ChoiceBound::Open(bound);
        if bound <= known.limit_of(classes[index])
            && let Some(objective) = quick_objective(table, &choices[index])
        {
            known.offer(objective, classes[index]);
        }
    }
    if pruning == Pruning::ByBounds {
        for (bound, &class) in bounds.iter_mut().zip(&classes) {
            match *bound {
                ChoiceBound::Open(value) if value > known.limit_of(class) => {
                    *bound = ChoiceBound::Pruned(value);
                }
                _ => {}
            }
        }
    }
    Screening {
        choices,
        bounds,
        classes,
    }
}

/// The program over the open choices.
#[derive(Debug)]
pub struct Encoded {
    /// Data of the program.
    pub data: Data,
    /// The choice and variant of each cell of the program.
    variants: Vec<(usize, Variant)>,
}

/// Encodes the open choices with the variants that the framework's rules allow.
#[must_use]
pub fn encode(table: &CostTable, screening: &Screening) -> Encoded {
    let open = screening
        .bounds
        .iter()
        .enumerate()
        .filter(|(_, bound)| matches!(bound, ChoiceBound::Open(_)))
        .map(|(index, _)| index);
    let variants: Vec<(usize, Variant)> = open
        .flat_map(|index| {
            let of_choice = variants(table, &screening.choices[index]);
            of_choice.into_iter().map(move |variant| (index, variant))
        })
        .collect();
    let combinations: Vec<Combination> = variants
        .iter()
        .map(|(index, _)| screening.choices[*index].cell)
        .collect();
    let data = Data {
        layers: i64::from(table.instance.job.transformer.layers),
        cells: variants
            .iter()
            .map(|(_, variant)| variant.cell.clone())
            .collect(),
        side_rows: constraints::side_rows(table.instance, &combinations),
    };
    Encoded { data, variants }
}

impl Encoded {
    /// The layout of a plan of the program.
    fn layout(&self, screening: &Screening, plan: &ProgramPlan) -> Layout {
        let (choice, variant) = &self.variants[plan.cell];
        variant.layout(&screening.choices[*choice], plan)
    }

    /// The class of a cell of the program.
    fn class(&self, screening: &Screening, cell: usize) -> usize {
        screening.classes[self.variants[cell].0]
    }

    /// The best plans of `count` different classes.
    fn top(
        &self,
        screening: &Screening,
        count: usize,
        options: &SolverOptions,
    ) -> Result<Vec<ProgramPlan>, PlanError> {
        let class = |cell: usize| self.class(screening, cell);
        let outcome = program::top(&self.data, count, class, options)?;
        Ok(outcome.solution().cloned().unwrap_or_default())
    }
}

/// Finds the best layout of the instance over all cuts and checkpointings that the framework takes.
///
/// # Errors
///
/// When the solver fails, or its answer fails the verification.
pub fn plan(instance: &Instance, options: &PlanOptions) -> Result<Outcome, PlanError> {
    let start = Instant::now();
    let table = CostTable::within(instance, options.time_limit);
    let count = options.alternatives + 1;
    let screening = screen_diverse(&table, count, options.diverse, options.pruning);
    let encoded = encode(&table, &screening);
    let left = |options: &PlanOptions| SolverOptions {
        time_limit: time_left(options, start),
        ..SolverOptions::default()
    };
    let report = program::solve(&encoded.data, &left(options))?;
    let proof = proof(&table, &screening);
    let finish = |best: &ProgramPlan, bound: i64| -> Result<Plan, PlanError> {
        let claimed = |units: i64| table.quantum.parts_per_billion(&instance.job, units);
        let decoded = |plan: &ProgramPlan| {
            verify(
                instance,
                encoded.layout(&screening, plan),
                claimed(plan.objective),
            )
        };
        let choice = decoded(best)?;
        let class = |plan: &ProgramPlan| encoded.class(&screening, plan.cell);
        let others = encoded.top(&screening, options.alternatives + 1, &left(options))?;
        let others = others.iter().filter(|plan| class(plan) != class(best));
        let alternatives = others
            .take(options.alternatives)
            .map(decoded)
            .collect::<Result<_, _>>()?;
        // Without a bound both are infinite.
        let beyond = best.objective as f64 / bound.max(0) as f64;
        let proof = Proof {
            bound_mfu: choice.prediction.mfu * beyond,
            bound_parts: claimed(bound),
            gap: beyond - 1.0,
            ..proof.clone()
        };
        Ok(Plan {
            choice,
            alternatives,
            safer: None,
            proof,
        })
    };
    let outcome = match within_all(report.outcome, &table) {
        Solved::Optimal { solution, .. } => {
            Outcome::Optimal(finish(&solution, solution.objective)?)
        }
        Solved::Feasible {
            solution, bound, ..
        } => {
            let plan = finish(&solution, bound.floor() as i64)?;
            // A limit that comes when nothing better is left changes nothing.
            if plan.gap_is_closed() {
                Outcome::Optimal(plan)
            } else {
                Outcome::Feasible(plan)
            }
        }
        Solved::Infeasible { .. } => {
            let deadline = Deadline::after(time_left(options, start));
            Outcome::Infeasible(infeasibility::explain(instance, proof, deadline)?)
        }
        Solved::Unknown { .. } => Outcome::Unknown(proof),
    };
    with_safer(outcome, table, options, start)
}

/// What is left of the time limit.
fn time_left(options: &PlanOptions, start: Instant) -> Option<Duration> {
    let limit = options.time_limit?;
    Some(limit.saturating_sub(start.elapsed()))
}

/// What an answer over the listed combinations says of all: where the time was over before all were
/// listed, the matrix products alone bound the rest.
fn within_all(outcome: Solved<ProgramPlan>, table: &CostTable) -> Solved<ProgramPlan> {
    if table.extent == Extent::Whole {
        return outcome;
    }
    let least = least_step_time(&table.instance.job);
    let of_all = table.quantum.units_within(least) as f64;
    match outcome {
        Solved::Optimal {
            solution,
            statistics,
        }
        | Solved::Feasible {
            solution,
            statistics,
            ..
        } => {
            let objective = solution.objective as f64;
            let bound = of_all.min(objective);
            Solved::Feasible {
                solution,
                bound,
                gap: objective - bound,
                statistics,
            }
        }
        Solved::Infeasible { statistics } | Solved::Unknown { statistics, .. } => Solved::Unknown {
            bound: Some(of_all),
            statistics,
        },
    }
}

/// The outcome with a safer layout beside the chosen one, where that has a risk and there is time.
fn with_safer(
    mut outcome: Outcome,
    table: CostTable,
    options: &PlanOptions,
    start: Instant,
) -> Result<Outcome, PlanError> {
    // Beside a plan that was proven in time, none has to mean that there is none: it takes about as long.
    let (plan, time_limit) = match &mut outcome {
        Outcome::Optimal(plan) => (plan, None),
        Outcome::Feasible(plan) => (plan, time_left(options, start)),
        Outcome::Infeasible(_) | Outcome::Unknown(_) => return Ok(outcome),
    };
    let risk = plan.choice.prediction.oom_probability;
    if risk < NEGLIGIBLE_RISK || time_limit.is_some_and(|left| left.is_zero()) {
        return Ok(outcome);
    }
    // Of the table only the capacity differs.
    let cautious = Instance {
        max_oom_risk: risk / 2.0,
        ..table.instance.clone()
    };
    let options = PlanOptions {
        pruning: Pruning::ByBounds,
        time_limit,
        ..*options
    };
    plan.safer = best_of(&table.at_risk_of(&cautious), &options)?.into_layout();
    Ok(outcome)
}

/// The program as it is written to a file: over the combinations that no bound excludes.
///
/// # Errors
///
/// When the program cannot be built.
pub fn written_program(
    instance: &Instance,
    options: &PlanOptions,
) -> Result<(Model, String), PlanError> {
    let table = CostTable::new(instance);
    let screening = screen(&table, 1, options.pruning);
    let encoded = encode(&table, &screening);
    let open = screening
        .bounds
        .iter()
        .filter(|bound| matches!(bound, ChoiceBound::Open(_)));
    let (open, all) = (open.count(), screening.choices.len());
    let scope = format!("the {open} combinations that no bound excludes, of {all}");
    Ok((program::build(&encoded.data)?, scope))
}

fn proof(table: &CostTable, screening: &Screening) -> Proof {
    let count = |wanted: fn(&ChoiceBound) -> bool| {
        screening
            .bounds
            .iter()
            .filter(|bound| wanted(bound))
            .count() as u64
    };
    let broken = table
        .entries
        .iter()
        .filter(|entry| !entry.broken.is_empty())
        .count() as u64;
    let infeasible = count(|bound| matches!(bound, ChoiceBound::Infeasible));
    Proof {
        formulation: Formulation::Staged,
        bound_mfu: Mfu::ZERO,
        bound_parts: 0,
        gap: 0.0,
        cells: screening.choices.len() as u64 + broken,
        cells_infeasible: infeasible + broken,
        cells_pruned: count(|bound| matches!(bound, ChoiceBound::Pruned(_))),
        cells_solved: count(|bound| matches!(bound, ChoiceBound::Open(_))),
        extent: table.extent,
        applied_before: table
            .applied_before
            .iter()
            .map(|rule| rule.as_str())
            .collect(),
        solver: SOLVER.to_owned(),
    }
}

/// The best layout alone.
pub(super) fn best(instance: &Instance, options: &PlanOptions) -> Result<Best, PlanError> {
    let start = Instant::now();
    let table = CostTable::within(instance, options.time_limit);
    let options = PlanOptions {
        time_limit: time_left(options, start),
        ..*options
    };
    best_of(&table, &options)
}

/// The best layout of a table alone.
fn best_of(table: &CostTable, options: &PlanOptions) -> Result<Best, PlanError> {
    let instance = table.instance;
    let screening = screen(table, 1, options.pruning);
    let encoded = encode(table, &screening);
    let solver = SolverOptions {
        time_limit: options.time_limit,
        ..SolverOptions::default()
    };
    let decoded = |plan: &ProgramPlan| {
        let claimed = table
            .quantum
            .parts_per_billion(&instance.job, plan.objective);
        verify(instance, encoded.layout(&screening, plan), claimed)
    };
    let report = program::solve(&encoded.data, &solver)?;
    Ok(match within_all(report.outcome, table) {
        Solved::Optimal { solution, .. } => Best::Optimal(decoded(&solution)?),
        Solved::Feasible { solution, .. } => Best::Feasible(decoded(&solution)?),
        Solved::Infeasible { .. } => Best::Infeasible,
        Solved::Unknown { .. } => Best::Unknown,
    })
}
