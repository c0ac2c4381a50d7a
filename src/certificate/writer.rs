//! From an answer of the planner to its certificate.

use std::collections::{BTreeMap, BTreeSet};

use formulations::staged::StagedError;

use crate::axis::{Assignment, Axis, Candidate};
use crate::cost_model::pipeline::FILL_STEPS;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::Layout;
use crate::plan::{Evaluated, Formulation, Outcome};
use crate::planner::cost_table::CostTable;
use crate::verify::budget::Budget;
use crate::verify::canonical::simplest;
use crate::verify::statement::{Claim, Settlement, Statement};

use super::document::{AxisValues, Certificate, Combinations, StatedCosts, Winner, WinnerStage};
use super::format::{ORDER, SCHEMA};
use super::parameters::PARAMETERS;
use super::settle::{self, Goal};
use super::{constraint, costs, job, rules, space};

/// Why an answer has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertifyError {
    /// The checker would give up on it.
    #[error(
        "the space is too large for a certificate
hint: pin some axes or list fewer values in `[search]`"
    )]
    TooLarge,
    /// A figure is beyond what certificates state.
    #[error("a figure of the job is too large or too small for a certificate")]
    Figures,
    /// The solver failed on one combination.
    #[error("a combination cannot be settled")]
    Solver(#[from] StagedError),
    /// The checker finds that other combinations break no rule.
    #[error("the checker disagrees with the planner on the rules; please report this instance")]
    Disagreement,
}

/// The certificate of an answer of [`crate::planner::plan`] to this instance.
///
/// # Errors
///
/// When the space is too large to be checked.
pub fn certify(instance: &Instance, outcome: &Outcome) -> Result<Certificate, CertifyError> {
    // The last digit of a figure may be another in the document's units.
    let stated = job::write(&instance.job, &[false; PARAMETERS.len()]);
    let job = job::read(&stated).map_err(|_| CertifyError::Figures)?;
    let mut instance = Instance {
        job,
        ..instance.clone()
    };
    instance.space.constraints = constraint::sorted(&instance.space.constraints);
    let instance = &instance;
    let table = CostTable::new(instance);
    let formulation = outcome.proof().formulation;
    let choice = outcome.plan().map(|plan| &plan.choice);
    let objective = choice.and_then(|choice| settle::objective(&table, &choice.layout));
    let goal = Goal {
        objective,
        complete: matches!(outcome, Outcome::Optimal(_) | Outcome::Infeasible(_)),
    };
    let combinations = combinations(&table, formulation, goal)?;
    let costs = costs(&table, formulation);
    let constraints = instance.space.constraints.iter().map(|row| {
        let layout = choice.map(|choice| &choice.layout);
        constraint::write(row, rules::differences(instance, row, layout))
    });
    let claim = Claim {
        instance,
        formulation,
        complete: goal.complete,
        winner: choice.map(|choice| &choice.layout),
    };
    let (stated, left_out) = simplest_job(claim, &combinations)?;
    // The objective counts in steps of the schedule's bubble multiplier.
    let quantum_s = (!costs.is_empty()).then(|| table.quantum.step_time(FILL_STEPS as i64).value());
    let open = combinations.open.iter().map(|entry| entry.1);
    let bound = match outcome {
        Outcome::Optimal(_) => objective,
        Outcome::Infeasible(_) => None,
        Outcome::Feasible(_) | Outcome::Unknown(_) => objective.into_iter().chain(open).min(),
    };
    let winner = choice
        .zip(objective)
        .map(|(choice, objective)| winner(&table, formulation, choice, objective));
    Ok(Certificate {
        schema: SCHEMA.to_owned(),
        formulation: formulation.as_str().to_owned(),
        status: outcome.status().to_owned(),
        job: job::write(&stated, &left_out),
        max_oom_risk: instance.max_oom_risk,
        space: ORDER.map(|axis| axis_values(instance, axis)).to_vec(),
        forbidden: rules::forbidden(instance),
        constraints: constraints.collect(),
        quantum_s,
        capacity_kib: table.capacity,
        costs,
        rules: rules::tables(instance),
        combinations,
        bound,
        winner,
    })
}

/// The simplest job of which the statements are the same, and the figures that do not matter, by what
/// the checker would find for itself.
fn simplest_job(
    claim: Claim,
    combinations: &Combinations,
) -> Result<(Job, Vec<bool>), CertifyError> {
    let pairs = |list: &[(u64, i64)], settlement: fn(i64) -> Settlement| {
        let settled = list
            .iter()
            .map(|&(position, value)| (position, settlement(value)));
        settled.collect::<Vec<_>>()
    };
    let infeasible = combinations.infeasible.iter();
    let mut settled: Vec<(u64, Settlement)> = infeasible
        .map(|&(position, stage, short)| (position, Settlement::Infeasible(stage, short)))
        .collect();
    let excluded = combinations.excluded.iter();
    settled.extend(
        excluded.map(|&(position, row, missed)| (position, Settlement::Excluded(row, missed))),
    );
    settled.extend(pairs(&combinations.blocked, Settlement::Blocked));
    settled.extend(pairs(&combinations.balance, Settlement::Balance));
    settled.extend(pairs(&combinations.bottleneck, Settlement::Bottleneck));
    settled.extend(pairs(&combinations.solved, Settlement::Solved));
    settled.extend(pairs(&combinations.open, Settlement::Open));
    settled.sort_unstable_by_key(|settled| settled.0);
    let budget = Budget::new();
    let too_large = |_| CertifyError::TooLarge;
    let statement = Statement::of(claim, &settled, &budget).map_err(too_large)?;
    let statement = statement.ok_or(CertifyError::Disagreement)?;
    simplest(&statement, &budget)
        .map_err(too_large)?
        .ok_or(CertifyError::Figures)
}

