//! Reasons, for people: what clashes and what repairs it, what binds, why not another choice.

use super::comparison::{Names, sentence, tables};
use super::infeasible::nearest_lines;
use super::layout_text::{difference, line};
use super::number::{duration, grouped, mfu_distance, risk};
use super::style::{Meaning, Style, shell_word, wrap};
use super::table::job_line;
use crate::axis::Assignment;
use crate::change::{Change, words as row_words};
use crate::explain::Explanation;
use crate::explain::binding::{Binding, Effect};
use crate::explain::reasons::{Reason, Reasons, percentage};
use crate::explain::repairs::Repair;
use crate::explain::why_not::{Verdict, WhyNot};
use crate::instance::Instance;
use crate::plan::Evaluated;
use crate::quantity::BytesPerSecond;

/// Why an instance has no layout and what would help, or what limits its best layout.
#[must_use]
pub fn explanation(instance: &Instance, explanation: &Explanation, style: &Style) -> String {
    let blocks = match explanation {
        Explanation::Feasible(binding) => binding_blocks(instance, binding, style),
        Explanation::Infeasible(reasons) => {
            let headline = format!(
                "{}: infeasible: no layout satisfies every rule",
                instance.name
            );
            let head = [
                style.paint(Meaning::Bad, &wrap(&headline, 2)),
                job_line(instance),
            ];
            let mut blocks = vec![head.join("\n")];
            blocks.extend(reasons_blocks(reasons, style));
            blocks
        }
    };
    text(&blocks)
}

/// What speaks against a choice.
#[must_use]
pub fn why_not(instance: &Instance, answer: &WhyNot, style: &Style) -> String {
    let asked = &answer.asked;
    let mut head = Vec::new();
    let mut blocks = Vec::new();
    match &answer.verdict {
        Verdict::Chosen(best) => {
            let headline = format!("{asked}: the best layout has it");
            head.push(style.paint(Meaning::Good, &wrap(&headline, 2)));
            head.push(job_line(instance));
            head.push(wrap(&result(best), 2));
        }
        Verdict::Compared(comparison) => {
            let headline = sentence(&asked.to_string(), comparison);
            head.push(style.paint(Meaning::Heading, &wrap(&headline, 2)));
            head.push(job_line(instance));
            let layout = |evaluated: &Evaluated| line(&evaluated.layout);
            let best = layout(&comparison.left.evaluated);
            let with_it = layout(&comparison.right.evaluated);
            head.push(wrap(&format!("best:    {best}"), 9));
            head.push(wrap(&format!("with it: {with_it}"), 9));
            let names = Names {
                left: "best",
                right: "with it",
            };
            blocks.extend(tables(comparison, names, style));
        }
        Verdict::Impossible(reasons) => {
            let headline = format!("{asked}: no layout has it");
            head.push(style.paint(Meaning::Bad, &wrap(&headline, 2)));
            head.push(job_line(instance));
            blocks.extend(reasons_blocks(reasons, style));
        }
        Verdict::NothingPossible(reasons) => {
            let headline = format!("{asked}: {} has no layout at all", instance.name);
            head.push(style.paint(Meaning::Bad, &wrap(&headline, 2)));
            head.push(job_line(instance));
            blocks.extend(reasons_blocks(reasons, style));
        }
    }
    if answer.unlisted != Assignment::default() {
        let note = format!(
            "The instance does not list {}; it is allowed for this question.",
            answer.unlisted
        );
        head.push(wrap(&note, 2));
    }
    blocks.insert(0, head.join("\n"));
    text(&blocks)
}

