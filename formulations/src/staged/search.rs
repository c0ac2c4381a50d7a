//! Screening, then programs over the survivors until nothing is left that could be better.

use super::StagedError;
use super::bounds::Scratch;
use super::check::check;
use super::data::Data;
use super::dynamic::cell_optimum_within;
use super::lexicographic::{Canonical, canonical};
use super::limits::{Clock, cutoffs};
use super::plan::Plan;
use super::program::{Program, inexact, program};
use super::screen::{CellBound, screen};
use super::side_rows::{Prepared, prepare};
use super::tables::{Tables, tables};
use crate::model::Model;
use crate::solve::{self, Outcome, SolverOptions, Statistics};

/// Columns from which on a program takes no further cell. The survivors are taken in groups, the best
/// bounds first, since what one group finds narrows the windows of the next.
const COLUMNS: usize = 300;

/// Cells in which a better plan is looked for before the first program.
const PROMISING: usize = 8;

/// The answer and what is proven of every cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The best plan.
    pub outcome: Outcome<Plan>,
    /// What is proven of each cell. The plan is at least as good as everything in a survivor because
    /// the program says so, and in a pruned cell because of its bound.
    pub cells: Vec<CellBound>,
    /// How many cells were settled in which way.
    pub counts: CellCounts,
}

/// How many cells were settled in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CellCounts {
    /// All of them.
    pub cells: usize,
    /// No distribution of the layers fits.
    pub infeasible: usize,
    /// A side row cannot hold.
    pub excluded: usize,
    /// Bounds show that they are worse.
    pub pruned: usize,
    /// A program decided.
    pub programmed: usize,
}

/// What the bounds alone prove of each cell, without a program.
///
/// # Errors
/// When the data cannot be used.
pub fn bound_cells(data: &Data) -> Result<Vec<CellBound>, StagedError> {
    check(data)?;
    Ok(screen(data, &prepare(data), 1, |cell| cell).bounds)
}

/// The program over the surviving cells, for reading and for export.
///
/// # Errors
/// When the data cannot be used.
pub fn build(data: &Data) -> Result<Model, StagedError> {
    check(data)?;
    let prepared = prepare(data);
    let screening = screen(data, &prepared, 1, |cell| cell);
    let (data, limit) = (&*prepared.data, screening.limit);
    let mut scratch = Scratch::default();
    let survivors: Vec<Tables> = (screening.survivors.iter())
        .filter_map(|&(_, index)| {
            tables(&data.cells[index], index, data.layers, limit, &mut scratch)
        })
        .collect();
    Ok(program(data, &survivors.iter().collect::<Vec<_>>()).model)
}

/// Finds the best plan.
///
/// # Errors
/// When the data cannot be used, or the solver fails or gives an answer that is not one.
pub fn solve(data: &Data, options: &SolverOptions) -> Result<Report, StagedError> {
    check(data)?;
    let clock = Clock::start(options);
    let prepared = prepare(data);
    let screening = screen(data, &prepared, 1, |cell| cell);
    let mut search = Search {
        prepared: &prepared,
        clock,
        best: None,
        limit: screening.limit,
        programmed: vec![false; data.cells.len()],
        cells: screening.bounds,
        statistics: Statistics::default(),
    };
    if let Some(plan) = screening.incumbent {
        search.offer(plan);
    }
    search.improve(&screening.survivors);
    let bound = search.run_within_cutoffs(&screening.survivors)?;
    let outcome = match (search.best.take(), bound) {
        (Some(plan), None) => search.settle_ties(plan, &screening.survivors)?,
        (Some(plan), Some(bound)) => stopped(plan, bound, search.statistics),
        (None, None) => Outcome::Infeasible {
            statistics: search.statistics,
        },
        (None, Some(bound)) => Outcome::Unknown {
            bound: Some(bound as f64),
            statistics: search.statistics,
        },
    };
    let counts = search.counts();
    Ok(Report {
        outcome,
        cells: search.cells,
        counts,
    })
}

fn stopped(plan: Plan, bound: i64, statistics: Statistics) -> Outcome<Plan> {
    let bound = bound.min(plan.objective);
    Outcome::Feasible {
        gap: (plan.objective - bound) as f64,
        bound: bound as f64,
        solution: plan,
        statistics,
    }
}

struct Search<'a> {
    prepared: &'a Prepared<'a>,
    clock: Clock,
    /// Plans above this do not matter.
    limit: i64,
    best: Option<Plan>,
    cells: Vec<CellBound>,
    /// Whether each cell was in a program.
    programmed: Vec<bool>,
    statistics: Statistics,
}

