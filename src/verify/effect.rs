//! Whether a change of a figure or name of the job changes a number of a statement.

use crate::certificate::format::RULES;
use crate::certificate::parameters::{NAMED, PARAMETERS};
use crate::cost_model::CellCosts;
use crate::instance::Instance;
use crate::job::Job;
use crate::plan::Formulation;
use crate::planner::quantise::{self, CellUnits};
use crate::rule::Rule;

use super::budget::{Budget, TooLarge};
use super::permission::permitted;
use super::problem::{Problem, within_limits};
use super::space;
use super::statement::{Claim, Settlement, Statement, Times, quantum, winner_numbers};

/// A change of one figure or name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Probe {
    /// The figure at a position takes another value.
    Figure(usize, f64),
    /// The choice at a position takes another name.
    Name(usize, usize),
    /// Measured runs say nothing beyond the formulas.
    NoDiscrepancy,
}

impl Probe {
    /// Makes the change.
    pub(super) fn apply(self, job: &mut Job) {
        match self {
            Self::Figure(index, value) => (PARAMETERS[index].set)(job, value),
            Self::Name(index, name) => (NAMED[index].set)(job, name),
            Self::NoDiscrepancy => job.cluster.discrepancy = None,
        }
    }

    /// The rules with a table that the subject decides.
    const fn rules(self) -> &'static [Rule] {
        match self {
            Self::Figure(index, _) => PARAMETERS[index].rules,
            Self::Name(index, _) => NAMED[index].rules,
            Self::NoDiscrepancy => &[],
        }
    }

    /// Two probes of the same subject cannot be tried together.
    const fn subject(self) -> (bool, usize) {
        match self {
            Self::Figure(index, _) => (false, index),
            Self::Name(index, _) => (true, index),
            Self::NoDiscrepancy => (true, usize::MAX),
        }
    }
}

/// The probes on costs that change no number of the statement. The job is that of the statement, or one
/// with the same numbers.
///
/// Probes of different subjects are tried together: where that leaves the coefficients of a
/// combination as they are, none of them matters to it.
pub(super) fn silent(
    statement: &Statement,
    job: &Job,
    probes: &[Probe],
    budget: &mut Budget,
) -> Result<Vec<Probe>, TooLarge> {
    let mut silent = Vec::new();
    let mut waiting: Vec<Probe> = Vec::new();
    for &probe in probes {
        let instance = changed(statement, job, probe);
        if !changes_tables(statement, &instance, probe.rules())
            && !changes_winner(statement, &instance)
        {
            waiting.push(probe);
        }
    }
    while !waiting.is_empty() {
        let mut round: Vec<Probe> = Vec::new();
        waiting.retain(|&probe| {
            let taken = round.iter().any(|other| other.subject() == probe.subject());
            if !taken {
                round.push(probe);
            }
            taken
        });
        silent.extend(silent_together(statement, job, &round, budget)?);
    }
    Ok(silent)
}

/// A probe with the job that it makes.
struct Trial {
    probe: Probe,
    job: Job,
    /// Times of the combinations so far.
    times: Vec<Times>,
}

fn silent_together(
    statement: &Statement,
    job: &Job,
    probes: &[Probe],
    budget: &mut Budget,
) -> Result<Vec<Probe>, TooLarge> {
    let instance = statement.claim.instance;
    let changed = |probes: &mut dyn Iterator<Item = Probe>| {
        let mut job = job.clone();
        probes.for_each(|probe| probe.apply(&mut job));
        job
    };
    let mut trials: Vec<Trial> = probes
        .iter()
        .map(|&probe| Trial {
            probe,
            job: changed(&mut std::iter::once(probe)),
            times: Vec::new(),
        })
        .collect();
    let mut together = changed(&mut probes.iter().copied());
    let learned = job.cluster.discrepancy.as_ref();
    let learned_points = learned.map_or(0, |learned| 20 * learned.points.len() as u64);
    for index in from_the_best(statement) {
        let open = &statement.open[index];
        budget.spend(u64::from(open.cell.pipeline_parallel) + learned_points)?;
        let all = CellUnits::new(&CellCosts::new(&together, &open.cell), statement.quantum);
        if settles_alike(statement, index, &all) {
            for trial in &mut trials {
                trial.times.push(statement.times[index]);
            }
            continue;
        }
        let before = trials.len();
        let mut kept = Vec::with_capacity(before);
        for mut trial in trials {
            let costs = CellCosts::new(&trial.job, &open.cell);
            let units = CellUnits::new(&costs, statement.quantum);
            trial.times.push(Times::new(instance, &costs));
            if !changes_settlement(statement, index, &units, budget)? {
                kept.push(trial);
            }
        }
        trials = kept;
        if trials.is_empty() {
            return Ok(Vec::new());
        }
        if trials.len() < before {
            together = changed(&mut trials.iter().map(|trial| trial.probe));
        }
    }
    trials.retain(|trial| quantum(&trial.times) == statement.quantum);
    Ok(trials.into_iter().map(|trial| trial.probe).collect())
}

/// The combinations, those that were solved first: they say most.
fn from_the_best(statement: &Statement) -> Vec<usize> {
    let mut order: Vec<usize> = (0..statement.open.len()).collect();
    order.sort_by_key(|&index| match statement.settlements[index] {
        Settlement::Solved(_) => 0,
        Settlement::Open(_) | Settlement::Bottleneck(_) => 1,
        _ => 2,
    });
    order
}

