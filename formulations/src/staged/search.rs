//! Screening, then programs over the survivors until nothing is left that could be better.

use std::time::{Duration, Instant};

use super::StagedError;
use super::bounds::Scratch;
use super::data::{self, Data};
use super::dynamic::optimum_within;
use super::lexicographic::{Canonical, canonical};
use super::plan::Plan;
use super::program::{Program, inexact, program};
use super::screen::{CellBound, screen};
use super::tables::{Tables, tables};
use crate::model::Model;
use crate::solve::{self, Outcome, SolverOptions, Statistics};

/// Most columns of one program; the survivors are taken in groups, the best bounds first.
const COLUMNS: usize = 3000;

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

/// The program over the surviving cells, for reading and for export.
///
/// # Errors
/// When the data cannot be used.
pub fn build(data: &Data) -> Result<Model, StagedError> {
    data::check(data)?;
    let screening = screen(data, 1, |cell| cell);
    let mut scratch = Scratch::default();
    let survivors: Vec<Tables> = (screening.survivors.iter())
        .filter_map(|&(_, index)| {
            tables(
                &data.cells[index],
                index,
                data.layers,
                screening.limit,
                &mut scratch,
            )
        })
        .collect();
    Ok(program(data, &survivors.iter().collect::<Vec<_>>()).model)
}

/// Finds the best plan.
///
/// # Errors
/// When the data cannot be used, or the solver fails or gives an answer that is not one.
pub fn solve(data: &Data, options: &SolverOptions) -> Result<Report, StagedError> {
    data::check(data)?;
    let clock = Clock::start(options);
    let screening = screen(data, 1, |cell| cell);
    let mut search = Search {
        data,
        clock,
        limit: screening.limit,
        best: screening.incumbent,
        cells: screening.bounds,
        programmed: 0,
        statistics: Statistics::default(),
    };
    let bound = search.run(&screening.survivors)?;
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

/// The options of the runs, within what is left of the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
    options: SolverOptions,
}

impl Clock {
    pub(super) fn start(options: &SolverOptions) -> Self {
        Self {
            start: Instant::now(),
            options: SolverOptions {
                // Objectives are integers: nothing lies between one and the next.
                absolute_gap: 0.4,
                ..*options
            },
        }
    }

    /// Options for the next run; `None` when the time is over.
    pub(super) fn options(&self) -> Option<SolverOptions> {
        let left = match self.options.time_limit {
            None => None,
            Some(limit) => Some(
                limit
                    .checked_sub(self.start.elapsed())
                    .filter(|left| *left > Duration::ZERO)?,
            ),
        };
        Some(SolverOptions {
            time_limit: left,
            ..self.options
        })
    }
}

struct Search<'a> {
    data: &'a Data,
    clock: Clock,
    /// Plans above this do not matter.
    limit: i64,
    best: Option<Plan>,
    cells: Vec<CellBound>,
    programmed: usize,
    statistics: Statistics,
}

impl Search<'_> {
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
            let program = program(self.data, &group);
            let outcome = solve::solve(&program.model, &options)?;
            self.statistics.add(outcome.statistics());
            self.programmed += group.len();
            if let Some(point) = outcome.solution() {
                let plan = program.decode(self.data, &group, point)?;
                if self
                    .best
                    .as_ref()
                    .is_none_or(|best| plan.objective < best.objective)
                {
                    self.limit = plan.objective;
                    self.best = Some(plan);
                }
            }
            let group_bound = match outcome {
                Outcome::Optimal { .. } | Outcome::Infeasible { .. } => continue,
                Outcome::Feasible { bound, .. } => Some(bound),
                Outcome::Unknown { bound, .. } => bound,
            };
            let proven = group_bound.map_or(bound, |group| program.bound(group));
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
            let cell = &self.data.cells[index];
            let tables = tables(cell, index, self.data.layers, self.limit, scratch);
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
        let rank = |index: usize| (self.data.cells[index].rank, index);
        let mut preferred: Vec<usize> = (survivors.iter())
            .filter(|survivor| survivor.0 <= plan.objective)
            .map(|survivor| survivor.1)
            .filter(|&index| rank(index) <= rank(plan.cell))
            .collect();
        preferred.sort_by_key(|&index| rank(index));
        for index in preferred {
            let found = if self.data.side_rows.is_empty() {
                let cell = &self.data.cells[index];
                let found = optimum_within(cell, index, self.data.layers, plan.objective);
                found.map_or(Canonical::NoPlan, Canonical::Plan)
            } else {
                let statistics = &mut self.statistics;
                canonical(self.data, index, plan.objective, &self.clock, statistics)?
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
        CellCounts {
            cells,
            infeasible,
            excluded,
            pruned: cells - infeasible - excluded - self.programmed,
            programmed: self.programmed,
        }
    }
}
