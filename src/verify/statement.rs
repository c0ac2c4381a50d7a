//! Everything that a certificate states of its combinations, computed anew from its instance.

use rayon::prelude::*;

use crate::cost_model::pipeline::FILL_STEPS;
use crate::cost_model::{self, CellCosts};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Layout};
use crate::plan::Formulation;
use crate::planner::quantise::{self, CellUnits, Quantum};
use crate::quantity::Seconds;

use super::bounds::{balance, bottleneck};
use super::budget::{Budget, TooLarge};
use super::examples::{Example, examples, times_of};
use super::optimum::best;
use super::problem::{Problem, within_limits};
use super::space::{Open, walk};

/// Most stages over all combinations; spaces of 60,000 combinations have a few million.
const MOST_STAGES: u64 = 20_000_000;

/// How a combination that breaks no rule is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// No layout fits: a stage is short of so much memory at least.
    Infeasible(u32, i64),
    /// No layout keeps a row: it is missed by so much at least.
    Excluded(u32, i64),
    /// No layout that fits keeps all rows. The bound is that of the slowest stage.
    Blocked(i64),
    /// The bound of perfect balance shows that no layout is as good as the winner.
    Balance(i64),
    /// The bound of the slowest stage shows it.
    Bottleneck(i64),
    /// The objective of its best layout.
    Solved(i64),
    /// A lower bound, where the search was stopped.
    Open(i64),
}

/// What is claimed, and of what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// The instance.
    pub(crate) instance: &'a Instance,
    /// The program.
    pub(crate) formulation: Formulation,
    /// Whether the search was completed.
    pub(crate) complete: bool,
    /// The layout that was found.
    pub(crate) winner: Option<&'a Layout>,
}

/// What the winner costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WinnerNumbers {
    /// Units of the objective.
    pub(crate) objective: i64,
    /// Utilisation that these stand for, in parts per billion.
    pub(crate) mfu_ppb: i64,
    /// Peak memory of each stage, in KiB.
    pub(crate) memory: Vec<i64>,
    /// Probability that a GPU runs out of memory, in parts per billion.
    pub(crate) oom_probability_ppb: i64,
}

/// The statement.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// What is claimed.
    pub(crate) claim: Claim<'a>,
    /// The combinations that break no rule.
    pub(super) open: Vec<Open>,
    /// Their coefficients.
    pub(super) units: Vec<CellUnits>,
    /// Their times, by which the unit is chosen.
    pub(super) times: Vec<Times>,
    /// Unit of time.
    pub(crate) quantum: Quantum,
    /// Memory of a stage that the accepted risk leaves, in KiB.
    pub(crate) capacity: i64,
    /// Which of the combinations is the winner's; `None` where it breaks a rule.
    pub(super) winner_index: Option<usize>,
    /// What the winner costs.
    pub(crate) numbers: Option<WinnerNumbers>,
    /// Combinations whose costs are stated, by position.
    pub(super) examples: Vec<Example>,
    /// How each combination is settled.
    pub(crate) settlements: Vec<Settlement>,
}

/// Times of a combination, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Times {
    /// Of a step, if the work split evenly over the stages.
    step: f64,
    /// Of a layer in a pass of one chunk.
    layer: f64,
}

impl Times {
    /// Those of a combination.
    pub(crate) fn new(instance: &Instance, costs: &CellCosts) -> Self {
        let layers = f64::from(instance.job.transformer.layers);
        let stages = f64::from(costs.cell.pipeline_parallel);
        let layer = costs.layer.total();
        Self {
            step: (layer * (costs.micro_batches as f64 * layers / stages)).value(),
            layer: (layer / f64::from(costs.cell.virtual_stages)).value(),
        }
    }
}

/// The unit of a space: by the fastest step and the fastest layer among the combinations that take no
/// more than 1.3 of that step.
pub(crate) fn quantum(times: &[Times]) -> Quantum {
    let fastest = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
    let step = fastest(&mut times.iter().map(|times| times.step));
    let near = times.iter().filter(|times| times.step <= 1.3 * step);
    let layer = fastest(&mut near.map(|times| times.layer));
    let sane = |time: f64| Seconds::new(time.clamp(1e-9, 1e12));
    Quantum::for_times(sane(step), sane(layer))
}

impl<'a> Statement<'a> {
    /// The statement of a claim, with nothing settled yet.
    pub(crate) fn unsettled(claim: Claim<'a>, budget: &Budget) -> Result<Self, TooLarge> {
        let walked = walk(claim.instance, claim.formulation, budget)?;
        Self::new(claim, walked.open, budget)
    }

