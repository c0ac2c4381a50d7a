//! From the first part of a document to the instance that it is about.

use serde_json::Value;

use crate::axis::{Assignment, Axis};
use crate::certificate::document::Certificate;
use crate::certificate::format::ORDER;
use crate::certificate::{constraint, job, space};
use crate::constraint::Constraint;
use crate::instance::Instance;
use crate::layout_space::LayoutSpace;

use super::reason::Reasons;

/// Most rows of the user's own.
const MOST_ROWS: usize = 100;
/// Most values of an axis.
const MOST_VALUES: usize = 100_000;

/// The instance, if everything about it is in order.
pub(super) fn instance(certificate: &Certificate, reasons: &mut Reasons) -> Option<Instance> {
    let job = match job::read(&certificate.job) {
        Ok(job) => Some(job),
        Err(wrong) => {
            for (key, cause) in wrong {
                reasons.add(format!("job.{key}"), cause);
            }
            None
        }
    };
    let risk = certificate.max_oom_risk;
    if !(0.0 < risk && risk < 1.0) {
        reasons.add("max_oom_risk", format!("cannot be `{risk}`"));
        return None;
    }
    let constraints = constraints(certificate, reasons)?;
    let values = values(certificate, reasons)?;
    let forbidden = forbidden(certificate, &values, reasons)?;
    let job = job?;
    let mut space = LayoutSpace::everything_legal(&job);
    for (axis, codes) in ORDER.into_iter().zip(values) {
        space.restrict(axis, codes);
    }
    space.forbidden = forbidden;
    space.constraints = constraints;
    Some(Instance {
        name: String::new(),
        job,
        space,
        max_oom_risk: risk,
        warnings: Vec::new(),
    })
}

/// The codes of each axis, in the order of the format.
fn values(certificate: &Certificate, reasons: &mut Reasons) -> Option<Vec<Vec<u32>>> {
    let named: Vec<&str> = certificate
        .space
        .iter()
        .map(|axis| axis.axis.as_str())
        .collect();
    if named != ORDER.map(Axis::as_str) {
        reasons.add("space", "does not list the axes in their order");
        return None;
    }
    let mut all = Vec::new();
    for (axis, listed) in ORDER.into_iter().zip(&certificate.space) {
        let place = || format!("space.{axis}");
        let codes: Option<Vec<u32>> = listed
            .values
            .iter()
            .map(|value| space::code(axis, value))
            .collect();
        let Some(codes) = codes.filter(|codes| !codes.is_empty() && codes.len() <= MOST_VALUES)
        else {
            reasons.add(
                place(),
                "has no values, or some that the axis does not have",
            );
            continue;
        };
        if codes.windows(2).any(|pair| pair[0] >= pair[1]) {
            reasons.add(place(), "does not list its values in order, once each");
            continue;
        }
        all.push(codes);
    }
    (all.len() == ORDER.len()).then_some(all)
}

/// The forbidden combinations, in order and without repetition.
fn forbidden(
    certificate: &Certificate,
    values: &[Vec<u32>],
    reasons: &mut Reasons,
) -> Option<Vec<Assignment>> {
    let mut all = Vec::new();
    for (index, forbidden) in certificate.forbidden.iter().enumerate() {
        let place = format!("forbidden[{index}]");
        let Some(assignment) = space::assignment(&forbidden.values) else {
            let shown = job::shown(&Value::Object(forbidden.values.clone()));
            reasons.add(place, format!("`{shown}` are no values of axes"));
            return None;
        };
        let listed = |&(axis, code): &(Axis, u32)| {
            let place = ORDER.iter().position(|&other| other == axis);
            place.is_some_and(|place| values[place].contains(&code))
        };
        if assignment.0.is_empty() || !assignment.0.iter().all(listed) {
            reasons.add(place, "names no value, or one that is not listed");
            return None;
        }
        all.push(assignment);
    }
    if !all
        .windows(2)
        .all(|pair| sort_key(&pair[0]) < sort_key(&pair[1]))
    {
        reasons.add("forbidden", "is not in order, each once");
        return None;
    }
    Some(all)
}

/// The rows of the user's own, in order and without repetition.
fn constraints(certificate: &Certificate, reasons: &mut Reasons) -> Option<Vec<Constraint>> {
    let mut rows = Vec::new();
    for (index, stated) in certificate.constraints.iter().enumerate() {
        let Some(row) = constraint::read(stated) else {
            let place = format!("constraints[{index}]");
            reasons.add(place, "is no row over decisions of a layout");
            return None;
        };
        rows.push(row);
    }
    let keys: Vec<_> = rows.iter().map(constraint::key).collect();
    if rows.len() > MOST_ROWS || !keys.windows(2).all(|pair| pair[0] < pair[1]) {
        reasons.add("constraints", "is not in order, each once");
        return None;
    }
    Some(rows)
}

/// Values by place of their axis: the order of forbidden combinations.
pub(crate) fn sort_key(assignment: &Assignment) -> Vec<(usize, u32)> {
    let place = |axis: Axis| ORDER.iter().position(|&other| other == axis);
    let mut key: Vec<(usize, u32)> = assignment
        .0
        .iter()
        .map(|&(axis, code)| (place(axis).unwrap_or(ORDER.len()), code))
        .collect();
    key.sort_unstable();
    key
}
