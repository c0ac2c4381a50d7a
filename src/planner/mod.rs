//! The only module that sees both sides: costs go into a program, its answer becomes a plan.

pub(crate) mod classes;
pub mod constraints;
pub mod cost_table;
mod encoding;
pub mod given_layouts;
pub mod groups;
pub mod infeasibility;
pub mod objective;
pub mod quantise;
pub mod screening;
pub mod staged;

use formulations::staged::StagedError;

pub use formulations::deadline::{Deadline, TimeOver};

use crate::axis::AxisSet;
use crate::cost_model::{self, Costs};
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::{Evaluated, Formulation, Outcome, Status};
use crate::quantity::Seconds;
use crate::rules;

/// Solver in proofs.
const SOLVER: &str = "HiGHS";

/// Risk of running out of memory below which no safer layout is looked for.
pub const NEGLIGIBLE_RISK: f64 = 5e-3;

/// How to search.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions {
    /// The program to solve.
    pub formulation: Formulation,
    /// Which combinations the program decides among.
    pub pruning: Pruning,
    /// When the search has to end, all its parts together.
    pub deadline: Deadline,
    /// Next-best layouts to list.
    pub alternatives: usize,
    /// Axes in one of which each layout of the answer differs from every other; without any they
    /// are only not the same combination.
    pub diverse: AxisSet,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            formulation: Formulation::Staged,
            pruning: Pruning::ByBounds,
            deadline: Deadline::NEVER,
            alternatives: 3,
            diverse: AxisSet::EMPTY,
        }
    }
}

/// Which combinations the program decides among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pruning {
    /// Those that no bound excludes.
    ByBounds,
    /// All.
    None,
}

/// Why there is no outcome: a fault of the program, never of the instance.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The solver failed.
    #[error("the program gave no answer")]
    Staged(#[from] StagedError),
    /// A limit ended a search whose answer needs all of it, such as that for reasons.
    #[error(transparent)]
    TimeOver(#[from] TimeOver),
    /// The answer does not stand up to the cost model or the rules.
    #[error("the answer fails its verification: {cause}; please report this instance")]
    Verification {
        /// What differs.
        cause: String,
    },
}

/// Finds the best layout of the instance, with proof.
///
/// # Errors
///
/// When the solver fails, or its answer fails the verification.
pub fn plan(instance: &Instance, options: &PlanOptions) -> Result<Outcome, PlanError> {
    staged::plan(instance, options)
}

/// The best layout of an instance, without neighbours, a safer layout or reasons: what answers that
/// compare many instances ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Best {
    /// Proven best.
    Optimal(Evaluated),
    /// The best known when the time was over.
    Feasible(Evaluated),
    /// Proven: no layout satisfies every rule.
    Infeasible,
    /// None was known when the time was over.
    Unknown,
}

impl Best {
    /// The layout, if there is one.
    #[must_use]
    pub const fn layout(&self) -> Option<&Evaluated> {
        match self {
            Self::Optimal(evaluated) | Self::Feasible(evaluated) => Some(evaluated),
            Self::Infeasible | Self::Unknown => None,
        }
    }

    /// The layout, if there is one.
    #[must_use]
    pub fn into_layout(self) -> Option<Evaluated> {
        match self {
            Self::Optimal(evaluated) | Self::Feasible(evaluated) => Some(evaluated),
            Self::Infeasible | Self::Unknown => None,
        }
    }

    /// How the search ended.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Optimal(_) => Status::Optimal,
            Self::Feasible(_) => Status::Feasible,
            Self::Infeasible => Status::Infeasible,
            Self::Unknown => Status::Unknown,
        }
    }

    /// Whether the answer is proven: the time did not end the search.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        matches!(self, Self::Optimal(_) | Self::Infeasible)
    }
}

/// Told how many of how many instances are solved, from any thread.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// Finds the best layout of the instance alone.
///
/// # Errors
///
/// When the solver fails, or its answer fails the verification.
pub fn best(instance: &Instance, options: &PlanOptions) -> Result<Best, PlanError> {
    if options.deadline.is_over() {
        return Ok(Best::Unknown);
    }
    staged::best(instance, options)
}

/// The layout with its prediction.
#[must_use]
pub fn evaluate(instance: &Instance, layout: Layout) -> Evaluated {
    let costs = Costs::new(&instance.job, &layout.combination);
    let prediction = cost_model::evaluate(&instance.job, &costs, &layout.stages);
    Evaluated { layout, prediction }
}

/// Relative distance that rounding to quanta may put between the program's step time and the cost
/// model's.
const ROUNDING: f64 = 1e-3;

/// Evaluates the answer of a program again and demands that it obeys every rule and has the
/// claimed step time.
fn verify(instance: &Instance, layout: Layout, claimed: Seconds) -> Result<Evaluated, PlanError> {
    let evaluated = evaluate(instance, layout);
    if let Some(violation) = rules::violations(instance, &evaluated.layout).first() {
        let cause = format!("rule `{}`: {}", violation.rule, violation.message);
        return Err(PlanError::Verification { cause });
    }
    let found = evaluated.prediction.step_time;
    if (found / claimed - 1.0).abs() > ROUNDING {
        let (claimed, found) = (claimed.value(), found.value());
        let cause =
            format!("the program claims a step of {claimed} s, the cost model says {found} s");
        return Err(PlanError::Verification { cause });
    }
    Ok(evaluated)
}
