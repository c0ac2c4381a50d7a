//! The answers to many instances as a table for people.

use super::{BatchRow, BatchStatus};
use crate::report::number::{duration, gib, mfu, risk};
use crate::report::style::{Meaning, Style, WIDTH, columns, printable, wrap};
use crate::report::table::Table;

/// The rows as a table; the layout or the error stands below the figures of its instance.
#[must_use]
pub fn table(rows: &[BatchRow], style: &Style) -> String {
    let widest = WIDTH.saturating_sub(figures(rows, 0).lines().map(columns).max().unwrap_or(0));
    let table = figures(rows, widest.max("instance".len()));
    let mut lines = table.lines();
    let mut text = String::new();
    for header in lines.by_ref().take(2) {
        text.push_str(&style.paint(Meaning::Heading, header));
        text.push('\n');
    }
    for (line, row) in lines.zip(rows) {
        let meaning = match row.status {
            BatchStatus::Optimal => None,
            BatchStatus::Feasible | BatchStatus::Unknown => Some(Meaning::Warning),
            BatchStatus::Infeasible | BatchStatus::Error => Some(Meaning::Bad),
        };
        text.push_str(&meaning.map_or_else(|| line.to_owned(), |it| style.paint(it, line)));
        text.push('\n');
        let folder = folder(rows, row, widest);
        for detail in folder.iter().chain(&row.layout).chain(&row.error) {
            for line in detail.lines() {
                text.push_str(&wrap(&format!("   {line}"), 5));
                text.push('\n');
            }
        }
    }
    text
}

/// The figures of the rows, with paths of at most so many columns.
fn figures(rows: &[BatchRow], widest: usize) -> String {
    let instance = if widest == 0 { "" } else { "instance" };
    let header = [instance, "status", "MFU", "step", "GiB", "OOM risk"];
    let mut table = Table::new(header).right(2..);
    for row in rows {
        table.push([
            name(&row.instance, widest),
            row.status.as_str().to_owned(),
            shown(row.mfu, mfu),
            shown(row.step_time_s, duration),
            shown(row.peak_memory_gib, gib),
            shown(row.oom_probability, risk),
        ]);
    }
    table.plain()
}

fn shown(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// The path of a row, where the table has only a part of it that another row has too.
fn folder(rows: &[BatchRow], row: &BatchRow, widest: usize) -> Option<String> {
    let shown = |row: &BatchRow| name(&row.instance, widest.max("instance".len()));
    let own = shown(row);
    let is_whole = own == row.instance;
    let is_shared = rows.iter().filter(|other| shown(other) == own).count() > 1;
    (is_shared && !is_whole).then(|| row.instance.chars().map(printable).collect())
}

/// The path in at most `widest` columns: whole, or its last part, or the end of that.
fn name(path: &str, widest: usize) -> String {
    let path: String = path.chars().map(printable).collect();
    let file = path.rsplit('/').next().unwrap_or_default();
    if let Some(whole) = [path.as_str(), file]
        .iter()
        .find(|it| columns(it) <= widest)
    {
        return (*whole).to_owned();
    }
    let mut end = file.chars();
    while columns(end.as_str()) >= widest.max(1) {
        end.next();
    }
    let ellipsis = if widest == 0 { "" } else { "…" };
    format!("{ellipsis}{}", end.as_str())
}
