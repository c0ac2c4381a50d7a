//! Side rows outside the program: what they say of a plan, and of a group before it has one.
//!
//! A row that touches one stage (`g_c + h n_s <= right`) is a bound on that stage's layers. One that touches
//! two is that as well, once the layers of one of them are decided: so a group falls into *pieces*, one for each
//! number of layers of that stage, and bounds, presolve and the dynamic program take the row into account.
//! A row on more stages, or on recomputed layers, is left to the program.

use std::borrow::Cow;
use std::sync::Arc;

use super::bounds::{Scratch, lower_bound, quick_bound};
use super::data::{Data, Group, SideRow, Stage};
use super::plan::Plan;
use crate::deadline::Deadline;
use crate::model::Sense;

/// Data with what the side rows leave of each group.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) data: &'a Data,
    /// The pieces of each group, the lowest bounds first; none where a row or the memory excludes it.
    pub(super) pieces: Vec<Vec<Piece<'a>>>,
    /// Whether some row is left to the program.
    pub(super) coupled: bool,
    /// No plan of the groups that there was no time to prepare is below this.
    pub(super) left: Option<i64>,
}

/// A group with its stages bounded as some rows demand.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    /// No plan of the piece is below this.
    pub(super) lower_bound: i64,
    pub(super) group: Cow<'a, Group>,
}

/// Moves rows into the bounds of the stages.
pub(super) fn prepare(data: &Data, deadline: Deadline) -> Prepared<'_> {
    let mut scratch = Scratch::default();
    let mut coupled = data.side_rows.iter().any(|row| row.recomputed != 0);
    let mut pieces = Vec::with_capacity(data.groups.len());
    let mut left: Option<i64> = None;
    for (index, group) in data.groups.iter().enumerate() {
        if deadline.is_over() {
            let bounds = data.groups[index..].iter();
            left = bounds.map(|group| quick_bound(group, &data.layers)).min();
            pieces.resize_with(data.groups.len(), Vec::new);
            break;
        }
        let is_excluded = |row| excludes(row, index, group, data.layers.count());
        let groups = if data.side_rows.is_empty() {
            vec![Cow::Borrowed(group)]
        } else if data.side_rows.iter().any(is_excluded) {
            Vec::new()
        } else {
            let split = split(data, index, data.side_rows.iter(), deadline);
            coupled |= split.coupled;
            split.pieces.into_iter().map(Cow::Owned).collect()
        };
        let bounded = groups.into_iter().filter_map(|group| {
            let lower_bound = lower_bound(&group, &data.layers, &mut scratch)?;
            Some(Piece { lower_bound, group })
        });
        let mut bounded: Vec<Piece> = bounded.collect();
        bounded.sort_by_key(|piece| piece.lower_bound);
        pieces.push(bounded);
    }
    Prepared {
        data,
        pieces,
        coupled,
        left,
    }
}

impl Prepared<'_> {
    /// Lower bounds of the groups that have a piece, the lowest first.
    pub(super) fn open(&self) -> Vec<(i64, usize)> {
        let bounds = self.pieces.iter().enumerate();
        let bounds =
            bounds.filter_map(|(index, pieces)| Some((pieces.first()?.lower_bound, index)));
        let mut open: Vec<(i64, usize)> = bounds.collect();
        open.sort_unstable();
        open
    }

    /// The row that leaves nothing of a group which would fit without rows.
    pub(super) fn excluding(&self, index: usize) -> Option<&SideRow> {
        let excludes = |row: &&SideRow| {
            let own = split(self.data, index, std::iter::once(*row), Deadline::NEVER);
            let layers = self.data.layers.count();
            own.pieces.is_empty() || excludes(row, index, &self.data.groups[index], layers)
        };
        let mut rows = self.data.side_rows.iter();
        rows.clone().find(excludes).or_else(|| rows.next())
    }
}

/// Most stages whose layers are decided one by one, and most pieces.
const DECIDED: usize = 2;
const MOST_PIECES: usize = 4096;

/// The pieces of a group under some rows.
struct Split<'a> {
    index: usize,
    layers: i64,
    rows: Vec<&'a SideRow>,
    pieces: Vec<Group>,
    coupled: bool,
    deadline: Deadline,
}

