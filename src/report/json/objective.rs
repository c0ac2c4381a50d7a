//! What was to be best, and what is known of each number of GPUs, in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::layout::LayoutDocument;
use super::rounded;
use crate::planner::Best;
use crate::planner::objective::{Answer, Count, Goal};
use crate::quantity::{Mfu, Seconds};

/// What was to be best, and over which numbers of GPUs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ObjectiveDocument {
    /// What was to be best. On a fixed number of GPUs `mfu` and `step-time` choose the same layout.
    #[schemars(extend("enum" = ["mfu", "step-time", "gpu-hours", "fewest-gpus"]))]
    name: &'static str,
    /// Longest time in seconds, of the run where `steps` are given, else of a step; null for none.
    deadline_s: Option<f64>,
    /// Longest step that keeps the deadline, in seconds; null for none.
    longest_step_s: Option<f64>,
    /// Least model FLOP utilisation; null for none.
    at_least_mfu: Option<f64>,
    /// Optimizer steps of the run; null where they are not known.
    steps: Option<u64>,
    /// The chosen number of GPUs; null where none meets the demands.
    gpus: Option<u32>,
    /// Numbers of GPUs that were to be tried.
    counts_tried: u64,
    /// The demands to the last digit, and the numbers of GPUs that were to be tried.
    asked: AskedDocument,
    /// What is known of each, ascending; those above the ones that decide are left out.
    counts: Vec<CountDocument>,
}

/// The demands to the last digit, and the numbers of GPUs that were to be tried.
#[derive(Debug, Serialize, JsonSchema)]
struct AskedDocument {
    /// Longest time in seconds, of the run where `steps` are given, else of a step; null for none.
    deadline_s: Option<f64>,
    /// Least model FLOP utilisation; null for none.
    at_least_mfu: Option<f64>,
    /// Numbers of GPUs, ascending.
    gpus: Vec<u32>,
}

/// A number of GPUs and its fastest layout.
#[derive(Debug, Serialize, JsonSchema)]
struct CountDocument {
    /// The number.
    gpus: u32,
    /// `optimal`: the fastest layout is proven. `feasible`: the best known at a limit. `infeasible`:
    /// proven that there is none. `unknown`: none was known at a limit. `too-slow`: not solved, since
    /// no layout is as fast as `least_step_time_s`, which is too long.
    #[schemars(extend("enum" = ["optimal", "feasible", "infeasible", "unknown", "too-slow"]))]
    status: &'static str,
    /// Whether the fastest layout meets the demands.
    meets_demands: bool,
    /// The fastest layout; null where there is none.
    layout: Option<LayoutDocument>,
    /// Its model FLOP utilisation.
    mfu: Option<f64>,
    /// Its step time, in seconds.
    step_time_s: Option<f64>,
    /// GPU time of a step, in seconds.
    gpu_time_a_step_s: Option<f64>,
    /// GPU time of the run, in hours; null where its steps are not known.
    gpu_hours: Option<f64>,
    /// A bound on the step time of every layout, in seconds, where that excludes the number.
    least_step_time_s: Option<f64>,
}

impl ObjectiveDocument {
    pub(super) fn new(goal: &Goal, answer: &Answer) -> Self {
        let seconds = |duration: Option<Seconds>| duration.map(|time| rounded(time.value()));
        let plan = answer.outcome.plan();
        Self {
            name: goal.objective.as_str(),
            deadline_s: seconds(goal.deadline),
            longest_step_s: seconds(goal.longest_step()),
            at_least_mfu: goal.at_least_mfu.map(|mfu| rounded(mfu.value())),
            steps: goal.steps,
            gpus: plan.map(|_| answer.instance.job.cluster.gpus),
            counts_tried: goal.counts.len() as u64,
            asked: AskedDocument {
                deadline_s: goal.deadline.map(Seconds::value),
                at_least_mfu: goal.at_least_mfu.map(Mfu::value),
                gpus: goal.counts.clone(),
            },
            counts: answer
                .counts
                .iter()
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
            status: count.best.as_ref().map_or("too-slow", Best::status),
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
