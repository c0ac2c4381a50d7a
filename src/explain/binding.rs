//! Which limits keep the best layout from being faster, and by how much.

use crate::axis::{Axis, FlaggedCombination};
use crate::framework::{CheckpointRule, FusedRmsNorm, Partition};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Layout};
use crate::plan::{Evaluated, Plan};
use crate::planner::infeasibility::{Requirement, RequirementSet, best_layout, without};
use crate::planner::{Deadline, PlanError};
use crate::quantity::{Bytes, Mfu};
use crate::rules::Rule;

use super::reasons::{admissible, percentage, row};

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
    /// The limit.
    pub limit: Limit,
    /// Its name: of a rule, of a row, or a key of the instance.
    pub name: String,
    /// How the best layout stands to it.
    pub now: String,
    /// The best layout without it.
    pub without: Evaluated,
    /// Utilisation gained by dropping it.
    pub gain: Mfu,
}

/// What is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A rule, or listed values.
    Requirement(Requirement),
    /// The accepted risk of running out of memory, raised to [`BRAVE`].
    OomRisk,
}

/// The risk that is accepted instead, where that of the instance is dropped.
pub const BRAVE: f64 = 0.5;
/// Utilisation below which nothing is gained: less than the tables show.
pub const NEGLIGIBLE: Mfu = Mfu::new(5e-5);
/// Most forbidden combinations, and most rows, that are tried one by one.
const MOST_OF_A_KIND: usize = 16;

impl Limit {
    /// The name of the rule or the row, or the key.
    fn name(self, instance: &Instance) -> String {
        match self {
            Self::Requirement(requirement) => requirement.name(instance),
            Self::OomRisk => "limits.max_oom_risk".to_owned(),
        }
    }
}

impl Effect {
    /// Whether the limit costs anything.
    #[must_use]
    pub fn binds(&self) -> bool {
        self.gain > NEGLIGIBLE
    }
}

