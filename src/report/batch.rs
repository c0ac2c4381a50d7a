//! Many instances, one row each: as a table for people, as JSON lines or CSV for programs.

use serde::{Deserialize, Serialize};

use super::document::{rounded, rounded_probability};
use super::layout_text::line;
use super::number::{duration, gib, mfu, risk};
use super::style::{Meaning, Style, WIDTH, columns, printable, wrap};
use super::table::Table;
use crate::choice::choice;
use crate::plan::{Outcome, Status};

/// The answer to one instance of a batch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BatchRow {
    instance: String,
    digest: String,
    status: BatchStatus,
    layout: Option<String>,
    mfu: Option<f64>,
    step_time_s: Option<f64>,
    peak_memory_gib: Option<f64>,
    oom_probability: Option<f64>,
    error: Option<String>,
}

choice!(
    /// How one instance of a batch ended.
    BatchStatus {
        /// The layout is proven best.
        Optimal = "optimal",
        /// A limit ended the search; the layout is the best known.
        Feasible = "feasible",
        /// Proven: no layout satisfies every rule.
        Infeasible = "infeasible",
        /// A limit ended the search before any layout was known.
        Unknown = "unknown",
        /// The instance could not be read.
        Error = "error",
    }
);

impl BatchRow {
    /// The row of an instance that was solved or proven infeasible.
    #[must_use]
    pub fn solved(path: &str, digest: &str, outcome: &Outcome) -> Self {
        let choice = outcome.plan().map(|plan| &plan.choice);
        let prediction = choice.map(|choice| &choice.prediction);
        let rules = match outcome {
            Outcome::Infeasible(infeasibility) => infeasibility.clashing_rules.join(", "),
            _ => String::new(),
        };
        Self {
            instance: path.to_owned(),
            digest: digest.to_owned(),
            status: match outcome.status() {
                Status::Optimal => BatchStatus::Optimal,
                Status::Feasible => BatchStatus::Feasible,
                Status::Infeasible => BatchStatus::Infeasible,
                Status::Unknown => BatchStatus::Unknown,
            },
            layout: choice.map(|choice| line(&choice.layout)),
            mfu: prediction.map(|prediction| rounded(prediction.mfu.value())),
            step_time_s: prediction.map(|prediction| rounded(prediction.step_time.value())),
            peak_memory_gib: prediction.map(|prediction| rounded(prediction.memory.peak().gib())),
            oom_probability: prediction
                .map(|prediction| rounded_probability(prediction.oom_probability)),
            error: (!rules.is_empty()).then(|| format!("rules that clash: {rules}")),
        }
    }

    /// The row of a file that is no valid instance.
    #[must_use]
    pub fn failed(path: &str, digest: &str, error: &str) -> Self {
        Self {
            instance: path.to_owned(),
            digest: digest.to_owned(),
            status: BatchStatus::Error,
            error: Some(error.trim_end().to_owned()),
            ..Self::default()
        }
    }

    /// The path of the instance.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// What identifies the input that the row answers: the same digest, the same question.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// How the instance ended.
    #[must_use]
    pub const fn status(&self) -> BatchStatus {
        self.status
    }
}

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
        for detail in row.layout.iter().chain(&row.error) {
            for line in detail.lines() {
                text.push_str(&wrap(&format!("   {line}"), 5));
                text.push('\n');
            }
        }
    }
    text
}

/// The rows as JSON, one a line.
#[must_use]
pub fn json_lines(rows: &[BatchRow]) -> String {
    rows.iter().map(json_line).collect()
}

/// One row as JSON with its line break, to be written as soon as it is known.
///
/// # Panics
///
/// Never: a row always has a JSON form.
#[must_use]
pub fn json_line(row: &BatchRow) -> String {
    let mut text =
        serde_json::to_string(row).expect("a row has string keys and no fallible serialisation");
    text.push('\n');
    text
}

/// The rows as CSV with a header.
#[must_use]
pub fn csv(rows: &[BatchRow]) -> String {
    format!(
        "{CSV_HEADER}{}",
        rows.iter().map(csv_line).collect::<String>()
    )
}

