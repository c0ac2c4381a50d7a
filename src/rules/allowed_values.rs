//! Every value is one that the instance lists for its axis. What it leaves open may be anything
//! legal, also what is not tried.

use super::{Case, Definition, Parts, Remedy};
use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Layout};

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
    demand: |instance, part| {
        let axis = Axis::ALL[part];
        let origin = if instance.space.is_listed(axis) {
            "the instance lists"
        } else {
            "the default is"
        };
        format!("{origin} {}", axis.any_of(instance.space.values(axis)))
    },
    limits: |instance, best, part| {
        let axis = Axis::ALL[part];
        let is_listed = instance.space.is_listed(axis);
        is_listed.then(|| place(instance, axis, &best.layout))
    },
    remedy: Remedy::Instance,
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

/// The value that a layout has, among those that are listed.
fn place(instance: &Instance, axis: Axis, layout: &Layout) -> String {
    let values = instance.space.values(axis);
    let shown: Vec<String> = values.iter().map(|&code| axis.show(code)).collect();
    if let [only] = shown.as_slice() {
        return format!("only {only}");
    }
    if axis == Axis::Checkpointing {
        return format!("of {}", shown.join(", "));
    }
    let flagged = FlaggedCombination {
        combination: layout.combination,
        checkpointing: Checkpointing::None,
    };
    let code = flagged.code(axis);
    let place = match values {
        [first, ..] if *first == code && axis.names().is_none() => "smallest of",
        [.., last] if *last == code && axis.names().is_none() => "largest of",
        _ => "of",
    };
    format!("{}, {place} {}", axis.show(code), shown.join(", "))
}
