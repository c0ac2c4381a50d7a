//! Corrections where rows of the user's own are about layers, by solving.

use crate::axis::Candidate;
use crate::instance::Instance;
use crate::layout::Checkpointing;
use crate::planner::PlanError;
use crate::rule::Rule;

use super::requirement::{Requirement, RequirementSet};
use super::walk::Correction;
use super::{best_layout, without};

/// Most rows of which every set is tried; of more, each alone and all together.
const MOST_ROWS: usize = 4;
/// Most corrections of the instance without its rows that are solved with them.
const MOST_SOLVED: usize = 24;

/// Rules that can be dropped one by one.
const RULES: [Rule; 9] = [
    Rule::MemoryCapacity,
    Rule::HeadsDivisible,
    Rule::KeyValueHeadsDivisible,
    Rule::TensorParallelWithinNode,
    Rule::GlobalBatchDivisible,
    Rule::SequenceDivisible,
    Rule::LayersCoverStages,
    Rule::InterleavingMicroBatches,
    Rule::RmsNormKernelExcludesCheckpointing,
];

/// The corrections of an instance with rows over layers, from those without such rows: each is
/// solved with the rows, and where it does not do, without all of them as well. Where the rows alone
/// are to blame: the smallest sets of them, and single other requirements.
pub(super) fn with_layer_rows(
    instance: &Instance,
    rowless: Vec<Correction>,
) -> Result<Vec<Correction>, PlanError> {
    let rows = layer_rows(instance);
    if let Some(free) = rowless.iter().find(|it| it.dropped.is_empty()) {
        return blame_rows(instance, &rows, &free.witness);
    }
    let all_rows: RequirementSet = rows.into_iter().collect();
    let mut found = Vec::new();
    for correction in rowless.into_iter().take(MOST_SOLVED) {
        let without_rows = Correction {
            dropped: correction.dropped.union(all_rows),
            ..correction
        };
        match solved(instance, correction.dropped, &correction.witness)? {
            Some(solved) => add(&mut found, solved),
            None => add(&mut found, without_rows),
        }
    }
    Ok(found)
}

/// The smallest sets of rows, and single other requirements, without which there is a layout.
fn blame_rows(
    instance: &Instance,
    rows: &[Requirement],
    witness: &Candidate,
) -> Result<Vec<Correction>, PlanError> {
    let mut tried: Vec<RequirementSet> = row_sets(rows);
    let listed = instance.space.listed().iter().map(Requirement::Listed);
    let forbidden = (0..instance.space.forbidden.len()).map(Requirement::Forbidden);
    let others = listed
        .chain(forbidden)
        .chain([Requirement::CheckpointRule])
        .chain(RULES.map(Requirement::Rule));
    tried.extend(others.map(|it| RequirementSet::EMPTY.with(it)));
    tried.sort_by_key(|set| (set.len(), *set));
    let mut found: Vec<Correction> = Vec::new();
    for dropped in tried {
        let known = found.iter().any(|it| it.dropped.is_part_of(dropped));
        if !known && let Some(correction) = solved(instance, dropped, witness)? {
            found.push(correction);
        }
    }
    Ok(found)
}

/// The correction, if the instance has a layout without these requirements.
fn solved(
    instance: &Instance,
    dropped: RequirementSet,
    witness: &Candidate,
) -> Result<Option<Correction>, PlanError> {
    let best = best_layout(&without(instance, dropped, witness))?;
    Ok(best.map(|best| Correction {
        dropped,
        witness: Candidate {
            cell: best.layout.cell,
            checkpointing: Checkpointing::None,
        },
    }))
}

fn add(found: &mut Vec<Correction>, correction: Correction) {
    if found
        .iter()
        .any(|it| it.dropped.is_part_of(correction.dropped))
    {
        return;
    }
    found.retain(|it| !correction.dropped.is_part_of(it.dropped));
    found.push(correction);
}

fn layer_rows(instance: &Instance) -> Vec<Requirement> {
    let rows = instance.space.constraints.iter().enumerate();
    rows.filter(|(_, row)| !row.is_of_cell())
        .map(|(index, _)| Requirement::Constraint(index))
        .collect()
}

/// Sets of rows, small ones first.
fn row_sets(rows: &[Requirement]) -> Vec<RequirementSet> {
    let alone = rows.iter().map(|&row| RequirementSet::EMPTY.with(row));
    if rows.len() > MOST_ROWS {
        return alone.chain([rows.iter().copied().collect()]).collect();
    }
    let chosen = |set: u32| {
        let members = rows.iter().enumerate();
        let members = members.filter(|(index, _)| set >> index & 1 == 1);
        members.map(|(_, &row)| row).collect()
    };
    (1..1 << rows.len()).map(chosen).collect()
}
