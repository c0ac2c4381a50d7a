//! Why not another choice: the best layout with it, against the best of all.

use crate::axis::{Assignment, Axis, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Layout};
use crate::plan::Evaluated;
use crate::planner::PlanError;

use super::reasons::{Reasons, reasons};
use super::{Reread, TimeLimits, best_plan};

/// The answer to "why not this choice".
#[derive(Debug, Clone, PartialEq)]
pub struct WhyNot {
    /// The choice asked for.
    pub asked: Assignment,
    /// Of its values those that the instance does not list; they are allowed for the question.
    pub unlisted: Assignment,
    /// What speaks against it.
    pub verdict: Verdict,
}

/// What speaks against a choice.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing: the best layout has it.
    Chosen(Box<Evaluated>),
    /// The best layout with it is slower, or no faster.
    Compared {
        /// The best layout.
        best: Box<Evaluated>,
        /// The best with it.
        with_it: Box<Evaluated>,
    },
    /// No layout has it.
    Impossible(Box<Reasons>),
    /// The instance has no layout at all.
    NothingPossible(Box<Reasons>),
}

/// Solves the instance with and without the choice, as long as it takes.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn why_not(
    instance: &Instance,
    asked: &Assignment,
    reread: &Reread,
) -> Result<WhyNot, PlanError> {
    why_not_within(instance, asked, reread, &TimeLimits::NONE)
}

/// The same within limits of time. Of repairs only those are told that were solved in time.
///
/// # Errors
///
/// When the solver fails, an answer fails its verification, or the time is over before the best
/// layouts or the reasons are known ([`PlanError::TimeOver`]).
pub fn why_not_within(
    instance: &Instance,
    asked: &Assignment,
    reread: &Reread,
    limits: &TimeLimits,
) -> Result<WhyNot, PlanError> {
    let unlisted = asked.0.iter().copied();
    let unlisted = unlisted.filter(|(axis, code)| !instance.space.values(*axis).contains(code));
    let answer = |verdict| WhyNot {
        asked: asked.clone(),
        unlisted: Assignment(unlisted.clone().collect()),
        verdict,
    };
    let Some(best) = best_plan(instance, limits.whole)? else {
        let reasons = reasons(instance, &[], reread, limits)?;
        return Ok(answer(Verdict::NothingPossible(Box::new(reasons))));
    };
    if asked.0.iter().all(|&pair| has(&best.choice.layout, pair)) {
        return Ok(answer(Verdict::Chosen(Box::new(best.choice.clone()))));
    }
    let mut pinned = instance.clone();
    for &(axis, code) in &asked.0 {
        pinned.space.restrict(axis, vec![code]);
    }
    let Some(other) = best_plan(&pinned, limits.whole)? else {
        let kept: Vec<Axis> = asked.0.iter().map(|&(axis, _)| axis).collect();
        let with_pins = |further: &[String]| {
            let pins = asked.0.iter();
            let pins = pins.map(|&(axis, code)| format!("search.{axis}={}", axis.show(code)));
            reread(&pins.chain(further.iter().cloned()).collect::<Vec<_>>())
        };
        let reasons = reasons(&pinned, &kept, &with_pins, limits)?;
        return Ok(answer(Verdict::Impossible(Box::new(reasons))));
    };
    Ok(answer(Verdict::Compared {
        best: Box::new(best.choice),
        with_it: Box::new(other.choice),
    }))
}

/// Whether the layout has the value; `checkpointing` where all layers are alike.
fn has(layout: &Layout, (axis, code): (Axis, u32)) -> bool {
    let candidate = FlaggedCombination {
        combination: layout.combination,
        checkpointing: Checkpointing::None,
    };
    if axis != Axis::Checkpointing {
        return candidate.code(axis) == code;
    }
    let Some(&flag) = Checkpointing::ALL.get(code as usize) else {
        return false;
    };
    layout.stages.iter().all(|stage| match flag.recompute() {
        None => stage.checkpointed_layers() == 0,
        Some(mode) => stage.recomputed[mode as usize] == stage.layers,
    })
}