impl Search<'_> {
    fn offer(&mut self, plan: Plan) {
        let known = self.best.as_ref().map_or(i64::MAX, |best| best.objective);
        if plan.objective < known {
            self.limit = self.limit.min(plan.objective);
            self.best = Some(plan);
        }
    }

    /// Looks for a better plan in the most promising cells by dynamic programming: it narrows the windows
    /// of the program, which has to find the same plan again.
    fn improve(&mut self, survivors: &[(i64, usize)]) {
        if self.prepared.coupled {
            return;
        }
        let data = &self.prepared.data;
        for &(lower_bound, index) in survivors.iter().take(PROMISING) {
            if lower_bound > self.limit {
                return;
            }
            let plan = cell_optimum_within(&data.cells[index], index, data.layers, self.limit);
            if let Some(plan) = plan {
                self.offer(plan);
            }
        }
    }

    /// Solves the survivors up to one cutoff after the other.
    fn run_within_cutoffs(
        &mut self,
        survivors: &[(i64, usize)],
    ) -> Result<Option<i64>, StagedError> {
        let Some(&(lowest, _)) = survivors.first() else {
            return Ok(None);
        };
        let limit = self.limit;
        if !self.prepared.coupled {
            return self.run(survivors);
        }
        for cutoff in cutoffs(lowest, limit) {
            let known = self.best.as_ref().map_or(i64::MAX, |best| best.objective);
            self.limit = cutoff.min(known);
            let bound = self.run(survivors)?;
            let found = self
                .best
                .as_ref()
                .is_some_and(|best| best.objective <= cutoff);
            if bound.is_some() || found {
                return Ok(bound);
            }
        }
        Ok(None)
    }

    /// Solves the survivors in groups. Returns the proven bound if the time ran out.
    fn run(&mut self, survivors: &[(i64, usize)]) -> Result<Option<i64>, StagedError> {
        let mut scratch = Scratch::default();
        let mut next = 0;
        while next < survivors.len() {
            let group = self.next_group(survivors, &mut next, &mut scratch);
            if group.is_empty() {
                continue;
            }
            let group_bound = group.iter().map(|tables| tables.lower_bound).min();
            let rest_bound = survivors[next..].first().map(|survivor| survivor.0);
            let bound = group_bound
                .into_iter()
                .chain(rest_bound)
                .min()
                .unwrap_or(i64::MIN);
            let Some(options) = self.clock.options() else {
                return Ok(Some(bound));
            };
            let group: Vec<&Tables> = group.iter().collect();
            let data = &self.prepared.data;
            let program = program(data, &group);
            let outcome = solve::solve(&program.model, &options)?;
            self.statistics.add(outcome.statistics());
            for tables in &group {
                self.programmed[tables.cell] = true;
            }
            if let Some(point) = outcome.solution() {
                let plan = program.decode(data, &group, point)?;
                self.offer(plan);
            }
            let group_bound = match outcome {
                Outcome::Optimal { .. } | Outcome::Infeasible { .. } => continue,
                Outcome::Feasible { bound, .. } => Some(bound),
                Outcome::Unknown { bound, .. } => bound,
            };
            let proven = group_bound.map_or(bound, Program::integer_bound);
            return Ok(Some(proven.min(rest_bound.unwrap_or(i64::MAX)).max(bound)));
        }
        Ok(None)
    }

    /// Tables of the next survivors that may still win.
    fn next_group(
        &mut self,
        survivors: &[(i64, usize)],
        next: &mut usize,
        scratch: &mut Scratch,
    ) -> Vec<Tables> {
        let mut group: Vec<Tables> = Vec::new();
        let mut columns = 0;
        while let Some(&(lower_bound, index)) = survivors.get(*next)
            && (group.is_empty() || columns < COLUMNS)
        {
            *next += 1;
            if lower_bound > self.limit {
                self.cells[index] = CellBound::Pruned { lower_bound };
                continue;
            }
            let data = &self.prepared.data;
            let tables = tables(&data.cells[index], index, data.layers, self.limit, scratch);
            if let Some(tables) = tables {
                let lower_bound = tables.lower_bound;
                self.cells[index] = CellBound::Survivor { lower_bound };
                columns += Program::columns(&tables);
                group.push(tables);
            } else {
                let lower_bound = lower_bound.max(self.limit.saturating_add(1));
                self.cells[index] = CellBound::Pruned { lower_bound };
            }
        }
        group
    }

    /// Of the plans of the best objective, the one that the written rule prefers.
    fn settle_ties(
        &mut self,
        plan: Plan,
        survivors: &[(i64, usize)],
    ) -> Result<Outcome<Plan>, StagedError> {
        let data = &*self.prepared.data;
        let rank = |index: usize| (data.cells[index].rank, index);
        let mut preferred: Vec<usize> = (survivors.iter())
            .filter(|survivor| survivor.0 <= plan.objective)
            .map(|survivor| survivor.1)
            .filter(|&index| rank(index) <= rank(plan.cell))
            .collect();
        preferred.sort_by_key(|&index| rank(index));
        for index in preferred {
            let found = if self.prepared.coupled {
                let statistics = &mut self.statistics;
                canonical(data, index, plan.objective, &self.clock, statistics)?
            } else {
                let found =
                    cell_optimum_within(&data.cells[index], index, data.layers, plan.objective);
                found.map_or(Canonical::NoPlan, Canonical::Plan)
            };
            let found = match found {
                Canonical::Plan(found) => found,
                Canonical::NoPlan => continue,
                Canonical::TimeOver => {
                    let bound = plan.objective;
                    return Ok(stopped(plan, bound, self.statistics));
                }
            };
            if found.objective != plan.objective {
                let (one, other) = (found.objective, plan.objective);
                return Err(inexact(format!(
                    "cell {index} has a plan of {one}, the program says {other}"
                )));
            }
            return Ok(Outcome::Optimal {
                solution: found,
                statistics: self.statistics,
            });
        }
        let (cell, objective) = (plan.cell, plan.objective);
        Err(inexact(format!(
            "no plan of cell {cell} has the objective {objective}"
        )))
    }

    fn counts(&self) -> CellCounts {
        let count =
            |wanted: fn(&CellBound) -> bool| self.cells.iter().filter(|cell| wanted(cell)).count();
        let infeasible = count(|cell| matches!(cell, CellBound::Infeasible));
        let excluded = count(|cell| matches!(cell, CellBound::Excluded { .. }));
        let cells = self.cells.len();
        let programmed = self
            .programmed
            .iter()
            .filter(|&&programmed| programmed)
            .count();
        CellCounts {
            cells,
            infeasible,
            excluded,
            pruned: cells - infeasible - excluded - programmed,
            programmed,
        }
    }
}
