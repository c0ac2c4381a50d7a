//! Sections as tables: in plain text, Markdown and HTML.

use tabled::builder::Builder;
use tabled::settings::Alignment;
use tabled::settings::object::Columns;

use crate::report::style::{bare, printable, render, wrap};

/// A table with its title and what has to be known of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Section {
    /// Title.
    pub(super) title: String,
    /// Names of the columns; those after `words` hold numbers.
    pub(super) header: Vec<String>,
    /// How many columns from the left hold words.
    pub(super) words: usize,
    /// The rows, with as many fields as the header.
    pub(super) rows: Vec<Vec<String>>,
    /// Sentences below the table.
    pub(super) notes: Vec<String>,
    /// How a terminal shows it.
    pub(super) on_terminal: OnTerminal,
}

/// How a terminal shows a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum OnTerminal {
    /// As a table.
    #[default]
    Table,
    /// As one block a row: the first two fields, then one line for each further field, under the
    /// names of the header.
    Blocks,
}

/// For a terminal of 80 columns.
pub(super) fn text(section: &Section) -> String {
    match section.on_terminal {
        OnTerminal::Table => table(section),
        OnTerminal::Blocks => blocks(section),
    }
}

fn blocks(section: &Section) -> String {
    let mut lines = Vec::new();
    for row in &section.rows {
        let (head, rest) = row.split_at(row.len().min(2));
        lines.push(wrap(&head.join("  "), BLOCK_INDENT));
        for (name, field) in section.header.iter().skip(2).zip(rest) {
            let line = format!("{:BLOCK_INDENT$}{name}: {field}", "");
            lines.push(wrap(&line, 2 * BLOCK_INDENT));
        }
    }
    lines.join("\n")
}

/// Columns by which the further lines of a block are set in.
const BLOCK_INDENT: usize = 3;

fn table(section: &Section) -> String {
    let mut table = Builder::default();
    table.push_record(&section.header);
    for row in &section.rows {
        let fields = row
            .iter()
            .map(|field| field.chars().map(printable).collect::<String>());
        table.push_record(fields);
    }
    let mut table = bare(table.build());
    table.modify(Columns::new(section.words..), Alignment::right());
    render(table)
}

/// For Markdown.
pub(super) fn markdown(section: &Section) -> String {
    let mut text = line(section.header.iter().cloned());
    let rule = (0..section.header.len()).map(|column| {
        let alignment = if column < section.words { "---" } else { "--:" };
        alignment.to_owned()
    });
    text.push_str(&line(rule));
    for row in &section.rows {
        text.push_str(&line(row.iter().map(|field| field.replace('|', "\\|"))));
    }
    text
}

fn line(fields: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", fields.collect::<Vec<_>>().join(" | "))
}

/// For a page.
pub(super) fn html(section: &Section) -> String {
    let cells = |tag: &str, fields: &mut dyn Iterator<Item = &str>| {
        let cells = fields.enumerate().map(|(column, field)| {
            let class = if column < section.words {
                ""
            } else {
                " class=\"number\""
            };
            format!("<{tag}{class}>{}</{tag}>", escaped(field))
        });
        cells.collect::<String>()
    };
    let mut text = format!(
        "<section>\n<h2>{}</h2>\n<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        escaped(&section.title),
        cells("th", &mut section.header.iter().map(String::as_str))
    );
    for row in &section.rows {
        let fields = cells("td", &mut row.iter().map(String::as_str));
        text.push_str(&format!("<tr>{fields}</tr>\n"));
    }
    text.push_str("</tbody>\n</table>\n");
    for note in &section.notes {
        text.push_str(&format!("<p>{}</p>\n", escaped(note)));
    }
    text.push_str("</section>\n");
    text
}

/// Text that a page or a drawing takes literally.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(printable(c)),
        }
    }
    safe
}