fn text(blocks: &[String]) -> String {
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

/// Clashes, the nearest layout, repairs.
fn reasons_blocks(reasons: &Reasons, style: &Style) -> Vec<String> {
    let mut blocks = vec![clashes(reasons)];
    if let Some(nearest) = &reasons.nearest {
        blocks.push(nearest_lines(nearest));
    }
    blocks.push(repairs(reasons, style));
    blocks
}

fn clashes(reasons: &Reasons) -> String {
    let mut lines = Vec::new();
    let mut list = |heading: String, reasons: &[Reason]| {
        if reasons.is_empty() {
            return;
        }
        lines.push(wrap(&heading, 2));
        for reason in reasons {
            let text = format!("- {}: {}", reason.name, reason.message);
            lines.push(wrap(&text, 2));
        }
    };
    for (position, clash) in reasons.clashes.iter().enumerate() {
        let enough = match clash.each_enough.len() {
            1 => "This rules out every layout; without it there is one:".to_owned(),
            count => format!("These {count} clash; without any one of them there is a layout:"),
        };
        list(enough, &clash.each_enough);
        let besides = match (clash.each_enough.len(), clash.besides.len(), position) {
            (0, 1, 0) => "This rules out every layout:".to_owned(),
            (0, count, 0) => format!("These {count} clash:"),
            (0, 1, _) => "So does this, apart from that:".to_owned(),
            (0, count, _) => format!("Apart from that, these {count} clash:"),
            (1, ..) => "It clashes with what would not help if dropped alone:".to_owned(),
            _ => "They clash with what would not help if dropped alone:".to_owned(),
        };
        list(besides, &clash.besides);
    }
    lines.join("\n")
}

/// What finds more.
const LONGER: &str = "A longer `--time-limit` finds more.";

fn repairs(reasons: &Reasons, style: &Style) -> String {
    if reasons.repairs.is_empty() && reasons.repairs_cut {
        return format!("No repair was found in time. {LONGER}");
    }
    if reasons.repairs.is_empty() {
        return "No change of up to three of these gives the instance a layout.".to_owned();
    }
    let heading = if reasons.repairs.len() == 1 {
        "One repair was found; it was solved:"
    } else {
        "Any of these repairs it, the cheapest first; each was solved:"
    };
    let mut lines = vec![style.paint(Meaning::Heading, heading)];
    for (position, repair) in reasons.repairs.iter().enumerate() {
        lines.extend(repair_lines(position + 1, repair, style));
    }
    if reasons.repairs_cut {
        lines.push(wrap(
            &format!("Others were not looked for in time. {LONGER}"),
            2,
        ));
    }
    lines.join("\n")
}

/// Longest command that is printed, in characters.
const LONGEST_COMMAND: usize = 2000;

fn repair_lines(number: usize, repair: &Repair, style: &Style) -> [String; 3] {
    let words: Vec<String> = repair.changes.iter().map(words).collect();
    let assignments = repair
        .assignments()
        .map(|assignment| format!("--set {}", shell_word(&assignment)));
    let command = assignments.collect::<Vec<_>>().join(" ");
    let command = match command.len() {
        ..=LONGEST_COMMAND => style.paint(Meaning::Command, &command),
        length => format!("`--format json` has its `--set` of {length} characters"),
    };
    [
        wrap(&format!("{number}. {}", words.join(", ")), 3),
        format!("   {command}"),
        wrap(&format!("   {}", result(&repair.evaluated)), 3),
    ]
}

/// Utilisation, time, risk and the layout.
fn result(evaluated: &Evaluated) -> String {
    let prediction = &evaluated.prediction;
    format!(
        "{} MFU, {} a step, risk {}: {}",
        prediction.mfu,
        duration(prediction.step_time),
        risk(prediction.oom_probability),
        line(&evaluated.layout)
    )
}

/// A change with its amount.
pub(crate) fn words(change: &Change) -> String {
    match change {
        Change::Values { axis, from, to } => {
            format!(
                "{axis} {} instead of {}",
                axis.any_of(to),
                axis.any_of(from)
            )
        }
        Change::Permit { permitted, .. } => {
            let all: Vec<String> = permitted.iter().map(ToString::to_string).collect();
            format!("permit {}", all.join(" and "))
        }
        Change::Rows { changed, .. } => row_words(changed),
        Change::OomRisk { from, to } => format!(
            "accept a risk of {} % instead of {} %",
            percentage(*to),
            percentage(*from)
        ),
        Change::Framework(change) => change.words.to_owned(),
        Change::InterNodeBandwidth { from, to } => bandwidth("between", *from, *to),
        Change::IntraNodeBandwidth { from, to } => bandwidth("within", *from, *to),
        Change::GlobalBatch { from, to } => {
            let (from, to) = (grouped(*from), grouped(*to));
            format!("a global batch of {to} instead of {from}")
        }
        Change::NodeSize { from, to } => format!("nodes of {to} GPUs instead of {from}"),
        Change::SequenceLength { from, to } => {
            let (from, to) = (grouped(*from), grouped(*to));
            format!("sequences of {to} tokens instead of {from}")
        }
        Change::SmallerOptimizer => "optimizer states in bf16".to_owned(),
        Change::Gpus { from, to } => {
            let more = if to > from { "more" } else { "fewer" };
            let [difference, from, to] =
                [from.abs_diff(*to), *from, *to].map(|gpus| grouped(u64::from(gpus)));
            format!("{difference} {more} GPUs ({to} instead of {from})")
        }
        Change::Memory { from, to } => {
            let gigabytes = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
            format!(
                "{} more memory a GPU ({} instead of {})",
                gigabytes((*to - *from).value()),
                gigabytes(to.value()),
                gigabytes(from.value())
            )
        }
    }
}

fn bandwidth(place: &str, from: BytesPerSecond, to: BytesPerSecond) -> String {
    let [from, to] = [from, to].map(|bandwidth| bandwidth.value() / 1e9);
    format!("{to:.0} GB/s {place} nodes instead of {from:.0}")
}

/// The best layout, and what it gains without each limit.
fn binding_blocks(instance: &Instance, binding: &Binding, style: &Style) -> Vec<String> {
    let best = &binding.plan.choice;
    let headline = format!(
        "{}: optimal, {} MFU, {} a step",
        instance.name,
        best.prediction.mfu,
        duration(best.prediction.step_time)
    );
    let head = [
        style.paint(Meaning::Good, &wrap(&headline, 2)),
        style.paint(Meaning::Heading, &wrap(&line(&best.layout), 2)),
        job_line(instance),
    ];
    let (binding_effects, others): (Vec<&Effect>, Vec<&Effect>) =
        binding.effects.iter().partition(|effect| effect.binds());
    let mut limits = Vec::new();
    if binding_effects.is_empty() && binding.untried > 0 {
        limits.push("Of the limits that were dropped none binds.".to_owned());
    } else if binding_effects.is_empty() {
        limits.push("No limit binds: without any one of them the layout is the same.".to_owned());
    } else {
        let heading = "What limits it: MFU points gained by dropping each limit alone:";
        limits.push(style.paint(Meaning::Heading, heading));
        limits.extend(
            binding_effects
                .iter()
                .map(|effect| effect_line(best, effect)),
        );
    }
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|effect| effect.name.clone()).collect();
        let text = format!("Dropping one of these gains nothing: {}.", names.join(", "));
        limits.push(wrap(&text, 2));
    }
    if binding.untried > 0 {
        let text = format!(
            "{} limits were not dropped in time. {LONGER}",
            binding.untried
        );
        limits.push(wrap(&text, 2));
    }
    vec![
        head.join("\n"),
        limits.join("\n"),
        margins(instance, binding),
    ]
}

