//! Side rows outside the program: what they say of a plan, and of a group before it has one.
//!
//! A row that touches at most one stage (`g_c + h n_s <= right`) is a bound on that stage's layers in every
//! group, so it is moved there and the bounds and the dynamic program take it into account. A row that
//! couples stages, or counts recomputed layers, is left to the program.

use std::borrow::Cow;

use super::data::{Data, Group, SideRow};
use super::plan::Plan;
use crate::model::Sense;

/// Data whose simple rows have become bounds of stages.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) data: Cow<'a, Data>,
    /// The last row that changed a bound of each group; empty without rows.
    tightened_by: Vec<Option<usize>>,
    /// Whether some row is left to the program.
    pub(super) coupled: bool,
}

impl Prepared<'_> {
    /// The row that changed a bound of a group.
    pub(super) fn tightened_by(&self, group: usize) -> Option<&SideRow> {
        let row = self.tightened_by.get(group).copied().flatten()?;
        Some(&self.data.side_rows[row])
    }
}

/// Moves simple rows into the bounds of the stages.
pub(super) fn prepare(data: &Data) -> Prepared<'_> {
    let simple = |row: &&SideRow| row.layers.len() == 1 && row.recomputed == 0;
    if !data.side_rows.iter().any(|row| simple(&row)) {
        return Prepared {
            data: Cow::Borrowed(data),
            tightened_by: Vec::new(),
            coupled: data.side_rows.iter().any(couples),
        };
    }
    let mut tight = data.clone();
    let mut tightened_by = vec![None; data.groups.len()];
    for (index, row) in data
        .side_rows
        .iter()
        .enumerate()
        .filter(|(_, row)| simple(row))
    {
        for (group_index, group) in tight.groups.iter_mut().enumerate() {
            if tighten(row, group_index, group) {
                tightened_by[group_index] = Some(index);
            }
        }
    }
    Prepared {
        coupled: data.side_rows.iter().any(couples),
        data: Cow::Owned(tight),
        tightened_by,
    }
}

fn couples(row: &SideRow) -> bool {
    row.layers.len() > 1 || row.recomputed != 0
}

/// Whether a row with one term changed the bounds of its stage.
fn tighten(row: &SideRow, index: usize, group: &mut Group) -> bool {
    let count = group.stages.len();
    let Some(term) = row.layers.first() else {
        return false;
    };
    let Some(stage) = term.stage.of(count).filter(|_| term.coefficient != 0) else {
        return false;
    };
    let stage = &mut group.stages[stage];
    let room = row.right - row.groups.get(index).copied().unwrap_or(0);
    let (down, up) = (
        room.div_euclid(term.coefficient),
        -(-room).div_euclid(term.coefficient),
    );
    // For a negative coefficient the Euclidean quotient rounds up, and the sense turns around.
    let (most, fewest) = if term.coefficient > 0 {
        (down, up)
    } else {
        (up, down)
    };
    let (above, below) = match (row.sense, term.coefficient > 0) {
        (Sense::Equal, _) => (true, true),
        (Sense::AtMost, true) | (Sense::AtLeast, false) => (true, false),
        (Sense::AtMost, false) | (Sense::AtLeast, true) => (false, true),
    };
    let before = (stage.lower_layers, stage.upper_layers);
    if above {
        stage.upper_layers = stage.upper_layers.min(most);
    }
    if below {
        stage.lower_layers = stage.lower_layers.max(fewest);
    }
    before != (stage.lower_layers, stage.upper_layers)
}

/// Left side minus right side of a row where the sense forbids the difference, else zero.
pub(super) fn excess(row: &SideRow, group: usize, layers: &[i64], recomputed: i64) -> i64 {
    let terms = row.layers.iter().filter_map(|term| {
        let stage = term.stage.of(layers.len())?;
        Some(term.coefficient * layers[stage])
    });
    let own = row.groups.get(group).copied().unwrap_or(0);
    let difference = own + terms.sum::<i64>() + row.recomputed * recomputed - row.right;
    let holds = match row.sense {
        Sense::AtMost => difference <= 0,
        Sense::Equal => difference == 0,
        Sense::AtLeast => difference >= 0,
    };
    if holds { 0 } else { difference }
}

/// Whether a plan satisfies every side row.
pub(super) fn keeps_side_rows(data: &Data, plan: &Plan) -> bool {
    let recomputed = plan.recomputed.iter().flatten().sum();
    let keeps = |row| excess(row, plan.group, &plan.layers, recomputed) == 0;
    data.side_rows.iter().all(keeps)
}

/// Whether a row cannot hold for a group: by the least and the most that its left side can be while the
/// stages share all layers, or because an equation has no solution in integers, since what divides every
/// coefficient does not divide the right side.
pub(super) fn excludes(row: &SideRow, index: usize, group: &Group, layers: i64) -> bool {
    let coefficients = by_stage(row, group.stages.len());
    let room = row.right - row.groups.get(index).copied().unwrap_or(0);
    let recomputed = row.recomputed * layers;
    let most = |sign: i64| {
        let of_layers = most_of_layers(&coefficients, sign, group, layers)?;
        Some(of_layers + (sign * recomputed).max(0))
    };
    let (Some(most), Some(negated_least)) = (most(1), most(-1)) else {
        return false;
    };
    let (too_small, too_large) = (most < room, -negated_least > room);
    match row.sense {
        Sense::AtMost => too_large,
        Sense::AtLeast => too_small,
        Sense::Equal => {
            let all = coefficients.iter().copied().chain([row.recomputed]);
            let divisor = all.fold(0, greatest_common_divisor);
            too_small || too_large || divisor != 0 && room % divisor != 0
        }
    }
}

/// The coefficient of the layers of each stage.
fn by_stage(row: &SideRow, stages: usize) -> Vec<i64> {
    let mut coefficients = vec![0; stages];
    for term in &row.layers {
        if let Some(stage) = term.stage.of(stages) {
            coefficients[stage] += term.coefficient;
        }
    }
    coefficients
}

/// The most that `sign sum_s h_s n_s` can be: every stage has its fewest layers, and the others go where
/// they count most. `None` where the stages cannot share the layers.
fn most_of_layers(coefficients: &[i64], sign: i64, group: &Group, layers: i64) -> Option<i64> {
    let mut left = layers - group.stages.iter().map(|it| it.lower_layers).sum::<i64>();
    let mut stages: Vec<_> = coefficients
        .iter()
        .map(|it| sign * it)
        .zip(&group.stages)
        .collect();
    stages.sort_by_key(|&(coefficient, _)| std::cmp::Reverse(coefficient));
    let mut most = 0;
    for (coefficient, stage) in stages {
        let room = stage.upper_layers.min(layers) - stage.lower_layers;
        if room < 0 || left < 0 {
            return None;
        }
        let more = room.min(left);
        left -= more;
        most += coefficient * (stage.lower_layers + more);
    }
    (left == 0).then_some(most)
}

/// Of two numbers, by Euclid; that of zero and a number is the number.
const fn greatest_common_divisor(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.abs()
}
