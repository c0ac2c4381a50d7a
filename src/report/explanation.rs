//! Reasons, for people: what clashes and what repairs it, what binds, why not another choice.

use super::comparison::{sentence, tables};
use super::document::{
    EffectDocument, EvaluatedDocument, ExplanationDocument, RepairDocument, WhyNotDocument,
    WhyNotVerdict,
};
use super::infeasible::{infeasible_head, nearest_lines};
use super::layout_text::{difference, line};
use super::number::{duration, mfu, points, risk};
use super::solution::job_line;
use super::style::{Meaning, Style, shell_word, wrap};
use super::{Answer, joined};
use crate::explain::binding::NEGLIGIBLE;
use crate::explain::reasons::{Reason, percentage};

impl Answer for ExplanationDocument {
    /// Why an instance has no layout and what would help, what limits its best layout, or what speaks
    /// against a choice.
    fn text(&self, style: &Style) -> String {
        let blocks = match (&self.why_not, &self.best) {
            (Some(asked), _) => why_not_blocks(self, asked, style),
            (None, Some(best)) => binding_blocks(self, best, style),
            (None, None) => {
                let mut blocks = vec![infeasible_head(&self.instance, &self.job, style).join("\n")];
                blocks.extend(reasons_blocks(self, style));
                blocks
            }
        };
        joined(&blocks)
    }
}

/// What speaks against a choice.
fn why_not_blocks(
    answer: &ExplanationDocument,
    why: &WhyNotDocument,
    style: &Style,
) -> Vec<String> {
    let spelled = |pairs: &[String]| pairs.join(", ").replace('=', " = ");
    let asked = spelled(&why.asked);
    let headline = match (why.verdict, &answer.comparison) {
        (WhyNotVerdict::Chosen, _) => {
            style.wrapped(Meaning::Good, &format!("{asked}: the best layout has it"))
        }
        (WhyNotVerdict::Compared, Some(comparison)) => {
            style.wrapped(Meaning::Heading, &sentence(&asked, comparison))
        }
        (WhyNotVerdict::Compared | WhyNotVerdict::Impossible, _) => {
            style.wrapped(Meaning::Bad, &format!("{asked}: no layout has it"))
        }
        (WhyNotVerdict::NothingPossible, _) => {
            let headline = format!("{asked}: {} has no layout at all", answer.instance);
            style.wrapped(Meaning::Bad, &headline)
        }
    };
    let mut head = vec![headline, wrap(&job_line(&answer.job), 2)];
    let mut blocks = Vec::new();
    match (&answer.comparison, &answer.best) {
        (Some(comparison), _) => {
            let [best, with_it] = [&comparison.left, &comparison.right].map(|side| &side.layout);
            head.push(wrap(&format!("best:    {}", line(&best.layout())), 9));
            head.push(wrap(&format!("with it: {}", line(&with_it.layout())), 9));
            blocks.extend(tables(comparison, ["best", "with it"], style));
        }
        (None, Some(best)) => head.push(wrap(&result(best), 2)),
        (None, None) => blocks.extend(reasons_blocks(answer, style)),
    }
    if !why.unlisted.is_empty() {
        let note = format!(
            "The instance does not list {}; it is allowed for this question.",
            spelled(&why.unlisted)
        );
        head.push(wrap(&note, 2));
    }
    blocks.insert(0, head.join("\n"));
    blocks
}

/// Clashes, the nearest layout, repairs.
fn reasons_blocks(answer: &ExplanationDocument, style: &Style) -> Vec<String> {
    let mut blocks = Vec::new();
    if !answer.clashes.is_empty() {
        blocks.push(clashes(&answer.clashes));
    }
    blocks.extend(answer.nearest.as_ref().map(nearest_lines));
    blocks.push(repairs(answer, style));
    blocks
}

fn clashes(clashes: &[Vec<Reason>]) -> String {
    let mut lines = Vec::new();
    let mut list = |heading: &str, reasons: &[&Reason]| {
        if reasons.is_empty() {
            return;
        }
        lines.push(wrap(heading, 2));
        for reason in reasons {
            let text = format!("- {}: {}", reason.requirement, reason.message);
            lines.push(wrap(&text, 2));
        }
    };
    for (position, clash) in clashes.iter().enumerate() {
        let (each_enough, besides): (Vec<_>, Vec<_>) = clash.iter().partition(|it| it.enough);
        let enough = match each_enough.len() {
            1 => "This rules out every layout; without it there is one:".to_owned(),
            count => format!("These {count} clash; without any one of them there is a layout:"),
        };
        list(&enough, &each_enough);
        let text = match (each_enough.len(), besides.len(), position) {
            (0, 1, 0) => "This rules out every layout:".to_owned(),
            (0, count, 0) => format!("These {count} clash:"),
            (0, 1, _) => "So does this, apart from that:".to_owned(),
            (0, count, _) => format!("Apart from that, these {count} clash:"),
            (1, ..) => "It clashes with what would not help if dropped alone:".to_owned(),
            _ => "They clash with what would not help if dropped alone:".to_owned(),
        };
        list(&text, &besides);
    }
    lines.join("\n")
}

/// What finds more.
const LONGER: &str = "A longer `--time-limit` finds more.";

fn repairs(answer: &ExplanationDocument, style: &Style) -> String {
    let heading = match (answer.repairs.len(), answer.is_cut) {
        (0, true) => return format!("No repair was found in time. {LONGER}"),
        (0, false) => {
            return "No change of up to three of these gives the instance a layout.".to_owned();
        }
        (1, _) => "One repair was found; it was solved:",
        _ => "Any of these repairs it, the cheapest first; each was solved:",
    };
    let mut lines = vec![style.paint(Meaning::Heading, heading)];
    for (position, repair) in answer.repairs.iter().enumerate() {
        lines.extend(repair_lines(position + 1, repair, style));
    }
    if answer.is_cut {
        lines.push(wrap(
            &format!("Others were not looked for in time. {LONGER}"),
            2,
        ));
    }
    lines.join("\n")
}

