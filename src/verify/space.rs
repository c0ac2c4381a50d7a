//! The combinations of a space, listed by the checker's own loops.

use std::collections::HashMap;

use crate::axis::{Axis, Candidate};
use crate::certificate::format::{ORDER, RULES};
use crate::constraint::Constraint;
use crate::instance::Instance;
use crate::layout::{Cell, Checkpointing};
use crate::plan::Formulation;
use crate::rule::Rule;

use super::budget::{Budget, TooLarge};
use super::rows;
use super::rules::{Codes, amount};

/// A combination that breaks no rule. For `staged`, which leaves checkpointing to the stages, all
/// combinations that differ in nothing else are one, at the position of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    /// Its position in the space.
    pub(super) position: u64,
    /// Its discrete choices.
    pub(super) cell: Cell,
    /// The permitted checkpointing flags, ascending.
    pub(super) flags: Vec<Checkpointing>,
}

/// What a walk through the space finds.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// The combinations that break no rule, by position.
    pub(super) open: Vec<Open>,
    /// Combinations of the space.
    pub(super) total: u64,
    /// What each forbidden assignment excludes beyond the rules, the rows and those before it.
    pub(super) excluded: Vec<Excluded>,
}

/// What forbidden values exclude that no rule, row over discrete choices or earlier entry does.
#[derive(Debug, Clone, Default)]
pub(super) struct Excluded {
    /// So many combinations.
    pub(super) count: u64,
    /// Position of the first.
    pub(super) first: Option<u64>,
    /// For each value whether more would be excluded without it.
    pub(super) matters: Vec<bool>,
}

/// Combinations of the space that the formulation tells apart; `None` beyond 64 bits.
pub(super) fn total(instance: &Instance, formulation: Formulation) -> Option<u64> {
    let counted =
        |axis: &&Axis| formulation == Formulation::LayoutChoice || **axis != Axis::Checkpointing;
    let mut axes = ORDER.iter().filter(counted);
    axes.try_fold(1_u64, |product, &axis| {
        product.checked_mul(instance.space.values(axis).len() as u64)
    })
}

/// The amounts of a rule over the values of its axes, the last axis fastest; `None` if there are more
/// than `most`.
pub(super) fn amounts(
    instance: &Instance,
    rule: Rule,
    axes: &[Axis],
    most: usize,
) -> Option<Vec<i64>> {
    let of = |codes: &Codes| amount(rule, &instance.job, codes);
    table(instance, axes, most, of)
}

/// A number for each combination of the values of some axes, the last axis fastest; `None` if there are
/// more than `most`.
pub(super) fn table(
    instance: &Instance,
    axes: &[Axis],
    most: usize,
    number: impl Fn(&Codes) -> i64,
) -> Option<Vec<i64>> {
    let count = axes.iter().try_fold(1_usize, |count, &axis| {
        count.checked_mul(instance.space.values(axis).len())
    });
    let count = count.filter(|&count| count <= most)?;
    let numbers = (0..count).map(|mut index| {
        let mut codes = [1; Axis::COUNT];
        for &axis in axes.iter().rev() {
            let values = instance.space.values(axis);
            codes[axis as usize] = values[index % values.len()];
            index /= values.len();
        }
        number(&codes)
    });
    Some(numbers.collect())
}

/// Walks through the space and keeps what breaks no rule.
pub(super) fn walk(
    instance: &Instance,
    formulation: Formulation,
    budget: &Budget,
) -> Result<Walked, TooLarge> {
    let depth_of = |axes: &mut dyn Iterator<Item = Axis>| {
        axes.filter_map(|axis| ORDER.iter().position(|&other| other == axis))
            .max()
            .unwrap_or(0)
    };
    // Positions count every axis.
    total(instance, Formulation::LayoutChoice).ok_or(TooLarge)?;
    let mut walker = Walker {
        instance,
        formulation,
        rules: RULES
            .iter()
            .map(|(rule, axes)| (depth_of(&mut axes.iter().copied()), *rule))
            .collect(),
        rows: instance
            .space
            .constraints
            .iter()
            .filter(|row| rows::axes(row).is_some())
            .collect(),
        found: Walked {
            total: total(instance, formulation).ok_or(TooLarge)?,
            excluded: (instance.space.forbidden.iter())
                .map(|assignment| Excluded {
                    matters: vec![false; assignment.0.len()],
                    ..Excluded::default()
                })
                .collect(),
            ..Walked::default()
        },
        places: HashMap::new(),
        budget,
    };
    walker.visit(0, 0, &mut [1; Axis::COUNT])?;
    Ok(walker.found)
}

