//! The walk: one loop per axis, rules judged as soon as they can be.

use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::instance::Instance;
use crate::rules::{self, Requirement, RuleSet};

/// A walk through the combinations of some values per axis.
#[derive(Debug)]
pub struct Walk<'a> {
    instance: &'a Instance,
    /// From the outermost loop to the innermost. Axes that are not in it are not decided.
    order: &'a [Axis],
    /// Codes to try, in the order of [`Axis::ALL`].
    values: [Vec<u32>; Axis::COUNT],
    /// What can be judged when so many axes are decided, and not before.
    judged: Vec<Vec<Requirement>>,
    codes: [u32; Axis::COUNT],
}

/// A place in the walk: some axes are decided, all others are 1, off or the first by name.
#[derive(Debug, Clone, Copy)]
pub struct Node<'w> {
    order: &'w [Axis],
    codes: &'w [u32; Axis::COUNT],
    /// How many axes are decided.
    pub decided: usize,
    /// The rules that are broken by the axes that are decided.
    pub broken: RuleSet,
}

/// Where the walk goes from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To the values of the next axis.
    Descend,
    /// To the next value of the same axis.
    Skip,
    /// Home.
    Stop,
}

impl Node<'_> {
    /// Whether every axis is decided.
    #[must_use]
    pub const fn is_leaf(&self) -> bool {
        self.decided == self.order.len()
    }

    /// The combination; what is not decided is 1, off or the first by name.
    #[must_use]
    pub fn flagged(&self) -> FlaggedCombination {
        FlaggedCombination::from_codes(self.codes)
    }

    /// The axes that are not decided.
    #[must_use]
    pub fn open(&self) -> AxisSet {
        let open = self.order[self.decided..].iter();
        open.fold(AxisSet::EMPTY, |set, &axis| set.with(axis))
    }
}

impl<'a> Walk<'a> {
    /// A walk through the values, which are not empty, in an order of axes.
    #[must_use]
    pub fn new(instance: &'a Instance, order: &'a [Axis], values: [Vec<u32>; Axis::COUNT]) -> Self {
        let mut judged = vec![Vec::new(); order.len() + 1];
        for requirement in rules::requirements(instance) {
            let Requirement { rule, part } = requirement;
            let Some(axes) = rule.axes(instance, part) else {
                continue;
            };
            // What the instance lists is not outside of what it lists.
            let axis = requirement.axis();
            if axis.is_some_and(|axis| instance.space.values(axis) == values[axis as usize]) {
                continue;
            }
            let mut depths = axes
                .iter()
                .map(|axis| order.iter().position(|&other| other == axis));
            let decided = depths.try_fold(0, |most, depth| Some(most.max(depth? + 1)));
            if let Some(decided) = decided {
                judged[decided].push(requirement);
            }
        }
        Self {
            codes: Axis::ALL.map(|axis| FlaggedCombination::FIRST.code(axis)),
            instance,
            order,
            values,
            judged,
        }
    }

    /// Visits every node until one says to stop.
    pub fn run(&mut self, visit: &mut impl FnMut(&Node) -> Step) {
        self.descend(0, RuleSet::EMPTY, visit);
    }

    fn descend(
        &mut self,
        decided: usize,
        broken: RuleSet,
        visit: &mut impl FnMut(&Node) -> Step,
    ) -> Step {
        let broken = self.judge(decided, broken);
        let step = visit(&Node {
            order: self.order,
            codes: &self.codes,
            decided,
            broken,
        });
        let Some(&axis) = self.order.get(decided).filter(|_| step == Step::Descend) else {
            return step;
        };
        let place = axis as usize;
        for position in 0..self.values[place].len() {
            self.codes[place] = self.values[place][position];
            if self.descend(decided + 1, broken, visit) == Step::Stop {
                return Step::Stop;
            }
        }
        self.codes[place] = FlaggedCombination::FIRST.code(axis);
        Step::Descend
    }

    /// Adds what is broken by the axes that are decided now.
    fn judge(&self, decided: usize, broken: RuleSet) -> RuleSet {
        let judged = &self.judged[decided];
        if judged.is_empty() {
            return broken;
        }
        let flagged = FlaggedCombination::from_codes(&self.codes);
        let is_broken = |it: &&Requirement| it.rule.amount(self.instance, &flagged, it.part) > 0;
        let found: RuleSet = judged.iter().filter(is_broken).copied().collect();
        broken.union(found)
    }
}
