//! Pareto fronts: as a table, as CSV, as a picture.

use super::document::{ParetoDocument, PointDocument};
use super::layout_text::{besides, brief, line, short, varying};
use super::number::{amount, counted, duration, gib, grouped, mfu};
use super::plot::{Axis, Join, Label, Plot, Scale};
use super::solution::{job_line, warnings};
use super::style::{Meaning, Style, wrap};
use super::table::Table;
use super::{Answer, csv_of, joined};
use crate::layout::Layout;
use crate::price::FrontKind;

impl Answer for ParetoDocument {
    /// The front as a table, the smallest first.
    fn text(&self, style: &Style) -> String {
        let head = [
            style.wrapped(Meaning::Good, &headline(self)),
            wrap(&job_line(&self.job), 2),
        ];
        let mut blocks = vec![head.join("\n")];
        if !self.points.is_empty() {
            let shown = shown(self);
            blocks.push(rows(self, &shown).text(style));
            blocks.push(wrap(&note(self, shown.len()), 2));
        }
        blocks.extend(warnings(&self.warnings, style));
        joined(&blocks)
    }
}

fn headline(front: &ParetoDocument) -> String {
    let what = match (front.points.len(), front.unproven, front.front) {
        (0, 1.., _) => "no layout was found before the time limit",
        (0, 0, _) => "infeasible at every size that was tried",
        (.., FrontKind::MemoryMfu) => "the highest MFU for each amount of memory per GPU",
        (.., FrontKind::GpusTime) => "the least step time for each number of GPUs",
    };
    format!("{}: {what}", front.instance)
}

/// Rows of a table for people.
const MOST_ROWS: usize = 24;

