//! Whether a change of a figure or name of the job changes a number of a statement.

use rayon::prelude::*;

use crate::certificate::format::RULES;
use crate::certificate::parameters::{NAMED, PARAMETERS};
use crate::cost_model::CellCosts;
use crate::instance::Instance;
use crate::job::Job;
use crate::plan::Formulation;
use crate::planner::quantise::{self, CellUnits, StageUnits};
use crate::rule::Rule;

use super::budget::{Budget, TooLarge};
use super::examples::{Example, times_of};
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
    /// The measured run at a position says nothing beyond the formulas.
    Run(usize),
    /// No measured run does.
    Runs,
}

impl Probe {
    /// Makes the change.
    pub(super) fn apply(self, job: &mut Job) {
        let learned = &mut job.cluster.discrepancy;
        match self {
            Self::Figure(index, value) => (PARAMETERS[index].set)(job, value),
            Self::Name(index, name) => (NAMED[index].set)(job, name),
            Self::Run(index) => {
                if let Some(learned) = learned {
                    learned.weights[index] = 0.0;
                }
            }
            Self::Runs => *learned = None,
        }
    }

    /// Whether the job is already so.
    fn changes_nothing(self, job: &Job) -> bool {
        match self {
            Self::Figure(index, value) => (PARAMETERS[index].get)(job).total_cmp(&value).is_eq(),
            Self::Name(index, name) => (NAMED[index].get)(job) == name,
            Self::Run(_) | Self::Runs => false,
        }
    }

