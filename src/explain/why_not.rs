//! Why not another choice: the best layout with it, against the best of all.

use crate::axis::{Assignment, Axis, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::Evaluated;
use crate::planner::PlanError;

use super::reasons::reasons;
use super::{Explanation, Reread, TimeLimits, best_plan};

/// What speaks against a choice of an instance whose best layout is known. Values that the instance does
/// not list are allowed for the question.
pub(super) fn why_not(
    instance: &Instance,
    asked: &Assignment,
    best: Evaluated,
    (reread, limits): (&Reread, &TimeLimits),
) -> Result<Explanation, PlanError> {
    if asked.0.iter().all(|&pair| has(&best.layout, pair)) {
        return Ok(Explanation::Chosen(Box::new(best)));
    }
    let mut pinned = instance.clone();
    for &(axis, code) in &asked.0 {
        pinned.space.restrict(axis, vec![code]);
    }
    if let Some(other) = best_plan(&pinned, limits.whole)? {
        return Ok(Explanation::Compared {
            best: Box::new(best),
            with_it: Box::new(other.choice),
        });
    }
    let kept: Vec<Axis> = asked.0.iter().map(|&(axis, _)| axis).collect();
    let with_pins = |further: &[String]| {
        // What a repair changes of the question itself takes its place.
        let is_kept = |pin: &String| {
            let key = pin.split('=').next();
            further.iter().all(|other| other.split('=').next() != key)
        };
        let pins = asked.0.iter();
        let pins = pins.map(|&(axis, code)| format!("search.{axis}={}", axis.show(code)));
        let pins = pins.filter(is_kept);
        reread(&pins.chain(further.iter().cloned()).collect::<Vec<_>>())
    };
    let reasons = reasons(&pinned, &kept, &with_pins, limits)?;
    Ok(Explanation::Impossible(Box::new(reasons)))
}

/// Whether the layout has the value; `checkpointing` where all layers are alike.
fn has(layout: &Layout, (axis, code): (Axis, u32)) -> bool {
    if axis == Axis::Checkpointing {
        return layout.flags().iter().all(|&flag| flag as u32 == code);
    }
    FlaggedCombination::plain(layout.combination).code(axis) == code
}
