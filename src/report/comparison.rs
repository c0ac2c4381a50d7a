//! Two layouts side by side, for people: what differs first, the largest differences on top.

use super::components::label;
use super::document::{ComparisonBody, ComparisonDocument, LayoutDocument, SideDocument};
use super::layout_text::{axis_label, checkpointing, layers, line};
use super::number::{duration, gib, grouped, mfu, percent, points, risk, signed, unit_of_time};
use super::solution::broken_rules;
use super::style::{Meaning, Style, WIDTH, wrap, wrap_within};
use super::table::Table;
use super::{Answer, joined};
use crate::axis::{Axis, FlaggedCombination};

impl Answer for ComparisonDocument {
    /// Where two layouts differ: setting, choices, time and memory by component, totals.
    fn text(&self, style: &Style) -> String {
        let body = &self.body;
        let names = ["A", "B"];
        let sides = [&body.left, &body.right];
        let headline = if body.jobs_differ_in.is_empty() {
            sentence("B instead of A", body)
        } else {
            of_different_jobs(body)
        };
        let mut head = vec![style.wrapped(Meaning::Heading, &headline)];
        for (name, side) in names.iter().zip(sides) {
            let layout = line(&side.layout.layout());
            head.push(wrap(&format!("{name}: {layout}"), 3));
        }
        let mut blocks = vec![head.join("\n")];
        for (name, side) in names.iter().zip(sides) {
            if !side.violations.is_empty() {
                let title = format!("{name} is not a legal layout of this job:");
                let mut lines = vec![style.paint(Meaning::Warning, &title)];
                lines.extend(broken_rules(&side.violations));
                blocks.push(lines.join("\n"));
            }
        }
        blocks.extend(settings(sides, names, style));
        blocks.extend(tables(body, names, style));
        joined(&blocks)
    }
}

/// The tables of a comparison: choices, time, memory, totals.
pub(super) fn tables(body: &ComparisonBody, names: [&str; 2], style: &Style) -> Vec<String> {
    let tables = [choices(body, names, style), time(body, names, style)];
    let mut blocks: Vec<String> = tables.into_iter().flatten().collect();
    blocks.extend(memory(body, names, style));
    blocks.push(totals(body, names, style));
    blocks.extend(alike(body));
    blocks
}

/// Most terms that a sentence names.
const MOST_TERMS: usize = 3;
/// Terms below this share of the difference are left to the table.
const SMALL_TERM: f64 = 0.1;

/// What `choice` costs or gains, and the terms that make most of it.
pub(super) fn sentence(choice: &str, body: &ComparisonBody) -> String {
    let [one, other] = [&body.left, &body.right].map(|side| side.prediction.mfu);
    let small = (SMALL_TERM * body.step_time_difference_s.abs()).max(5e-4);
    let terms: Vec<String> = body
        .time
        .iter()
        .filter(|term| term.difference_s.abs() >= small)
        .take(MOST_TERMS)
        .map(|term| {
            let sign = if term.difference_s < 0.0 { "-" } else { "+" };
            let amount = duration(term.difference_s.abs());
            format!("{sign}{amount} {}", label(&term.component))
        })
        .collect();
    let what = match points(body.mfu_difference).trim_start_matches(['+', '-']) {
        "equal" => format!("{choice} costs nothing: {} MFU either way", mfu(one)),
        points => format!(
            "{choice} {} {points} MFU points ({} to {})",
            if other < one { "loses" } else { "gains" },
            mfu(one),
            mfu(other)
        ),
    };
    if terms.is_empty() {
        return what;
    }
    format!("{what}: {}", terms.join(", "))
}

/// What can be compared of two jobs: utilisation and tokens, not step times.
fn of_different_jobs(body: &ComparisonBody) -> String {
    let [one, other] = [&body.left, &body.right].map(|side| {
        let tokens = side.prediction.tokens_per_s_per_gpu.round() as u64;
        let (mfu, tokens) = (mfu(side.prediction.mfu), grouped(tokens));
        format!("{mfu} MFU and {tokens} tokens/s/GPU")
    });
    format!(
        "B has {other}, A {one}: the step times are of different jobs ({} differ)",
        body.jobs_differ_in.join(", ")
    )
}

/// Where the jobs differ; nothing if they are alike.
fn settings(sides: [&SideDocument; 2], names: [&str; 2], style: &Style) -> Option<String> {
    type Shown = fn(&SideDocument) -> String;
    let rows: [(&str, Shown); 8] = [
        ("instance", |side| side.instance.clone()),
        ("model", |side| side.job.model.clone()),
        ("cluster", |side| side.job.cluster.clone()),
        ("GPUs", |side| grouped(side.job.gpus.into())),
        ("memory per GPU", |side| {
            format!("{} GiB", gib(side.prediction.memory.capacity_gib))
        }),
        ("framework", |side| side.job.framework.clone()),
        ("sequence length", |side| grouped(side.job.sequence_length)),
        ("global batch", |side| grouped(side.job.global_batch)),
    ];
    let rows = rows.map(|(name, of)| (name.to_owned(), sides.map(of)));
    two_columns("job", names, rows, style)
}

/// The choices that differ; nothing if the layouts are alike.
fn choices(body: &ComparisonBody, names: [&str; 2], style: &Style) -> Option<String> {
    let sides = [&body.left.layout, &body.right.layout];
    let codes = sides.map(|side| FlaggedCombination::plain(side.combination));
    let axes = Axis::ALL
        .into_iter()
        .filter(|&axis| axis != Axis::Checkpointing);
    let shown = |axis: Axis| codes.map(|side| axis.show(side.code(axis)));
    let mut rows: Vec<(String, [String; 2])> =
        axes.map(|axis| (axis_label(axis), shown(axis))).collect();
    let batches = sides.map(|side| grouped(side.micro_batches));
    let layouts = sides.map(LayoutDocument::layout);
    let further = [
        ("micro-batches", batches),
        ("layers by stage", layouts.each_ref().map(layers)),
        ("checkpointing", layouts.each_ref().map(checkpointing)),
    ];
    rows.extend(further.map(|(name, values)| (name.to_owned(), values)));
    two_columns("layout", names, rows, style)
}

