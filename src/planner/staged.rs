//! Plans with the program: the combination, the layers of every stage and how many of them are
//! checkpointed, together.
//!
//! Combinations are screened by bounds on the objective alone; what is left is one program. Its costs are
//! rounded to quanta, so that plans within the rounding of the best are compared by the cost model before
//! one is named; what the rounding leaves open is the tolerance of the proof.

use formulations::model::Model;
use formulations::solve::{Outcome as Solved, SolverOptions, Statistics};
use formulations::staged::{self as program, Plan as ProgramPlan, Report, Wanted, plan_of};

use crate::axis::AxisSet;
use crate::instance::Instance;
use crate::plan::{Combinations, CutShort, Evaluated, Extent, Outcome, Plan, Proof};
use crate::quantity::Mfu;

use super::cost_table::CostTable;
pub use super::encoding::{Encoded, Excluding, encode};
use super::groups;
use super::objective::least_step_time;
use super::screening::{ChoiceBound, Screening, screen};
use super::{
    Best, Deadline, NEGLIGIBLE_RISK, PlanError, PlanOptions, Pruning, SOLVER, infeasibility, verify,
};

/// One solution of the program and what it was made from.
struct Solution<'a> {
    table: &'a CostTable<'a>,
    screening: Screening,
    encoded: Encoded,
    report: Report,
}

impl<'a> Solution<'a> {
    fn of(
        table: &'a CostTable<'a>,
        count: usize,
        options: &PlanOptions,
        excluding: Excluding,
        deadline: Deadline,
    ) -> Result<Self, PlanError> {
        // What follows gets half of the time.
        let half = deadline.part(2);
        let mut screening = screen(table, count, options.diverse, options.pruning, half);
        let encoded = encode(table, &mut screening, excluding, deadline.part(2));
        let pruning = match options.pruning {
            Pruning::ByBounds => program::Pruning::ByBounds,
            Pruning::None => program::Pruning::None,
        };
        let report = program::solve(&encoded.data, &solver(deadline), pruning)?;
        let mut solution = Self {
            table,
            screening,
            encoded,
            report,
        };
        if let Solved::Unknown { bound, statistics } = solution.report.outcome
            && let Some(plan) = solution.quick_plan()
        {
            let objective = plan.objective as f64;
            let bound = bound.map_or(0.0, |bound| bound.min(objective));
            solution.report.outcome = Solved::Feasible {
                gap: objective - bound,
                bound,
                solution: plan,
                statistics,
            };
        }
        Ok(solution)
    }

    /// The best plan that the screening has come across, where the program had no time for any.
    fn quick_plan(&self) -> Option<ProgramPlan> {
        let choice = self.screening.quick?;
        let quick = groups::quick(self.table, &self.screening.choices[choice])?;
        let mut variants = self.encoded.variants.iter();
        let group = variants.position(|(of, _)| *of == choice)? + quick.variant;
        let (_, variant) = &self.encoded.variants[group];
        plan_of(&variant.group, group, &self.table.layers, &quick.layers)
    }

    /// The best layouts of `count` classes by the exact costs, the best first, beginning with that of the
    /// program's plan if nothing within the rounding of it is better.
    fn ranked(
        &self,
        best: &ProgramPlan,
        count: usize,
        deadline: Deadline,
    ) -> Result<(Vec<Evaluated>, bool), PlanError> {
        let (data, table) = (&self.encoded.data, self.table);
        let class = |group: usize| self.encoded.class(&self.screening, group);
        let wanted = Wanted {
            classes: count,
            slack: self.screening.slack,
        };
        let outcome = program::top(data, wanted, class, &solver(deadline))?;
        let is_cut = matches!(outcome, Solved::Feasible { .. } | Solved::Unknown { .. });
        let mut plans = outcome.solution().cloned().unwrap_or_default();
        if plans.iter().all(|plan| plan != best) {
            plans.push(best.clone());
        }
        let mut ranked: Vec<(Evaluated, i64, usize)> = Vec::with_capacity(plans.len());
        for plan in &plans {
            let layout = self.encoded.layout(&self.screening, plan);
            let claimed = table.quantum.step_time(plan.objective);
            let evaluated = verify(table.instance, layout, claimed)?;
            ranked.push((evaluated, data.groups[plan.group].rank, class(plan.group)));
        }
        ranked.sort_by(|(one, first, _), (other, second, _)| {
            let (one, other) = (one.prediction.step_time, other.prediction.step_time);
            // What the last digits of a sum tell apart is equal.
            let equal = (one / other - 1.0).abs() < 1e-12;
            let order = one.value().total_cmp(&other.value());
            if equal { first.cmp(second) } else { order }
        });
        let mut seen = Vec::new();
        ranked.retain(|(_, _, class)| {
            let new = !seen.contains(class);
            seen.push(*class);
            new
        });
        ranked.truncate(count);
        Ok((ranked.into_iter().map(|it| it.0).collect(), is_cut))
    }

