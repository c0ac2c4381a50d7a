//! The answer over several numbers of GPUs, for people.

use tabled::builder::Builder;
use tabled::settings::Alignment;
use tabled::settings::object::Columns;

use super::layout_text::degrees;
use super::number::{amount, duration, grouped, run_time};
use super::style::{Meaning, Style, bare, fit_column, render, wrap};
use super::table::{self, with_heading};
use crate::planner::Best;
use crate::planner::objective::{Answer, Count, Goal, Objective};
use crate::quantity::Seconds;

/// What was asked, the numbers of GPUs around the chosen one, and its whole answer.
#[must_use]
pub fn solution(goal: &Goal, answer: &Answer, style: &Style) -> String {
    let mut head = vec![wrap(&headline(goal, answer), 2)];
    head.extend(demands(goal).map(|text| wrap(&text, 2)));
    let mut blocks = vec![style.paint(Meaning::Heading, &head.join("\n"))];
    if goal.objective.is_over_counts() {
        blocks.push(with_heading(style, &neighbours(goal, answer)));
        blocks.push(wrap(&tried(goal, answer), 2));
    }
    blocks.push(table::solution(&answer.instance, &answer.outcome, style));
    blocks.join("\n\n")
}

fn headline(goal: &Goal, answer: &Answer) -> String {
    let name = goal.objective.as_str();
    let gpus = grouped(u64::from(answer.instance.job.cluster.gpus));
    if answer.outcome.plan().is_none() {
        return format!(
            "Objective {name}: no layout meets the demands; the nearest is on {gpus} GPUs."
        );
    }
    match goal.objective {
        Objective::Mfu | Objective::StepTime => format!(
            "Objective {name}: on {gpus} GPUs the highest MFU is the least step time, so one layout \
             is best in both."
        ),
        Objective::GpuHours => format!("Objective {name}: {gpus} GPUs take the least GPU time."),
        Objective::FewestGpus => format!("Objective {name}: {gpus} GPUs suffice."),
    }
}

/// What a layout has to reach, and how long the run is.
fn demands(goal: &Goal) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(longest) = goal.longest_step() {
        parts.push(format!("a step of at most {}", duration(longest)));
    }
    if let (Some(deadline), Some(_)) = (goal.deadline, goal.steps) {
        parts.push(format!("the run within {}", run_time(deadline)));
    }
    if let Some(least) = goal.at_least_mfu {
        parts.push(format!("at least {least} MFU"));
    }
    let demands = (!parts.is_empty()).then(|| format!("Demands: {}.", parts.join(", ")));
    let run = goal
        .steps
        .map(|steps| format!("The run has {} steps.", grouped(steps)));
    let all: Vec<String> = demands.into_iter().chain(run).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Layouts on either side of the chosen number of GPUs that are shown.
const AROUND: usize = 3;

/// The chosen number, those next to it, and the next ones that have a layout.
fn around(answer: &Answer) -> Vec<&Count> {
    let gpus = answer.instance.job.cluster.gpus;
    let at = answer.counts.iter().position(|count| count.gpus == gpus);
    let at = at.unwrap_or(0);
    let solved = |index: &usize| answer.counts[*index].fastest().is_some();
    let below = (0..at).rev().filter(solved).take(AROUND).last();
    let above = (at + 1..answer.counts.len())
        .filter(solved)
        .take(AROUND)
        .last();
    let next = at.saturating_sub(1)..=at + 1;
    let range = below.unwrap_or(at)..=above.unwrap_or(at);
    let shown = (0..answer.counts.len())
        .filter(|index| next.contains(index) || range.contains(index) && solved(index));
    shown.map(|index| &answer.counts[index]).collect()
}

