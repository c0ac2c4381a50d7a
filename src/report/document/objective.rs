//! What was to be best, and what is known of each number of GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LayoutDocument, rounded};
use crate::planner::Best;
use crate::planner::objective::{Answer, Count, Goal, Objective};
use crate::quantity::{Mfu, Seconds};

/// What was to be best, and over which numbers of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveDocument {
    /// What was to be best. On a fixed number of GPUs `mfu` and `step-time` choose the same layout.
    pub name: Objective,
    /// Longest time in seconds, of the run where `steps` are given, else of a step; null for none.
    pub deadline_s: Option<f64>,
    /// Longest step that keeps the deadline, in seconds; null for none.
    pub longest_step_s: Option<f64>,
    /// Least model FLOP utilisation; null for none.
    pub at_least_mfu: Option<f64>,
    /// Optimizer steps of the run; null where they are not known.
    pub steps: Option<u64>,
    /// Time of the run with the chosen layout, in days; null where its steps are not known.
    #[serde(default)]
    pub run_days: Option<f64>,
    /// GPU time of the run with the chosen layout, in hours; null where its steps are not known.
    #[serde(default)]
    pub run_gpu_hours: Option<f64>,
    /// The chosen number of GPUs; null where none meets the demands.
    pub gpus: Option<u32>,
    /// Numbers of GPUs that were to be tried.
    pub counts_tried: u64,
    /// The demands to the last digit, and the numbers of GPUs that were to be tried.
    #[serde(default)]
    pub asked: AskedDocument,
    /// What is known of each, ascending; those above the ones that decide are omitted.
    pub counts: Vec<CountDocument>,
}

/// The demands to the last digit, and the numbers of GPUs that were to be tried.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AskedDocument {
    /// Longest time in seconds, of the run where `steps` are given, else of a step; null for none.
    pub deadline_s: Option<f64>,
    /// Least model FLOP utilisation; null for none.
    pub at_least_mfu: Option<f64>,
    /// Numbers of GPUs, ascending.
    pub gpus: Vec<u32>,
}

/// A number of GPUs and its fastest layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountDocument {
    /// The number.
    pub gpus: u32,
    /// How the search for the fastest layout on so many GPUs ended.
    pub status: CountStatus,
    /// Whether the fastest layout meets the demands.
    pub meets_demands: bool,
    /// The fastest layout; null where there is none.
    pub layout: Option<LayoutDocument>,
    /// Its model FLOP utilisation.
    pub mfu: Option<f64>,
    /// Its step time, in seconds.
    pub step_time_s: Option<f64>,
    /// GPU time of a step, in seconds.
    pub gpu_time_a_step_s: Option<f64>,
    /// GPU time of the run, in hours; null where its steps are not known.
    pub gpu_hours: Option<f64>,
    /// A bound on the step time of every layout, in seconds, where that excludes the number.
    pub least_step_time_s: Option<f64>,
}

/// What is known of the fastest layout on a number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum CountStatus {
    /// The fastest layout is proven.
    Optimal,
    /// The best known at a limit.
    Feasible,
    /// Proven that there is none.
    Infeasible,
    /// None was known at a limit.
    Unknown,
    /// Not solved, since no layout is as fast as `least_step_time_s`, which is too long.
    TooSlow,
}

impl ObjectiveDocument {
    pub(super) fn new(goal: &Goal, answer: &Answer) -> Self {
        let seconds = |duration: Option<Seconds>| duration.map(|time| rounded(time.value()));
        let cluster = &answer.instance.job.cluster;
        let counts = answer.counts.iter();
        let run_hours =
            answer.outcome.plan().zip(goal.steps).map(|(plan, steps)| {
                plan.choice.prediction.step_time.value() * steps as f64 / 3600.0
            });
        Self {
            name: goal.objective,
            deadline_s: seconds(goal.deadline),
            longest_step_s: seconds(goal.longest_step()),
            at_least_mfu: goal.at_least_mfu.map(|mfu| rounded(mfu.value())),
            steps: goal.steps,
            run_days: run_hours.map(|hours| rounded(hours / 24.0)),
            run_gpu_hours: run_hours.map(|hours| rounded(hours * f64::from(cluster.gpus))),
            gpus: answer.outcome.plan().map(|_| cluster.gpus),
            counts_tried: goal.counts.len() as u64,
            asked: AskedDocument {
                deadline_s: goal.deadline.map(Seconds::value),
                at_least_mfu: goal.at_least_mfu.map(Mfu::value),
                gpus: goal.counts.clone(),
            },
            counts: counts
                .map(|count| CountDocument::new(goal, answer, count))
                .collect(),
        }
    }
}

impl CountDocument {
    fn new(goal: &Goal, answer: &Answer, count: &Count) -> Self {
        let fastest = count.fastest();
        let gpu_time = count.gpu_time().map(Seconds::value);
        let hours = |steps: u64| gpu_time.map(|time| rounded(time * steps as f64 / 3600.0));
        Self {
            gpus: count.gpus,
            status: match &count.best {
                Some(Best::Optimal(_)) => CountStatus::Optimal,
                Some(Best::Feasible(_)) => CountStatus::Feasible,
                Some(Best::Infeasible) => CountStatus::Infeasible,
                Some(Best::Unknown) => CountStatus::Unknown,
                None => CountStatus::TooSlow,
            },
            meets_demands: fastest.is_some_and(|fastest| goal.is_met(fastest)),
            layout: fastest.map(|fastest| {
                let batch = answer.instance.job.workload.global_batch;
                LayoutDocument::new(&fastest.layout, batch)
            }),
            mfu: fastest.map(|fastest| rounded(fastest.prediction.mfu.value())),
            step_time_s: fastest.map(|fastest| rounded(fastest.prediction.step_time.value())),
            gpu_time_a_step_s: gpu_time.map(rounded),
            gpu_hours: goal.steps.and_then(hours),
            least_step_time_s: match &count.best {
                None => Some(rounded(count.least_step_time.value())),
                Some(_) => None,
            },
        }
    }
}