fn split<'a>(
    data: &'a Data,
    index: usize,
    rows: impl Iterator<Item = &'a SideRow>,
    deadline: Deadline,
) -> Split<'a> {
    let mut split = Split {
        index,
        layers: data.layers.count(),
        rows: rows.filter(|row| row.recomputed == 0).collect(),
        pieces: Vec::new(),
        coupled: false,
        deadline,
    };
    split.visit(data.groups[index].clone(), DECIDED);
    split
}

impl Split<'_> {
    fn visit(&mut self, mut group: Group, left: usize) {
        loop {
            let before = group.stages.clone();
            for row in &self.rows {
                if !bound(row, self.index, &mut group) {
                    return;
                }
            }
            if before == group.stages {
                break;
            }
        }
        let mut open = self.rows.iter().map(|row| open_stages(row, &group));
        let Some(stages) = open.find(|stages| stages.len() > 1) else {
            self.pieces.push(group);
            return;
        };
        // Without time for pieces the rows are left to the program as well.
        if left == 0 || self.pieces.len() > MOST_PIECES || self.deadline.is_over() {
            self.coupled = true;
            self.pieces.push(group);
            return;
        }
        let stage = group.stages[stages[0]];
        for own in stage.lower_layers..=stage.upper_layers.min(self.layers) {
            let mut piece = group.clone();
            let stage = &mut Arc::make_mut(&mut piece.stages)[stages[0]];
            (stage.lower_layers, stage.upper_layers) = (own, own);
            self.visit(piece, left - 1);
        }
    }
}

/// The stages of a row whose layers are not decided.
fn open_stages(row: &SideRow, group: &Group) -> Vec<usize> {
    let coefficients = by_stage(row, group.stages.len());
    let stages = coefficients.iter().zip(group.stages.iter()).enumerate();
    let open = stages
        .filter(|(_, (by, stage))| **by != 0 && stage.lower_layers != stage.upper_layers)
        .map(|(index, _)| index);
    open.collect()
}

/// Bounds the one stage that a row leaves open. Whether the row can hold.
fn bound(row: &SideRow, index: usize, group: &mut Group) -> bool {
    let coefficients = by_stage(row, group.stages.len());
    let open = open_stages(row, group);
    let decided = (coefficients.iter().zip(group.stages.iter()).enumerate())
        .filter(|(stage, _)| !open.contains(stage))
        .map(|(_, (by, stage))| by * stage.lower_layers);
    let own = row.groups.get(index).copied().unwrap_or(0);
    let room = row.right - own - decided.sum::<i64>();
    match open[..] {
        [] => row.sense.admits(-room),
        [stage] => {
            tighten(
                row.sense,
                coefficients[stage],
                room,
                &mut Arc::make_mut(&mut group.stages)[stage],
            );
            group.stages[stage].lower_layers <= group.stages[stage].upper_layers
        }
        _ => true,
    }
}

/// `coefficient n  sense  room`.
fn tighten(sense: Sense, coefficient: i64, room: i64, stage: &mut Stage) {
    let (down, up) = (
        room.div_euclid(coefficient),
        -(-room).div_euclid(coefficient),
    );
    // For a negative coefficient the Euclidean quotient rounds up, and the sense turns around.
    let (most, fewest) = if coefficient > 0 {
        (down, up)
    } else {
        (up, down)
    };
    let (above, below) = match (sense, coefficient > 0) {
        (Sense::Equal, _) => (true, true),
        (Sense::AtMost, true) | (Sense::AtLeast, false) => (true, false),
        (Sense::AtMost, false) | (Sense::AtLeast, true) => (false, true),
    };
    if above {
        stage.upper_layers = stage.upper_layers.min(most);
    }
    if below {
        stage.lower_layers = stage.lower_layers.max(fewest);
    }
}

/// Left side minus right side of a row where the sense forbids the difference, else zero.
pub(super) fn excess(row: &SideRow, group: usize, layers: &[i64], recomputed: i64) -> i64 {
    let terms = row.layers.iter().filter_map(|term| {
        let stage = term.stage.of(layers.len())?;
        Some(term.coefficient * layers[stage])
    });
    let own = row.groups.get(group).copied().unwrap_or(0);
    let difference = own + terms.sum::<i64>() + row.recomputed * recomputed - row.right;
    if row.sense.admits(difference) {
        0
    } else {
        difference
    }
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
fn excludes(row: &SideRow, index: usize, group: &Group, layers: i64) -> bool {
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
        .zip(group.stages.iter())
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
#[must_use]
pub const fn greatest_common_divisor(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.abs()
}
