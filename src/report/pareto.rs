//! Pareto fronts: as a table, as CSV, as a picture.

use tabled::builder::Builder;
use tabled::settings::Alignment;
use tabled::settings::object::Columns;

use super::layout_text::{brief, brief_difference, line, short};
use super::number::{amount, duration, gib, grouped};
use super::plot::{Axis, Join, Label, Plot};
use super::style::{Meaning, Style, bare, fit_column, render, wrap};
use super::table::{job_line, warnings, with_heading};
use crate::instance::Instance;
use crate::price::{Front, FrontKind, Point};
use crate::quantity::Bytes;

/// The front as a table, the smallest first.
#[must_use]
pub fn table(instance: &Instance, front: &Front, style: &Style) -> String {
    let mut head = vec![style.paint(Meaning::Good, &wrap(&headline(instance, front), 2))];
    head.push(job_line(instance));
    let mut blocks = vec![head.join("\n")];
    if !front.points.is_empty() {
        let own = own(instance, front);
        let shown = shown(front, own);
        blocks.push(with_heading(style, &rows(front, own, &shown)));
        blocks.push(wrap(&note(front, shown.len()), 2));
    }
    blocks.extend(warnings(instance, style));
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

fn headline(instance: &Instance, front: &Front) -> String {
    let name = &instance.name;
    if front.points.is_empty() && front.unproven > 0 {
        return format!("{name}: no layout was found before the time limit");
    }
    if front.points.is_empty() {
        return format!("{name}: infeasible at every size that was tried");
    }
    match front.kind {
        FrontKind::MemoryMfu => {
            format!("{name}: the highest MFU for each memory of a GPU")
        }
        FrontKind::GpusTime => format!("{name}: the least step time for each number of GPUs"),
    }
}

/// Rows of a table for people.
const MOST_ROWS: usize = 24;

/// Positions of the points that are shown: all, or those where the better figure has moved by enough
/// since the last one shown; always the first, the last and the job's own.
fn shown(front: &Front, own: Option<usize>) -> Vec<usize> {
    let worth = |point: &Point| match front.kind {
        FrontKind::MemoryMfu => point.evaluated.prediction.mfu.value(),
        FrontKind::GpusTime => -point.evaluated.prediction.step_time.value().ln(),
    };
    let count = front.points.len();
    let whole = worth(&front.points[count - 1]) - worth(&front.points[0]);
    let gap = if count > MOST_ROWS {
        whole / (MOST_ROWS - 2) as f64
    } else {
        0.0
    };
    let mut last = f64::NEG_INFINITY;
    let mut shown = Vec::new();
    for (index, point) in front.points.iter().enumerate() {
        let always = index == 0 || index + 1 == count || own == Some(index);
        if always || worth(point) - last >= gap {
            last = worth(point);
            shown.push(index);
        }
    }
    shown
}

fn rows(front: &Front, own: Option<usize>, shown: &[usize]) -> String {
    let first = match front.kind {
        FrontKind::MemoryMfu => "GiB",
        FrontKind::GpusTime => "GPUs",
    };
    let header = [
        first,
        "MFU",
        "step",
        "tokens/s",
        "layout, then what changes",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    let mut before: Option<&Point> = None;
    for &index in shown {
        let point = &front.points[index];
        let layout = &point.evaluated.layout;
        let size = match front.kind {
            FrontKind::MemoryMfu => gib(point.memory),
            FrontKind::GpusTime => grouped(u64::from(point.gpus)),
        };
        let prediction = &point.evaluated.prediction;
        rows.push([
            if own == Some(index) {
                format!("* {size}")
            } else {
                size
            },
            prediction.mfu.to_string(),
            duration(prediction.step_time),
            grouped(point.tokens_per_second().round() as u64),
            match before {
                None => brief(layout),
                Some(before) => brief_difference(&before.evaluated.layout, layout),
            },
        ]);
        before = Some(point);
    }
    fit_column(&mut rows, 4);
    let mut table = bare(Builder::from_iter(rows).build());
    table.modify(Columns::new(..4), Alignment::right());
    render(table)
}

/// Position of what the job has.
fn own(instance: &Instance, front: &Front) -> Option<usize> {
    let is_own = |point: &Point| match front.kind {
        FrontKind::MemoryMfu => point.memory <= own_memory(instance),
        FrontKind::GpusTime => point.gpus == instance.job.cluster.gpus,
    };
    front.points.iter().rposition(is_own)
}

fn own_memory(instance: &Instance) -> Bytes {
    instance.job.cluster.accelerator.usable_memory
}

fn note(front: &Front, shown: usize) -> String {
    let count = front.points.len();
    let rest = if shown < count {
        format!(" {shown} of {count} points are shown; `--format csv` prints all.")
    } else {
        String::new()
    };
    let text = match front.kind {
        FrontKind::MemoryMfu => {
            "Each row is the best layout with so much usable memory a GPU, at the accepted risk of \
             running out. A star marks what this job's memory admits. Sizes closer than 2 % are taken \
             together."
        }
        FrontKind::GpusTime => {
            "Each row is the fastest layout on so many GPUs; numbers that are no faster than a smaller \
             one are left out. A star marks this job."
        }
    };
    let unproven = match front.unproven {
        0 => String::new(),
        count => format!(" {count} of them were stopped by the time limit: there may be better."),
    };
    let solved = front.solved;
    format!("{text} {solved} instances were solved.{unproven}{rest}")
}

/// The front as CSV with a header, every point.
#[must_use]
pub fn csv(front: &Front) -> String {
    let header = "gpus,memory_gib,mfu,step_time_s,tokens_per_s,gpu_time_a_step_s,layout";
    let rows = front.points.iter().map(|point| {
        let prediction = &point.evaluated.prediction;
        let step = prediction.step_time.value();
        format!(
            "{},{:.4},{:.6},{:.6},{:.1},{:.3},\"{}\"",
            point.gpus,
            point.memory.gib(),
            prediction.mfu.value(),
            step,
            point.tokens_per_second(),
            step * f64::from(point.gpus),
            line(&point.evaluated.layout),
        )
    });
    let lines: Vec<String> = std::iter::once(header.to_owned()).chain(rows).collect();
    lines.join("\n") + "\n"
}

/// The front as an SVG picture.
#[must_use]
pub fn svg(instance: &Instance, front: &Front) -> String {
    let title = headline(instance, front);
    let points: Vec<(f64, f64)> = front
        .points
        .iter()
        .map(|point| place(front.kind, point))
        .collect();
    let values = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let mut xs = values(|point| point.0);
    let mut ys = values(|point| point.1);
    let (own, reference) = match front.kind {
        FrontKind::MemoryMfu => (own_memory(instance).gib(), None),
        FrontKind::GpusTime => (f64::from(instance.job.cluster.gpus), scaling(&points)),
    };
    xs.push(own);
    if let Some(([_, end], _)) = &reference {
        ys.push(end.1);
    }
    let (x, y) = axes(front.kind, &xs, &ys);
    let mark = match front.kind {
        FrontKind::MemoryMfu => format!("this job: {own:.1} GiB"),
        FrontKind::GpusTime => format!("this job: {} GPUs", grouped(own.round() as u64)),
    };
    Plot {
        title,
        subtitle: job_line(instance).replace("\n ", ""),
        x,
        y,
        labels: labels(front),
        points,
        join: match front.kind {
            FrontKind::MemoryMfu => Join::Steps,
            FrontKind::GpusTime => Join::Straight,
        },
        mark: Some((own, mark)),
        reference,
    }
    .svg()
}

fn place(kind: FrontKind, point: &Point) -> (f64, f64) {
    let prediction = &point.evaluated.prediction;
    match kind {
        FrontKind::MemoryMfu => (point.memory.gib(), prediction.mfu.value() * 100.0),
        FrontKind::GpusTime => (f64::from(point.gpus), prediction.step_time.value()),
    }
}

/// The line of equal GPU time through the first point.
fn scaling(points: &[(f64, f64)]) -> Option<([(f64, f64); 2], String)> {
    let (&first, &last) = (points.first()?, points.last()?);
    let end = (last.0, first.1 * first.0 / last.0);
    (last.0 > first.0).then(|| ([first, end], "same GPU time".to_owned()))
}

fn axes(kind: FrontKind, xs: &[f64], ys: &[f64]) -> (Axis, Axis) {
    let whole = |tick: f64| grouped(tick.round() as u64);
    match kind {
        FrontKind::MemoryMfu => (
            Axis::logarithmic(
                "usable memory of a GPU, GiB",
                xs,
                2.0,
                &[1.0, 1.5],
                short_number,
            ),
            Axis::linear("model FLOP utilisation, %", ys, short_number),
        ),
        FrontKind::GpusTime => (
            Axis::logarithmic("GPUs", xs, 2.0, &[1.0], whole),
            Axis::logarithmic("step time, s", ys, 10.0, &[1.0, 2.0, 5.0], short_number),
        ),
    }
}

fn short_number(number: f64) -> String {
    if number >= 999.5 {
        amount(number)
    } else {
        let text = format!("{number:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// A label where the combination changes: first and last, then those of the largest step.
fn labels(front: &Front) -> Vec<Label> {
    let cell = |index: usize| short(&front.points[index].evaluated.layout.combination);
    let count = front.points.len();
    let mut changes: Vec<usize> = (0..count)
        .filter(|&index| index == 0 || cell(index) != cell(index - 1))
        .collect();
    let rise = |index: usize| {
        let value = |index: usize| place(front.kind, &front.points[index]).1;
        if index == 0 {
            f64::INFINITY
        } else {
            (value(index).ln() - value(index - 1).ln()).abs()
        }
    };
    changes.sort_by(|&a, &b| rise(b).total_cmp(&rise(a)));
    changes
        .into_iter()
        .map(|point| Label {
            point,
            text: cell(point),
        })
        .collect()
}