fn neighbours(goal: &Goal, answer: &Answer) -> String {
    let (time, cost) = match goal.steps {
        Some(_) => ("run", "GPU hours"),
        None => ("step", "GPU-s a step"),
    };
    let mut rows = vec![["GPUs", "fastest layout", "MFU", time, cost, ""].map(str::to_owned)];
    let counts = around(answer).into_iter();
    rows.extend(counts.map(|count| row(goal, answer, count)));
    fit_column(&mut rows, 1);
    let mut table = bare(Builder::from_iter(rows).build());
    table.modify(Columns::new(2..5), Alignment::right());
    table.modify(Columns::one(0), Alignment::right());
    render(table)
}

fn row(goal: &Goal, answer: &Answer, count: &Count) -> [String; 6] {
    let verdict = verdict(goal, answer, count).to_owned();
    let gpus = grouped(u64::from(count.gpus));
    let none = || "-".to_owned();
    let time = |step: Seconds| match goal.steps {
        Some(steps) => run_time(step * steps as f64),
        None => duration(step),
    };
    let Some(fastest) = count.fastest() else {
        let bound = match &count.best {
            None => format!("> {}", time(count.least_step_time)),
            Some(_) => none(),
        };
        return [gpus, none(), none(), bound, none(), verdict];
    };
    let prediction = &fastest.prediction;
    let gpu_time = (prediction.step_time * f64::from(count.gpus)).value();
    [
        gpus,
        degrees(&fastest.layout.combination),
        prediction.mfu.to_string(),
        time(prediction.step_time),
        match goal.steps {
            Some(steps) => amount(gpu_time * steps as f64 / 3600.0),
            None => amount(gpu_time),
        },
        verdict,
    ]
}

fn verdict(goal: &Goal, answer: &Answer, count: &Count) -> &'static str {
    let chosen = answer.outcome.plan().is_some() && count.gpus == answer.instance.job.cluster.gpus;
    match &count.best {
        None => "too slow",
        Some(Best::Infeasible) => "infeasible",
        Some(Best::Unknown) => "not settled",
        Some(_) if chosen => "chosen",
        Some(best) => match best.layout() {
            Some(fastest) if !goal.is_met(fastest) => "demand missed",
            _ => "",
        },
    }
}

/// How the numbers of GPUs were settled.
fn tried(goal: &Goal, answer: &Answer) -> String {
    let count = |wanted: fn(&Count) -> bool| {
        let counts = answer.counts.iter();
        counts.filter(|count| wanted(count)).count()
    };
    let solved = count(|count| count.fastest().is_some());
    let infeasible = count(|count| count.best == Some(Best::Infeasible));
    let bounded = count(|count| count.best.is_none());
    let range = match (goal.counts.first(), goal.counts.last()) {
        (Some(first), Some(last)) => format!(
            "from {} to {}",
            grouped(u64::from(*first)),
            grouped(u64::from(*last))
        ),
        _ => String::new(),
    };
    let mut parts = vec![
        format!("{solved} solved"),
        format!("{infeasible} infeasible"),
    ];
    if bounded > 0 {
        parts.push(format!("{bounded} too slow by a bound"));
    }
    let open = answer
        .counts
        .iter()
        .filter(|count| !count.is_settled())
        .count();
    if open > 0 {
        parts.push(format!("{open} not settled within the time limit"));
    }
    let rest = goal.counts.len() - answer.counts.len();
    if rest > 0 {
        parts.push(format!("{rest} larger not needed"));
    }
    let shown = around(answer);
    let hidden = solved - shown.iter().filter(|it| it.fastest().is_some()).count();
    if hidden > 0 {
        parts.push(format!("{hidden} of the solved only in `--format json`"));
    }
    let node = answer.instance.job.cluster.gpus_per_node;
    let thinned = goal.counts.windows(2).any(|pair| pair[1] - pair[0] > node);
    let narrow = if thinned {
        " Only round numbers of nodes were tried; a narrower range of `--gpus-from` and `--gpus-to` \
         takes every node."
    } else {
        ""
    };
    format!(
        "Of {} numbers of GPUs {range}: {}.{narrow}",
        goal.counts.len(),
        parts.join(", ")
    )
}
