//! The best plans of several groups.

use super::StagedError;
use super::check::check;
use super::data::Data;
use super::lexicographic::Canonical;
use super::limits::{Clock, cutoffs};
use super::plan::Plan;
use super::search::canonical_plan;
use super::side_rows::{Prepared, prepare};
use crate::solve::{Outcome, SolverOptions, Statistics};

/// What is asked for beside the best plan.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Classes of groups.
    pub classes: usize,
    /// How far above the last of them a plan may still be of use.
    pub slack: i64,
}

/// The best plans of the groups that may belong to one of the `classes` best classes, one a group, the best
/// first: all up to `slack` above the best plan of the last of these classes. With `|group| group` every
/// group is a class of its own; with another map the plans differ in what it tells apart.
///
/// Groups are solved one by one in the order of their bounds. Of equal objective the lowest rank comes
/// first, then the first group.
///
/// # Errors
/// When the data cannot be used, or the solver fails or gives an answer that is not one.
pub fn top(
    data: &Data,
    wanted: Wanted,
    class: impl Fn(usize) -> usize,
    options: &SolverOptions,
) -> Result<Outcome<Vec<Plan>>, StagedError> {
    if options.deadline.is_over() {
        return Ok(Outcome::Unknown {
            bound: None,
            statistics: Statistics::default(),
        });
    }
    check(data)?;
    let prepared = prepare(data, options.deadline);
    let open = prepared.open();
    let mut search = Search {
        prepared: &prepared,
        clock: Clock::new(options, data.units.objective),
        wanted,
        class,
        found: Vec::new(),
        statistics: Statistics::default(),
    };
    let lowest = open.first().map_or(0, |group| group.0);
    let first = if prepared.coupled { lowest } else { i64::MAX };
    for cutoff in cutoffs(first, i64::MAX) {
        search.found.clear();
        let bound = search.run(&open, cutoff)?;
        if let Some(bound) = bound.into_iter().chain(prepared.left).min() {
            return Ok(stopped(search.found, bound, search.statistics));
        }
        if search.limit() < cutoff.saturating_sub(wanted.slack) {
            break;
        }
    }
    let (found, statistics) = (search.found, search.statistics);
    if found.is_empty() {
        return Ok(Outcome::Infeasible { statistics });
    }
    Ok(Outcome::Optimal {
        solution: found,
        statistics,
    })
}

struct Search<'a, F> {
    prepared: &'a Prepared<'a>,
    clock: Clock,
    wanted: Wanted,
    class: F,
    /// One plan of each group that may matter, the best first.
    found: Vec<Plan>,
    statistics: Statistics,
}

impl<F: Fn(usize) -> usize> Search<'_, F> {
    /// The plans up to a cutoff. Returns the proven bound if the time ran out.
    fn run(&mut self, open: &[(i64, usize)], cutoff: i64) -> Result<Option<i64>, StagedError> {
        for &(lower_bound, index) in open {
            let limit = self.limit().saturating_add(self.wanted.slack).min(cutoff);
            if lower_bound > limit {
                break;
            }
            let (clock, statistics) = (&self.clock, &mut self.statistics);
            match canonical_plan(self.prepared, index, limit, clock, statistics)? {
                Canonical::Plan(plan) => self.offer(plan),
                Canonical::NoPlan => {}
                Canonical::TimeOver => return Ok(Some(lower_bound)),
            }
        }
        Ok(None)
    }

    /// Objective of the last of the best classes.
    fn limit(&self) -> i64 {
        let mut classes = Vec::with_capacity(self.wanted.classes);
        for plan in &self.found {
            let class = (self.class)(plan.group);
            if !classes.contains(&class) {
                classes.push(class);
            }
            if classes.len() == self.wanted.classes {
                return plan.objective;
            }
        }
        i64::MAX
    }

    fn offer(&mut self, plan: Plan) {
        let groups = &self.prepared.data.groups;
        let rank = |plan: &Plan| (plan.objective, groups[plan.group].rank, plan.group);
        let place = self
            .found
            .partition_point(|known| rank(known) < rank(&plan));
        self.found.insert(place, plan);
        let limit = self.limit().saturating_add(self.wanted.slack);
        self.found.retain(|plan| plan.objective <= limit);
    }
}

/// The plans so far; whatever is missing among them is not below the bound.
fn stopped(found: Vec<Plan>, bound: i64, statistics: Statistics) -> Outcome<Vec<Plan>> {
    let Some(first) = found.first() else {
        let bound = Some(bound as f64);
        return Outcome::Unknown { bound, statistics };
    };
    let bound = bound.min(first.objective);
    Outcome::Feasible {
        gap: (first.objective - bound) as f64,
        bound: bound as f64,
        solution: found,
        statistics,
    }
}