/// Solves the instance without each of its limits, one at a time, while there is time.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn binding(instance: &Instance, plan: &Plan, deadline: Deadline) -> Result<Binding, PlanError> {
    let mut effects = Vec::new();
    let mut untried = 0;
    for limit in limits(instance) {
        let freer = dropped(instance, limit, &plan.choice.layout);
        let best = match best_layout(&freer, deadline) {
            Ok(Some(best)) => best,
            Ok(None) => continue,
            Err(PlanError::TimeOver) => {
                untried += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        let gain = best.prediction.mfu - plan.choice.prediction.mfu;
        effects.push(Effect {
            limit,
            name: limit.name(instance),
            now: now(instance, limit, &plan.choice),
            without: best,
            gain: gain.max(Mfu::ZERO),
        });
    }
    effects.sort_by(|one, other| other.gain.value().total_cmp(&one.gain.value()));
    Ok(Binding {
        plan: plan.clone(),
        admissible: admissible(instance),
        effects,
        untried,
    })
}

/// Everything that limits the layouts of an instance, but for the job itself.
fn limits(instance: &Instance) -> Vec<Limit> {
    let framework = &instance.job.framework;
    let mut requirements = vec![Requirement::Rule(Rule::MemoryCapacity)];
    requirements.extend(instance.space.listed().iter().map(Requirement::Listed));
    let forbidden = instance.space.forbidden.len().min(MOST_OF_A_KIND);
    requirements.extend((0..forbidden).map(Requirement::Forbidden));
    let rows = instance.space.constraints.len().min(MOST_OF_A_KIND);
    requirements.extend((0..rows).map(Requirement::Constraint));
    if framework.checkpoint_rule != CheckpointRule::Free {
        requirements.push(Requirement::CheckpointRule);
    }
    let mut rules = vec![
        Rule::HeadsDivisible,
        Rule::KeyValueHeadsDivisible,
        Rule::TensorParallelWithinNode,
        Rule::SequenceDivisible,
        Rule::InterleavingMicroBatches,
        Rule::ShardingExcludesPipeline,
    ];
    if framework.partition != Partition::Free {
        rules.push(Rule::LayersCoverStages);
    }
    if framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing {
        rules.push(Rule::RmsNormKernelExcludesCheckpointing);
    }
    requirements.extend(rules.into_iter().map(Requirement::Rule));
    let mut limits: Vec<Limit> = requirements.into_iter().map(Limit::Requirement).collect();
    if instance.max_oom_risk < BRAVE {
        limits.push(Limit::OomRisk);
    }
    limits
}

/// The instance without one limit.
fn dropped(instance: &Instance, limit: Limit, chosen: &Layout) -> Instance {
    let mut freer = instance.clone();
    match limit {
        Limit::OomRisk => freer.max_oom_risk = BRAVE,
        // Whatever the framework, a stage has a layer.
        Limit::Requirement(Requirement::Rule(Rule::LayersCoverStages)) => {
            freer.job.framework.partition = Partition::Free;
        }
        Limit::Requirement(requirement) => {
            let dropped = RequirementSet::EMPTY.with(requirement);
            freer = without(instance, dropped, &candidate(chosen));
        }
    }
    freer
}

fn candidate(layout: &Layout) -> FlaggedCombination {
    FlaggedCombination {
        combination: layout.combination,
        checkpointing: Checkpointing::None,
    }
}

/// How the best layout stands to a limit.
fn now(instance: &Instance, limit: Limit, best: &Evaluated) -> String {
    let job = &instance.job;
    match limit {
        Limit::OomRisk => format!(
            "{} % accepted; {} % instead",
            percentage(instance.max_oom_risk),
            percentage(BRAVE)
        ),
        Limit::Requirement(Requirement::Listed(axis)) => listed(instance, axis, &best.layout),
        Limit::Requirement(Requirement::Forbidden(index)) => {
            let assignment = instance.space.forbidden.get(index);
            assignment.map_or_else(String::new, ToString::to_string)
        }
        Limit::Requirement(Requirement::Constraint(index)) => row(instance, index),
        Limit::Requirement(Requirement::CheckpointRule) => match job.framework.checkpoint_rule {
            CheckpointRule::AllOrNothing => "all layers or none".to_owned(),
            CheckpointRule::SameCount => "the same number on every stage".to_owned(),
            CheckpointRule::Free => "any layers".to_owned(),
        },
        Limit::Requirement(Requirement::Rule(rule)) => match rule {
            Rule::MemoryCapacity => {
                let left = admissible(instance) - best.prediction.memory.peak();
                format!("{left} left on the fullest stage")
            }
            Rule::HeadsDivisible => format!("{} heads", job.transformer.heads),
            Rule::KeyValueHeadsDivisible => {
                format!("{} key-value heads", job.transformer.key_value_heads)
            }
            Rule::TensorParallelWithinNode => {
                format!("nodes of {} GPUs", job.cluster.gpus_per_node)
            }
            Rule::SequenceDivisible => format!("{} tokens", job.workload.sequence_length),
            Rule::LayersCoverStages => format!("the cut of {}", job.framework.name),
            Rule::RmsNormKernelExcludesCheckpointing => {
                format!("the kernel of {}", job.framework.name)
            }
            _ => String::new(),
        },
    }
}

/// The value that was chosen of those that are listed.
fn listed(instance: &Instance, axis: Axis, layout: &Layout) -> String {
    let values = instance.space.values(axis);
    let shown: Vec<String> = values.iter().map(|&code| axis.show(code)).collect();
    if let [only] = shown.as_slice() {
        return format!("only {only}");
    }
    if axis == Axis::Checkpointing {
        return format!("of {}", shown.join(", "));
    }
    let code = candidate(layout).code(axis);
    let place = match values {
        [first, ..] if *first == code && axis.names().is_none() => "smallest of",
        [.., last] if *last == code && axis.names().is_none() => "largest of",
        _ => "of",
    };
    format!("{}, {place} {}", axis.show(code), shown.join(", "))
}
