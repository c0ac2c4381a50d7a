//! Plans with the program `layout choice`: one-hot axes, the framework's own cut into stages, one
//! checkpointing flag for all layers.

use formulations::layout_choice as program;
use formulations::model::Model;
use formulations::solve::{Outcome as Solved, SolverOptions};

use crate::instance::Instance;
use crate::plan::{Extent, Formulation, Outcome, Plan, Proof};
use crate::quantity::Mfu;

use super::best_first::{self, Evaluation, Walk};
use super::cost_table::CostTable;
use super::objective::least_step_time;
use super::{
    Deadline, PlanError, PlanOptions, Pruning, classes, encode, infeasibility, quantise, verify,
};

/// Combinations over capacity that the program carries besides those that fit.
const CARRIED: usize = 256;

/// Solver and version in proofs.
pub(super) const SOLVER: &str = "HiGHS";

/// Finds the best layout of the instance among the framework's own cuts.
///
/// # Errors
///
/// When the solver fails, or its answer fails the verification.
pub fn plan(instance: &Instance, options: &PlanOptions) -> Result<Outcome, PlanError> {
    let deadline = Deadline::after(options.time_limit);
    let table = CostTable::within(instance, options.time_limit);
    let candidates = table.entries.iter().map(|entry| entry.candidate);
    let classes = classes::classes(candidates, options.diverse);
    let count = options.alternatives + 1;
    let walk = best_first::walk_classes(&table, table.capacity, count, |index| classes[index]);
    let indices = program_indices(&table, &walk, options.pruning);
    let proof = proof(&table, &walk, &indices, options.pruning);
    let data = encode::data(&table, &indices);
    let solver = SolverOptions {
        time_limit: deadline.left(),
        ..SolverOptions::default()
    };
    match program::solve(&data, &solver)? {
        Solved::Infeasible { .. } | Solved::Unknown { .. } if table.extent == Extent::Cut => {
            Ok(Outcome::Unknown(proof))
        }
        Solved::Optimal { solution, .. } | Solved::Feasible { solution, .. }
            if table.extent == Extent::Cut =>
        {
            // The matrix products alone bound what was not listed.
            let least = table.quantum.units_within(least_step_time(&instance.job));
            let bound = table.quantum.parts_per_billion(&instance.job, least);
            let bound = bound.max(solution.bound);
            let plan = decode(&table, &walk, indices[solution.item], bound, proof)?;
            Ok(Outcome::Feasible(plan))
        }
        Solved::Infeasible { .. } => Ok(Outcome::Infeasible(infeasibility::explain(
            instance, proof, deadline,
        )?)),
        Solved::Unknown { .. } => Ok(Outcome::Unknown(proof)),
        Solved::Optimal { solution, .. } => {
            let plan = decode(&table, &walk, indices[solution.item], solution.bound, proof)?;
            Ok(Outcome::Optimal(plan))
        }
        Solved::Feasible { solution, .. } => {
            let plan = decode(&table, &walk, indices[solution.item], solution.bound, proof)?;
            Ok(Outcome::Feasible(plan))
        }
    }
}

/// The program as it is written to a file, and which combinations it has: all of a space that is
/// listed whole, otherwise those that no bound excludes.
#[must_use]
pub fn written_program(instance: &Instance, options: &PlanOptions) -> (Model, String) {
    let table = CostTable::new(instance);
    let walk = best_first::walk(&table, table.capacity, options.alternatives + 1);
    let whole = table.applied_before.is_empty();
    let pruning = if whole {
        Pruning::None
    } else {
        options.pruning
    };
    let indices = program_indices(&table, &walk, pruning);
    let count = indices.len();
    let scope = if whole {
        format!("all {count} combinations of the space")
    } else {
        format!(
            "the {count} combinations that no bound excludes, of {}",
            table.entries.len()
        )
    };
    (program::build(&encode::data(&table, &indices)), scope)
}

/// The entries that the program decides among, in the order that breaks ties.
fn program_indices(table: &CostTable, walk: &Walk, pruning: Pruning) -> Vec<usize> {
    if pruning == Pruning::None {
        return (0..table.entries.len()).collect();
    }
    let carried = walk.over_capacity.iter().take(CARRIED);
    let mut indices: Vec<usize> = walk
        .best
        .iter()
        .chain(carried)
        .map(|item| item.index)
        .collect();
    indices.sort_unstable();
    indices
}

fn proof(table: &CostTable, walk: &Walk, indices: &[usize], pruning: Pruning) -> Proof {
    let broken = table
        .entries
        .iter()
        .filter(|entry| !entry.broken.is_empty())
        .count();
    // What the program carries is settled by the program, whatever else is known of it.
    let carried = indices.len() - walk.best.len().min(indices.len());
    let (infeasible, pruned) = match pruning {
        Pruning::None => (0, 0),
        Pruning::ByBounds => {
            let infeasible = broken + walk.over_capacity.len() - carried;
            (infeasible, table.entries.len() - infeasible - indices.len())
        }
    };
    Proof {
        formulation: Formulation::LayoutChoice,
        bound_mfu: Mfu::ZERO,
        bound_parts: 0,
        gap: 0.0,
        cells: table.entries.len() as u64,
        cells_infeasible: infeasible as u64,
        cells_pruned: pruned as u64,
        cells_solved: indices.len() as u64,
        extent: table.extent,
        applied_before: table
            .applied_before
            .iter()
            .map(|rule| rule.as_str())
            .collect(),
        solver: SOLVER.to_owned(),
    }
}

/// The plan of the entry that the program selected, verified.
fn decode(
    table: &CostTable,
    walk: &Walk,
    selected: usize,
    bound: i64,
    proof: Proof,
) -> Result<Plan, PlanError> {
    let entry = &table.entries[selected];
    let Some((layout, cost)) = table.exact(entry) else {
        let cause = format!(
            "the selected combination breaks a rule: {:?}",
            entry.candidate
        );
        return Err(PlanError::Verification { cause });
    };
    let choice = verify(table.instance, layout, cost.profit)?;
    let others = walk.best.iter().filter(|other| other.index != selected);
    let alternatives = others
        .map(|other| verify(table.instance, other.layout.clone(), other.cost.profit))
        .collect::<Result<_, _>>()?;
    let safer = match safer(table, choice.prediction.oom_probability) {
        Some(other) => Some(verify(table.instance, other.layout, other.cost.profit)?),
        None => None,
    };
    let gap = (bound - cost.profit) as f64 / cost.profit.max(1) as f64;
    let proof = Proof {
        bound_mfu: choice.prediction.mfu * (bound as f64 / cost.profit.max(1) as f64),
        bound_parts: bound,
        gap,
        ..proof
    };
    Ok(Plan {
        choice,
        alternatives,
        safer,
        proof,
    })
}

/// Risk of running out of memory below which no safer layout is looked for.
pub const NEGLIGIBLE_RISK: f64 = 5e-3;

/// The best layout with at most half of `risk`.
fn safer(table: &CostTable, risk: f64) -> Option<Evaluation> {
    if risk < NEGLIGIBLE_RISK {
        return None;
    }
    let halved = Instance {
        max_oom_risk: risk / 2.0,
        ..table.instance.clone()
    };
    let capacity = quantise::capacity(&halved).min(table.capacity);
    best_first::walk(table, capacity, 1).best.pop()
}
