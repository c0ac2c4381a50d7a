//! Two layouts side by side, for people: what differs first, the largest differences on top.

use tabled::builder::Builder;
use tabled::settings::Alignment;
use tabled::settings::object::Columns;

use super::layout_text::{checkpointing, line, run_lengths};
use super::number::{duration, gib, grouped, mfu_distance, percent, risk};
use super::style::{Meaning, Style, WIDTH, bare, render, wrap, wrap_within};
use super::table::with_heading;
use crate::axis::{Axis, FlaggedCombination};
use crate::cost_model::components::TimeComponent;
use crate::explain::comparison::{Comparison, Side, Term, fullest};
use crate::layout::{Checkpointing, Layout};
use crate::plan::Violation;
use crate::quantity::{Bytes, Mfu, Seconds};

/// Names of the two sides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) left: &'a str,
    pub(crate) right: &'a str,
}

/// Where two layouts differ: setting, choices, time and memory by component, totals.
#[must_use]
pub fn comparison(comparison: &Comparison, style: &Style) -> String {
    let Comparison { left, right, .. } = comparison;
    let names = Names {
        left: "A",
        right: "B",
    };
    let layout =
        |name: &str, side: &Side| wrap(&format!("{name}: {}", line(&side.evaluated.layout)), 3);
    let head = [
        style.paint(
            Meaning::Heading,
            &wrap(&sentence("B instead of A", comparison), 2),
        ),
        layout(names.left, left),
        layout(names.right, right),
    ];
    let mut blocks = vec![head.join("\n")];
    blocks.extend(broken(names.left, left, style));
    blocks.extend(broken(names.right, right, style));
    blocks.extend(settings(comparison, names, style));
    blocks.extend(tables(comparison, names, style));
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

/// The rules that a side breaks.
fn broken(name: &str, side: &Side, style: &Style) -> Option<String> {
    if side.violations.is_empty() {
        return None;
    }
    let title = format!("{name} is no legal layout of this job:");
    let mut lines = vec![style.paint(Meaning::Warning, &title)];
    lines.extend(
        side.violations
            .iter()
            .map(|Violation { rule, message }| wrap(&format!("- {rule}: {message}"), 2)),
    );
    Some(lines.join("\n"))
}

/// The tables of a comparison: choices, time, memory, totals.
pub(crate) fn tables(comparison: &Comparison, names: Names, style: &Style) -> Vec<String> {
    let mut blocks = Vec::new();
    blocks.extend(choices(comparison, names, style));
    let components = [time(comparison, names), memory(comparison, names)];
    let differing = components.iter().flatten();
    blocks.extend(differing.map(|table| with_heading(style, table)));
    blocks.push(with_heading(style, &totals(comparison, names)));
    blocks.extend(alike(comparison));
    blocks
}

/// Most terms that a sentence names.
const MOST_TERMS: usize = 3;
/// Terms below this share of the difference are left to the table.
const SMALL_TERM: f64 = 0.1;

/// What `choice` costs or gains, and the terms that make most of it.
pub(crate) fn sentence(choice: &str, comparison: &Comparison) -> String {
    let (one, other) = (
        &comparison.left.evaluated.prediction,
        &comparison.right.evaluated.prediction,
    );
    let change = other.step_time - one.step_time;
    let terms: Vec<String> = comparison
        .time
        .iter()
        .filter(|term| difference(term).value().abs() > SMALL_TERM * change.value().abs())
        .filter(|term| difference(term).value().abs() >= 5e-4)
        .take(MOST_TERMS)
        .map(|term| format!("{} {}", signed_duration(difference(term)), term.label))
        .collect();
    let points = (other.mfu.value() - one.mfu.value()) * 100.0;
    let verb = if points < 0.0 { "loses" } else { "gains" };
    let what = if points.abs() < 0.005 {
        format!("{choice} costs nothing: {} MFU either way", one.mfu)
    } else {
        format!(
            "{choice} {verb} {} MFU points ({} to {})",
            mfu_distance(one.mfu, other.mfu).trim_start_matches(['+', '-']),
            one.mfu,
            other.mfu
        )
    };
    if terms.is_empty() {
        return what;
    }
    format!("{what}: {}", terms.join(", "))
}

fn difference(term: &Term<Seconds>) -> Seconds {
    term.right - term.left
}

fn signed_duration(difference: Seconds) -> String {
    let sign = if difference < Seconds::ZERO { "-" } else { "+" };
    format!("{sign}{}", duration(Seconds::new(difference.value().abs())))
}

/// Where the jobs differ; nothing if they are alike.
fn settings(comparison: &Comparison, names: Names, style: &Style) -> Option<String> {
    let (one, other) = (&comparison.left.setting, &comparison.right.setting);
    let memory = |side: &Side| side.evaluated.prediction.memory.capacity.to_string();
    let rows = [
        ("instance", one.instance.clone(), other.instance.clone()),
        ("model", one.model.clone(), other.model.clone()),
        ("cluster", one.cluster.clone(), other.cluster.clone()),
        ("GPUs", grouped(one.gpus.into()), grouped(other.gpus.into())),
        (
            "memory of a GPU",
            memory(&comparison.left),
            memory(&comparison.right),
        ),
        ("framework", one.framework.clone(), other.framework.clone()),
        (
            "sequence length",
            grouped(one.sequence_length),
            grouped(other.sequence_length),
        ),
        (
            "global batch",
            grouped(one.global_batch),
            grouped(other.global_batch),
        ),
    ];
    two_columns("job", names, rows, style)
}

/// The choices that differ; nothing if the layouts are alike.
fn choices(comparison: &Comparison, names: Names, style: &Style) -> Option<String> {
    let (one, other) = (
        &comparison.left.evaluated.layout,
        &comparison.right.evaluated.layout,
    );
    let shown = |layout: &Layout, axis: Axis| {
        let candidate = FlaggedCombination {
            combination: layout.combination,
            checkpointing: Checkpointing::None,
        };
        axis.show(candidate.code(axis))
    };
    let axes = Axis::ALL
        .into_iter()
        .filter(|&axis| axis != Axis::Checkpointing);
    let mut rows: Vec<(&str, String, String)> = axes
        .map(|axis| (axis.as_str(), shown(one, axis), shown(other, axis)))
        .collect();
    let micro_batches = |side: &Side| {
        let batch = side.setting.global_batch;
        grouped(side.evaluated.layout.combination.micro_batches(batch))
    };
    rows.push((
        "micro-batches",
        micro_batches(&comparison.left),
        micro_batches(&comparison.right),
    ));
    let layers = |layout: &Layout| run_lengths(layout.stages.iter().map(|stage| stage.layers));
    rows.push(("layers by stage", layers(one), layers(other)));
    rows.push(("checkpointing", checkpointing(one), checkpointing(other)));
    two_columns("layout", names, rows, style)
}

/// Rows whose two values differ.
fn two_columns<'a>(
    title: &str,
    names: Names,
    rows: impl IntoIterator<Item = (&'a str, String, String)>,
    style: &Style,
) -> Option<String> {
    const ROOM: usize = (WIDTH - 28) / 2;
    let differing: Vec<_> = rows.into_iter().filter(|row| row.1 != row.2).collect();
    if differing.is_empty() {
        return None;
    }
    let mut table = Builder::default();
    table.push_record([title, names.left, names.right]);
    for (key, one, other) in differing {
        table.push_record([
            key.replace("micro_batch", "micro-batch").replace('_', " "),
            wrap_within(&one, 0, ROOM),
            wrap_within(&other, 0, ROOM),
        ]);
    }
    Some(with_heading(style, &render(bare(table.build()))))
}

/// Components of the step time that differ, then the total; nothing if none differs.
fn time(comparison: &Comparison, names: Names) -> Option<String> {
    let (one, other) = (
        comparison.left.evaluated.prediction.step_time,
        comparison.right.evaluated.prediction.step_time,
    );
    let (unit, factor) = unit(comparison);
    let amount = |duration: Seconds| format!("{:.2}", duration.value() * factor);
    let has_points = comparison.time.iter().any(|term| term.mfu.is_some());
    let mut table = Builder::default();
    let mut header = vec![
        format!("step time, {unit}"),
        names.left.to_owned(),
        names.right.to_owned(),
        "difference".to_owned(),
    ];
    if has_points {
        header.push("MFU points".to_owned());
    }
    table.push_record(header);
    let mut row = |name: String, left: Seconds, right: Seconds, mfu: Option<Mfu>| {
        let mut record = vec![
            name,
            amount(left),
            amount(right),
            signed((right - left).value() * factor, 2),
        ];
        if has_points {
            record.push(mfu.map_or_else(String::new, points));
        }
        table.push_record(record);
    };
    let differing = comparison.time.iter().filter(|term| differs(term, factor));
    let mut is_empty = true;
    for term in differing {
        row(term.label.to_owned(), term.left, term.right, term.mfu);
        is_empty = false;
    }
    if is_empty {
        return None;
    }
    let gained =
        comparison.right.evaluated.prediction.mfu - comparison.left.evaluated.prediction.mfu;
    row("total".to_owned(), one, other, Some(gained));
    let mut table = bare(table.build());
    table.modify(Columns::new(1..), Alignment::right());
    Some(render(table))
}

/// Milliseconds for short steps, else seconds; with the factor from seconds.
fn unit(comparison: &Comparison) -> (&'static str, f64) {
    let step_time = |side: &Side| side.evaluated.prediction.step_time;
    if step_time(&comparison.left).max(step_time(&comparison.right)) < Seconds::new(1.0) {
        ("ms", 1e3)
    } else {
        ("s", 1.0)
    }
}

/// Whether a component differs as shown.
fn differs(term: &Term<Seconds>, factor: f64) -> bool {
    let shown = |duration: Seconds| format!("{:.2}", duration.value() * factor);
    shown(term.left) != shown(term.right)
}

fn points(mfu: Mfu) -> String {
    signed(mfu.value() * 100.0, 2)
}

/// A number with its sign, none if it is shown as 0.
fn signed(number: f64, decimals: usize) -> String {
    let shown = format!("{number:+.decimals$}");
    if shown.chars().all(|c| !c.is_ascii_digit() || c == '0') {
        return shown.trim_start_matches(['+', '-']).to_owned();
    }
    shown
}

/// Components of the memory of each side's fullest stage that differ, then the peak; nothing if
/// none differs.
fn memory(comparison: &Comparison, names: Names) -> Option<String> {
    let mut table = Builder::default();
    let title = "fullest stage, GiB";
    table.push_record([title, names.left, names.right, "difference"]);
    let mut row = |name: String, left: Bytes, right: Bytes| {
        let change = signed(right.gib() - left.gib(), 1);
        table.push_record([name, gib(left), gib(right), change]);
    };
    let shown = comparison.memory.iter();
    let mut is_empty = true;
    for term in shown.filter(|term| gib(term.left) != gib(term.right)) {
        row(term.label.to_owned(), term.left, term.right);
        is_empty = false;
    }
    if is_empty {
        return None;
    }
    let peak = |side: &Side| fullest(&side.evaluated).peak();
    row(
        "peak".to_owned(),
        peak(&comparison.left),
        peak(&comparison.right),
    );
    let mut table = bare(table.build());
    table.modify(Columns::new(1..), Alignment::right());
    Some(render(table))
}

fn totals(comparison: &Comparison, names: Names) -> String {
    let mut table = Builder::default();
    table.push_record(["in all", names.left, names.right]);
    let (one, other) = (
        &comparison.left.evaluated.prediction,
        &comparison.right.evaluated.prediction,
    );
    let rows = [
        ("MFU", one.mfu.to_string(), other.mfu.to_string()),
        (
            "step time",
            duration(one.step_time),
            duration(other.step_time),
        ),
        (
            "tokens/s/GPU",
            format!("{:.0}", one.tokens_per_second_per_gpu),
            format!("{:.0}", other.tokens_per_second_per_gpu),
        ),
        (
            "bubble",
            percent(one.time[TimeComponent::Bubble] / one.time.total()),
            percent(other.time[TimeComponent::Bubble] / other.time.total()),
        ),
        (
            "risk of running out of memory",
            risk(one.oom_probability),
            risk(other.oom_probability),
        ),
    ];
    for (name, left, right) in rows {
        table.push_record([name.to_owned(), left, right]);
    }
    let mut table = bare(table.build());
    table.modify(Columns::new(1..), Alignment::right());
    render(table)
}

/// The components that both sides have and that do not differ.
fn alike(comparison: &Comparison) -> Option<String> {
    let (_, factor) = unit(comparison);
    let same_time = comparison
        .time
        .iter()
        .filter(|term| term.left > Seconds::ZERO && !differs(term, factor));
    let names: Vec<&str> = same_time.map(|term| term.label).collect();
    if names.is_empty() {
        return None;
    }
    Some(wrap(&format!("Alike in time: {}.", names.join(", ")), 2))
}
