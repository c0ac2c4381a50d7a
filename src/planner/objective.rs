//! What is best when the number of GPUs is open as well.
//!
//! With the number of GPUs `G` fixed, a step of `F` FLOP on a peak of `P` a GPU has
//! `MFU = F / (G P T)`, so the layout of the highest MFU *is* the one of the least step time `T`: the
//! objectives [`Objective::Mfu`] and [`Objective::StepTime`] are the same. Demands on either are
//! kept by the fastest layout or by none.
//!
//! The GPU time of a step is `G T = F / (P MFU)`, so over several numbers of GPUs the least GPU
//! hours are those of the highest MFU. Every number is solved on its own, or excluded by the bound
//! `T >= 6 L w tokens / (G P eta_gemm)` (`w` weights of a layer): the matrix products of the layers
//! alone, spread over all GPUs. What is chosen is proven best over the numbers that were tried.

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::axis::FlaggedCombination;
use crate::choice::choice;
use crate::cluster::Cluster;
use crate::cost_model::compute;
use crate::instance::Instance;
use crate::job::Job;
use crate::plan::{Evaluated, Infeasibility, Nearest, Outcome, Proof, Violation};
use crate::quantity::{Flops, Mfu, Seconds};

use super::{Best, PlanError, PlanOptions, best, plan};

choice!(
    /// What is to be best.
    Objective {
        /// The highest MFU on the instance's GPUs.
        Mfu = "mfu",
        /// The least step time on the instance's GPUs.
        StepTime = "step-time",
        /// The least GPU time over several numbers of GPUs.
        GpuHours = "gpu-hours",
        /// The fewest GPUs with a layout that meets the demands.
        FewestGpus = "fewest-gpus",
    }
);

impl Objective {
    /// Whether the number of GPUs is open.
    #[must_use]
    pub const fn is_over_counts(self) -> bool {
        matches!(self, Self::GpuHours | Self::FewestGpus)
    }
}

/// What is sought.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// What is to be best.
    pub objective: Objective,
    /// Longest time, of the run where `steps` are given, else of a step.
    pub deadline: Option<Seconds>,
    /// Least utilisation.
    pub at_least_mfu: Option<Mfu>,
    /// Optimizer steps of the run.
    pub steps: Option<u64>,
    /// Numbers of GPUs to try, ascending; only the instance's own where they are not open.
    pub counts: Vec<u32>,
}

impl Goal {
    /// The longest step that keeps the deadline.
    #[must_use]
    pub fn longest_step(&self) -> Option<Seconds> {
        let steps = self.steps.unwrap_or(1).max(1) as f64;
        self.deadline.map(|deadline| deadline / steps)
    }

    /// Whether a layout meets every demand.
    #[must_use]
    pub fn is_met(&self, evaluated: &Evaluated) -> bool {
        let prediction = &evaluated.prediction;
        self.longest_step()
            .is_none_or(|longest| prediction.step_time <= longest)
            && self
                .at_least_mfu
                .is_none_or(|least| prediction.mfu >= least)
    }

    /// The demands that a layout misses, by name, with the amounts.
    fn missed(&self, evaluated: &Evaluated) -> Vec<Violation> {
        let prediction = &evaluated.prediction;
        let mut missed = Vec::new();
        let step = prediction.step_time;
        if let Some(longest) = self.longest_step().filter(|&longest| step > longest) {
            missed.push(Violation {
                rule: DEADLINE.to_owned(),
                message: format!(
                    "a step takes {} s, {} s more than the {} s that it may",
                    figures(step.value()),
                    figures((step - longest).value()),
                    figures(longest.value())
                ),
            });
        }
        if let Some(least) = self.at_least_mfu.filter(|&least| prediction.mfu < least) {
            missed.push(Violation {
                rule: AT_LEAST_MFU.to_owned(),
                message: format!(
                    "the MFU is {}, {} points less than the {least} that it has to be",
                    prediction.mfu,
                    figures((least - prediction.mfu).value() * 100.0)
                ),
            });
        }
        missed
    }
}

/// A number with three figures, or all before the point.
fn figures(number: f64) -> String {
    let places = 2.0 - number.abs().max(1e-9).log10().floor();
    format!("{number:.*}", places.clamp(0.0, 9.0) as usize)
}

/// Name of the demand on time.
pub const DEADLINE: &str = "deadline";
/// Name of the demand on utilisation.
const AT_LEAST_MFU: &str = "at_least_mfu";

/// What is known of one number of GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The number.
    pub gpus: u32,
    /// No layout on so many GPUs has a shorter step; see the module.
    pub least_step_time: Seconds,
    /// The fastest layout, solved; `None` where that bound is too long already.
    pub best: Option<Best>,
}

impl Count {
    /// Whether the time did not end the search.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.best.as_ref().is_none_or(Best::is_proven)
    }

    /// The fastest layout, if it is known.
    #[must_use]
    pub fn fastest(&self) -> Option<&Evaluated> {
        self.best.as_ref().and_then(Best::layout)
    }

    /// GPU time of a step of the fastest layout.
    #[must_use]
    pub fn gpu_time(&self) -> Option<Seconds> {
        let step = self.fastest()?.prediction.step_time;
        Some(step * f64::from(self.gpus))
    }
}

