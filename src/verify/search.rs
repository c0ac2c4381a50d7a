//! Searches a whole space by the dynamic program over stages, combination by combination.
//!
//! It shares the costs of a combination with the planner, in a unit of time so fine that rounding does
//! not matter, and nothing else: no bound of the answer, no screening, no program. Combinations are
//! visited in the order of a simple bound (work spread evenly, no recomputation), and those whose
//! bound is above what the search itself has found are passed over.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use formulations::staged::optimum_within;
use rayon::prelude::*;

use super::{Counts, Options};
use crate::axis::AxisSet;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::{self, Evaluated, Formulation};
use crate::planner::classes::{Thresholds, classes};
use crate::planner::cost_table::CostTable;
use crate::planner::groups::{Choice, choices, first_bound, variants};
use crate::planner::{self, TimeOver};

/// What to search for.
pub(super) struct Search<'a> {
    pub(super) formulation: Formulation,
    /// Axes in one of which the layouts have to differ.
    pub(super) diverse: AxisSet,
    /// How many of the best layouts are sought.
    pub(super) count: usize,
    pub(super) options: &'a Options<'a>,
}

/// What was found.
pub(super) struct Found {
    /// The best layouts, best first, each of another combination, or different in one of the axes.
    pub(super) best: Vec<Evaluated>,
    pub(super) counts: Counts,
    /// Rules whose violators are no part of the space's combinations.
    pub(super) applied_before: Vec<&'static str>,
}

/// The best layouts of the space, of those that the time allowed.
pub(super) fn search(instance: &Instance, search: &Search) -> Found {
    let table = CostTable::exactly(instance, search.formulation, search.options.deadline);
    let broken = table.entries.iter();
    let broken = broken.filter(|entry| !entry.broken.is_empty()).count();
    let (best, counts) = over_stages(&table, search);
    let best = best
        .into_iter()
        .map(|layout| planner::evaluate(instance, layout));
    let rules = table.applied_before.iter();
    Found {
        best: best.collect(),
        counts: Counts {
            total: counts.total + broken as u64,
            broken: broken as u64,
            ..counts
        },
        applied_before: rules.map(|rule| rule.as_str()).collect(),
    }
}

/// The best layouts so far: each was the best of its class when it was found.
struct Known {
    thresholds: Thresholds,
    layouts: Vec<(i64, Layout, usize)>,
}

impl Known {
    /// The best layout of each of the `count` best classes.
    fn best(mut self, count: usize) -> Vec<Layout> {
        self.layouts.sort();
        let mut seen = HashSet::new();
        let layouts = self.layouts.into_iter();
        let first_of_class = layouts.filter(|(_, _, class)| seen.insert(*class));
        first_of_class
            .take(count)
            .map(|(_, layout, _)| layout)
            .collect()
    }
}

/// Over every cut and checkpointing that the framework takes.
fn over_stages(table: &CostTable, search: &Search) -> (Vec<Layout>, Counts) {
    let choices = choices(table);
    let candidates = choices.iter().map(|it| it.candidate(table.formulation));
    let classes = classes(candidates, search.diverse);
    let deadline = search.options.deadline;
    let bound = |choice: &Choice| (!deadline.is_over()).then(|| first_bound(table, choice));
    let Some(bounds) = choices.par_iter().map(bound).collect::<Option<Vec<i64>>>() else {
        let total = choices.len() as u64;
        let counts = Counts {
            total,
            open: total.max(1),
            ..Counts::default()
        };
        return (Vec::new(), counts);
    };
    let mut order: Vec<usize> = (0..choices.len()).collect();
    order.sort_by_key(|&index| (bounds[index], index));
    let number = classes.iter().max().map_or(0, |last| last + 1);
    let known = Mutex::new(Known {
        thresholds: Thresholds::new(search.count, number),
        layouts: Vec::new(),
    });
    let (next, visited) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let infeasible = AtomicUsize::new(0);
    let is_cut = AtomicBool::new(false);
    let lock = || {
        known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    rayon::broadcast(|_| {
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let class = classes[index];
            let (limit, limit_of) = {
                let known = lock();
                (known.thresholds.limit(), known.thresholds.limit_of(class))
            };
            if bounds[index] > limit {
                break;
            }
            if deadline.is_over() {
                is_cut.store(true, Ordering::Relaxed);
                break;
            }
            if bounds[index] > limit_of {
                continue;
            }
            let done = visited.fetch_add(1, Ordering::Relaxed) + 1;
            (search.options.progress)(done as u64, order.len() as u64);
            let choice = &choices[index];
            let mut is_empty = limit_of == i64::MAX;
            for variant in variants(table, choice) {
                match optimum_within(&variant.group, 0, &table.layers, limit_of, deadline) {
                    Ok(Some(plan)) => {
                        is_empty = false;
                        let layout = variant.layout(choice, &plan);
                        let mut known = lock();
                        known.thresholds.offer(plan.objective, class);
                        known.layouts.push((plan.objective, layout, class));
                    }
                    Ok(None) => {}
                    Err(TimeOver) => is_cut.store(true, Ordering::Relaxed),
                }
            }
            infeasible.fetch_add(usize::from(is_empty), Ordering::Relaxed);
        }
    });
    let known = known.into_inner();
    let known = known.unwrap_or_else(std::sync::PoisonError::into_inner);
    let [total, visited, infeasible] =
        [choices.len(), visited.into_inner(), infeasible.into_inner()].map(|count| count as u64);
    let rest = total - visited;
    // What was not listed, or was being searched, is open as well.
    let is_cut = is_cut.into_inner() || table.extent == plan::Extent::Cut;
    let (pruned, open) = if is_cut { (0, rest.max(1)) } else { (rest, 0) };
    let counts = Counts {
        total,
        broken: 0,
        infeasible,
        pruned,
        solved: visited - infeasible,
        open,
    };
    (known.best(search.count), counts)
}
