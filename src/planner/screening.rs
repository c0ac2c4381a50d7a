//! Bounds on the objective of every choice, before the program: what may be the best stays open.

use formulations::staged::bounds::{Scratch, bottleneck_bound};

use crate::axis::AxisSet;

use super::classes::{self, Thresholds};
use super::cost_table::CostTable;
use super::groups::{self, Choice, choices, first_bound, relaxed};
use super::objective::least_step_time;
use super::{Deadline, Pruning};

/// What is proven of a choice before the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceBound {
    /// No distribution of the layers fits.
    Infeasible,
    /// It takes at least so many units of time, which is more than a known plan.
    Pruned(i64),
    /// It may be the best.
    Open(i64),
    /// There was no time for it: it takes at least so many units of time, rounding taken off.
    Unreached(i64),
}

/// The choices of a table, screened.
#[derive(Debug)]
pub struct Screening {
    /// The choices.
    pub choices: Vec<Choice>,
    /// What is proven of each.
    pub bounds: Vec<ChoiceBound>,
    /// The class of each: an answer lists the best layouts of different classes.
    pub(super) classes: Vec<usize>,
    /// Units by which rounding may exchange two plans of open choices, at most.
    pub(super) slack: i64,
    /// The choice of the best plan that was found on the way.
    pub(super) quick: Option<usize>,
}

impl Screening {
    /// No layout of the choices that there was no time for takes fewer units.
    pub(super) fn left(&self) -> Option<i64> {
        let bounds = self.bounds.iter().filter_map(|bound| match bound {
            ChoiceBound::Unreached(bound) => Some(*bound),
            _ => None,
        });
        bounds.min()
    }
}

/// Bounds every choice, while there is time. Those that may be the best of one of the `count` best classes
/// stay open: classes are told apart by `axes`, without any every choice is its own.
///
/// Choices are visited in order of the first bound (perfect balance, no recomputation). The second
/// bound and a quick plan are computed only for those that the plans known so far leave open. Of every
/// bound the rounding is taken off, and added to every plan.
#[must_use]
pub fn screen(
    table: &CostTable,
    count: usize,
    axes: AxisSet,
    pruning: Pruning,
    deadline: Deadline,
) -> Screening {
    let layers = table.layers.count();
    let choices = choices(table);
    let candidates = choices.iter().map(|it| it.candidate(table.formulation));
    let classes = classes::classes(candidates, axes);
    let mut bounds = first_bounds(table, &choices, deadline.part(2));
    let mut order: Vec<(i64, usize)> = (bounds.iter().zip(0..))
        .filter_map(|(bound, index)| match bound {
            ChoiceBound::Pruned(bound) => Some((*bound, index)),
            _ => None,
        })
        .collect();
    order.sort_unstable();
    let rounding =
        |index: usize, limit: i64| table.units[choices[index].units].rounding(limit, layers);
    let exceeds = |index: usize, bound: i64, limit: i64| {
        let excludes = pruning == Pruning::ByBounds && limit < i64::MAX;
        excludes && bound.saturating_sub(rounding(index, limit)) > limit
    };
    let mut scratch = Scratch::default();
    let mut known = Thresholds::new(count, classes.iter().max().map_or(0, |last| last + 1));
    let mut quick: Option<(i64, usize)> = None;
    for (number, &(bound, index)) in order.iter().enumerate() {
        if exceeds(index, bound, known.limit_of(classes[index])) {
            continue;
        }
        if number % PLANS_UNTIMED == PLANS_UNTIMED - 1 && deadline.is_over() {
            for &(bound, index) in &order[number..] {
                let bound = bound.saturating_sub(rounding(index, bound));
                bounds[index] = ChoiceBound::Unreached(bound);
            }
            break;
        }
        let relaxed = relaxed(table, &choices[index]).group;
        let Some(bound) = bottleneck_bound(&relaxed, layers, &mut scratch) else {
            bounds[index] = ChoiceBound::Infeasible;
            continue;
        };
        bounds[index] = ChoiceBound::Open(bound);
        if bound <= known.limit_of(classes[index])
            && let Some(found) = groups::quick(table, &choices[index])
        {
            let objective = found.objective;
            known.offer(objective + rounding(index, objective), classes[index]);
            quick = quick.into_iter().chain([(objective, index)]).min();
        }
    }
    let mut slack = 0;
    for (index, bound) in bounds.iter_mut().enumerate() {
        let limit = known.limit_of(classes[index]);
        match *bound {
            ChoiceBound::Open(value) | ChoiceBound::Unreached(value)
                if exceeds(index, value, limit) =>
            {
                *bound = ChoiceBound::Pruned(value);
            }
            ChoiceBound::Open(_) if limit < i64::MAX => {
                slack = slack.max(2 * rounding(index, limit));
            }
            _ => {}
        }
    }
    Screening {
        choices,
        bounds,
        classes,
        slack,
        quick: quick.map(|(_, index)| index),
    }
}

/// Choices that are bounded between two looks at the clock.
const CHOICES_UNTIMED: usize = 16;
/// Choices of which a plan is looked for between two of them.
const PLANS_UNTIMED: usize = 4;

/// The first bound of each choice, as if it were pruned by that.
fn first_bounds(table: &CostTable, choices: &[Choice], deadline: Deadline) -> Vec<ChoiceBound> {
    let mut bounds = Vec::with_capacity(choices.len());
    for (number, choice) in choices.iter().enumerate() {
        if number % CHOICES_UNTIMED == CHOICES_UNTIMED - 1 && deadline.is_over() {
            let least = least_step_time(&table.instance.job);
            let rest = ChoiceBound::Unreached(table.quantum.units_within(least));
            bounds.resize(choices.len(), rest);
            break;
        }
        bounds.push(ChoiceBound::Pruned(first_bound(table, choice)));
    }
    bounds
}
