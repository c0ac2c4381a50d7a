//! Corrections where rows of the user's own are about layers, by solving.

use crate::axis::FlaggedCombination;
use crate::instance::Instance;
use crate::planner::{Deadline, PlanError, constraints};
use crate::rules::{self, Remedy, Requirement, Rule, RuleSet};

use super::search::Correction;
use super::{best_layout, without};

/// Most rows of which every set is tried; of more, each alone and one set of several.
const MOST_ROWS: usize = 4;
/// Most corrections of the instance without its rows that are solved with them.
const MOST_SOLVED: usize = 24;

/// The corrections of an instance with rows over layers, from those without such rows. Each is solved
/// with the rows; where it does not do, with the smallest sets of rows dropped besides, and with single
/// other requirements. Of what is found only the smallest sets stay.
///
/// # Errors
///
/// When the solver fails, or the time is over.
pub(super) fn with_layer_rows(
    instance: &Instance,
    rowless: &[Correction],
    deadline: Deadline,
) -> Result<Vec<Correction>, PlanError> {
    let rows = Rows {
        all: layer_rows(instance),
        others: others(instance),
        instance,
        deadline,
    };
    let mut found = Vec::new();
    for correction in rowless.iter().take(MOST_SOLVED) {
        rows.extend(correction, &mut found)?;
    }
    found.sort_by_key(|it: &Correction| (it.dropped.len(), it.dropped));
    Ok(found)
}

/// The rows over layers and what else can be dropped.
struct Rows<'a> {
    all: Vec<Requirement>,
    others: Vec<Requirement>,
    instance: &'a Instance,
    deadline: Deadline,
}

impl Rows<'_> {
    /// Adds the smallest sets without which there is a layout and that have all of `base`.
    fn extend(&self, base: &Correction, found: &mut Vec<Correction>) -> Result<(), PlanError> {
        if self.take(base, base.dropped, found)? {
            return Ok(());
        }
        let alone = |it: &Requirement| RuleSet::EMPTY.with(*it);
        let mut tried = row_sets(&self.all);
        tried.extend(self.others.iter().map(alone));
        tried.sort_by_key(|set| (set.len(), *set));
        for further in tried {
            self.take(base, base.dropped.union(further), found)?;
        }
        if self.all.len() > MOST_ROWS {
            self.shrink_all(base, found)?;
        }
        Ok(())
    }

    /// Of more rows than those of which every set is tried, one smallest set: all but those that can
    /// come back, one after the other.
    fn shrink_all(&self, base: &Correction, found: &mut Vec<Correction>) -> Result<(), PlanError> {
        let all = self.all.iter().copied().collect();
        let mut dropped = base.dropped.union(all);
        if is_known(found, dropped) || self.solved(dropped, base)?.is_none() {
            return Ok(());
        }
        for row in self.all.iter().filter(|row| !base.dropped.contains(**row)) {
            let fewer = dropped.without(RuleSet::EMPTY.with(*row));
            if self.solved(fewer, base)?.is_some() {
                dropped = fewer;
            }
        }
        self.take(base, dropped, found)?;
        Ok(())
    }

    /// Adds a set if there is a layout without it; returns whether there is one.
    fn take(
        &self,
        base: &Correction,
        dropped: RuleSet,
        found: &mut Vec<Correction>,
    ) -> Result<bool, PlanError> {
        if is_known(found, dropped) {
            return Ok(true);
        }
        let Some(correction) = self.solved(dropped, base)? else {
            return Ok(false);
        };
        found.retain(|it| !dropped.is_part_of(it.dropped));
        found.push(correction);
        Ok(true)
    }

    /// The correction, if the instance has a layout without these requirements. Without `gpu_count`, also
    /// with some multiples of the GPUs of the combination: a row may need a longer pipeline.
    fn solved(&self, dropped: RuleSet, base: &Correction) -> Result<Option<Correction>, PlanError> {
        let gpus = dropped.contains(Rule::GpuCount);
        for times in [1, 2, 4].into_iter().take(if gpus { 3 } else { 1 }) {
            let mut witness = base.witness;
            let degree = &mut witness.combination.data_parallel;
            *degree = degree.saturating_mul(times);
            let relaxed = without(self.instance, dropped, &witness);
            let layers = relaxed.job.transformer.layers;
            let mut rows = relaxed.space.constraints.iter();
            if rows.any(|row| constraints::never_holds(row, layers)) {
                return Ok(None);
            }
            if let Some(best) = best_layout(&relaxed, self.deadline)? {
                let witness = FlaggedCombination::plain(best.layout.combination);
                return Ok(Some(Correction { dropped, witness }));
            }
        }
        Ok(None)
    }
}

/// What can be dropped besides rows over layers: what the instance lists and forbids, and rules that
/// a figure of the job or another framework would keep.
fn others(instance: &Instance) -> Vec<Requirement> {
    let can_be_dropped = |it: &Requirement| match it.rule {
        Rule::AllowedValues => it.axis().is_some_and(|axis| instance.space.is_listed(axis)),
        Rule::Forbidden | Rule::HeadsDivisible | Rule::KeyValueHeadsDivisible => true,
        Rule::GpuCount => false,
        other => matches!(
            other.definition().remedy,
            Remedy::Figure(_) | Remedy::Framework { .. }
        ),
    };
    rules::requirements(instance)
        .filter(can_be_dropped)
        .collect()
}

fn is_known(found: &[Correction], dropped: RuleSet) -> bool {
    found.iter().any(|it| it.dropped.is_part_of(dropped))
}

fn layer_rows(instance: &Instance) -> Vec<Requirement> {
    let rule = Rule::Constraint;
    let parts = 0..rule.parts(instance);
    parts
        .filter(|&part| rule.axes(instance, part).is_none())
        .map(|part| Requirement { rule, part })
        .collect()
}

/// Sets of rows, small ones first.
fn row_sets(rows: &[Requirement]) -> Vec<RuleSet> {
    let alone = rows.iter().map(|&row| RuleSet::EMPTY.with(row));
    if rows.len() > MOST_ROWS {
        return alone.collect();
    }
    let chosen = |set: u32| {
        let members = rows.iter().enumerate();
        let members = members.filter(|(index, _)| set >> index & 1 == 1);
        members.map(|(_, &row)| row).collect()
    };
    (1..1 << rows.len()).map(chosen).collect()
}