/// Whether the combination would be settled otherwise with other coefficients.
fn changes_settlement(
    statement: &Statement,
    index: usize,
    units: &CellUnits,
    budget: &mut Budget,
) -> Result<bool, TooLarge> {
    if settles_alike(statement, index, units) {
        return Ok(false);
    }
    let instance = statement.claim.instance;
    if !within_limits(units, instance.job.transformer.layers, statement.capacity) {
        return Ok(true);
    }
    let open = &statement.open[index];
    let formulation = statement.claim.formulation;
    let problem = Problem::new(instance, formulation, open, units, statement.capacity);
    let settled = statement.settle(&problem, open, budget)?;
    Ok(settled != statement.settlements[index])
}

/// Whether the coefficients that settle the combination are the same: all but the times of recomputing
/// where perfect balance is stated, which is without.
fn settles_alike(statement: &Statement, index: usize, units: &CellUnits) -> bool {
    let base = &statement.units[index];
    let staged = statement.claim.formulation == Formulation::Staged;
    let balanced = matches!(
        statement.settlements[index],
        Settlement::Infeasible(..) | Settlement::Excluded(..) | Settlement::Balance(_)
    );
    if !(staged && balanced) {
        return units == base;
    }
    let but_recomputing = |units: &CellUnits| {
        (
            units.max_weight,
            units.sum_weight,
            units.delta_weight,
            units.constant,
            units.layer_time,
            units.layer_delta,
        )
    };
    let memory = |units: &CellUnits| {
        (
            units.layer_memory,
            units.activations,
            units.kept,
            units.workspace,
        )
    };
    but_recomputing(units) == but_recomputing(base)
        && memory(units) == memory(base)
        && units.stages == base.stages
}

/// Whether the capacity or a number of the winner would be another.
fn changes_winner(statement: &Statement, instance: &Instance) -> bool {
    let capacity = quantise::capacity(instance);
    if capacity != statement.capacity {
        return true;
    }
    let Some(index) = statement.winner_index else {
        return false;
    };
    let open = &statement.open[index];
    let costs = CellCosts::new(&instance.job, &open.cell);
    let units = CellUnits::new(&costs, statement.quantum);
    if !within_limits(&units, instance.job.transformer.layers, capacity) {
        return true;
    }
    let claim = Claim {
        instance,
        ..statement.claim
    };
    let problem = Problem::new(instance, claim.formulation, open, &units, capacity);
    winner_numbers(&claim, statement.quantum, &problem) != statement.numbers
}

/// The instance of the statement with this job, changed.
fn changed(statement: &Statement, job: &Job, probe: Probe) -> Instance {
    let mut instance = Instance {
        job: job.clone(),
        ..statement.claim.instance.clone()
    };
    probe.apply(&mut instance.job);
    instance
}

/// Whether an amount in the table of one of these rules would be another.
fn changes_tables(statement: &Statement, instance: &Instance, rules: &[Rule]) -> bool {
    let mut tables = RULES.iter().filter(|(rule, _)| rules.contains(rule));
    tables.any(|&(rule, axes)| {
        let table = |instance| space::amounts(instance, rule, axes, usize::MAX);
        table(instance) != table(statement.claim.instance)
    })
}

/// Whether every number of the statement is the same for this job, which has the same rules on layers
/// and recomputation.
pub(super) fn is_same(
    statement: &Statement,
    job: &Job,
    budget: &mut Budget,
) -> Result<bool, TooLarge> {
    let instance = Instance {
        job: job.clone(),
        ..statement.claim.instance.clone()
    };
    if changes_tables(statement, &instance, &Rule::ALL) || changes_winner(statement, &instance) {
        return Ok(false);
    }
    let mut times = Vec::with_capacity(statement.open.len());
    for index in from_the_best(statement) {
        let costs = CellCosts::new(job, &statement.open[index].cell);
        let units = CellUnits::new(&costs, statement.quantum);
        budget.spend(units.stages.len() as u64)?;
        times.push(Times::new(&instance, &costs));
        if changes_settlement(statement, index, &units, budget)? {
            return Ok(false);
        }
    }
    Ok(quantum(&times) == statement.quantum)
}

/// Whether another name changes a rule's table, what is permitted of the winner, or how a combination is
/// settled.
pub(super) fn changes_rules(
    statement: &Statement,
    job: &Job,
    probe: Probe,
    budget: &mut Budget,
) -> Result<bool, TooLarge> {
    let other = changed(statement, job, probe);
    if changes_tables(statement, &other, probe.rules()) {
        return Ok(true);
    }
    let claim = statement.claim;
    for index in from_the_best(statement) {
        let (open, units) = (&statement.open[index], &statement.units[index]);
        let problem = Problem::new(&other, claim.formulation, open, units, statement.capacity);
        let winner = claim
            .winner
            .filter(|_| statement.winner_index == Some(index));
        if winner.is_some_and(|winner| !permitted(&problem, winner))
            || statement.settle(&problem, open, budget)? != statement.settlements[index]
        {
            return Ok(true);
        }
    }
    Ok(false)
}
