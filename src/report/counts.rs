//! The answer over several numbers of GPUs, for people.

use super::document::{CountDocument, CountStatus, ObjectiveDocument, SolutionDocument};
use super::layout_text::degrees;
use super::number::{amount, duration, grouped, mfu, run_time};
use super::style::{Meaning, Style, paragraph, wrap};
use super::table::Table;
use crate::planner::objective::Objective;

/// What was asked, and the numbers of GPUs around the chosen one; nothing where only the fastest
/// layout was.
pub(super) fn blocks(answer: &SolutionDocument, style: &Style) -> Vec<String> {
    let Some(objective) = &answer.objective else {
        return Vec::new();
    };
    let gpus = answer.job.gpus;
    let head = std::iter::once(headline(objective, gpus)).chain(demands(objective));
    let mut blocks = vec![style.paint(Meaning::Heading, &paragraph(head))];
    if objective.name.is_over_counts() {
        let shown = around(objective, gpus);
        blocks.push(neighbours(objective, &shown, style));
        blocks.push(wrap(&tried(objective, &shown, answer.job.gpus_per_node), 2));
    }
    blocks
}

fn headline(objective: &ObjectiveDocument, gpus: u32) -> String {
    let name = objective.name.as_str();
    let gpus = grouped(u64::from(gpus));
    if objective.gpus.is_none() {
        return format!(
            "Objective {name}: no layout meets the demands; the nearest is on {gpus} GPUs."
        );
    }
    match objective.name {
        Objective::Mfu | Objective::StepTime => format!(
            "Objective {name}: on {gpus} GPUs the highest MFU is the least step time, so one layout \
             is best in both."
        ),
        Objective::GpuHours => format!("Objective {name}: {gpus} GPUs take the least GPU time."),
        Objective::FewestGpus => format!("Objective {name}: {gpus} GPUs suffice."),
    }
}

/// What a layout has to reach, and how long the run is.
fn demands(objective: &ObjectiveDocument) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(longest) = objective.longest_step_s {
        parts.push(format!("a step of at most {}", duration(longest)));
    }
    if let (Some(deadline), Some(_)) = (objective.deadline_s, objective.steps) {
        parts.push(format!("the run within {}", run_time(deadline)));
    }
    if let Some(least) = objective.at_least_mfu {
        parts.push(format!("at least {} MFU", mfu(least)));
    }
    let demands = (!parts.is_empty()).then(|| format!("Demands: {}.", parts.join(", ")));
    let steps = objective.steps.map(grouped);
    let takes = objective.run_days.zip(objective.run_gpu_hours);
    let takes = takes.map_or_else(String::new, |(days, hours)| {
        let (time, hours) = (run_time(days * 86_400.0), amount(hours));
        format!(" and takes {time}, {hours} GPU-hours")
    });
    let run = steps.map(|steps| format!("The run has {steps} steps{takes}."));
    let all: Vec<String> = demands.into_iter().chain(run).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Layouts on either side of the chosen number of GPUs that are shown.
const AROUND: usize = 3;

/// The chosen number, those next to it, and the next ones that have a layout.
fn around(objective: &ObjectiveDocument, gpus: u32) -> Vec<&CountDocument> {
    let counts = &objective.counts;
    let at = counts.iter().position(|count| count.gpus == gpus);
    let at = at.unwrap_or(0);
    let solved = |index: &usize| counts[*index].layout.is_some();
    let below = (0..at).rev().filter(solved).take(AROUND).last();
    let above = (at + 1..counts.len()).filter(solved).take(AROUND).last();
    let next = at.saturating_sub(1)..=at + 1;
    let range = below.unwrap_or(at)..=above.unwrap_or(at);
    (0..counts.len())
        .filter(|index| next.contains(index) || range.contains(index) && solved(index))
        .map(|index| &counts[index])
        .collect()
}

fn neighbours(objective: &ObjectiveDocument, shown: &[&CountDocument], style: &Style) -> String {
    let (time, cost) = match objective.steps {
        Some(_) => ("run", "GPU hours"),
        None => ("step", "GPU-s a step"),
    };
    let header = ["GPUs", "fastest layout", "MFU", time, cost, ""];
    let mut table = Table::new(header).right(0..1).right(2..5).fit(1);
    let time = |step: f64| match objective.steps {
        Some(steps) => run_time(step * steps as f64),
        None => duration(step),
    };
    let dash = || "-".to_owned();
    for count in shown {
        let bound = count
            .least_step_time_s
            .map(|step| format!("> {}", time(step)));
        let layout = count.layout.as_ref();
        table.push([
            grouped(u64::from(count.gpus)),
            layout.map_or_else(dash, |layout| degrees(&layout.combination)),
            count.mfu.map_or_else(dash, mfu),
            count.step_time_s.map(time).or(bound).unwrap_or_else(dash),
            count
                .gpu_hours
                .or(count.gpu_time_a_step_s)
                .map_or_else(dash, amount),
            verdict(objective, count).to_owned(),
        ]);
    }
    table.text(style)
}

fn verdict(objective: &ObjectiveDocument, count: &CountDocument) -> &'static str {
    match count.status {
        CountStatus::TooSlow => "too slow",
        CountStatus::Infeasible => "infeasible",
        CountStatus::Unknown => "not settled",
        _ if objective.gpus == Some(count.gpus) => "chosen",
        _ if !count.meets_demands => "demand missed",
        _ => "",
    }
}

/// How the numbers of GPUs were settled.
fn tried(objective: &ObjectiveDocument, shown: &[&CountDocument], node: u32) -> String {
    let count = |wanted: &dyn Fn(&CountDocument) -> bool| {
        objective.counts.iter().filter(|it| wanted(it)).count()
    };
    let solved = count(&|it| it.layout.is_some());
    let infeasible = count(&|it| it.status == CountStatus::Infeasible);
    let mut parts = vec![
        format!("{solved} solved"),
        format!("{infeasible} infeasible"),
    ];
    let mut add = |count: usize, what: &str| {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    };
    let open = [CountStatus::Feasible, CountStatus::Unknown];
    add(
        count(&|it| it.status == CountStatus::TooSlow),
        "too slow by a bound",
    );
    add(
        count(&|it| open.contains(&it.status)),
        "not settled within the time limit",
    );
    let rest = objective.counts_tried as usize - objective.counts.len();
    add(rest, "larger not needed");
    let hidden = solved - shown.iter().filter(|it| it.layout.is_some()).count();
    add(hidden, "of the solved only in `--format json`");
    let range = objective.counts.first().map_or_else(String::new, |first| {
        let last = objective.asked.gpus.last().unwrap_or(&first.gpus);
        let [first, last] = [first.gpus, *last].map(|gpus| grouped(gpus.into()));
        format!("from {first} to {last}")
    });
    let pairs = objective.asked.gpus.windows(2);
    let narrow = if pairs.into_iter().any(|pair| pair[1] - pair[0] > node) {
        " Only round numbers of nodes were tried; a narrower range of `--gpus-from` and `--gpus-to` \
         takes every node."
    } else {
        ""
    };
    format!(
        "Of {} numbers of GPUs {range}: {}.{narrow}",
        objective.counts_tried,
        parts.join(", ")
    )
}
