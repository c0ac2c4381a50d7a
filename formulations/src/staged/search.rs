//! Bounds, presolve, then the program over what is left.

use super::StagedError;
use super::bounds::{Scratch, lower_bound};
use super::check::check;
use super::data::{Data, Excluded, SideRow};
use super::exact::optimum_within;
use super::lexicographic::{Canonical, canonical};
use super::limits::{Clock, cutoffs};
use super::plan::Plan;
use super::presolve::{Incumbents, Presolved, presolve};
use super::program::{inexact, program};
use super::shortage::{Shortage, shortage};
use super::side_rows::{Prepared, excludes, keeps_side_rows, prepare};
use crate::model::Model;
use crate::solve::{self, Outcome, SolverOptions, Statistics};

/// Intervals from which on a program takes no further group: only where side rows leave wide windows.
const INTERVALS: usize = 20_000;

/// Which groups a program decides among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pruning {
    /// Those that no bound on the objective excludes, in one program.
    ByBounds,
    /// All of them, one program each.
    None,
}

/// The answer, and the program behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The best plan.
    pub outcome: Outcome<Plan>,
    /// The program that gave it; `None` where the time was over before any was built.
    pub model: Option<Model>,
}

/// Finds the best plan.
///
/// # Errors
/// When the data cannot be used, or the solver fails or gives an answer that is not one.
pub fn solve(
    data: &Data,
    options: &SolverOptions,
    pruning: Pruning,
) -> Result<Report, StagedError> {
    check(data)?;
    let prepared = prepare(data);
    let (open, excluded) = bounds(data, &prepared);
    let mut search = Search {
        prepared: &prepared,
        excluded,
        pruning,
        clock: Clock::start(options, data.units.objective),
        limit: i64::MAX,
        best: None,
        model: None,
        statistics: Statistics::default(),
    };
    let bound = search.run_within_cutoffs(&open)?;
    let statistics = search.statistics;
    let outcome = match (search.best.take(), bound) {
        (Some(plan), None) => search.settle_ties(plan, &open)?,
        (Some(plan), Some(bound)) => stopped(plan, bound, statistics),
        (None, None) => Outcome::Infeasible { statistics },
        (None, Some(bound)) => Outcome::Unknown {
            bound: Some(bound as f64),
            statistics,
        },
    };
    let model = search.model;
    Ok(Report { outcome, model })
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

/// Lower bounds of the groups that may have a plan, the lowest first, and all other combinations.
pub(super) fn bounds(data: &Data, prepared: &Prepared<'_>) -> (Vec<(i64, usize)>, Vec<Excluded>) {
    let tight = &*prepared.data;
    let mut scratch = Scratch::default();
    let (mut open, mut excluded) = (Vec::new(), data.excluded.clone());
    for (index, group) in tight.groups.iter().enumerate() {
        let excludes = |row: &&SideRow| excludes(row, index, group, data.layers.count());
        let row = tight.side_rows.iter().find(excludes);
        match lower_bound(group, &data.layers, &mut scratch) {
            Some(bound) if row.is_none() => open.push((bound, index)),
            _ => {
                let own = &data.groups[index];
                let row = row.or_else(|| prepared.tightened_by(index));
                let (name, amount) = match (row, shortage(own, data.layers.count())) {
                    (Some(row), None) => (row.name.as_str(), 1),
                    (_, Some(Shortage::Memory { amount, .. })) => {
                        (data.names.memory.as_str(), amount as u64)
                    }
                    _ => (data.names.layers.as_str(), 1),
                };
                if let Some(rule) = data.rules.iter().position(|rule| rule == name) {
                    excluded.push(Excluded {
                        values: group.values.clone(),
                        broken: vec![(rule, amount)],
                    });
                }
            }
        }
    }
    open.sort_unstable();
    (open, excluded)
}

struct Search<'a> {
    prepared: &'a Prepared<'a>,
    excluded: Vec<Excluded>,
    pruning: Pruning,
    clock: Clock,
    /// Plans above this do not matter.
    limit: i64,
    best: Option<Plan>,
    model: Option<Model>,
    statistics: Statistics,
}