/// Rows whose two values differ.
fn two_columns(
    title: &str,
    [left, right]: [&str; 2],
    rows: impl IntoIterator<Item = (String, [String; 2])>,
    style: &Style,
) -> Option<String> {
    const WIDEST: usize = (WIDTH - 28) / 2;
    let mut table = Table::new([title, left, right]);
    for (key, [one, other]) in rows.into_iter().filter(|(_, [one, other])| one != other) {
        table.push([
            key,
            wrap_within(&one, 0, WIDEST),
            wrap_within(&other, 0, WIDEST),
        ]);
    }
    (!table.is_empty()).then(|| table.text(style))
}

fn unit(body: &ComparisonBody) -> (&'static str, f64) {
    let [one, other] = [&body.left, &body.right].map(|side| side.prediction.step_time_s);
    unit_of_time(one.max(other))
}

/// Components that differ, then their total; nothing if none differs. Each row has its name, both sides
/// and, where the header has a column for that, the points of utilisation.
fn terms(
    header: Vec<&str>,
    decimals: usize,
    rows: impl Iterator<Item = (String, [f64; 2], Option<f64>)>,
    total: (&str, [f64; 2], Option<f64>),
    style: &Style,
) -> Option<String> {
    let columns = header.len();
    let mut table = Table::new(header).right(1..);
    let shown = |amount: f64| format!("{amount:.decimals$}");
    let mut push = |name: String, [one, other]: [f64; 2], mfu: Option<f64>| {
        let points = mfu.map_or_else(String::new, |mfu| signed(mfu * 100.0, 2));
        let difference = signed(other - one, decimals);
        let row = [name, shown(one), shown(other), difference, points];
        table.push(row.into_iter().take(columns));
    };
    let mut rows = rows
        .filter(|(_, it, _)| shown(it[0]) != shown(it[1]))
        .peekable();
    rows.peek()?;
    for (name, both, mfu) in rows {
        push(name, both, mfu);
    }
    let (name, both, mfu) = total;
    push(name.to_owned(), both, mfu);
    Some(table.text(style))
}

/// Components of the step time that differ.
fn time(body: &ComparisonBody, [left, right]: [&str; 2], style: &Style) -> Option<String> {
    let (unit, factor) = unit(body);
    let title = format!("step time, {unit}");
    let mut header = vec![title.as_str(), left, right];
    if body.jobs_differ_in.is_empty() {
        header.push("difference");
    }
    let has_points = body.time.iter().any(|term| term.mfu.is_some());
    if has_points && body.jobs_differ_in.is_empty() {
        header.push("MFU points");
    }
    let rows = body.time.iter().map(|term| {
        let both = [term.left_s, term.right_s].map(|seconds| seconds * factor);
        (label(&term.component).to_owned(), both, term.mfu)
    });
    let sides = [&body.left, &body.right].map(|side| side.prediction.step_time_s * factor);
    terms(
        header,
        2,
        rows,
        ("total", sides, Some(body.mfu_difference)),
        style,
    )
}

/// Components of the memory of each side's fullest stage that differ.
fn memory(body: &ComparisonBody, [left, right]: [&str; 2], style: &Style) -> Option<String> {
    let header = vec!["fullest stage, GiB", left, right, "difference"];
    let rows = body.memory.iter().map(|term| {
        let name = label(&term.component).to_owned();
        (name, [term.left_gib, term.right_gib], None)
    });
    let sides = [&body.left, &body.right].map(|side| side.prediction.memory.peak_gib);
    terms(header, 1, rows, ("peak", sides, None), style)
}

fn totals(body: &ComparisonBody, [left, right]: [&str; 2], style: &Style) -> String {
    let mut table = Table::new(["in all", left, right]).right(1..);
    let sides = [&body.left, &body.right].map(|side| &side.prediction);
    let tokens = sides.map(|it| format!("{:.0}", it.tokens_per_s_per_gpu));
    for (name, [one, other]) in [
        ("MFU", sides.map(|it| mfu(it.mfu))),
        ("MFU, causal", sides.map(|it| mfu(it.mfu_causal))),
        (
            "TFLOP/s per GPU",
            sides.map(|it| grouped(it.tflops_per_gpu.round() as u64)),
        ),
        ("step time", sides.map(|it| duration(it.step_time_s))),
        ("tokens/s/GPU", tokens),
        ("bubble", sides.map(|it| percent(it.bubble()))),
        (
            "risk of running out of memory",
            sides.map(|it| risk(it.oom_probability)),
        ),
    ] {
        table.push([name.to_owned(), one, other]);
    }
    table.text(style)
}

/// The components that both sides have and that do not differ.
fn alike(body: &ComparisonBody) -> Option<String> {
    let (_, factor) = unit(body);
    let shown = |seconds: f64| format!("{:.2}", seconds * factor);
    let time = body.time.iter().filter(|_| body.jobs_differ_in.is_empty());
    let same = time.filter(|term| term.left_s > 0.0 && shown(term.left_s) == shown(term.right_s));
    let names: Vec<&str> = same.map(|term| label(&term.component)).collect();
    (!names.is_empty()).then(|| wrap(&format!("Alike in time: {}.", names.join(", ")), 2))
}
