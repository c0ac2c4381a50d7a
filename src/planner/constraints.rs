//! Rows of the user's own in the programs.
//!
//! A row over discrete choices alone is a rule that a combination breaks or keeps, whatever its
//! layers. A row over layers or checkpointed layers goes into the program as a side row.

use formulations::model::Sense;
use formulations::staged::{SideRow, StageIndex, StageTerm, greatest_common_divisor};

use crate::constraint::{Comparison, Constraint, Decision};
use crate::instance::Instance;
use crate::layout::{Combination, Layout};
use crate::rules::Rule;

/// Whether a layout keeps every row.
#[must_use]
pub fn keeps(instance: &Instance, layout: &Layout) -> bool {
    let batch = instance.job.workload.global_batch;
    let mut rows = instance.space.constraints.iter();
    rows.all(|row| row.holds(row.left(layout, batch)))
}

/// Whether some row is about layers.
#[must_use]
pub fn concern_layers(instance: &Instance) -> bool {
    over_layers(instance).next().is_some()
}

/// The rows about layers, with their positions.
fn over_layers(instance: &Instance) -> impl Iterator<Item = (usize, &Constraint)> {
    let rows = instance.space.constraints.iter().enumerate();
    rows.filter(|(_, row)| !row.is_of_combination())
}

/// Whether a row holds in no layout at all of `layers` layers, whatever else is dropped: by the least and
/// the most that its left side can be where it is about layers alone, or because an equation has no
/// solution in integers, since what divides every coefficient does not divide the right side.
#[must_use]
pub fn never_holds(row: &Constraint, layers: u32) -> bool {
    let coefficients = row.terms.iter().map(|term| term.coefficient);
    let divisor = coefficients.fold(0, greatest_common_divisor);
    if row.comparison == Comparison::Equals && divisor != 0 && row.right % divisor != 0 {
        return true;
    }
    let Some([negated_least, most]) = most(row, -1, layers)
        .zip(most(row, 1, layers))
        .map(<[i64; 2]>::from)
    else {
        return false;
    };
    let (too_small, too_large) = (most < row.right, -negated_least > row.right);
    match row.comparison {
        Comparison::AtMost => too_large,
        Comparison::AtLeast => too_small,
        Comparison::Equals => too_small || too_large,
    }
}

/// No less than the most that `sign` times the left side can be; `None` where a term is not of layers.
fn most(row: &Constraint, sign: i64, layers: u32) -> Option<i64> {
    // One stage has at most all layers, and the last may also be counted by its index.
    let (mut of_one, mut of_last, mut recomputed) = (0_i64, 0, 0);
    for term in &row.terms {
        let gain = (sign * term.coefficient).max(0);
        match term.decision {
            Decision::Layers(_) => of_one = of_one.max(gain),
            Decision::LayersLast => of_last += gain,
            Decision::CheckpointedLayers => recomputed += gain,
            Decision::Degree(_) | Decision::Is(..) | Decision::MicroBatches => return None,
        }
    }
    Some((of_one + of_last + recomputed) * i64::from(layers))
}

/// What the discrete choices contribute to the left side.
fn part_of(row: &Constraint, combination: &Combination, batch: u64) -> i64 {
    let without_layers = Layout {
        combination: *combination,
        stages: Vec::new(),
    };
    row.left(&without_layers, batch)
}

const fn sense(comparison: Comparison) -> Sense {
    match comparison {
        Comparison::AtMost => Sense::AtMost,
        Comparison::AtLeast => Sense::AtLeast,
        Comparison::Equals => Sense::Equal,
    }
}

/// The rows over layers of the program `staged`, whose combinations stand for these combinations.
pub(super) fn side_rows(instance: &Instance, combinations: &[Combination]) -> Vec<SideRow> {
    let batch = instance.job.workload.global_batch;
    let rows = over_layers(instance).map(|(part, row)| {
        let mut layers: Vec<StageTerm> = Vec::new();
        let mut recomputed = 0;
        for term in &row.terms {
            let stage = match term.decision {
                Decision::Layers(index) => StageIndex::FromFirst(index as usize),
                Decision::LayersLast => StageIndex::FromLast(0),
                Decision::CheckpointedLayers => {
                    recomputed += term.coefficient;
                    continue;
                }
                Decision::Degree(_) | Decision::Is(..) | Decision::MicroBatches => continue,
            };
            layers.push(StageTerm {
                stage,
                coefficient: term.coefficient,
            });
        }
        SideRow {
            name: Rule::Constraint.part_name(instance, part),
            groups: combinations
                .iter()
                .map(|combination| part_of(row, combination, batch))
                .collect(),
            layers,
            recomputed,
            sense: sense(row.comparison),
            right: row.right,
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::Term;

    #[test]
    fn some_rows_hold_in_no_layout() {
        let check = |terms: &[(i64, Decision)], comparison, right, expected| {
            let terms = terms.iter().map(|&(coefficient, decision)| Term {
                coefficient,
                decision,
            });
            let row = Constraint {
                name: "row".to_owned(),
                terms: terms.collect(),
                comparison,
                right,
            };
            assert_eq!(never_holds(&row, 32), expected, "{row:?}");
        };
        let (first, last) = (Decision::Layers(0), Decision::LayersLast);
        check(&[(2, first), (2, last)], Comparison::Equals, 7, true);
        check(&[(2, first), (2, last)], Comparison::Equals, 6, false);
        let recomputed = Decision::CheckpointedLayers;
        check(&[(2, recomputed)], Comparison::Equals, 3, true);
        check(&[(1, recomputed)], Comparison::AtLeast, 33, true);
        check(&[(1, recomputed)], Comparison::AtMost, -1, true);
        // A single stage is the first and the last.
        check(&[(1, first), (1, last)], Comparison::AtLeast, 64, false);
        check(&[(1, first), (1, last)], Comparison::AtLeast, 65, true);
        check(&[(1, first)], Comparison::Equals, 100, true);
        let micro_batches = Decision::MicroBatches;
        check(
            &[(1, first), (1, micro_batches)],
            Comparison::AtLeast,
            99,
            false,
        );
    }
}