    /// The rules with a table that the subject decides.
    const fn rules(self) -> &'static [Rule] {
        match self {
            Self::Figure(index, _) => PARAMETERS[index].rules,
            Self::Name(index, _) => NAMED[index].rules,
            Self::Run(_) | Self::Runs => &[],
        }
    }

    /// Two probes of the same subject cannot be tried together.
    const fn subject(self) -> (u8, usize) {
        match self {
            Self::Figure(index, _) => (0, index),
            Self::Name(index, _) => (1, index),
            Self::Run(index) => (2, index),
            Self::Runs => (3, 0),
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
    budget: &Budget,
) -> Result<Vec<Probe>, TooLarge> {
    let mut silent = Vec::new();
    let mut waiting: Vec<Probe> = Vec::new();
    for &probe in probes {
        if probe.changes_nothing(job) {
            silent.push(probe);
            continue;
        }
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

/// Combinations that are tried at once; the first of all alone, since they say most.
const AT_ONCE: usize = 4096;

fn silent_together(
    statement: &Statement,
    job: &Job,
    probes: &[Probe],
    budget: &Budget,
) -> Result<Vec<Probe>, TooLarge> {
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
    trials.retain(|trial| keeps_examples(statement, &trial.job));
    let mut together = changed(&mut trials.iter().map(|trial| trial.probe));
    let order = from_the_best(statement);
    for indices in portions(&order) {
        let tried = indices.par_iter();
        let tried = tried.map(|&index| try_each(statement, index, &together, &trials, budget));
        let tried: Vec<Vec<Option<Times>>> = tried.collect::<Result<_, _>>()?;
        let before = trials.len();
        for (number, mut trial) in std::mem::take(&mut trials).into_iter().enumerate() {
            let times = tried.iter().map(|times| times[number]);
            if let Some(times) = times.collect::<Option<Vec<Times>>>() {
                trial.times.extend(times);
                trials.push(trial);
            }
        }
        if trials.is_empty() {
            return Ok(Vec::new());
        }
        if trials.len() < before {
            together = changed(&mut trials.iter().map(|trial| trial.probe));
        }
    }
    let keeps_quantum =
        |trial: &Trial| trial.times.is_empty() || quantum(&trial.times) == statement.quantum;
    trials.retain(keeps_quantum);
    Ok(trials.into_iter().map(|trial| trial.probe).collect())
}

/// Combinations that are tried one after the other.
const FIRST: usize = 64;

/// The first ones by themselves, the others some at once.
fn portions(order: &[usize]) -> impl Iterator<Item = &[usize]> {
    let (first, others) = order.split_at(order.len().min(FIRST));
    first.chunks(1).chain(others.chunks(AT_ONCE))
}

/// For each trial the times of a combination, if that is settled and stated as it is.
fn try_each(
    statement: &Statement,
    index: usize,
    together: &Job,
    trials: &[Trial],
    budget: &Budget,
) -> Result<Vec<Option<Times>>, TooLarge> {
    let open = &statement.open[index];
    let learned = together.cluster.discrepancy.as_ref();
    let points = learned.map_or(0, |learned| 20 * learned.points.len() as u64);
    budget.spend(u64::from(open.cell.pipeline_parallel) + points)?;
    let costs = CellCosts::new(together, &open.cell);
    let all = CellUnits::new(&costs, statement.quantum);
    let keeps_time = all.layer_time == statement.units[index].layer_time;
    if keeps_time
        && settles_alike(statement, index, &all)
        && states_alike(statement, index, &costs, together)
    {
        return Ok(vec![Some(statement.times[index]); trials.len()]);
    }
    let each = trials.iter().map(|trial| {
        budget.spend(u64::from(open.cell.pipeline_parallel) + points)?;
        let costs = CellCosts::new(&trial.job, &open.cell);
        let units = CellUnits::new(&costs, statement.quantum);
        let changes = !states_alike(statement, index, &costs, &trial.job)
            || changes_settlement(statement, index, &units, budget)?;
        Ok((!changes).then(|| Times::new(statement.claim.instance, &costs)))
    });
    each.collect()
}

/// The combinations, those first that say most: whose costs are stated, then those that were solved.
fn from_the_best(statement: &Statement) -> Vec<usize> {
    let mut order: Vec<usize> = (0..statement.open.len()).collect();
    order.sort_by_key(|&index| match statement.settlements[index] {
        _ if example_of(statement, index).is_some() => 0,
        Settlement::Solved(_) | Settlement::Blocked(_) => 1,
        Settlement::Open(_) | Settlement::Bottleneck(_) => 2,
        _ => 3,
    });
    order
}

/// The combination as one whose costs are stated, if it is one.
fn example_of<'a>(statement: &'a Statement, index: usize) -> Option<&'a Example> {
    let position = statement.open[index].position;
    let examples = &statement.examples;
    let place = examples.binary_search_by_key(&position, |example| example.position);
    Some(&examples[place.ok()?]).filter(|example| example.open == Some(index))
}

/// Whether the stated costs of combinations that break a rule are the same, and the unit of time if that
/// comes from them.
fn keeps_examples(statement: &Statement, job: &Job) -> bool {
    let (instance, examples) = (statement.claim.instance, &statement.examples);
    let mut broken = examples.iter().filter(|example| example.open.is_none());
    broken.all(|example| example.costs(job) == example.costs)
        && (!statement.open.is_empty()
            || quantum(&times_of(instance, job, examples)) == statement.quantum)
}

/// Whether the stated costs are the same, where they are stated.
fn states_alike(statement: &Statement, index: usize, costs: &CellCosts, job: &Job) -> bool {
    example_of(statement, index).is_none_or(|example| example.costs_by(job, costs) == example.costs)
}

/// Whether the combination would be settled otherwise with other coefficients.
fn changes_settlement(
    statement: &Statement,
    index: usize,
    units: &CellUnits,
    budget: &Budget,
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

/// Whether the coefficients that settle the combination are the same: those of memory where nothing
/// fits or keeps the rows, all but the times of recomputing where perfect balance decides without.
fn settles_alike(statement: &Statement, index: usize, units: &CellUnits) -> bool {
    let base = &statement.units[index];
    let staged = statement.claim.formulation == Formulation::Staged;
    match statement.settlements[index] {
        Settlement::Infeasible(..) | Settlement::Excluded(..) => same_memory(units, base),
        Settlement::Balance(_) if staged => {
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
            but_recomputing(units) == but_recomputing(base)
                && units.stages == base.stages
                && same_memory(units, base)
        }
        _ => units == base,
    }
}

/// Whether the coefficients of memory, which alone decide whether a layout fits, are the same.
fn same_memory(a: &CellUnits, b: &CellUnits) -> bool {
    let of_stage = |stage: &StageUnits| (stage.fixed_memory, stage.in_flight);
    let layer = |units: &CellUnits| {
        (
            units.layer_memory,
            units.activations,
            units.kept,
            units.workspace,
        )
    };
    layer(a) == layer(b) && (a.stages.iter().map(of_stage)).eq(b.stages.iter().map(of_stage))
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

/// Whether a statement for another job is the same, where the rules on layers and recomputation are.
pub(super) fn is_same(
    statement: &Statement,
    other: &Statement,
    budget: &Budget,
) -> Result<bool, TooLarge> {
    let instance = other.claim.instance;
    let costs = |statement: &Statement| {
        let examples = statement.examples.iter();
        examples
            .map(|example| example.costs.clone())
            .collect::<Vec<_>>()
    };
    if changes_tables(statement, instance, &Rule::ALL)
        || changes_winner(statement, instance)
        || other.quantum != statement.quantum
        || costs(other) != costs(statement)
    {
        return Ok(false);
    }
    let changes = (0..statement.open.len())
        .into_par_iter()
        .map(|index| changes_settlement(statement, index, &other.units[index], budget));
    let changes: Vec<bool> = changes.collect::<Result<_, TooLarge>>()?;
    Ok(!changes.contains(&true))
}

/// Whether another name changes a rule's table, what is permitted of the winner, or how a combination is
/// settled.
pub(super) fn changes_rules(
    statement: &Statement,
    job: &Job,
    probe: Probe,
    budget: &Budget,
) -> Result<bool, TooLarge> {
    let other = changed(statement, job, probe);
    if changes_tables(statement, &other, probe.rules()) {
        return Ok(true);
    }
    let claim = statement.claim;
    let changes = |&index: &usize| {
        let (open, units) = (&statement.open[index], &statement.units[index]);
        let problem = Problem::new(&other, claim.formulation, open, units, statement.capacity);
        let winner = claim
            .winner
            .filter(|_| statement.winner_index == Some(index));
        let ranges = || {
            let before = statement.problem(index);
            let mut rows = problem.rows.iter();
            rows.any(|row| problem.range(row) != before.range(row))
        };
        Ok(winner.is_some_and(|winner| !permitted(&problem, winner))
            || example_of(statement, index).is_some() && ranges()
            || statement.settle(&problem, open, budget)? != statement.settlements[index])
    };
    for indices in portions(&from_the_best(statement)) {
        let changes: Vec<bool> = indices.par_iter().map(changes).collect::<Result<_, _>>()?;
        if changes.contains(&true) {
            return Ok(true);
        }
    }
    Ok(false)
}
