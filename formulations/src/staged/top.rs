//! The best plans of several cells.

use super::StagedError;
use super::check::check;
use super::data::Data;
use super::dynamic::cell_optimum_within;
use super::lexicographic::{Canonical, canonical};
use super::limits::{Clock, cutoffs};
use super::plan::Plan;
use super::screen::screen;
use super::side_rows::{Prepared, prepare};
use crate::solve::{Outcome, SolverOptions, Statistics};

/// The best plans of `count` classes of cells, one a class, the best first. With `|cell| cell` every cell
/// is a class of its own; with another map the plans differ in what it tells apart. Fewer plans come back
/// when fewer classes have any.
///
/// Cells are screened against the `count`-th best known class and solved one by one in the order of their
/// bounds. Of equal objective the lowest rank comes first, then the first cell.
///
/// # Errors
/// When the data cannot be used, or the solver fails or gives an answer that is not one.
pub fn top(
    data: &Data,
    count: usize,
    class: impl Fn(usize) -> usize,
    options: &SolverOptions,
) -> Result<Outcome<Vec<Plan>>, StagedError> {
    check(data)?;
    let clock = Clock::start(options);
    let prepared = prepare(data);
    let screening = screen(data, &prepared, count, &class);
    let mut search = Search {
        prepared: &prepared,
        clock,
        count,
        class,
        best: Vec::new(),
        statistics: Statistics::default(),
    };
    let limit = screening.limit;
    let lowest = screening.survivors.first().map_or(0, |survivor| survivor.0);
    let first = if prepared.coupled { lowest } else { limit };
    for cutoff in cutoffs(first, limit) {
        search.best.clear();
        if let Some(bound) = search.run(&screening.survivors, cutoff)? {
            return Ok(stopped(search.best, bound, search.statistics));
        }
        if search.best.len() == count {
            break;
        }
    }
    let (best, statistics) = (search.best, search.statistics);
    if best.is_empty() {
        return Ok(Outcome::Infeasible { statistics });
    }
    Ok(Outcome::Optimal {
        solution: best,
        statistics,
    })
}

struct Search<'a, F> {
    prepared: &'a Prepared<'a>,
    clock: Clock,
    count: usize,
    class: F,
    /// The best plans of different classes, the best first.
    best: Vec<Plan>,
    statistics: Statistics,
}

impl<F: Fn(usize) -> usize> Search<'_, F> {
    /// The best plans up to a limit. Returns the proven bound if the time ran out.
    fn run(
        &mut self,
        survivors: &[(i64, usize)],
        mut limit: i64,
    ) -> Result<Option<i64>, StagedError> {
        let data = &*self.prepared.data;
        for &(lower_bound, index) in survivors {
            if lower_bound > limit {
                break;
            }
            let found = if self.prepared.coupled {
                canonical(data, index, limit, &self.clock, &mut self.statistics)?
            } else {
                let found = cell_optimum_within(&data.cells[index], index, data.layers, limit);
                found.map_or(Canonical::NoPlan, Canonical::Plan)
            };
            match found {
                Canonical::Plan(plan) => self.offer(plan),
                Canonical::NoPlan => continue,
                Canonical::TimeOver => return Ok(Some(lower_bound)),
            }
            if self.best.len() == self.count {
                limit = self
                    .best
                    .last()
                    .map_or(limit, |plan| limit.min(plan.objective));
            }
        }
        Ok(None)
    }

    fn offer(&mut self, plan: Plan) {
        let data = &*self.prepared.data;
        let rank = |plan: &Plan| (plan.objective, data.cells[plan.cell].rank, plan.cell);
        let class = (self.class)(plan.cell);
        let known = self
            .best
            .iter()
            .position(|known| (self.class)(known.cell) == class);
        if let Some(known) = known {
            if rank(&self.best[known]) <= rank(&plan) {
                return;
            }
            self.best.remove(known);
        }
        let place = self.best.partition_point(|known| rank(known) < rank(&plan));
        self.best.insert(place, plan);
        self.best.truncate(self.count);
    }
}

/// The plans so far; whatever is missing among them is not below the bound.
fn stopped(best: Vec<Plan>, bound: i64, statistics: Statistics) -> Outcome<Vec<Plan>> {
    let Some(first) = best.first() else {
        let bound = Some(bound as f64);
        return Outcome::Unknown { bound, statistics };
    };
    let bound = bound.min(first.objective);
    Outcome::Feasible {
        gap: (first.objective - bound) as f64,
        bound: bound as f64,
        solution: best,
        statistics,
    }
}