/// Positions of the points that are shown: all, or those where the better figure has moved by enough
/// since the last one shown; always the first, the last and the job's own.
fn shown(front: &ParetoDocument) -> Vec<usize> {
    let worth = |point: &PointDocument| match front.front {
        FrontKind::MemoryMfu => point.mfu,
        FrontKind::GpusTime => -point.step_time_s.ln(),
    };
    let count = front.points.len();
    let whole = worth(&front.points[count - 1]) - worth(&front.points[0]);
    let gap = if count > MOST_ROWS {
        whole / (MOST_ROWS - 2) as f64
    } else {
        0.0
    };
    let own = own(front);
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

fn rows(front: &ParetoDocument, shown: &[usize]) -> Table {
    let size = match front.front {
        FrontKind::MemoryMfu => "GiB",
        FrontKind::GpusTime => "GPUs",
    };
    let mut table = Table::new([size, "MFU", "step", "tokens/s", "layout"])
        .right(..4)
        .fit(4);
    let own = own(front);
    let varying = varying(&layouts(front));
    for &index in shown {
        let point = &front.points[index];
        let size = match front.front {
            FrontKind::MemoryMfu => gib(point.memory_gib),
            FrontKind::GpusTime => grouped(u64::from(point.gpus)),
        };
        let star = if own == Some(index) { "* " } else { "" };
        table.push([
            format!("{star}{size}"),
            mfu(point.mfu),
            duration(point.step_time_s),
            grouped(point.tokens_per_s.round() as u64),
            brief(&point.layout.layout(), varying),
        ]);
    }
    table
}

fn layouts(front: &ParetoDocument) -> Vec<Layout> {
    front
        .points
        .iter()
        .map(|point| point.layout.layout())
        .collect()
}

/// What the layouts of all points have in common beyond degrees.
fn in_common(front: &ParetoDocument) -> String {
    let layouts = layouts(front);
    let first = layouts.first().map(|first| &first.combination);
    let common = first.map(|first| besides(first, varying(&layouts)));
    let common = common.filter(|common| !common.is_empty());
    common.map_or_else(String::new, |common| format!(" All have {common}."))
}

/// Position of what the job has.
fn own(front: &ParetoDocument) -> Option<usize> {
    front.points.iter().rposition(|point| match front.front {
        FrontKind::MemoryMfu => point.memory_gib <= front.memory_gib,
        FrontKind::GpusTime => point.gpus == front.job.gpus,
    })
}

fn note(front: &ParetoDocument, shown: usize) -> String {
    let text = match front.front {
        FrontKind::MemoryMfu => {
            "Each row is the best layout with so much usable memory per GPU, at the accepted risk of \
             running out. A star marks what this job's memory admits. Sizes closer than 2 % are taken \
             together."
        }
        FrontKind::GpusTime => {
            "Each row is the fastest layout on so many GPUs; numbers that are no faster than a smaller \
             one are omitted. A star marks this job."
        }
    };
    let unproven = match front.unproven {
        0 => String::new(),
        count => format!(" {count} of them were stopped by the time limit: there may be better."),
    };
    let rest = match front.points.len() {
        count if shown < count => {
            format!(" {shown} of {count} points are shown; `--format csv` prints all.")
        }
        _ => String::new(),
    };
    let solved = front.solved;
    let common = in_common(front);
    format!("{text}{common} {solved} instances were solved.{unproven}{rest}")
}

impl ParetoDocument {
    /// The front as CSV with a header, every point.
    #[must_use]
    pub fn csv(&self) -> String {
        let header = [
            "gpus",
            "memory_gib",
            "mfu",
            "step_time_s",
            "tokens_per_s",
            "gpu_time_a_step_s",
            "layout",
        ];
        let rows = self.points.iter().map(|point| {
            vec![
                point.gpus.to_string(),
                point.memory_gib.to_string(),
                point.mfu.to_string(),
                point.step_time_s.to_string(),
                point.tokens_per_s.to_string(),
                point.gpu_time_a_step_s.to_string(),
                line(&point.layout.layout()),
            ]
        });
        csv_of(&header, rows)
    }

    /// The front as an SVG picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let points: Vec<(f64, f64)> = self.points.iter().map(|it| place(self, it)).collect();
        let whole = |tick: f64| grouped(tick.round() as u64);
        let (x, y, own, mark, join, reference) = match self.front {
            FrontKind::MemoryMfu => (
                Axis::new("usable memory per GPU, GiB", Scale::Doubling, short_number),
                Axis::new("model FLOP utilisation, %", Scale::Linear, short_number),
                self.memory_gib,
                format!("this job: {:.1} GiB", self.memory_gib),
                Join::Steps,
                None,
            ),
            FrontKind::GpusTime => (
                Axis::new("GPUs", Scale::Doubling, whole),
                Axis::new("step time, s", Scale::Logarithmic, short_number),
                f64::from(self.job.gpus),
                format!("this job: {}", counted(self.job.gpus, "GPU")),
                Join::Straight,
                scaling(&points),
            ),
        };
        Plot {
            title: headline(self),
            subtitle: job_line(&self.job),
            x,
            y,
            labels: labels(self),
            join,
            mark: (own, mark),
            reference,
            points,
        }
        .svg()
    }
}

fn place(front: &ParetoDocument, point: &PointDocument) -> (f64, f64) {
    match front.front {
        FrontKind::MemoryMfu => (point.memory_gib, point.mfu * 100.0),
        FrontKind::GpusTime => (f64::from(point.gpus), point.step_time_s),
    }
}

/// The line of equal GPU time through the first point.
fn scaling(points: &[(f64, f64)]) -> Option<([(f64, f64); 2], &'static str)> {
    let (&first, &last) = (points.first()?, points.last()?);
    let end = (last.0, first.1 * first.0 / last.0);
    (last.0 > first.0).then_some(([first, end], "same GPU time"))
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
fn labels(front: &ParetoDocument) -> Vec<Label> {
    let combination = |index: usize| short(&front.points[index].layout.combination);
    let mut changes: Vec<usize> = (0..front.points.len())
        .filter(|&index| index == 0 || combination(index) != combination(index - 1))
        .collect();
    let rise = |index: usize| {
        let value = |index: usize| place(front, &front.points[index]).1;
        if index == 0 {
            f64::INFINITY
        } else {
            (value(index).ln() - value(index - 1).ln()).abs()
        }
    };
    changes.sort_by(|&a, &b| rise(b).total_cmp(&rise(a)));
    let changes = changes.into_iter();
    changes
        .map(|point| Label {
            point,
            text: combination(point),
        })
        .collect()
}
