//! What the user sees: views of answers and their renderers, which decide nothing.
//!
//! A view is a [`Document`]: serialisable, and the JSON of its answer at the same time. Tables, CSV
//! and pictures are rendered from views alone. Every function returns a `String`; only the binary
//! prints.

pub mod batch;
pub mod catalog;
mod comparison;
mod components;
mod counts;
pub mod document;
mod evaluation;
mod explanation;
mod infeasible;
pub mod layout_text;
mod notes;
pub(crate) mod number;
pub mod page;
mod pareto;
pub(crate) mod plot;
mod price;
mod solution;
pub(crate) mod style;
pub(crate) mod table;
pub mod trace;

pub use document::Document;
pub use style::{Colour, Style, shell_word};

/// A document that people can read.
pub trait Answer: Document {
    /// The answer as text and tables of at most 80 columns.
    #[must_use]
    fn text(&self, style: &Style) -> String;
}

/// Blocks apart by blank lines, with a final line break.
pub(crate) fn joined(blocks: &[String]) -> String {
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

/// Records with a header as comma-separated values.
pub(crate) fn csv_of(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    const WRITTEN: &str = "memory takes every write";
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).expect(WRITTEN);
    for row in rows {
        writer.write_record(row).expect(WRITTEN);
    }
    let bytes = writer.into_inner().expect(WRITTEN);
    String::from_utf8(bytes).expect("CSV of strings is UTF-8")
}

/// An amount as CSV has it; nothing where there is none.
pub(crate) fn csv_number(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}