/// The answer over several numbers of GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The instance on the chosen number of GPUs, or on the one that misses the demands by least.
    pub instance: Instance,
    /// The plan on that number; infeasible where no number meets the demands.
    pub outcome: Outcome,
    /// What is known of each number, ascending. Numbers above those that decide are left out.
    pub counts: Vec<Count>,
}

/// Finds what is best over the numbers of GPUs of the goal.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn plan_for(
    instance: &Instance,
    goal: &Goal,
    options: &PlanOptions,
) -> Result<Answer, PlanError> {
    // The chosen number is solved once more.
    let of_counts = PlanOptions {
        deadline: options.deadline.part(2),
        ..*options
    };
    let counts = match goal.objective {
        Objective::FewestGpus => solve_ascending(instance, goal, &of_counts)?,
        _ => solve_counts(instance, goal, &goal.counts, &of_counts)?,
    };
    let settled = counts.iter().all(Count::is_proven);
    let deciding = deciding(goal, &counts);
    let last = goal.counts.last().unwrap_or(&instance.job.cluster.gpus);
    let instance = on(instance, deciding.map_or(*last, |count| count.gpus));
    if deciding
        .and_then(Count::fastest)
        .is_some_and(|best| goal.is_met(best))
    {
        let outcome = match plan(&instance, options)? {
            Outcome::Optimal(plan) if !settled => Outcome::Feasible(plan),
            outcome => outcome,
        };
        return Ok(Answer {
            instance,
            outcome,
            counts,
        });
    }
    let outcome = match missed(&instance, goal, options)? {
        Outcome::Infeasible(why) if !settled => Outcome::Unknown(why.proof),
        outcome => outcome,
    };
    Ok(Answer {
        instance,
        outcome,
        counts,
    })
}

/// The number of GPUs that is best among those whose fastest layout meets the demands; where none
/// does, the one that misses them by least; `None` where no layout is known.
#[must_use]
pub fn deciding<'a>(goal: &Goal, counts: &'a [Count]) -> Option<&'a Count> {
    let meets = |count: &&Count| count.fastest().is_some_and(|best| goal.is_met(best));
    let chosen = match goal.objective {
        Objective::FewestGpus => counts.iter().find(meets),
        _ => counts.iter().filter(meets).min_by(|a, b| less_time(a, b)),
    };
    let known = counts.iter().filter(|count| count.fastest().is_some());
    chosen.or_else(|| known.min_by(|a, b| nearer(goal, a, b)))
}

/// The instance on another number of GPUs.
#[must_use]
pub fn on(instance: &Instance, gpus: u32) -> Instance {
    let mut job = instance.job.clone();
    job.cluster.gpus = gpus;
    let mut after = instance.with_job(job);
    if instance.name == instance.job.title() {
        after.name = after.job.title();
    }
    after
}

/// Less GPU time first, then fewer GPUs; both are solved.
fn less_time(a: &Count, b: &Count) -> Ordering {
    let time = |count: &Count| count.gpu_time().map_or(f64::INFINITY, Seconds::value);
    time(a).total_cmp(&time(b)).then(a.gpus.cmp(&b.gpus))
}

/// The count that misses the demands by the smaller factor first.
fn nearer(goal: &Goal, a: &Count, b: &Count) -> Ordering {
    let miss = |count: &Count| {
        count.fastest().map_or(f64::INFINITY, |fastest| {
            let prediction = &fastest.prediction;
            let time = goal.longest_step();
            let time = time.map_or(0.0, |longest| prediction.step_time / longest);
            let mfu = goal
                .at_least_mfu
                .map_or(0.0, |least| least / prediction.mfu);
            time.max(mfu)
        })
    };
    miss(a).total_cmp(&miss(b)).then(a.gpus.cmp(&b.gpus))
}

/// Numbers that are solved side by side while the fewest GPUs are sought. Fixed, so that the answer
/// does not depend on the machine.
const AT_ONCE: usize = 4;
/// Layouts on more GPUs than the fewest that are found for comparison.
const BEYOND: usize = 2;
/// Numbers above the fewest that are solved at most to find them.
const FARTHEST: usize = 8;

/// Solves the numbers of the goal in ascending order until one meets the demands, and some more for
/// comparison.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn solve_ascending(
    instance: &Instance,
    goal: &Goal,
    options: &PlanOptions,
) -> Result<Vec<Count>, PlanError> {
    let mut counts: Vec<Count> = Vec::new();
    for chunk in goal.counts.chunks(AT_ONCE) {
        counts.extend(solve_counts(instance, goal, chunk, options)?);
        if let Some(end) = enough(goal, &counts) {
            counts.truncate(end);
            break;
        }
    }
    Ok(counts)
}

