//! Every value is one that the instance lists for its axis. What it leaves open may be anything
//! legal, also what is not tried.

use super::{Case, Definition, Parts, Repair};
use crate::axis::{Axis, AxisSet};

const NAME: &str = "allowed_values";

pub(super) const RULE: Definition = Definition {
    name: NAME,
    demands: "every value is among those that the instance lists for its axis",
    axes: &Axis::ALL,
    parts: Parts::Several {
        count: |_| Axis::COUNT,
        name: |_, _| NAME.to_owned(),
        axes: |_, part| Some(AxisSet::EMPTY.with(Axis::ALL[part])),
    },
    amount,
    message,
    repair: Repair::Instance,
    source: "`[search]` of the instance",
    ..Definition::USUAL
};

fn amount(case: &Case) -> u64 {
    let (space, axis) = (&case.instance.space, Axis::ALL[case.part]);
    let is_outside =
        space.is_listed(axis) && !space.values(axis).contains(&case.flagged.code(axis));
    u64::from(is_outside)
}

fn message(case: &Case) -> String {
    let axis = Axis::ALL[case.part];
    let listed = case.instance.space.values(axis).iter();
    let listed: Vec<String> = listed.map(|&code| axis.show(code)).collect();
    format!(
        "{axis} = {} is not among the values to try: {}",
        axis.show(case.flagged.code(axis)),
        listed.join(", ")
    )
}