struct Walker<'a> {
    instance: &'a Instance,
    formulation: Formulation,
    /// Each rule with the depth at which its last axis has a value.
    rules: Vec<(usize, Rule)>,
    /// The rows over discrete choices.
    rows: Vec<&'a Constraint>,
    found: Walked,
    /// Where each cell is among the combinations found.
    places: HashMap<Cell, usize>,
    budget: &'a Budget,
}

impl Walker<'_> {
    fn visit(&mut self, depth: usize, position: u64, codes: &mut Codes) -> Result<(), TooLarge> {
        let instance = self.instance;
        let Some(&axis) = ORDER.get(depth) else {
            return self.keep(position, codes);
        };
        let values = instance.space.values(axis);
        self.budget.spend(values.len() as u64)?;
        for (digit, &code) in values.iter().enumerate() {
            codes[axis as usize] = code;
            let broken = |&(at, rule): &(usize, Rule)| {
                at == depth && amount(rule, &instance.job, codes) != 0
            };
            if cannot_fill(instance, axis, codes) || self.rules.iter().any(broken) {
                continue;
            }
            let next = position * values.len() as u64 + digit as u64;
            self.visit(depth + 1, next, codes)?;
        }
        Ok(())
    }

    fn keep(&mut self, position: u64, codes: &Codes) -> Result<(), TooLarge> {
        let missed = |row: &&Constraint| {
            let difference = rows::difference(row, &self.instance.job, codes);
            rows::missed(row.comparison, difference, difference) > 0
        };
        if self.rows.iter().any(missed) || self.is_forbidden(position, codes)? {
            return Ok(());
        }
        let candidate = Candidate::from_codes(codes);
        let open = &mut self.found.open;
        let place = match self.formulation {
            Formulation::Staged => *self.places.entry(candidate.cell).or_insert(open.len()),
            Formulation::LayoutChoice => open.len(),
        };
        if place == open.len() {
            open.push(Open {
                position,
                cell: candidate.cell,
                flags: Vec::new(),
            });
        }
        open[place].flags.push(candidate.checkpointing);
        Ok(())
    }

    /// Whether a combination that breaks no rule and no row is forbidden: which assignment is the first
    /// to say so, and which would without one of their values.
    fn is_forbidden(&mut self, position: u64, codes: &Codes) -> Result<bool, TooLarge> {
        let assignments = &self.instance.space.forbidden;
        self.budget.spend(assignments.len() as u64)?;
        for (assignment, excluded) in assignments.iter().zip(&mut self.found.excluded) {
            let values = assignment.0.iter().enumerate();
            let mut others = values.filter(|(_, (axis, code))| codes[*axis as usize] != *code);
            match (others.next(), others.next()) {
                (None, _) => {
                    excluded.count += 1;
                    excluded.first.get_or_insert(position);
                    return Ok(true);
                }
                (Some((only, _)), None) => excluded.matters[only] = true,
                _ => {}
            }
        }
        Ok(false)
    }
}

/// Whether a degree alone is no divisor of the GPUs, so that no others make up for it.
fn cannot_fill(instance: &Instance, axis: Axis, codes: &Codes) -> bool {
    let is_degree = matches!(
        axis,
        Axis::TensorParallel | Axis::PipelineParallel | Axis::ContextParallel | Axis::DataParallel
    );
    is_degree
        && !instance
            .job
            .cluster
            .gpus
            .is_multiple_of(codes[axis as usize])
}