    /// What the answer over the combinations that were reached says of all: where the time was over before
    /// all were listed, the matrix products alone bound the rest.
    fn within_all(&self) -> Solved<ProgramPlan> {
        let (table, outcome) = (self.table, self.report.outcome.clone());
        let least = table
            .quantum
            .units_within(least_step_time(&table.instance.job));
        let listed = (table.extent == Extent::Cut).then_some(least);
        let Some(left) = self.screening.left().into_iter().chain(listed).min() else {
            return outcome;
        };
        let left = left as f64;
        match outcome {
            Solved::Optimal {
                solution,
                statistics,
            } => feasible(solution, left, statistics),
            Solved::Feasible {
                solution,
                bound,
                statistics,
                ..
            } => feasible(solution, left.min(bound), statistics),
            Solved::Infeasible { statistics } => Solved::Unknown {
                bound: Some(left),
                statistics,
            },
            Solved::Unknown { bound, statistics } => Solved::Unknown {
                bound: bound.map(|bound| bound.min(left)),
                statistics,
            },
        }
    }

    /// The parts of the search that the time limit ended.
    fn cut_short(&self) -> Vec<CutShort> {
        let stopped = matches!(
            self.report.outcome,
            Solved::Feasible { .. } | Solved::Unknown { .. }
        );
        let parts = [
            (CutShort::Listing, self.table.extent == Extent::Cut),
            (CutShort::Screening, self.screening.left().is_some()),
            (CutShort::Program, stopped),
        ];
        let cut = parts.into_iter().filter(|(_, is_cut)| *is_cut);
        cut.map(|(part, _)| part).collect()
    }

    fn proof(&self) -> Proof {
        let (table, screening) = (self.table, &self.screening);
        let count = |wanted: fn(&ChoiceBound) -> bool| {
            let bounds = screening.bounds.iter();
            bounds.filter(|bound| wanted(bound)).count() as u64
        };
        let entries = table.entries.iter();
        let broken = entries.filter(|it| !it.broken.is_empty()).count() as u64;
        let infeasible = count(|bound| matches!(bound, ChoiceBound::Infeasible));
        Proof {
            formulation: table.formulation,
            bound_mfu: Mfu::ZERO,
            bound_parts: 0,
            gap: 0.0,
            tolerance: 0.0,
            combinations: Combinations {
                all: screening.choices.len() as u64 + broken,
                infeasible: infeasible + broken,
                pruned: count(|bound| matches!(bound, ChoiceBound::Pruned(_))),
                solved: count(|bound| matches!(bound, ChoiceBound::Open(_))),
            },
            extent: table.extent,
            cut_short: self.cut_short(),
            applied_before: table.applied_before.iter().map(|it| it.as_str()).collect(),
            solver: SOLVER.to_owned(),
        }
    }

    /// The plan whose program's answer is `best`, proven not to be above `bound` units.
    fn plan(
        &self,
        best: &ProgramPlan,
        bound: i64,
        count: usize,
        deadline: Deadline,
    ) -> Result<Plan, PlanError> {
        let table = self.table;
        let (ranked, is_cut) = self.ranked(best, count, deadline)?;
        let mut ranked = ranked.into_iter();
        let Some(choice) = ranked.next() else {
            let cause = "the program's plan is not among the best".to_owned();
            return Err(PlanError::Verification { cause });
        };
        let next_best = if is_cut && count > 1 {
            vec![CutShort::NextBest]
        } else {
            Vec::new()
        };
        // Without a bound both are infinite.
        let beyond = best.objective as f64 / bound.max(0) as f64;
        // Rounding may hide what is faster by half the slack than the program's best.
        let least = (best.objective - self.screening.slack / 2) as f64;
        let exact = table.quantum.units(choice.prediction.step_time);
        let proof = Proof {
            bound_mfu: choice.prediction.mfu * beyond,
            bound_parts: table.quantum.parts_per_billion(&table.instance.job, bound),
            gap: beyond - 1.0,
            tolerance: (exact / least - 1.0).max(0.0),
            cut_short: [self.cut_short(), next_best].concat(),
            ..self.proof()
        };
        Ok(Plan {
            choice,
            alternatives: ranked.collect(),
            safer: None,
            proof,
        })
    }
}

/// A plan with what is known of the best.
fn feasible(plan: ProgramPlan, bound: f64, statistics: Statistics) -> Solved<ProgramPlan> {
    let objective = plan.objective as f64;
    let bound = bound.min(objective);
    Solved::Feasible {
        gap: objective - bound,
        solution: plan,
        bound,
        statistics,
    }
}

