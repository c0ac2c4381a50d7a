//! Sections: a table with its title and notes, for a terminal, in Markdown and in HTML.

use maud::{Markup, html};

use crate::report::style::{Meaning, Style, wrap};
use crate::report::table::Table;

/// A table with its title and what has to be known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// Title.
    pub(super) title: String,
    /// The figures.
    pub(super) table: Table,
    /// Sentences below the table.
    pub(super) notes: Vec<String>,
}

impl Section {
    /// A table of words in the first column and numbers in the others.
    pub(super) fn new(
        title: impl Into<String>,
        header: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        Self::of(title, Table::new(header).right(1..), rows)
    }

    /// A table with other columns.
    pub(super) fn of(
        title: impl Into<String>,
        mut table: Table,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        for row in rows {
            table.push(row);
        }
        Self {
            title: title.into(),
            table,
            notes: Vec::new(),
        }
    }

    /// With sentences below it.
    pub(super) fn noting(mut self, notes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.notes.extend(notes.into_iter().map(Into::into));
        self
    }

    /// For a terminal of 80 columns: tables of words alone as one block per row.
    pub(super) fn text(&self, style: &Style) -> String {
        let mut lines = vec![style.paint(Meaning::Heading, &self.title)];
        lines.push(if self.table.has_numbers() {
            self.table.plain()
        } else {
            self.table.blocks()
        });
        lines.extend(self.notes.iter().map(|note| wrap(note, 0)));
        lines.join("\n")
    }

    /// As Markdown, in blocks.
    pub(super) fn markdown(&self) -> Vec<String> {
        let mut blocks = vec![format!("**{}**", self.title), self.table.markdown()];
        blocks.extend(self.notes.iter().cloned());
        blocks
    }

    /// As HTML.
    pub(super) fn html(&self) -> Markup {
        html! {
            section {
                h2 { (self.title) }
                (self.table.html())
                @for note in &self.notes { p { (note) } }
            }
        }
    }
}
