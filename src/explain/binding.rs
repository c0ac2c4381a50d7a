//! Which limits keep the best layout from being faster, and by how much.

use crate::axis::FlaggedCombination;
use crate::change::Change;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::{Evaluated, Plan};
use crate::planner::infeasibility::best_layout;
use crate::planner::{Deadline, PlanError};
use crate::quantity::{Bytes, Mfu};
use crate::rules::{self, Requirement, Rule, RuleSet};

use super::reasons::percentage;
use super::repairs::switch;

/// A best layout with what limits it.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The best layout.
    pub plan: Plan,
    /// What the accepted risk leaves of the memory of a GPU.
    pub admissible: Bytes,
    /// What each limit costs, the costliest first.
    pub effects: Vec<Effect>,
    /// Limits that there was no time to drop.
    pub untried: usize,
}

/// What dropping one limit alone would give.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The limit: of a rule or a constraint, or a key of the instance.
    pub name: String,
    /// How the best layout stands to it.
    pub now: String,
    /// The best layout without it.
    pub without: Evaluated,
    /// Utilisation gained by dropping it.
    pub gain: Mfu,
}

/// What is dropped, its name and how the best layout stands to it: a requirement, or `None` for the
/// accepted risk of running out of memory, which is raised to [`BRAVE`].
type Limit = (Option<Requirement>, String, String);

/// The risk that is accepted instead, where that of the instance is dropped.
pub const BRAVE: f64 = 0.5;
/// Utilisation below which nothing is gained: less than the tables show.
pub const NEGLIGIBLE: Mfu = Mfu::new(5e-5);
/// Most forbidden combinations, and most constraints, that are tried one by one.
const MOST_OF_A_KIND: usize = 16;

/// Solves the instance without each of its limits, one at a time, while there is time.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn binding(instance: &Instance, plan: &Plan, deadline: Deadline) -> Result<Binding, PlanError> {
    let mut effects = Vec::new();
    let mut untried = 0;
    for (requirement, name, now) in limits(instance, &plan.choice) {
        let freer = dropped(instance, requirement, &plan.choice.layout);
        let best = match best_layout(&freer, deadline) {
            Ok(Some(best)) => best,
            Ok(None) => continue,
            Err(PlanError::TimeOver(_)) => {
                untried += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        let gain = best.prediction.mfu - plan.choice.prediction.mfu;
        effects.push(Effect {
            name,
            now,
            without: best,
            gain: gain.max(Mfu::ZERO),
        });
    }
    effects.sort_by(|one, other| other.gain.value().total_cmp(&one.gain.value()));
    Ok(Binding {
        plan: plan.clone(),
        admissible: rules::admissible_of(instance, &plan.choice.layout.combination),
        effects,
        untried,
    })
}

/// Everything that limits the layouts of an instance, but for the job itself; memory first.
fn limits(instance: &Instance, best: &Evaluated) -> Vec<Limit> {
    let memory = Requirement::from(Rule::MemoryCapacity);
    let others = rules::requirements(instance).collect::<RuleSet>().iter();
    let requirements = [memory]
        .into_iter()
        .chain(others.filter(|&it| it != memory));
    let mut limits: Vec<Limit> = requirements
        .filter(|it| it.part < MOST_OF_A_KIND)
        .filter_map(|requirement| {
            let Requirement { rule, part } = requirement;
            let now = (rule.definition().limits)(instance, best, part)?;
            Some((Some(requirement), requirement.name(instance), now))
        })
        .collect();
    if instance.max_oom_risk < BRAVE {
        let now = format!(
            "{} % accepted; {} % instead",
            percentage(instance.max_oom_risk),
            percentage(BRAVE)
        );
        limits.push((None, "limits.max_oom_risk".to_owned(), now));
    }
    limits
}

/// The instance without one limit.
fn dropped(instance: &Instance, requirement: Option<Requirement>, chosen: &Layout) -> Instance {
    let Some(requirement) = requirement else {
        let (from, to) = (instance.max_oom_risk, BRAVE);
        return Change::OomRisk { from, to }.apply(instance);
    };
    let witness = FlaggedCombination::plain(chosen.combination);
    switch(instance, RuleSet::EMPTY.with(requirement), &witness)
}
