//! Bounds, presolve, then the program over what is left.

use super::StagedError;
use super::check::check;
use super::data::{Data, Excluded};
use super::exact::{key_of, optimum_within};
use super::lexicographic::{Canonical, canonical};
use super::limits::{Clock, cutoffs};
use super::plan::Plan;
use super::presolve::{Incumbents, Presolved, presolve};
use super::program::{inexact, program};
use super::shortage::{Shortage, shortage};
use super::side_rows::{Piece, Prepared, keeps_side_rows, prepare};
use crate::deadline::{Deadline, TimeOver};
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
    let prepared = prepare(data, options.deadline);
    let open = prepared.open();
    let mut search = Search {
        prepared: &prepared,
        excluded: excluded(&prepared, options.deadline),
        pruning,
        clock: Clock::new(options, data.units.objective),
        limit: i64::MAX,
        best: None,
        model: None,
        statistics: Statistics::default(),
    };
    let bound = lower(search.run_within_cutoffs(&open)?, prepared.left);
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

/// The lower of two bounds of what the time left open.
fn lower(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
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

/// The combinations that no group stands for: those of the data, and the groups of which nothing is left,
/// while there is time.
fn excluded(prepared: &Prepared<'_>, deadline: Deadline) -> Vec<Excluded> {
    let data = prepared.data;
    let mut excluded = data.excluded.clone();
    if prepared.left.is_some() {
        return excluded;
    }
    for (index, group) in data.groups.iter().enumerate() {
        if deadline.is_over() {
            break;
        }
        if data.rules.is_empty() || !prepared.pieces[index].is_empty() {
            continue;
        }
        let (name, amount) = match shortage(group, data.layers.count()) {
            Some(Shortage::Memory { amount, .. }) => (Some(&data.names.memory), amount),
            Some(Shortage::Layers) => (Some(&data.names.layers), 1),
            None => (prepared.excluding(index).map(|row| &row.name), 1),
        };
        if let Some(rule) = data.rules.iter().position(|rule| Some(rule) == name) {
            excluded.push(Excluded {
                values: group.values.clone(),
                broken: vec![(rule, amount as u64)],
            });
        }
    }
    excluded
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
        let (mut left, bound) = self.presolve(open);
        if bound.is_some() {
            return Ok(bound);
        }
        if self.pruning == Pruning::ByBounds && !self.prepared.coupled {
            // The best plan of all narrows what those before it left.
            let again: Vec<(i64, usize)> =
                left.iter().map(|it| (it.lower_bound, it.group)).collect();
            let (narrowed, bound) = self.presolve(&again);
            if bound.is_some() {
                return Ok(bound);
            }
            left = narrowed;
            self.drop_repeated(&mut left);
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
            self.model = Some(program(self.prepared.data, &[], &self.excluded).model);
        }
        Ok(None)
    }

    /// What may be as good as the best known of the groups, whose plans are taken note of; the lowest
    /// bounds first. With it the proven bound if the time ran out.
    fn presolve(&mut self, open: &[(i64, usize)]) -> (Vec<Presolved>, Option<i64>) {
        let data = self.prepared.data;
        let incumbents = if self.prepared.coupled {
            Incumbents::MayBeForbidden
        } else {
            Incumbents::Bound
        };
        let mut left: Vec<Presolved> = Vec::new();
        let mut stopped = None;
        for &(bound, index) in open {
            let limit = match self.pruning {
                Pruning::None if !self.prepared.coupled => i64::MAX,
                _ => self.limit,
            };
            if bound > limit {
                break;
            }
            let deadline = self.clock.deadline();
            let presolved = match presolve_pieces(self.prepared, index, limit, incumbents, deadline)
            {
                Ok(Some(presolved)) => presolved,
                Ok(None) => continue,
                Err(TimeOver) => {
                    let bounds = left.iter().map(|it| it.lower_bound);
                    stopped = bounds.chain([bound]).min();
                    break;
                }
            };
            left.push(self.note_incumbent(presolved, data));
        }
        left.sort_by_key(|it| (it.lower_bound, it.group));
        (left, stopped)
    }

    fn note_incumbent(&mut self, mut presolved: Presolved, data: &Data) -> Presolved {
        if let Some(plan) = presolved.incumbent.take()
            && keeps_side_rows(data, &plan)
        {
            self.offer(plan);
        }
        presolved
    }

    /// Drops groups of which the same is left as of one before them: a uniform number of recomputed layers
    /// above what any stage has is all of them, whatever the number is.
    fn drop_repeated(&self, left: &mut Vec<Presolved>) {
        let data = self.prepared.data;
        if !data.side_rows.is_empty() {
            return;
        }
        let same = |one: &Presolved, other: &Presolved| {
            let (a, b) = (&data.groups[one.group], &data.groups[other.group]);
            one.lower_bound == other.lower_bound
                && one.intervals == other.intervals
                && (a.weights, a.constant, a.partition) == (b.weights, b.constant, b.partition)
                && (&a.kinds, &a.stages) == (&b.kinds, &b.stages)
        };
        let mut kept: Vec<Presolved> = Vec::with_capacity(left.len());
        for presolved in left.drain(..) {
            let mut before = kept.iter().rev();
            let mut equal = before
                .by_ref()
                .take_while(|it| it.lower_bound == presolved.lower_bound);
            if !equal.any(|it| same(it, &presolved)) {
                kept.push(presolved);
            }
        }
        *left = kept;
    }

    /// Solves one program. Returns the proven bound if the time ran out.
    fn run_program(&mut self, left: &[Presolved]) -> Result<Option<i64>, StagedError> {
        let lowest = left.first().map_or(i64::MAX, |it| it.lower_bound);
        let Ok(options) = self.clock.options() else {
            return Ok(Some(lowest));
        };
        // One program shows what rules exclude.
        let excluded = if self.model.is_none() {
            &self.excluded[..]
        } else {
            &[]
        };
        let program = program(self.prepared.data, left, excluded);
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
        let data = self.prepared.data;
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
    let data = prepared.data;
    if prepared.coupled {
        return canonical(prepared, index, limit, clock, statistics);
    }
    let (mut best, mut limit): (Option<Plan>, i64) = (None, limit);
    for piece in &prepared.pieces[index] {
        if piece.lower_bound > limit {
            break;
        }
        let deadline = clock.deadline();
        let plan = match optimum_within(&piece.group, index, &data.layers, limit, deadline) {
            Ok(Some(plan)) => plan,
            Ok(None) => continue,
            Err(TimeOver) => return Ok(Canonical::TimeOver),
        };
        limit = plan.objective;
        let key = |plan: &Plan| key_of(&piece.group, plan, &data.layers);
        if best.as_ref().is_none_or(|best| key(&plan) < key(best)) {
            best = Some(plan);
        }
    }
    Ok(best.map_or(Canonical::NoPlan, Canonical::Plan))
}

/// What may be part of a plan of objective at most `limit` of any piece of a group.
pub(super) fn presolve_pieces(
    prepared: &Prepared<'_>,
    index: usize,
    mut limit: i64,
    incumbents: Incumbents,
    deadline: Deadline,
) -> Result<Option<Presolved>, TimeOver> {
    let mut all: Option<Presolved> = None;
    for Piece { lower_bound, group } in &prepared.pieces[index] {
        if *lower_bound > limit {
            break;
        }
        let layers = &prepared.data.layers;
        let presolved = presolve(group, index, layers, (limit, incumbents), deadline)?;
        let Some(presolved) = presolved else { continue };
        if let (Incumbents::Bound, Some(plan)) = (incumbents, &presolved.incumbent) {
            limit = limit.min(plan.objective);
        }
        match &mut all {
            None => all = Some(presolved),
            Some(all) => all.add(presolved),
        }
    }
    Ok(all)
}