    /// Takes over how the combinations are settled, by position. False where those are others.
    pub(crate) fn settle_as(&mut self, settled: &[(u64, Settlement)]) -> bool {
        let positions = self.open.iter().map(|open| open.position);
        self.settlements = settled.iter().map(|settled| settled.1).collect();
        positions.eq(settled.iter().map(|settled| settled.0))
    }

    /// Settles the combinations anew that are taken to be blocked.
    pub(crate) fn settle_blocked(&mut self, budget: &Budget) -> Result<(), TooLarge> {
        for index in 0..self.open.len() {
            if let Settlement::Blocked(_) = self.settlements[index] {
                let settled = self.settle(&self.problem(index), &self.open[index], budget)?;
                self.settlements[index] = settled;
            }
        }
        Ok(())
    }

    /// The same settlements of a claim whose job has the same combinations.
    pub(super) fn restated<'b>(
        &self,
        claim: Claim<'b>,
        budget: &Budget,
    ) -> Result<Statement<'b>, TooLarge> {
        let mut restated = Statement::new(claim, self.open.clone(), budget)?;
        restated.settlements.clone_from(&self.settlements);
        Ok(restated)
    }

    /// Coefficients of all open combinations, and what the winner costs; nothing is settled yet.
    pub(super) fn new(
        claim: Claim<'a>,
        open: Vec<Open>,
        budget: &Budget,
    ) -> Result<Self, TooLarge> {
        let instance = claim.instance;
        spend_on_costs(instance, &open, budget)?;
        let costs: Vec<CellCosts> = open
            .par_iter()
            .map(|open| CellCosts::new(&instance.job, &open.cell))
            .collect();
        let times = costs.iter().map(|costs| Times::new(instance, costs));
        let times: Vec<Times> = times.collect();
        let examples = examples(instance, &open);
        let quantum = if times.is_empty() {
            quantum(&times_of(instance, &instance.job, &examples))
        } else {
            quantum(&times)
        };
        let units = costs.par_iter().map(|costs| CellUnits::new(costs, quantum));
        let units: Vec<CellUnits> = units.collect();
        let (layers, capacity) = (
            instance.job.transformer.layers,
            quantise::capacity(instance),
        );
        let sound = |units: &CellUnits| within_limits(units, layers, capacity);
        if !units.iter().all(sound) {
            return Err(TooLarge);
        }
        let mut statement = Self {
            claim,
            open,
            units,
            times,
            quantum,
            capacity,
            winner_index: None,
            numbers: None,
            examples,
            settlements: Vec::new(),
        };
        statement.winner_index = statement.find_winner();
        statement.numbers = statement.winner_index.and_then(|index| {
            let problem = statement.problem(index);
            winner_numbers(&claim, quantum, &problem)
        });
        Ok(statement)
    }

    /// The unit of the time of a stage, in seconds.
    pub(crate) fn quantum_seconds(&self) -> f64 {
        // The objective counts in steps of the schedule's bubble multiplier.
        self.quantum.step_time(FILL_STEPS as i64).value()
    }

    /// Settles every combination against the winner.
    pub(super) fn settle_all(&mut self, budget: &Budget) -> Result<(), TooLarge> {
        let settled = (0..self.open.len())
            .into_par_iter()
            .map(|index| self.settle(&self.problem(index), &self.open[index], budget));
        self.settlements = settled.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// The layouts of an open combination.
    pub(super) fn problem(&self, index: usize) -> Problem<'_> {
        let (open, units) = (&self.open[index], &self.units[index]);
        let Claim {
            instance,
            formulation,
            ..
        } = self.claim;
        Problem::new(instance, formulation, open, units, self.capacity)
    }

    fn find_winner(&self) -> Option<usize> {
        let winner = self.claim.winner?;
        self.open.iter().position(|open| {
            let flag = match self.claim.formulation {
                Formulation::Staged => None,
                Formulation::LayoutChoice => open.flags.first(),
            };
            open.cell == winner.cell && flag.is_none_or(|&flag| recomputes_all(winner, flag))
        })
    }

    /// How a combination is settled: by the first statement that holds.
    pub(super) fn settle(
        &self,
        problem: &Problem,
        open: &Open,
        budget: &Budget,
    ) -> Result<Settlement, TooLarge> {
        let stages = problem.stages() as u64;
        budget.spend(stages)?;
        if let Some((stage, short)) = problem.shortage() {
            budget.spend(100 * stages)?;
            return Ok(Settlement::Infeasible(stage, short));
        }
        if let Some((row, missed)) = problem.missed_row() {
            return Ok(Settlement::Excluded(row, missed));
        }
        let layout_choice = self.claim.formulation == Formulation::LayoutChoice;
        let flag = open.flags.first().filter(|_| layout_choice);
        let prescribed = flag.and_then(|flag| flag.recompute());
        let bound = balance(problem, prescribed.map(|mode| mode as usize));
        if !self.may_win(bound) {
            return Ok(Settlement::Balance(bound));
        }
        let bound = if layout_choice {
            bound
        } else {
            bottleneck(problem, budget)?
        };
        if !self.may_win(bound) {
            return Ok(Settlement::Bottleneck(bound));
        }
        if !self.claim.complete {
            return Ok(Settlement::Open(bound));
        }
        let best = best(problem, budget)?;
        Ok(best.map_or(Settlement::Blocked(bound), |best| {
            Settlement::Solved(best.objective)
        }))
    }

    /// Whether a layout of this objective would be as good as the winner. `layout-choice` compares
    /// utilisations in parts per billion.
    pub(super) fn may_win(&self, objective: i64) -> bool {
        let Some(numbers) = &self.numbers else {
            return true;
        };
        self.compare(objective, numbers.objective).is_le()
    }

    /// Compares two objectives as the formulation does; the better is less.
    pub(super) fn compare(&self, a: i64, b: i64) -> std::cmp::Ordering {
        match self.claim.formulation {
            Formulation::Staged => a.cmp(&b),
            Formulation::LayoutChoice => {
                let job = &self.claim.instance.job;
                let mfu = |objective| self.quantum.parts_per_billion(job, objective);
                mfu(b).cmp(&mfu(a))
            }
        }
    }
}