fn axis_values(instance: &Instance, axis: Axis) -> AxisValues {
    let codes = instance.space.values(axis).iter();
    AxisValues {
        axis: axis.as_str().to_owned(),
        values: codes.map(|&code| space::value(axis, code)).collect(),
    }
}

fn combinations(
    table: &CostTable,
    formulation: Formulation,
    goal: Goal,
) -> Result<Combinations, CertifyError> {
    let sizes = ORDER.map(|axis| table.instance.space.values(axis).len() as u64);
    let all = product(&sizes).ok_or(CertifyError::TooLarge)?;
    let position = |candidate: &Candidate| position(table.instance, candidate);
    let mut found = Combinations::default();
    match formulation {
        Formulation::Staged => settle::staged(table, goal, position, &mut found)?,
        Formulation::LayoutChoice => settle::layout_choice(table, goal, position, &mut found),
    }
    found.total = match formulation {
        Formulation::Staged => all / table.instance.space.values(Axis::Checkpointing).len() as u64,
        Formulation::LayoutChoice => all,
    };
    let settled = found.infeasible.len()
        + found.excluded.len()
        + found.blocked.len()
        + found.balance.len()
        + found.bottleneck.len()
        + found.solved.len()
        + found.open.len();
    found.broken = found.total - settled as u64;
    Ok(found)
}

/// The number of a combination.
fn position(instance: &Instance, candidate: &Candidate) -> u64 {
    ORDER.iter().fold(0, |position, &axis| {
        let values = instance.space.values(axis);
        let code = candidate.code(axis);
        let digit = values.iter().position(|&value| value == code).unwrap_or(0);
        position * values.len() as u64 + digit as u64
    })
}

/// The costs of the first combination with each value of each axis.
fn costs(table: &CostTable, formulation: Formulation) -> Vec<StatedCosts> {
    let open = || {
        let entries = table.entries.iter();
        entries.filter_map(|entry| Some((&entry.candidate, entry.cell?)))
    };
    let own: Vec<u64> = open()
        .map(|(candidate, _)| position(table.instance, candidate))
        .collect();
    // Of `staged`, combinations of one cell are one.
    let mut of_cell = vec![u64::MAX; table.cells.len()];
    for ((_, cell), &own) in open().zip(&own) {
        of_cell[cell] = of_cell[cell].min(own);
    }
    let position = |cell: usize, own: u64| match formulation {
        Formulation::Staged => of_cell[cell],
        Formulation::LayoutChoice => own,
    };
    let mut first: BTreeMap<(Axis, u32), (u64, usize)> = BTreeMap::new();
    for ((candidate, cell), &own) in open().zip(&own) {
        for axis in Axis::ALL {
            let place = (position(cell, own), cell);
            let key = (axis, candidate.code(axis));
            let known = first.entry(key).or_insert(place);
            *known = (*known).min(place);
        }
    }
    let chosen: BTreeSet<(u64, usize)> = first.into_values().collect();
    let with_costs = chosen.into_iter().map(|(at, index)| {
        let of_it = |&((_, cell), &own): &((&Candidate, usize), &u64)| {
            cell == index && position(cell, own) == at
        };
        let all: Vec<&Candidate> = (open().zip(&own).filter(of_it))
            .map(|((candidate, _), _)| candidate)
            .collect();
        let mut flags: Vec<_> = all
            .iter()
            .map(|candidate| candidate.checkpointing)
            .collect();
        flags.sort_unstable();
        let residual = costs::residual(&table.instance.job, &all[0].cell);
        costs::stated(at, &table.cells[index], &flags, residual)
    });
    with_costs.collect()
}

fn product(sizes: &[u64]) -> Option<u64> {
    sizes
        .iter()
        .try_fold(1_u64, |product, &size| product.checked_mul(size))
}

fn winner(
    table: &CostTable,
    formulation: Formulation,
    choice: &Evaluated,
    objective: i64,
) -> Winner {
    let layout = &choice.layout;
    let candidate = candidate(layout);
    let decided =
        |axis: &Axis| formulation == Formulation::LayoutChoice || *axis != Axis::Checkpointing;
    let axes = ORDER.into_iter().filter(decided);
    let assignment = Assignment(axes.map(|axis| (axis, candidate.code(axis))).collect());
    let entry = table
        .entries
        .iter()
        .find_map(|entry| entry.cell.filter(|_| entry.candidate.cell == layout.cell));
    let units = entry.map(|cell| &table.cells[cell]);
    let memory = layout.stages.iter().enumerate();
    let memory = memory.filter_map(|(index, stage)| Some(units?.stage_memory(index, stage)));
    Winner {
        values: space::values(&assignment),
        stages: layout
            .stages
            .iter()
            .map(|stage| WinnerStage {
                layers: stage.layers,
                recomputed: stage.recomputed,
            })
            .collect(),
        objective,
        mfu_ppb: table
            .quantum
            .parts_per_billion(&table.instance.job, objective),
        memory_kib: memory.collect(),
        oom_probability_ppb: (choice.prediction.oom_probability * 1e9).round() as i64,
    }
}

/// The combination of a layout, whose flag is that of its first stage.
fn candidate(layout: &Layout) -> Candidate {
    use crate::layout::Checkpointing;
    let first = layout.stages.first().copied().unwrap_or_default();
    let does = |flag: &&Checkpointing| match flag.recompute() {
        None => first.checkpointed_layers() == 0,
        Some(mode) => first.recomputed[mode as usize] == first.layers,
    };
    Candidate {
        cell: layout.cell,
        checkpointing: *Checkpointing::ALL
            .iter()
            .find(does)
            .unwrap_or(&Checkpointing::None),
    }
}