/// The first line of [`csv()`].
pub const CSV_HEADER: &str =
    "instance,digest,status,layout,mfu,step_time_s,peak_memory_gib,oom_probability,error\n";

/// One row as CSV with its line break, to be written as soon as it is known.
///
/// # Panics
///
/// Never: a row always has a CSV form.
#[must_use]
pub fn csv_line(row: &BatchRow) -> String {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    writer
        .serialize(row)
        .expect("a row has only plain fields and memory takes every write");
    let bytes = writer.into_inner().expect("memory takes every write");
    String::from_utf8(bytes).expect("CSV of strings is UTF-8")
}

/// The finished rows of an earlier [`json_lines`] output, up to the first line that is no row:
/// an interrupted run may have left half a line.
#[must_use]
pub fn read_json_lines(text: &str) -> Vec<BatchRow> {
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map_while(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The finished rows of an earlier [`csv()`] output, up to the first record that is no row: an
/// interrupted run may have left half a line.
#[must_use]
pub fn read_csv(text: &str) -> Vec<BatchRow> {
    let ends = text.match_indices('\n').map(|(end, _)| end);
    let finished = ends
        .rev()
        .map(|end| &text[..=end])
        .find(|text| text.matches('"').count().is_multiple_of(2))
        .unwrap_or_default();
    csv::Reader::from_reader(finished.as_bytes())
        .into_deserialize()
        .map_while(Result::ok)
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plan::Infeasibility;

    fn rows() -> Vec<BatchRow> {
        let infeasibility = Infeasibility {
            clashing_rules: vec!["gpu_count".to_owned(), "memory_capacity".to_owned()],
            nearest: None,
            proof: fixture::proof(0.0),
        };
        vec![
            BatchRow::solved(
                "instances/hagemann-13b-2k-64gpu.toml",
                "c0ffee",
                &Outcome::Optimal(fixture::llama_13b_plan()),
            ),
            BatchRow::solved(
                "instances/405b.toml",
                "c0ffee",
                &Outcome::Feasible(fixture::llama_405b_plan()),
            ),
            BatchRow::solved(
                "instances/65b-24gb.toml",
                "c0ffee",
                &Outcome::Infeasible(infeasibility),
            ),
            BatchRow::solved(
                "instances/1t.toml",
                "c0ffee",
                &Outcome::Unknown(fixture::proof(0.5)),
            ),
            BatchRow::failed(
                "a/very/long/path/to/a/folder/of/instances/that/is,\"broken\".toml",
                "c0ffee",
                "unknown key `gpu` at line 3\nhint: did you mean `gpus`?\n",
            ),
        ]
    }

    #[test]
    fn rows_fit_the_width() {
        let text = table(&rows(), &Style::default());
        for line in text.lines() {
            assert!(columns(line) <= WIDTH, "{line}");
        }
        fixture::assert_snapshot("report_batch", &text);
    }

    #[test]
    fn rows_are_csv() {
        fixture::assert_snapshot("report_batch_csv", &csv(&rows()));
    }

    #[test]
    fn written_rows_can_be_read_again() {
        assert_eq!(read_json_lines(&json_lines(&rows())), rows());
        assert_eq!(read_csv(&csv(&rows())), rows());
    }

    #[test]
    fn half_a_row_is_no_row() {
        let check = |text: &str, read: fn(&str) -> Vec<BatchRow>| {
            for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
                let read = read(&text[..end]);
                assert_eq!(read, rows()[..read.len()], "{}", &text[..end]);
            }
        };
        check(&json_lines(&rows()), read_json_lines);
        check(&csv(&rows()), read_csv);
    }

    #[test]
    fn the_header_names_every_field() {
        let row = serde_json::to_value(&rows()[0]).expect("a row is JSON");
        let keys: Vec<&str> = row
            .as_object()
            .expect("a row is an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys.join(","), CSV_HEADER.trim_end());
    }
}
