//! Tables: for a terminal of 80 columns, in Markdown, in HTML.

use std::ops::RangeBounds;

use maud::{Markup, html};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::peaker::Priority;
use tabled::settings::{Alignment, Padding, Style as Borders, Width};

use super::style::{Meaning, Style, WIDTH, columns, printable, wrap_within};

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    is_right: Vec<bool>,
    fitted: Option<usize>,
    is_narrow: bool,
}

/// The least columns of the one that is fitted.
const NARROWEST: usize = 16;

impl Table {
    /// A table of columns with these names.
    pub(crate) fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Self {
        let header: Vec<String> = header.into_iter().map(Into::into).collect();
        Self {
            is_right: vec![false; header.len()],
            header,
            ..Self::default()
        }
    }

    /// Columns of numbers, which are aligned to the right.
    pub(crate) fn right(mut self, columns: impl RangeBounds<usize>) -> Self {
        for (column, is_right) in self.is_right.iter_mut().enumerate() {
            *is_right |= columns.contains(&column);
        }
        self
    }

    /// The column whose lines are broken so that the table fits; lines after the first of each break are
    /// two spaces further in.
    pub(crate) fn fit(mut self, column: usize) -> Self {
        self.fitted = Some(column);
        self
    }

    /// Without bars and with single blanks between columns, for many columns.
    pub(crate) fn narrow(mut self) -> Self {
        self.is_narrow = true;
        self
    }

    /// Adds a row.
    pub(crate) fn push<T: Into<String>>(&mut self, row: impl IntoIterator<Item = T>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a column holds numbers.
    pub(crate) fn has_numbers(&self) -> bool {
        self.is_right.contains(&true)
    }

    /// For a terminal, with its header in the colour of headings.
    pub(crate) fn text(&self, style: &Style) -> String {
        headed(&self.plain(), style)
    }

    /// For a terminal, without colour: columns apart by bars, a line under the header, no frame.
    pub(crate) fn plain(&self) -> String {
        let mut rows = self.rows.clone();
        if let Some(column) = self.fitted {
            self.fit_column(&mut rows, column);
        }
        let mut builder = Builder::default();
        builder.push_record(&self.header);
        for row in rows {
            let shown = |field: String| field.replace(|c| c != '\n' && printable(c) != c, "?");
            builder.push_record(row.into_iter().map(shown));
        }
        let mut table = builder.build();
        if self.is_narrow {
            table.with(Borders::blank()).with(Padding::new(0, 0, 0, 0));
        } else {
            table.with(Borders::psql());
        }
        for column in (0..self.header.len()).filter(|&column| self.is_right[column]) {
            table.modify(Columns::one(column), Alignment::right());
        }
        render(table)
    }

    fn fit_column(&self, rows: &mut [Vec<String>], column: usize) {
        let width = |index: usize| {
            let cells = rows.iter().flat_map(|row| row[index].lines());
            let cells = cells.chain(self.header[index].lines());
            cells.map(columns).max().unwrap_or(0)
        };
        let count = self.header.len();
        let others: usize = (0..count).filter(|&it| it != column).map(width).sum();
        // A blank on both sides of every cell, and a bar between two.
        let left = (WIDTH + 1)
            .saturating_sub(others + 3 * count)
            .max(NARROWEST);
        for row in rows {
            let lines = row[column].lines().map(|line| {
                let indent = line.len() - line.trim_start_matches(' ').len();
                wrap_within(line, indent + 2, left)
            });
            row[column] = lines.collect::<Vec<_>>().join("\n");
        }
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |fields: Vec<String>| format!("| {} |", fields.join(" | "));
        let rule = |&is_right: &bool| if is_right { "--:" } else { "---" }.to_owned();
        let mut lines = vec![
            line(self.header.clone()),
            line(self.is_right.iter().map(rule).collect()),
        ];
        let rows = self.rows.iter();
        lines.extend(rows.map(|row| line(row.iter().map(|it| it.replace('|', "\\|")).collect())));
        lines.join("\n")
    }

    /// As HTML.
    pub(crate) fn html(&self) -> Markup {
        let class = |column: usize| self.is_right[column].then_some("number");
        html! {
            table {
                thead { tr {
                    @for (column, name) in self.header.iter().enumerate() {
                        th class=[class(column)] { (name) }
                    }
                } }
                tbody {
                    @for row in &self.rows {
                        tr {
                            @for (column, field) in row.iter().enumerate() {
                                td class=[class(column)] { (field) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// One block per row: its first two fields, then one line for each further field under its name.
    pub(crate) fn blocks(&self) -> String {
        const INDENT: usize = 3;
        let mut lines = Vec::new();
        for row in &self.rows {
            let (head, rest) = row.split_at(row.len().min(2));
            lines.push(wrap_within(&head.join("  "), INDENT, WIDTH));
            for (name, field) in self.header.iter().skip(2).zip(rest) {
                let line = format!("{:INDENT$}{name}: {field}", "");
                lines.push(wrap_within(&line, 2 * INDENT, WIDTH));
            }
        }
        lines.join("\n")
    }
}

/// A table with its header in the colour of headings.
pub(super) fn headed(table: &str, style: &Style) -> String {
    match table.split_once('\n') {
        Some((header, rest)) => format!("{}\n{rest}", style.paint(Meaning::Heading, header)),
        None => table.to_owned(),
    }
}

/// Renders a table, breaking words in its widest column where it would exceed [`WIDTH`].
pub(super) fn render(mut table: tabled::Table) -> String {
    if table.total_width() > WIDTH {
        table.with(
            Width::wrap(WIDTH)
                .priority(Priority::max(true))
                .keep_words(true),
        );
    }
    let table = table.to_string();
    let lines: Vec<&str> = table.lines().map(str::trim_end).collect();
    lines.join("\n")
}
