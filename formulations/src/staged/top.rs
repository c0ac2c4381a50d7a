//! The best plans of several cells.

use super::StagedError;
use super::data::{self, Data};
use super::dynamic::optimum_within;
use super::lexicographic::{Canonical, canonical};
use super::plan::Plan;
use super::screen::screen;
use super::search::Clock;
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
    data::check(data)?;
    let clock = Clock::start(options);
    let mut statistics = Statistics::default();
    let screening = screen(data, count, &class);
    let mut best: Vec<Plan> = Vec::new();
    let rank = |plan: &Plan| (plan.objective, data.cells[plan.cell].rank, plan.cell);
    let mut limit = screening.limit;
    for &(lower_bound, index) in &screening.survivors {
        if lower_bound > limit {
            break;
        }
        let found = if data.side_rows.is_empty() {
            let found = optimum_within(&data.cells[index], index, data.layers, limit);
            found.map_or(Canonical::NoPlan, Canonical::Plan)
        } else {
            canonical(data, index, limit, &clock, &mut statistics)?
        };
        let plan = match found {
            Canonical::Plan(plan) => plan,
            Canonical::NoPlan => continue,
            Canonical::TimeOver => return Ok(stopped(best, lower_bound, statistics)),
        };
        if let Some(known) = best
            .iter()
            .position(|known| class(known.cell) == class(index))
        {
            if rank(&best[known]) <= rank(&plan) {
                continue;
            }
            best.remove(known);
        }
        let place = best.partition_point(|known| rank(known) < rank(&plan));
        best.insert(place, plan);
        best.truncate(count);
        if best.len() == count {
            limit = best.last().map_or(limit, |plan| limit.min(plan.objective));
        }
    }
    if best.is_empty() {
        return Ok(Outcome::Infeasible { statistics });
    }
    Ok(Outcome::Optimal {
        solution: best,
        statistics,
    })
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