fn solver(deadline: Deadline) -> SolverOptions {
    SolverOptions {
        deadline,
        ..SolverOptions::default()
    }
}

/// Finds the best layout of the instance over all cuts and checkpointings that the framework takes, or, as
/// `layout choice`, by its own cut and one flag.
///
/// # Errors
///
/// When the solver fails, or its answer fails the verification.
pub fn plan(instance: &Instance, options: &PlanOptions) -> Result<Outcome, PlanError> {
    let deadline = options.deadline;
    let table = CostTable::within(instance, options.formulation, deadline);
    let count = options.alternatives + 1;
    let solution = Solution::of(&table, count, options, Excluding::Shown, deadline)?;
    let outcome = match solution.within_all() {
        Solved::Optimal { solution: best, .. } => {
            Outcome::Optimal(solution.plan(&best, best.objective, count, deadline)?)
        }
        Solved::Feasible {
            solution: best,
            bound,
            ..
        } => {
            let plan = solution.plan(&best, bound.floor() as i64, count, deadline)?;
            // A limit that comes when nothing better is left changes nothing.
            if plan.gap_is_closed() {
                Outcome::Optimal(plan)
            } else {
                Outcome::Feasible(plan)
            }
        }
        Solved::Infeasible { .. } => {
            let proof = solution.proof();
            Outcome::Infeasible(infeasibility::explain(instance, proof, deadline)?)
        }
        Solved::Unknown { .. } => Outcome::Unknown(solution.proof()),
    };
    drop(solution);
    with_safer(outcome, table, options, deadline)
}

/// The outcome with a safer layout beside the chosen one, where that has a risk and there is time.
fn with_safer(
    mut outcome: Outcome,
    table: CostTable,
    options: &PlanOptions,
    deadline: Deadline,
) -> Result<Outcome, PlanError> {
    let (Outcome::Optimal(plan) | Outcome::Feasible(plan)) = &mut outcome else {
        return Ok(outcome);
    };
    let risk = plan.choice.prediction.oom_probability;
    if risk < NEGLIGIBLE_RISK {
        return Ok(outcome);
    }
    // Of the table only the capacity differs.
    let cautious = Instance {
        max_oom_risk: risk / 2.0,
        ..table.instance.clone()
    };
    let options = PlanOptions {
        pruning: Pruning::ByBounds,
        ..*options
    };
    let safer = if deadline.is_over() {
        Best::Unknown
    } else {
        best_of(&table.at_risk_of(&cautious), &options, deadline)?
    };
    if !safer.is_proven() {
        plan.proof.cut_short.push(CutShort::Safer);
    }
    plan.safer = safer.into_layout();
    Ok(outcome)
}

/// The program that gives the answer, as it is written to a file, and which combinations it has.
///
/// # Errors
///
/// When the solver fails.
pub fn written_program(
    instance: &Instance,
    options: &PlanOptions,
) -> Result<(Option<Model>, String), PlanError> {
    let deadline = options.deadline;
    let table = CostTable::within(instance, options.formulation, deadline);
    let solution = Solution::of(&table, 1, options, Excluding::Shown, deadline)?;
    let proof = solution.proof();
    let scope = format!(
        "what was solved: of {} combinations, those that no bound on the step time excludes; step time in \
         ms, memory in MiB",
        proof.combinations.all
    );
    Ok((solution.report.model, scope))
}

/// The best layout alone.
pub(super) fn best(instance: &Instance, options: &PlanOptions) -> Result<Best, PlanError> {
    let deadline = options.deadline;
    let table = CostTable::within(instance, options.formulation, deadline);
    best_of(&table, options, deadline)
}

/// The best layout of a table alone.
fn best_of(
    table: &CostTable,
    options: &PlanOptions,
    deadline: Deadline,
) -> Result<Best, PlanError> {
    let options = PlanOptions {
        diverse: AxisSet::EMPTY,
        ..*options
    };
    let solution = Solution::of(table, 1, &options, Excluding::LeftOut, deadline)?;
    let decoded = |plan: &ProgramPlan| -> Result<Evaluated, PlanError> {
        let bound = plan.objective;
        Ok(solution.plan(plan, bound, 1, deadline)?.choice)
    };
    Ok(match solution.within_all() {
        Solved::Optimal { solution, .. } => Best::Optimal(decoded(&solution)?),
        Solved::Feasible { solution, .. } => Best::Feasible(decoded(&solution)?),
        Solved::Infeasible { .. } => Best::Infeasible,
        Solved::Unknown { .. } => Best::Unknown,
    })
}
