//! The catalog's presets with what is known of them and where it comes from.

use serde::Serialize;

use super::document::write;
use super::joined;
use super::style::{Meaning, Style, WIDTH, columns, wrap_within};
use super::table::Table;

/// One preset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogRow {
    /// What it is: `accelerator`, `cluster`, `model`, `framework`.
    pub kind: String,
    /// The name that instances use.
    pub name: String,
    /// The figures that matter, for people.
    pub facts: String,
    /// Where the figures come from.
    pub source: String,
}

/// The rows as one table a kind, in the order given.
#[must_use]
pub fn table(rows: &[CatalogRow], style: &Style) -> String {
    let mut tables = Vec::new();
    for of_kind in rows.chunk_by(|one, other| one.kind == other.kind) {
        let widest = of_kind.iter().map(|row| columns(&row.name)).max();
        let names = widest.unwrap_or_default().min(LONGEST_NAME);
        let facts_width = (WIDTH - names - 8) * 3 / 5;
        let source_width = WIDTH - names - 8 - facts_width;
        let mut table = Table::new([of_kind[0].kind.as_str(), "facts", "source"]);
        for CatalogRow {
            name,
            facts,
            source,
            ..
        } in of_kind
        {
            table.push([
                wrap_within(name, 0, names),
                wrap_within(facts, 0, facts_width),
                wrap_within(source, 0, source_width),
            ]);
        }
        tables.push(table.text(style));
    }
    if tables.is_empty() {
        tables.push(style.paint(Meaning::Warning, "no preset has this name"));
    }
    joined(&tables)
}

/// The rows as a JSON array.
#[must_use]
pub fn json(rows: &[CatalogRow]) -> String {
    write(&rows)
}

/// A longer name is broken.
const LONGEST_NAME: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn presets_fit_the_width() {
        let row = |kind: &str, name: &str, facts: &str, source: &str| CatalogRow {
            kind: kind.to_owned(),
            name: name.to_owned(),
            facts: facts.to_owned(),
            source: source.to_owned(),
        };
        let rows = [
            row(
                "accelerator",
                "a100-80gb",
                "79.2 GiB usable, 2.0 TB/s, 312 TFLOP/s bf16",
                "NVIDIA A100 Tensor Core GPU data sheet, June 2021",
            ),
            row(
                "accelerator",
                "h100-sxm",
                "79.6 GiB usable, 3.35 TB/s, 989 TFLOP/s bf16, 1979 TFLOP/s fp8",
                "NVIDIA H100 data sheet",
            ),
            row(
                "model",
                "llama-13b",
                "13.0 B parameters, 40 layers",
                "arXiv 2302.13971",
            ),
            row(
                "model",
                &"x".repeat(90),
                &"long ".repeat(40),
                &"y".repeat(200),
            ),
        ];
        let text = table(&rows, &Style::default());
        for line in text.lines() {
            assert!(columns(line) <= WIDTH, "{line}");
        }
        fixture::assert_snapshot("report_catalog", &text);
        assert!(table(&[], &Style::default()).contains("no preset"));
    }
}
