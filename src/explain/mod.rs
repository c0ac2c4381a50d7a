//! Reasons: why there is no layout and what would repair that, which rules cost how much, why not
//! another choice, and where two layouts differ.

pub mod binding;
pub mod degrees;
mod quantities;
pub mod reasons;
pub mod repairs;
mod rows;
mod why_not;

use std::time::Duration;

use crate::axis::Assignment;
use crate::instance::Instance;
use crate::plan::{Evaluated, Outcome, Plan};
use crate::planner::infeasibility::{best_layout, may_have_layout};
use crate::planner::{self, Deadline, PlanError, PlanOptions, TimeOver, constraints};

use binding::Binding;
use reasons::Reasons;

/// Reads the instance again with further assignments of `--set`, so that a repair is verified on
/// exactly what the user can type. `None` where the assignments make no valid instance.
pub type Reread<'a> = dyn Fn(&[String]) -> Option<Instance> + 'a;

/// What there is to say of an instance, or of a choice that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Explanation {
    /// There is a best layout: what limits it.
    Feasible(Box<Binding>),
    /// There is none: why, and what would help.
    Infeasible(Box<Reasons>),
    /// The best layout has the choice.
    Chosen(Box<Evaluated>),
    /// The best layout with the choice is slower, or no faster.
    Compared {
        /// The best layout.
        best: Box<Evaluated>,
        /// The best with the choice.
        with_it: Box<Evaluated>,
    },
    /// No layout has the choice.
    Impossible(Box<Reasons>),
}

/// How long the parts of an explanation may take.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// All of it.
    pub whole: Deadline,
    /// The repairs, or the limits that are dropped, from when the rest is known.
    pub variations: Option<Duration>,
}

impl TimeLimits {
    /// As long as it takes.
    pub const NONE: Self = Self {
        whole: Deadline::NEVER,
        variations: None,
    };

    /// The end of what begins now: the repairs, or the limits that are dropped.
    fn variations(&self) -> Deadline {
        self.whole.earlier(Deadline::after(self.variations))
    }
}

/// Explains an instance by solving it and variations of it, or what speaks against a choice that is
/// `asked` for by solving it with that. Of variations only those are told that were solved in time.
///
/// # Errors
///
/// When the solver fails, an answer fails its verification, or the time is over before it is known
/// whether there is a layout ([`PlanError::TimeOver`]).
pub fn explain(
    instance: &Instance,
    asked: Option<&Assignment>,
    reread: &Reread,
    limits: &TimeLimits,
) -> Result<Explanation, PlanError> {
    let Some(plan) = best_plan(instance, limits.whole)? else {
        let reasons = reasons::reasons(instance, &[], reread, limits)?;
        return Ok(Explanation::Infeasible(Box::new(reasons)));
    };
    if let Some(asked) = asked {
        return why_not::why_not(instance, asked, plan.choice, (reread, limits));
    }
    let binding = binding::binding(instance, &plan, limits.variations())?;
    Ok(Explanation::Feasible(Box::new(binding)))
}

/// Of whole numbers between one that fails and one that holds, the one that holds nearest to the former.
fn nearest_that_holds(
    mut fails: i64,
    mut holds: i64,
    test: impl Fn(i64) -> Result<bool, PlanError>,
) -> Result<i64, PlanError> {
    while fails.abs_diff(holds) > 1 {
        let middle = fails.midpoint(holds);
        if test(middle)? {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    Ok(holds)
}

/// The best plan without its neighbours; `None` if there is no layout.
fn best_plan(instance: &Instance, deadline: Deadline) -> Result<Option<Plan>, PlanError> {
    let rows = constraints::concern_layers(instance);
    if !may_have_layout(instance, deadline)? || rows && best_layout(instance, deadline)?.is_none() {
        return Ok(None);
    }
    deadline.check()?;
    let options = PlanOptions {
        alternatives: 0,
        deadline: deadline.undivided(),
        ..PlanOptions::default()
    };
    match planner::plan(instance, &options)? {
        Outcome::Optimal(plan) => Ok(Some(plan)),
        Outcome::Infeasible(_) => Ok(None),
        Outcome::Feasible(_) | Outcome::Unknown(_) => Err(TimeOver.into()),
    }
}