fn effect_line(best: &Evaluated, effect: &Effect) -> String {
    let gain = mfu_distance(best.prediction.mfu, effect.without.prediction.mfu);
    let now = if effect.now.is_empty() {
        String::new()
    } else {
        format!(" ({})", effect.now)
    };
    let text = format!(
        "{gain:>7} {}{now}: then {} with {}",
        effect.name,
        effect.without.prediction.mfu,
        difference(&best.layout, &effect.without.layout)
    );
    wrap(&text, 8)
}

/// Most groups of stages whose memory is listed.
const MOST_GROUPS: usize = 6;

/// What is left of the memory of each stage.
fn margins(instance: &Instance, binding: &Binding) -> String {
    let stages = &binding.plan.choice.prediction.memory.stages;
    let left: Vec<f64> = stages
        .iter()
        .map(|stage| (binding.admissible - stage.peak()).gib())
        .collect();
    let mut groups: Vec<(usize, usize, String)> = Vec::new();
    for (stage, left) in left.iter().enumerate() {
        let shown = format!("{left:.1}");
        match groups.last_mut() {
            Some((_, last, of_group)) if *of_group == shown => *last = stage,
            _ => groups.push((stage, stage, shown)),
        }
    }
    let name = |first: usize, last: usize| {
        if first == last {
            format!("stage {first}")
        } else {
            format!("stages {first}-{last}")
        }
    };
    let shown = if groups.len() <= MOST_GROUPS {
        let all = groups
            .iter()
            .map(|(first, last, left)| format!("{left} on {}", name(*first, *last)));
        all.collect::<Vec<_>>().join(", ")
    } else {
        let by_size = |one: &&usize, other: &&usize| left[**one].total_cmp(&left[**other]);
        let all: Vec<usize> = (0..left.len()).collect();
        let ends = all.iter().min_by(by_size).zip(all.iter().max_by(by_size));
        ends.map_or_else(String::new, |(least, most)| {
            format!(
                "from {:.1} on stage {least} to {:.1} on stage {most}",
                left[*least], left[*most]
            )
        })
    };
    wrap(
        &format!(
            "GiB left of the {} that an accepted risk of {} % leaves of each GPU: {shown}.",
            binding.admissible,
            percentage(instance.max_oom_risk)
        ),
        2,
    )
}
