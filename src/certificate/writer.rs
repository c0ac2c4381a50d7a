//! From an answer of the planner to its certificate.

use crate::axis::{Assignment, Axis, Candidate};
use crate::cost_model::pipeline::FILL_STEPS;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::Layout;
use crate::plan::{Evaluated, Formulation, Outcome};
use crate::planner::cost_table::CostTable;
use crate::verify::budget::{Budget, TooLarge};
use crate::verify::canonical::{is_stated, simplest};
use crate::verify::runs;
use crate::verify::slack;
use crate::verify::statement::{Claim, Settlement, Statement};
use crate::verify::winner::is_first;

use super::document::{
    AxisValues, Certificate, Combinations, ConstraintRow, StatedCosts, Winner, WinnerStage,
};
use super::format::{ORDER, SCHEMA};
use super::parameters::PARAMETERS;
use super::settle::{self, Goal, Settled};
use super::stated_costs::stated_costs;
use super::{constraint, job, rows, rules, space};

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
    /// The checker finds that other combinations break no rule.
    #[error("the checker disagrees with the planner on the rules; please report this instance")]
    Disagreement,
}

impl From<TooLarge> for CertifyError {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
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
    let mut complete = matches!(outcome, Outcome::Optimal(_) | Outcome::Infeasible(_));
    for _ in 0..MOST_ATTEMPTS {
        instance.space.forbidden = rules::effective(&instance);
        match attempt(&instance, outcome, complete)? {
            // Found when a limit came: as good as the best, but not the one that the tie rule prefers.
            Attempt::Tied => complete = false,
            Attempt::Written(certificate) => return Ok(*certificate),
            Attempt::Simpler(simpler) => instance = *simpler,
        }
    }
    Err(CertifyError::Figures)
}

/// Each attempt but the last makes something simpler.
const MOST_ATTEMPTS: usize = 1000;

/// A certificate, or what stands in its way: a simpler instance with which it proves as much.
enum Attempt {
    Written(Box<Certificate>),
    Simpler(Box<Instance>),
    /// Another layout is as good and comes first.
    Tied,
}

fn attempt(
    instance: &Instance,
    outcome: &Outcome,
    complete: bool,
) -> Result<Attempt, CertifyError> {
    let budget = Budget::new();
    let claim = Claim {
        instance,
        formulation: outcome.proof().formulation,
        complete,
        winner: outcome.plan().map(|plan| &plan.choice.layout),
    };
    let (answer, checker) = rayon::join(
        || Answer::new(claim, outcome),
        || Statement::unsettled(claim, &budget),
    );
    let (mut answer, mut statement) = (answer, checker?);
    if !statement.settle_as(&answer.settled) {
        return Err(CertifyError::Disagreement);
    }
    statement.settle_blocked(&budget)?;
    for (settled, settlement) in answer.settled.iter_mut().zip(&statement.settlements) {
        settled.1 = *settlement;
    }
    if answer.status == "optimal" && !is_first(&statement, &budget)? {
        return Ok(Attempt::Tied);
    }
    statement.claim.complete = complete || answer.status == "infeasible";
    if let Some(simpler) = simpler_instance(&statement, &budget)? {
        return Ok(Attempt::Simpler(Box::new(simpler)));
    }
    let job = simplest(&statement, &budget)?.ok_or(CertifyError::Figures)?;
    // Rows may be simpler for the simpler job.
    if job != instance.job && !instance.space.constraints.is_empty() {
        let mut simpler = instance.clone();
        simpler.job = job;
        return Ok(Attempt::Simpler(Box::new(simpler)));
    }
    let certificate = answer.certificate(&job)?;
    Ok(Attempt::Written(Box::new(certificate)))
}

/// What the planner and its programs say.
struct Answer<'a> {
    table: CostTable<'a>,
    formulation: Formulation,
    status: &'static str,
    choice: Option<&'a Evaluated>,
    objective: Option<i64>,
    settled: Vec<Settled>,
}

impl<'a> Answer<'a> {
    fn new(claim: Claim<'a>, outcome: &'a Outcome) -> Self {
        let table = CostTable::new(claim.instance);
        let (formulation, complete) = (claim.formulation, claim.complete);
        let objective = claim
            .winner
            .and_then(|layout| settle::objective(&table, layout));
        let goal = Goal {
            objective,
            complete,
        };
        let settled = settled(&table, formulation, goal);
        let is_open = |settled: &Settled| matches!(settled.1, Settlement::Open(_));
        let status = match outcome {
            // What a stopped search has not settled, these bounds may.
            Outcome::Unknown(_) if !settled.iter().any(is_open) => "infeasible",
            Outcome::Optimal(_) if !complete => "feasible",
            _ => outcome.status(),
        };
        Self {
            table,
            formulation,
            status,
            choice: outcome.plan().map(|plan| &plan.choice),
            objective,
            settled,
        }
    }

