//! Combinations whose costs are stated, so that the document says what its bounds come from.

use crate::axis::{Axis, Candidate};
use crate::certificate::costs;
use crate::certificate::document::StatedCosts;
use crate::certificate::format::ORDER;
use crate::cost_model::CellCosts;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{Cell, Checkpointing};

use super::space::Open;
use super::statement::Times;

/// Such a combination.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Example {
    /// Its position in the space.
    pub(super) position: u64,
    /// Its discrete choices.
    pub(super) cell: Cell,
    /// Its checkpointing flags.
    flags: Vec<Checkpointing>,
    /// Where it is among the combinations that break no rule.
    pub(super) open: Option<usize>,
    /// Its costs.
    pub(super) costs: StatedCosts,
}

impl Example {
    fn new(position: u64, cell: Cell, flags: Vec<Checkpointing>, open: Option<usize>) -> Self {
        Self {
            position,
            cell,
            flags,
            open,
            costs: StatedCosts::default(),
        }
    }

    /// Its costs in a job.
    pub(super) fn costs(&self, job: &Job) -> StatedCosts {
        self.costs_by(job, &CellCosts::new(job, &self.cell))
    }

    /// The same, from the coefficients.
    pub(super) fn costs_by(&self, job: &Job, costs: &CellCosts) -> StatedCosts {
        costs::stated(job, self.position, &self.flags, costs)
    }
}

/// Their times in a job.
pub(super) fn times_of(instance: &Instance, job: &Job, examples: &[Example]) -> Vec<Times> {
    let cells = examples.iter().map(|example| &example.cell);
    cells
        .map(|cell| Times::new(instance, &CellCosts::new(job, cell)))
        .collect()
}

/// For each value of each axis the first combination that breaks no rule and has it; if there is none, the
/// first of all that has it. By position.
pub(super) fn examples(instance: &Instance, open: &[Open]) -> Vec<Example> {
    let mut seen: [Vec<u32>; Axis::COUNT] = Default::default();
    let mut is_first = |candidate: &Candidate| {
        let mut any = false;
        for axis in Axis::ALL {
            let (code, seen) = (candidate.code(axis), &mut seen[axis as usize]);
            if !seen.contains(&code) {
                seen.push(code);
                any = true;
            }
        }
        any
    };
    let mut found = Vec::new();
    for (index, open) in open.iter().enumerate() {
        let candidates = open.flags.iter().map(|&checkpointing| Candidate {
            cell: open.cell,
            checkpointing,
        });
        if candidates.filter(|candidate| is_first(candidate)).count() > 0 {
            let flags = open.flags.clone();
            found.push(Example::new(open.position, open.cell, flags, Some(index)));
        }
    }
    for axis in ORDER {
        for digit in 0..instance.space.values(axis).len() {
            let (position, candidate) = with_one(instance, axis, digit);
            if seen[axis as usize].contains(&candidate.code(axis)) {
                continue;
            }
            for axis in Axis::ALL {
                seen[axis as usize].push(candidate.code(axis));
            }
            let flags = vec![candidate.checkpointing];
            found.push(Example::new(position, candidate.cell, flags, None));
        }
    }
    found.sort_by_key(|example| example.position);
    for example in &mut found {
        example.costs = example.costs(&instance.job);
    }
    found
}

/// The first combination with a value on one axis: the first value on all others.
fn with_one(instance: &Instance, chosen: Axis, digit: usize) -> (u64, Candidate) {
    let mut codes = [0; Axis::COUNT];
    let mut position = 0;
    for axis in ORDER {
        let values = instance.space.values(axis);
        let digit = if axis == chosen { digit } else { 0 };
        codes[axis as usize] = values[digit];
        position = position * values.len() as u64 + digit as u64;
    }
    (position, Candidate::from_codes(&codes))
}