/// Longest command that is printed, in characters.
const LONGEST_COMMAND: usize = 2000;

fn repair_lines(number: usize, repair: &RepairDocument, style: &Style) -> [String; 3] {
    let words: Vec<&str> = repair.changes.iter().map(|it| it.words.as_str()).collect();
    let assignments = repair.changes.iter();
    let assignments = assignments.map(|it| format!("--set {}", shell_word(&it.set)));
    let command = assignments.collect::<Vec<_>>().join(" ");
    let command = match command.len() {
        ..=LONGEST_COMMAND => style.paint(Meaning::Command, &command),
        length => format!("`--format json` has its `--set` of {length} characters"),
    };
    [
        wrap(&format!("{number}. {}", words.join(", ")), 3),
        format!("   {command}"),
        wrap(&format!("   {}", result(&repair.best)), 3),
    ]
}

/// Utilisation, time, risk and the layout.
fn result(evaluated: &EvaluatedDocument) -> String {
    let prediction = &evaluated.prediction;
    format!(
        "{} MFU, {} a step, risk {}: {}",
        mfu(prediction.mfu),
        duration(prediction.step_time_s),
        risk(prediction.oom_probability),
        line(&evaluated.layout.layout())
    )
}

/// The best layout, and what it gains without each limit.
fn binding_blocks(
    answer: &ExplanationDocument,
    best: &EvaluatedDocument,
    style: &Style,
) -> Vec<String> {
    let headline = format!(
        "{}: optimal, {} MFU, {} a step",
        answer.instance,
        mfu(best.prediction.mfu),
        duration(best.prediction.step_time_s)
    );
    let head = [
        style.wrapped(Meaning::Good, &headline),
        style.wrapped(Meaning::Heading, &line(&best.layout.layout())),
        wrap(&job_line(&answer.job), 2),
    ];
    let binds = |effect: &&EffectDocument| effect.mfu_gain > NEGLIGIBLE.value();
    let (binding, others): (Vec<_>, Vec<_>) = answer.effects.iter().partition(binds);
    let mut limits = Vec::new();
    if !binding.is_empty() {
        let heading = "What limits it: MFU points gained by dropping each limit alone:";
        limits.push(style.paint(Meaning::Heading, heading));
    } else if answer.untried > 0 {
        limits.push("Of the limits that were dropped none binds.".to_owned());
    } else {
        limits.push("No limit binds: without any one of them the layout is the same.".to_owned());
    }
    limits.extend(binding.iter().map(|effect| effect_line(best, effect)));
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|effect| effect.limit.as_str()).collect();
        let text = format!("Dropping one of these gains nothing: {}.", names.join(", "));
        limits.push(wrap(&text, 2));
    }
    if answer.untried > 0 {
        let untried = answer.untried;
        let text = format!("{untried} limits were not dropped in time. {LONGER}");
        limits.push(wrap(&text, 2));
    }
    vec![
        head.join("\n"),
        limits.join("\n"),
        wrap(&margins(answer, best), 2),
    ]
}

fn effect_line(best: &EvaluatedDocument, effect: &EffectDocument) -> String {
    let without = &effect.without;
    let gain = points(without.prediction.mfu - best.prediction.mfu);
    let now = if effect.now.is_empty() {
        String::new()
    } else {
        format!(" ({})", effect.now)
    };
    let text = format!(
        "{gain:>7} {}{now}: then {} with {}",
        effect.limit,
        mfu(without.prediction.mfu),
        difference(&best.layout.layout(), &without.layout.layout())
    );
    wrap(&text, 8)
}

/// Most groups of stages whose memory is listed.
const MOST_GROUPS: usize = 6;

/// What is left of the memory of each stage.
fn margins(answer: &ExplanationDocument, best: &EvaluatedDocument) -> String {
    let admissible = answer.admissible_memory_gib.unwrap_or_default();
    let stages = best.prediction.memory.stages.iter().enumerate();
    let left: Vec<(usize, f64, String)> = stages
        .map(|(stage, memory)| (stage, admissible - memory.peak_gib))
        .map(|(stage, left)| (stage, left, format!("{left:.1}")))
        .collect();
    let groups: Vec<_> = left.chunk_by(|one, other| one.2 == other.2).collect();
    let shown = if groups.len() <= MOST_GROUPS {
        let all = groups.iter().map(|group| {
            let (first, last) = (&group[0], &group[group.len() - 1]);
            if first.0 == last.0 {
                format!("{} on stage {}", first.2, first.0)
            } else {
                format!("{} on stages {}-{}", first.2, first.0, last.0)
            }
        });
        all.collect::<Vec<_>>().join(", ")
    } else {
        let by_size =
            |one: &&(usize, f64, String), other: &&(usize, f64, String)| one.1.total_cmp(&other.1);
        let ends = left.iter().min_by(by_size).zip(left.iter().max_by(by_size));
        ends.map_or_else(String::new, |(least, most)| {
            format!(
                "from {} on stage {} to {} on stage {}",
                least.2, least.0, most.2, most.0
            )
        })
    };
    format!(
        "GiB left of the {} GiB per GPU that an accepted risk of {} % admits: {shown}.",
        format_args!("{admissible:.1}"),
        percentage(answer.max_oom_risk)
    )
}