/// The work of computing all costs.
fn spend_on_costs(instance: &Instance, open: &[Open], budget: &Budget) -> Result<(), TooLarge> {
    let learned = instance.job.cluster.discrepancy.as_ref();
    let points = learned.map_or(1, |learned| 20 * learned.points.len() as u64);
    budget.spend(points.saturating_mul(open.len() as u64))?;
    let stages = open
        .iter()
        .map(|open| u64::from(open.cell.pipeline_parallel));
    if stages.sum::<u64>() > MOST_STAGES {
        return Err(TooLarge);
    }
    Ok(())
}

/// Whether every layer of every stage does what the one flag says.
pub(super) fn recomputes_all(layout: &Layout, flag: Checkpointing) -> bool {
    layout.stages.iter().all(|stage| {
        let mut counts = [0; 3];
        if let Some(mode) = flag.recompute() {
            counts[mode as usize] = stage.layers;
        }
        stage.recomputed == counts
    })
}

/// What the winner costs; `None` where its stages are not those of its combination.
pub(super) fn winner_numbers(
    claim: &Claim,
    quantum: Quantum,
    problem: &Problem,
) -> Option<WinnerNumbers> {
    let (winner, job) = (claim.winner?, &claim.instance.job);
    let stages: Vec<(i64, [i64; 3])> = winner
        .stages
        .iter()
        .map(|stage| (i64::from(stage.layers), stage.recomputed.map(i64::from)))
        .collect();
    let sound = |&(layers, counts): &(i64, [i64; 3])| counts.iter().sum::<i64>() <= layers;
    let total: i64 = stages.iter().map(|stage| stage.0).sum();
    if stages.len() != problem.stages() || total != problem.layers || !stages.iter().all(sound) {
        return None;
    }
    let extra = |counts: [i64; 3]| -> i64 {
        let times = problem.units.recompute_time.iter().zip(counts);
        times.map(|(time, count)| time * count).sum()
    };
    let times: Vec<i64> = (stages.iter().enumerate())
        .map(|(stage, &(layers, counts))| problem.time(stage, layers, extra(counts)))
        .collect();
    let deltas = (stages.iter().enumerate()).map(|(stage, own)| problem.delta(stage, own.0));
    let objective = problem.objective(
        times.iter().copied().max()?,
        times.iter().sum(),
        deltas.max()?,
    );
    let memory = (stages.iter().enumerate())
        .map(|(stage, &(layers, counts))| problem.memory(stage, layers, counts));
    let costs = CellCosts::new(job, &winner.cell);
    let prediction = cost_model::evaluate(job, &costs, &winner.stages);
    Some(WinnerNumbers {
        objective,
        mfu_ppb: quantum.parts_per_billion(job, objective),
        memory: memory.collect(),
        oom_probability_ppb: (prediction.oom_probability * 1e9).round() as i64,
    })
}