impl Search<'_> {
    fn offer(&mut self, plan: Plan) -> bool {
        let known = self.best.as_ref().map_or(i64::MAX, |best| best.objective);
        let improves = plan.objective < known;
        if improves {
            self.limit = self.limit.min(plan.objective);
            self.best = Some(plan);
        }
        improves
    }

    /// Solves the groups up to one cutoff after the other. Returns the proven bound if the time ran out.
    fn run_within_cutoffs(&mut self, open: &[(i64, usize)]) -> Result<Option<i64>, StagedError> {
        if !self.prepared.coupled {
            return self.run(open);
        }
        let lowest = open.first().map_or(0, |group| group.0);
        for cutoff in cutoffs(lowest, i64::MAX) {
            let known = self.best.as_ref().map_or(i64::MAX, |best| best.objective);
            self.limit = cutoff.min(known);
            let bound = self.run(open)?;
            let known = self.best.as_ref().map_or(i64::MAX, |best| best.objective);
            if bound.is_some() || known <= cutoff {
                return Ok(bound);
            }
        }
        Ok(None)
    }

    fn run(&mut self, open: &[(i64, usize)]) -> Result<Option<i64>, StagedError> {
        let mut left = self.presolve(open);
        if self.pruning == Pruning::ByBounds && !self.prepared.coupled {
            // The best plan of all narrows what those before it left.
            let again: Vec<(i64, usize)> =
                left.iter().map(|it| (it.lower_bound, it.group)).collect();
            left = self.presolve(&again);
        }
        while !left.is_empty() {
            let together = match self.pruning {
                Pruning::None => 1,
                Pruning::ByBounds => {
                    let mut intervals = 0;
                    let sizes = left
                        .iter()
                        .map(|it| it.intervals.iter().map(Vec::len).sum::<usize>());
                    let within = sizes.take_while(|size| {
                        let fits = intervals < INTERVALS;
                        intervals += size;
                        fits
                    });
                    within.count()
                }
            };
            let rest = left.split_off(together);
            let next = rest.first().map(|it| it.lower_bound);
            if let Some(bound) = self.run_program(&left)? {
                return Ok(Some(bound.min(next.unwrap_or(bound))));
            }
            let limit = match self.pruning {
                Pruning::None => i64::MAX,
                Pruning::ByBounds => self.limit,
            };
            left = rest
                .into_iter()
                .filter(|it| it.lower_bound <= limit)
                .collect();
        }
        if self.model.is_none() {
            self.model = Some(program(&self.prepared.data, &[], &self.excluded).model);
        }
        Ok(None)
    }

    /// What may be as good as the best known of the groups, whose plans are taken note of; the lowest
    /// bounds first.
    fn presolve(&mut self, open: &[(i64, usize)]) -> Vec<Presolved> {
        let data = &*self.prepared.data;
        let incumbents = match self.prepared.coupled {
            false => Incumbents::Bound,
            true => Incumbents::MayBeForbidden,
        };
        let mut left = Vec::new();
        for &(bound, index) in open {
            let limit = match self.pruning {
                Pruning::None if !self.prepared.coupled => i64::MAX,
                _ => self.limit,
            };
            if bound > limit {
                break;
            }
            let group = &data.groups[index];
            let presolved = presolve(group, index, &data.layers, limit, incumbents);
            let Some(mut presolved) = presolved else {
                continue;
            };
            if let Some(plan) = presolved.incumbent.take()
                && keeps_side_rows(data, &plan)
            {
                self.offer(plan);
            }
            left.push(presolved);
        }
        left.sort_by_key(|it| (it.lower_bound, it.group));
        left
    }

    /// Solves one program. Returns the proven bound if the time ran out.
    fn run_program(&mut self, left: &[Presolved]) -> Result<Option<i64>, StagedError> {
        let lowest = left.first().map_or(i64::MAX, |it| it.lower_bound);
        let Some(options) = self.clock.options() else {
            return Ok(Some(lowest));
        };
        let program = program(&self.prepared.data, left, &self.excluded);
        let outcome = solve::solve(&program.model, &options)?;
        self.statistics.add(outcome.statistics());
        let plan = outcome
            .solution()
            .map(|point| program.decode(point))
            .transpose()?;
        let bound = match &outcome {
            Outcome::Optimal { .. } | Outcome::Infeasible { .. } => None,
            Outcome::Feasible { bound, .. } => Some(program.integer_bound(*bound).max(lowest)),
            Outcome::Unknown { bound, .. } => {
                let bound = bound.map(|bound| program.integer_bound(bound).max(lowest));
                Some(bound.unwrap_or(lowest))
            }
        };
        let known = self.best.as_ref().map_or(i64::MAX, |best| best.objective);
        let decides = plan.as_ref().is_some_and(|plan| plan.objective <= known);
        if decides || self.model.is_none() {
            self.model = Some(program.model);
        }
        if let Some(plan) = plan {
            self.offer(plan);
        }
        Ok(bound)
    }

    /// Of the plans of the best objective, the one that the written rule prefers.
    fn settle_ties(
        &mut self,
        plan: Plan,
        open: &[(i64, usize)],
    ) -> Result<Outcome<Plan>, StagedError> {
        let data = &*self.prepared.data;
        let rank = |index: usize| (data.groups[index].rank, index);
        let mut preferred: Vec<usize> = (open.iter())
            .filter(|group| group.0 <= plan.objective)
            .map(|group| group.1)
            .filter(|&index| rank(index) <= rank(plan.group))
            .collect();
        preferred.sort_by_key(|&index| rank(index));
        for index in preferred {
            let found = canonical_plan(
                self.prepared,
                index,
                plan.objective,
                &self.clock,
                &mut self.statistics,
            )?;
            let found = match found {
                Canonical::Plan(found) => found,
                Canonical::NoPlan => continue,
                Canonical::TimeOver => {
                    let bound = plan.objective;
                    return Ok(stopped(plan, bound, self.statistics));
                }
            };
            // Beyond what the tolerances of the solver explain, one of the two is wrong.
            let (one, other) = (found.objective, plan.objective);
            if (one - other).abs() > 1 + other.abs() / 1_000_000 {
                return Err(inexact(format!(
                    "group {index} has a plan of {one}, the program says {other}"
                )));
            }
            return Ok(Outcome::Optimal {
                solution: found,
                statistics: self.statistics,
            });
        }
        let (group, objective) = (plan.group, plan.objective);
        Err(inexact(format!(
            "no plan of group {group} has the objective {objective}"
        )))
    }
}

/// The canonical best plan of a group of objective at most `limit`.
pub(super) fn canonical_plan(
    prepared: &Prepared<'_>,
    index: usize,
    limit: i64,
    clock: &Clock,
    statistics: &mut Statistics,
) -> Result<Canonical, StagedError> {
    let data = &*prepared.data;
    if prepared.coupled {
        return canonical(data, index, limit, clock, statistics);
    }
    let found = optimum_within(&data.groups[index], index, &data.layers, limit);
    Ok(found.map_or(Canonical::NoPlan, Canonical::Plan))
}
