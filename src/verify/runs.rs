//! Where measured runs lie in the coordinates that no combination of the space tells apart.
//!
//! Only the sum of squares over those coordinates matters, so it is stated as the distance in the first of
//! them; in the others a run lies where the combinations do.

use crate::certificate::learned::DISCREPANCY;
use crate::cluster::Discrepancy;
use crate::cost_model::discrepancy::{DIMENSIONS, features};
use crate::layout::{Cell, Checkpointing};

use super::statement::Statement;

/// The coordinates that are the same in all combinations of the statement, ascending.
fn fixed(statement: &Statement) -> Vec<(usize, f64)> {
    let job = &statement.claim.instance.job;
    let open = statement.open.iter().map(|open| &open.cell);
    let examples = statement.examples.iter().map(|example| &example.cell);
    let places = |cell: &Cell| {
        [Checkpointing::None, Checkpointing::Full].map(|flag| features(job, cell, flag))
    };
    let mut all = open.chain(examples).flat_map(places);
    let Some(first) = all.next() else {
        return Vec::new();
    };
    let mut same = [true; DIMENSIONS];
    for place in all {
        for (same, (a, b)) in same.iter_mut().zip(first.iter().zip(place)) {
            *same = *same && is_same(*a, b);
        }
    }
    let fixed = first.into_iter().enumerate();
    fixed.filter(|&(index, _)| same[index]).collect()
}

/// Whether two coordinates are the same number, to the last digit.
fn is_same(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq()
}

/// Where a run has to be stated.
fn place(point: &[f64; DIMENSIONS], fixed: &[(usize, f64)]) -> [f64; DIMENSIONS] {
    let mut place = *point;
    let Some((&(first, at), others)) = fixed.split_first() else {
        return place;
    };
    let is_there = |&(index, at): &(usize, f64)| is_same(point[index], at);
    if point[first] >= at && others.iter().all(is_there) {
        return place;
    }
    let squares = fixed.iter().map(|&(index, at)| (point[index] - at).powi(2));
    place[first] = at + squares.sum::<f64>().sqrt();
    for &(index, at) in others {
        place[index] = at;
    }
    place
}

/// What runs taught, as it has to be stated, if that is otherwise.
pub(crate) fn simpler(statement: &Statement) -> Option<Discrepancy> {
    let stated = statement.claim.instance.job.cluster.discrepancy.as_ref()?;
    let fixed = fixed(statement);
    let points = stated.points.iter().map(|point| place(point, &fixed));
    let points: Vec<[f64; DIMENSIONS]> = points.collect();
    (points != stated.points).then(|| Discrepancy {
        points,
        ..stated.clone()
    })
}

/// The runs that are stated elsewhere than they have to be.
pub(super) fn faults(statement: &Statement) -> Vec<String> {
    let Some(stated) = &statement.claim.instance.job.cluster.discrepancy else {
        return Vec::new();
    };
    let fixed = fixed(statement);
    let points = stated.points.iter().enumerate();
    points
        .filter(|(_, point)| {
            let place = place(point, &fixed);
            !place.iter().zip(point.iter()).all(|(a, b)| is_same(*a, *b))
        })
        .map(|(index, _)| format!("job.{DISCREPANCY}.points[{index}]"))
        .collect()
}
