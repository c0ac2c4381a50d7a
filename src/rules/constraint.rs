//! The user's own constraints: rows that are linear in what a layout decides.

use super::{Case, Definition, Parts, Remedy};
use crate::axis::{Axis, AxisSet};
use crate::constraint::{Comparison, Constraint, Decision};
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::Violation;

const NAME: &str = "constraint";

pub(super) const RULE: Definition = Definition {
    name: NAME,
    demands: "your own constraints hold",
    parts: Parts::Several {
        count: |instance| instance.space.constraints.len(),
        name: |instance, part| match row(instance, part) {
            Some(row) => format!("{NAME}({})", row.name),
            None => format!("{NAME}({part})"),
        },
        axes: |instance, part| axes(row(instance, part)?),
    },
    amount,
    demand: |instance, part| demand(instance, part).unwrap_or_default(),
    limits: |instance, _, part| demand(instance, part),
    in_layout: Some(in_layout),
    remedy: Remedy::Instance,
    source: "`[[constraint]]` of the instance",
    ..Definition::USUAL
};

fn row(instance: &Instance, part: usize) -> Option<&Constraint> {
    instance.space.constraints.get(part)
}

fn demand(instance: &Instance, part: usize) -> Option<String> {
    let row = row(instance, part)?;
    Some(format!("{row} is {} {}", row.comparison.words(), row.right))
}

/// The axes that a row is about; `None` where it is about layers.
fn axes(row: &Constraint) -> Option<AxisSet> {
    let mut terms = row.terms.iter();
    terms.try_fold(AxisSet::EMPTY, |set, term| match term.decision {
        Decision::Degree(axis) | Decision::Is(axis, _) => Some(set.with(axis)),
        Decision::MicroBatches => Some(set.with(Axis::DataParallel).with(Axis::MicroBatch)),
        Decision::Layers(_) | Decision::LayersLast | Decision::CheckpointedLayers => None,
    })
}

/// How far the left side is on the wrong side of the right; 0 where layers have a say.
fn amount(case: &Case) -> u64 {
    let Some(row) = row(case.instance, case.part).filter(|row| row.is_of_combination()) else {
        return 0;
    };
    let layout = Layout {
        combination: *case.combination(),
        stages: Vec::new(),
    };
    excess(row, row.left(&layout, case.job().workload.global_batch))
}

/// How far a left side is on the wrong side of the right.
const fn excess(row: &Constraint, left: i64) -> u64 {
    let over = match row.comparison {
        Comparison::AtMost => left.saturating_sub(row.right),
        Comparison::AtLeast => row.right.saturating_sub(left),
        Comparison::Equals => return left.abs_diff(row.right),
    };
    if over > 0 { over.unsigned_abs() } else { 0 }
}

fn in_layout(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let batch = instance.job.workload.global_batch;
    let rows = instance.space.constraints.iter().enumerate();
    let broken = rows.filter_map(|(part, row)| {
        let left = row.left(layout, batch);
        (!row.holds(left)).then(|| Violation {
            rule: super::Rule::Constraint.part_name(instance, part),
            message: format!(
                "{row} is {left}, and has to be {} {}",
                row.comparison.words(),
                row.right
            ),
        })
    });
    broken.collect()
}