    fn certificate(&self, job: &Job) -> Result<Certificate, CertifyError> {
        let (table, formulation) = (&self.table, self.formulation);
        let instance = table.instance;
        let (costs, quantum) = stated_costs(table, formulation);
        let combinations = combinations(table, formulation, &self.settled)?;
        let bound = match self.status {
            "optimal" => self.objective,
            "infeasible" => None,
            _ => {
                let open = combinations.open.iter().map(|entry| entry.1);
                self.objective.into_iter().chain(open).min()
            }
        };
        let winner = self.choice.zip(self.objective);
        Ok(Certificate {
            schema: SCHEMA.to_owned(),
            formulation: formulation.as_str().to_owned(),
            status: self.status.to_owned(),
            job: job::write(job, &left_out(job)),
            max_oom_risk: instance.max_oom_risk,
            space: ORDER.map(|axis| axis_values(instance, axis)).to_vec(),
            forbidden: rules::forbidden(instance),
            constraints: constraint_rows(table, formulation, &costs),
            // The objective counts in steps of the schedule's bubble multiplier.
            quantum_s: quantum.step_time(FILL_STEPS as i64).value(),
            capacity_kib: table.capacity,
            costs,
            rules: rules::tables(instance),
            combinations,
            bound,
            winner: winner
                .map(|(choice, objective)| winner_of(table, formulation, choice, objective)),
        })
    }
}

/// The instance with simpler rows, or with runs where they have to be stated, if it is not so already.
fn simpler_instance(statement: &Statement, budget: &Budget) -> Result<Option<Instance>, TooLarge> {
    let mut simpler = statement.claim.instance.clone();
    if let Some(rows) = slack::simpler(statement, budget)? {
        simpler.space.constraints = constraint::sorted(&rows);
        return Ok(Some(simpler));
    }
    let learned = runs::simpler(statement);
    Ok(learned.map(|learned| {
        simpler.job.cluster.discrepancy = Some(learned);
        simpler
    }))
}

/// For each figure whether it is left out.
fn left_out(job: &Job) -> Vec<bool> {
    let figures = 0..PARAMETERS.len();
    figures.map(|index| !is_stated(job, index)).collect()
}

/// The rows of the user's own with the differences of their sides.
fn constraint_rows(
    table: &CostTable,
    formulation: Formulation,
    costs: &[StatedCosts],
) -> Vec<ConstraintRow> {
    let positions: Vec<u64> = costs.iter().map(|costs| costs.position).collect();
    let rows = table.instance.space.constraints.iter().map(|row| {
        let differences = if row.is_of_cell() {
            rules::differences(table.instance, row)
        } else {
            rows::ranges(table, formulation, &positions, row)
        };
        constraint::write(row, differences)
    });
    rows.collect()
}

fn axis_values(instance: &Instance, axis: Axis) -> AxisValues {
    let codes = instance.space.values(axis).iter();
    AxisValues {
        axis: axis.as_str().to_owned(),
        values: codes.map(|&code| space::value(axis, code)).collect(),
    }
}

/// How the planner's combinations are settled.
fn settled(table: &CostTable, formulation: Formulation, goal: Goal) -> Vec<Settled> {
    let position = |candidate: &Candidate| position(table.instance, candidate);
    match formulation {
        Formulation::Staged => settle::staged(table, goal, position),
        Formulation::LayoutChoice => settle::layout_choice(table, goal, position),
    }
}

/// The same as a document says it.
fn combinations(
    table: &CostTable,
    formulation: Formulation,
    settled: &[Settled],
) -> Result<Combinations, CertifyError> {
    let decided =
        |axis: &Axis| formulation == Formulation::LayoutChoice || *axis != Axis::Checkpointing;
    let mut sizes = ORDER.into_iter().filter(decided);
    let total = sizes.try_fold(1_u64, |product, axis| {
        product.checked_mul(table.instance.space.values(axis).len() as u64)
    });
    let total = total.ok_or(CertifyError::TooLarge)?;
    let permitted = table.entries.iter().filter(|entry| entry.cell.is_some());
    let mut found = Combinations {
        total,
        broken: total - settled.len() as u64,
        permitted: permitted.count() as u64,
        ..Combinations::default()
    };
    for &(position, settlement) in settled {
        found.add(position, settlement);
    }
    Ok(found)
}

/// The number of a combination.
pub(super) fn position(instance: &Instance, candidate: &Candidate) -> u64 {
    ORDER.iter().fold(0, |position, &axis| {
        let values = instance.space.values(axis);
        let code = candidate.code(axis);
        let digit = values.iter().position(|&value| value == code).unwrap_or(0);
        position * values.len() as u64 + digit as u64
    })
}

fn winner_of(
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
