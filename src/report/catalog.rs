//! The catalog's presets with what is known of them and where it comes from.

use std::fmt::Write as _;

use serde::Serialize;

use super::document::write;
use super::joined;
use super::style::{Meaning, Style, WIDTH, columns, wrap_within};
use super::table::Table;
use crate::catalog::Explained;

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

/// One GPU with its figures, and how to describe another.
#[must_use]
pub fn explanation(gpu: &Explained, style: &Style) -> String {
    let known = match (gpu.measured_with.is_empty(), gpu.generation == gpu.name) {
        (true, _) => "No measured run on it is known".to_owned(),
        (false, true) => format!(
            "Measured runs on it are known with {}",
            gpu.measured_with.join(", ")
        ),
        (false, false) => format!(
            "It runs the kernels of {}, of which measured runs are known with {}",
            gpu.generation,
            gpu.measured_with.join(", ")
        ),
    };
    let clusters = match gpu.clusters.as_slice() {
        [] => "No cluster of the catalog has it: give nodes and bandwidths yourself.".to_owned(),
        some => format!("Clusters of the catalog that have it: {}.", some.join(", ")),
    };
    let head = format!(
        "{}\n{}\n{}: expect step times within {:.0} %.\n{clusters}",
        gpu.name,
        gpu.source,
        known,
        gpu.time_error * 100.0
    );
    let mut table = Table::new(["figure", "value", "meaning"]);
    for figure in &gpu.figures {
        let value = figure
            .value
            .as_str()
            .map_or_else(|| figure.value.to_string(), str::to_owned);
        table.push([
            wrap_within(&figure.key, 0, FIGURE_WIDTH),
            wrap_within(&value, 0, FIGURE_WIDTH),
            wrap_within(figure.meaning, 0, WIDTH - 2 * FIGURE_WIDTH - 8),
        ]);
    }
    let mut own = format!(
        "To describe your own, change these in an instance file (`accelerator = \"{}\"` beside them keeps\n\
         its kernels; without it `efficiency` says what yours reach):\n\n[cluster]\ngpus = 64\n",
        gpu.name
    );
    for figure in &gpu.figures {
        let _ = writeln!(own, "{} = {}", figure.key, figure.value);
    }
    joined(&[head, table.text(style), own])
}

/// The same as JSON.
#[must_use]
pub fn explanation_json(gpu: &Explained) -> String {
    write(gpu)
}

/// Width of keys and values of figures.
const FIGURE_WIDTH: usize = 22;

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
