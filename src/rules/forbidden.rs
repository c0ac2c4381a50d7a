//! Combinations that the instance forbids.

use super::{Case, Definition, Parts, Repair};
use crate::axis::{Assignment, AxisSet};

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
        let forbidden = assignment(case);
        u64::from(forbidden.is_some_and(|it| it.matches(case.flagged)))
    },
    message: |case| match assignment(case) {
        Some(assignment) => format!("the instance forbids {assignment}"),
        None => "the instance forbids a combination".to_owned(),
    },
    repair: Repair::Instance,
    source: "`search.forbid` of the instance",
    ..Definition::USUAL
};

fn assignment<'a>(case: &Case<'a>) -> Option<&'a Assignment> {
    case.instance.space.forbidden.get(case.part)
}