/// How many of the numbers are needed to find the fewest GPUs, once they are enough.
#[must_use]
pub fn enough(goal: &Goal, counts: &[Count]) -> Option<usize> {
    let meets = |count: &Count| count.fastest().is_some_and(|best| goal.is_met(best));
    let first = counts.iter().position(meets)?;
    let beyond = counts.iter().enumerate().skip(first + 1);
    let mut solved = beyond.filter(|(_, count)| count.fastest().is_some());
    let last = solved.nth(BEYOND - 1).map(|(index, _)| index + 1);
    let farthest = first + 1 + FARTHEST;
    match last {
        Some(end) => Some(end.min(farthest)),
        None => (counts.len() >= farthest).then_some(farthest),
    }
}

/// Solves each number side by side, in their order.
fn solve_counts(
    instance: &Instance,
    goal: &Goal,
    counts: &[u32],
    options: &PlanOptions,
) -> Result<Vec<Count>, PlanError> {
    let solve = |&gpus: &u32| {
        let instance = on(instance, gpus);
        let least_step_time = least_step_time(&instance.job);
        let too_slow = goal
            .longest_step()
            .is_some_and(|longest| least_step_time > longest);
        let best = if too_slow {
            None
        } else {
            Some(best(&instance, options)?)
        };
        Ok(Count {
            gpus,
            least_step_time,
            best,
        })
    };
    counts.par_iter().map(solve).collect()
}

/// A bound on the step time of every layout; see the module. Nothing is known where measured runs have
/// taught that durations differ from the formulas.
#[must_use]
pub fn least_step_time(job: &Job) -> Seconds {
    if job.cluster.discrepancy.is_some() {
        return Seconds::ZERO;
    }
    let network = &job.transformer;
    // Experts may run faster than other products: attention's alone bound a mixture.
    let layer = match network.experts {
        None => network.layer_weights(),
        Some(_) => network.attention_weights_split(),
    };
    let weights = layer as f64 * f64::from(network.layers);
    let products = Flops::new(6.0 * weights * job.workload.tokens() as f64);
    products / (compute::gemm_throughput(job) * f64::from(job.cluster.gpus))
}

/// Why no number meets the demands, by the one that is nearest to it.
fn missed(instance: &Instance, goal: &Goal, options: &PlanOptions) -> Result<Outcome, PlanError> {
    let (plan, proof) = match plan(instance, options)? {
        Outcome::Optimal(plan) | Outcome::Feasible(plan) => (plan.choice, plan.proof),
        other => return Ok(other),
    };
    Ok(Outcome::Infeasible(missing(goal, plan, proof)))
}

/// The demands that the fastest layout misses.
#[must_use]
pub fn missing(goal: &Goal, plan: Evaluated, proof: Proof) -> Infeasibility {
    let violations = goal.missed(&plan);
    Infeasibility {
        clashing_rules: violations
            .iter()
            .map(|missed| missed.rule.clone())
            .collect(),
        nearest: Some(Nearest {
            candidate: FlaggedCombination::plain(plan.layout.combination),
            evaluated: Some(plan),
            violations,
        }),
        proof,
    }
}

/// Most numbers of GPUs that are tried unless named.
const MOST_COUNTS: usize = 128;

/// The numbers of GPUs between two that are worth trying on a cluster: below a node its divisors,
/// from there whole nodes. Of more than 128, only powers of two of nodes, and those that divide the
/// nodes of the last number. The last number is always among them.
#[must_use]
pub fn counts(cluster: &Cluster, from: u32, to: u32) -> Vec<u32> {
    let node = cluster.gpus_per_node;
    let within = (1..node).filter(|&gpus| node.is_multiple_of(gpus));
    let nodes = to / node;
    let all = (1..=nodes).map(|count| count * node);
    let mut counts: Vec<u32> = within
        .chain(all)
        .filter(|&gpus| (from..=to).contains(&gpus))
        .collect();
    if counts.len() > MOST_COUNTS {
        let round = |gpus: &u32| {
            let count = gpus / node;
            *gpus < node || count.is_power_of_two() || nodes.is_multiple_of(count)
        };
        counts.retain(round);
    }
    if counts.last() != Some(&to) {
        counts.push(to);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn counts_are_parts_of_a_node_then_nodes() {
        let cluster = &fixture::llama_13b().job.cluster;
        let check = |from: u32, to: u32, expected: &[u32]| {
            assert_eq!(counts(cluster, from, to), expected);
        };
        check(1, 32, &[1, 2, 4, 8, 16, 24, 32]);
        check(8, 20, &[8, 16, 20]);
        check(3, 3, &[3]);
        let many = counts(cluster, 1, 3072);
        assert_eq!(many.last(), Some(&3072));
        assert!(
            many.contains(&(8 * 24)) && many.contains(&(8 * 256)),
            "{many:?}"
        );
        assert!(many.len() < 32, "{many:?}");
    }

    #[test]
    fn matrix_products_alone_take_no_longer_than_a_step() {
        let instance = fixture::llama_13b();
        let options = PlanOptions::default();
        let found = best(&instance, &options).expect("an answer");
        let step = found.layout().expect("feasible").prediction.step_time;
        let least = least_step_time(&instance.job);
        assert!(least < step && step < least * 2.0, "{least:?} {step:?}");
    }
}
