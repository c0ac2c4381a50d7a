//! Reasons: why there is no layout and what would repair that, which rules cost how much, why not
//! another choice, and where two layouts differ.

pub mod binding;
pub mod change;
pub mod comparison;
mod quantities;
pub mod reasons;
pub mod repairs;
pub mod rows;
pub mod why_not;

use crate::instance::Instance;
use crate::plan::Plan;
use crate::planner::infeasibility::{best_layout, may_have_layout};
use crate::planner::{self, PlanError, PlanOptions, constraints};

use binding::Binding;
use reasons::Reasons;

/// Reads the instance again with further assignments of `--set`, so that a repair is verified on
/// exactly what the user can type. `None` where the assignments make no valid instance.
pub type Reread<'a> = dyn Fn(&[String]) -> Option<Instance> + 'a;

/// What there is to say of an instance.
#[derive(Debug, Clone, PartialEq)]
pub enum Explanation {
    /// There is a best layout: what limits it.
    Feasible(Box<Binding>),
    /// There is none: why, and what would help.
    Infeasible(Box<Reasons>),
}

/// Explains an instance by solving it and variations of it.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn explain(instance: &Instance, reread: &Reread) -> Result<Explanation, PlanError> {
    if let Some(plan) = best_plan(instance)? {
        let binding = binding::binding(instance, &plan)?;
        return Ok(Explanation::Feasible(Box::new(binding)));
    }
    let reasons = reasons::reasons(instance, &[], reread)?;
    Ok(Explanation::Infeasible(Box::new(reasons)))
}

/// The best plan without its neighbours; `None` if there is no layout.
fn best_plan(instance: &Instance) -> Result<Option<Plan>, PlanError> {
    let rows = constraints::concern_layers(instance);
    if !may_have_layout(instance) || rows && best_layout(instance)?.is_none() {
        return Ok(None);
    }
    let options = PlanOptions {
        alternatives: 0,
        ..PlanOptions::default()
    };
    let outcome = planner::plan(instance, &options)?;
    Ok(outcome.plan().cloned())
}
