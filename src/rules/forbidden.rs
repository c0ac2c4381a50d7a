//! Combinations that the instance forbids.

use super::{Definition, Parts, Remedy};
use crate::axis::{Assignment, AxisSet};
use crate::instance::Instance;

const NAME: &str = "forbidden";

pub(super) const RULE: Definition = Definition {
    name: NAME,
    demands: "the combination is none that the instance forbids",
    parts: Parts::Several {
        count: |instance| instance.space.forbidden.len(),
        name: |_, part| format!("{NAME}({part})"),
        axes: |instance, part| {
            let values = instance.space.forbidden.get(part)?.0.iter();
            Some(values.fold(AxisSet::EMPTY, |set, &(axis, _)| set.with(axis)))
        },
    },
    amount: |case| {
        let forbidden = assignment(case.instance, case.part);
        u64::from(forbidden.is_some_and(|it| it.matches(case.flagged)))
    },
    message: |case| demand(case.instance, case.part),
    demand,
    limits: |instance, _, part| Some(assignment(instance, part)?.to_string()),
    remedy: Remedy::Instance,
    source: "`search.forbid` of the instance",
    ..Definition::USUAL
};

fn demand(instance: &Instance, part: usize) -> String {
    match assignment(instance, part) {
        Some(assignment) => format!("the instance forbids {assignment}"),
        None => "the instance forbids a combination".to_owned(),
    }
}

fn assignment(instance: &Instance, part: usize) -> Option<&Assignment> {
    instance.space.forbidden.get(part)
}
