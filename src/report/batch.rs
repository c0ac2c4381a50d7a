//! Many instances, one row each: as a table for people, as JSON lines or CSV for programs.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::document::{PredictionDocument, rounded, rounded_probability};
use super::layout_text::line;
use super::number::{duration, gib, mfu, risk};
use super::style::{Meaning, Style, WIDTH, columns, printable, wrap};
use super::table::Table;
use crate::axis::{Axis, FlaggedCombination};
use crate::choice::choice;
use crate::cost_model::components::{MemoryComponent, TimeComponent};
use crate::layout::Stage;
use crate::plan::{Evaluated, Outcome, Status};

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
    /// The value of every axis, then further figures, by name; none without a layout.
    #[serde(flatten)]
    further: Map<String, Json>,
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
            further: choice.map(further).unwrap_or_default(),
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

/// Figures of a layout beside those that each row has, in the order of columns.
const FIGURES: [&str; 7] = [
    "checkpointed_layers",
    "mfu_paper",
    "mfu_causal",
    "tflops_per_gpu",
    "tokens_per_s_per_gpu",
    "capacity_gib",
    "fullest_stage",
];

/// The axes of a layout, its figures, the step time and the memory of the fullest stage by component.
fn further(choice: &Evaluated) -> Map<String, Json> {
    let layout = &choice.layout;
    let flagged = FlaggedCombination {
        combination: layout.combination,
        checkpointing: layout.checkpointing(),
    };
    let prediction = PredictionDocument::new(&choice.prediction);
    let memory = &prediction.memory;
    let fullest = memory.fullest();
    let checkpointed = layout.stages.iter().map(Stage::checkpointed_layers);
    let figures = [
        json!(checkpointed.sum::<u32>()),
        json!(prediction.mfu_paper),
        json!(prediction.mfu_causal),
        json!(prediction.tflops_per_gpu),
        json!(prediction.tokens_per_s_per_gpu),
        json!(memory.capacity_gib),
        json!(fullest),
    ];
    let of_components = [
        json!(prediction.time),
        json!(memory.stages[fullest].components),
    ];
    let mut known = FIGURES
        .map(str::to_owned)
        .into_iter()
        .zip(figures)
        .collect::<Map<_, _>>();
    for part in [json!(flagged)].into_iter().chain(of_components) {
        known.extend(
            part.as_object()
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
    }
    let columns = COLUMNS[OWN.len()..].iter();
    columns.filter_map(|key| known.remove_entry(key)).collect()
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
        "{}{}",
        csv_header(),
        rows.iter().map(csv_line).collect::<String>()
    )
}

/// The columns that every row has. What was written before there were others has these alone.
const OWN: [&str; 9] = [
    "instance",
    "digest",
    "status",
    "layout",
    "mfu",
    "step_time_s",
    "peak_memory_gib",
    "oom_probability",
    "error",
];

/// Every column.
static COLUMNS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let own = OWN.map(str::to_owned).into_iter();
    let axes = Axis::ALL.iter().map(|axis| axis.as_str().to_owned());
    let figures = FIGURES.map(str::to_owned).into_iter();
    let time = TimeComponent::ALL
        .iter()
        .map(|it| format!("{}_s", it.key()));
    let memory = MemoryComponent::ALL
        .iter()
        .map(|it| format!("{}_gib", it.key()));
    own.chain(axes)
        .chain(figures)
        .chain(time)
        .chain(memory)
        .collect()
});

/// The first line of [`csv()`].
fn csv_header() -> String {
    COLUMNS.join(",") + "\n"
}

/// Whether a line of CSV is a header, of today or of before there were all columns.
fn is_csv_header(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line == COLUMNS.join(",").as_bytes() || line == OWN.join(",").as_bytes()
}

/// Whether a file of rows has none: it is empty, or has a header alone.
#[must_use]
pub fn is_new(bytes: &[u8], form: Form) -> bool {
    bytes.trim_ascii().is_empty() || form == Form::Csv && is_csv_header(bytes)
}

/// One row as CSV with its line break, to be written as soon as it is known. Its error is one line.
///
/// # Panics
///
/// Never: a row always has a CSV form.
#[must_use]
pub fn csv_line(row: &BatchRow) -> String {
    let json = json!(BatchRow {
        error: row.error.as_deref().map(one_line),
        ..row.clone()
    });
    let fields = COLUMNS.iter().map(|column| match &json[column.as_str()] {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    });
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    writer
        .write_record(fields)
        .expect("memory takes every write");
    let bytes = writer.into_inner().expect("memory takes every write");
    String::from_utf8(bytes).expect("CSV of strings is UTF-8")
}

/// The row of a record.
fn of_record(record: &csv::StringRecord) -> Option<BatchRow> {
    if ![OWN.len(), COLUMNS.len()].contains(&record.len()) {
        return None;
    }
    let fields = COLUMNS
        .iter()
        .zip(record)
        .filter(|(_, field)| !field.is_empty());
    let values = fields.map(|(column, field)| {
        let scalar = serde_json::from_str(field).ok();
        let scalar = scalar.filter(|it: &Json| it.is_number() || it.is_boolean());
        let is_text = TEXTS.contains(&column.as_str());
        let value = scalar.filter(|_| !is_text).unwrap_or_else(|| field.into());
        (column.clone(), value)
    });
    serde_json::from_value(Json::Object(values.collect())).ok()
}

/// Columns of text, whatever it looks like.
const TEXTS: [&str; 5] = ["instance", "digest", "status", "layout", "error"];

/// A message without the pictures of its places, in one line.
fn one_line(text: &str) -> String {
    let is_picture = |line: &&str| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        line.is_empty() || rest.starts_with('|')
    };
    let lines = text.lines().map(str::trim).filter(|line| !is_picture(line));
    let mut whole = String::new();
    for line in lines {
        let between = match line {
            _ if whole.is_empty() => "",
            _ if line.starts_with("-->") => " ",
            _ => "; ",
        };
        whole.push_str(between);
        whole.push_str(line);
    }
    whole
}

/// The format of a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// [`json_lines`].
    JsonLines,
    /// [`csv()`].
    Csv,
}

impl Form {
    /// The rows in this format.
    #[must_use]
    pub fn all(self, rows: &[BatchRow]) -> String {
        match self {
            Self::JsonLines => json_lines(rows),
            Self::Csv => csv(rows),
        }
    }

    /// One row in this format, with its line break.
    #[must_use]
    pub fn one(self, row: &BatchRow) -> String {
        match self {
            Self::JsonLines => json_line(row),
            Self::Csv => csv_line(row),
        }
    }
}

/// What a file of rows holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Earlier {
    /// The rows, in the order of the file: of one instance the last counts.
    pub rows: Vec<BatchRow>,
    /// Lines that are no rows, with their numbers.
    pub unreadable: Vec<(usize, Vec<u8>)>,
    /// Whether the last line is half a row, as an interrupted run may leave it.
    pub is_cut: bool,
}

/// Reads a file of rows, whatever it holds.
#[must_use]
pub fn read(bytes: &[u8], form: Form) -> Earlier {
    let mut earlier = Earlier::default();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let is_header =
        |line: &&[u8]| form == Form::Csv && line.ends_with(b"\n") && is_csv_header(line);
    let mut next = usize::from(lines.first().is_some_and(is_header));
    while next < lines.len() {
        let line = lines[next];
        if line.trim_ascii().is_empty() {
            next += 1;
        } else if let Some((row, length)) = first_row(&lines[next..], form) {
            earlier.rows.push(row);
            next += length;
        } else if is_unfinished(&lines[next..], form) {
            earlier.is_cut = true;
            break;
        } else {
            earlier.unreadable.push((next + 1, line.to_vec()));
            next += 1;
        }
    }
    earlier
}

/// Most lines of a row.
const LONGEST_ROW: usize = 512;

/// The row that starts on the first line, and its number of lines: in CSV a quoted text may have breaks.
fn first_row(lines: &[&[u8]], form: Form) -> Option<(BatchRow, usize)> {
    let length = end(lines, form)?;
    let text = lines[..length].concat();
    let text = str::from_utf8(&text).ok()?.strip_suffix('\n')?;
    let row = match form {
        Form::JsonLines => serde_json::from_str(text).ok(),
        Form::Csv => {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .from_reader(text.as_bytes());
            of_record(&reader.records().next()?.ok()?)
        }
    };
    Some((row?, length))
}

/// Whether the lines, which start with no row, are part of one that was to go on, and nothing else.
fn is_unfinished(lines: &[&[u8]], form: Form) -> bool {
    let is_open = match end(lines, form) {
        None => true,
        Some(end) => end == lines.len() && !lines[end - 1].ends_with(b"\n"),
    };
    let mut later = 1..lines.len();
    is_open
        && lines.len() <= LONGEST_ROW
        && !later.any(|at| first_row(&lines[at..], form).is_some())
}

/// Number of lines after which a row ends that starts on the first.
fn end(lines: &[&[u8]], form: Form) -> Option<usize> {
    let mut within = lines.iter().take(LONGEST_ROW);
    match form {
        Form::JsonLines => Some(1),
        Form::Csv => Some(1 + within.position(closes_quotes())?),
    }
}

/// Told one line after the other, whether every quote is closed at its end.
fn closes_quotes() -> impl FnMut(&&[u8]) -> bool {
    let mut open = false;
    move |line| {
        let quotes = line.split(|&byte| byte == b'"').count() - 1;
        open ^= quotes % 2 == 1;
        !open
    }
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

    /// The rows as a file has them.
    fn as_written(form: Form) -> Vec<BatchRow> {
        let mut rows = rows();
        for error in rows.iter_mut().filter_map(|row| row.error.as_mut()) {
            if form == Form::Csv {
                *error = one_line(error);
            }
        }
        rows
    }

    const FORMS: [Form; 2] = [Form::JsonLines, Form::Csv];

    #[test]
    fn half_a_row_is_no_row() {
        for form in FORMS {
            let rows = || as_written(form);
            let text = form.all(&rows());
            for end in 0..=text.len() {
                let earlier = read(&text.as_bytes()[..end], form);
                let count = earlier.rows.len();
                assert_eq!(earlier.rows, rows()[..count], "{}", &text[..end]);
                assert!(earlier.unreadable.is_empty(), "{}", &text[..end]);
                let is_whole = end == 0 || end == form.all(&rows()[..count]).len();
                assert_eq!(earlier.is_cut, !is_whole, "{}", &text[..end]);
            }
            assert_eq!(read(text.as_bytes(), form).rows, rows());
        }
    }

    #[test]
    fn what_is_no_row_is_kept_apart() {
        for form in FORMS {
            for position in 0..=rows().len() {
                for damage in [
                    &b"nonsense\n"[..],
                    b"{}\n",
                    b"\xff,\xfe\n",
                    b"a,b,c,d,e,f,g,h,i\n",
                ] {
                    let mut bytes = form.all(&rows()[..position]).into_bytes();
                    let line = bytes.split(|&byte| byte == b'\n').count();
                    bytes.extend(damage);
                    for row in &rows()[position..] {
                        bytes.extend(form.one(row).into_bytes());
                    }
                    let earlier = read(&bytes, form);
                    assert_eq!(earlier.rows, as_written(form));
                    assert_eq!(earlier.unreadable, [(line, damage.to_vec())]);
                }
            }
        }
    }

    #[test]
    fn the_header_names_every_field() {
        let row = json!(rows()[0]);
        let keys: Vec<&String> = row.as_object().expect("an object").keys().collect();
        assert_eq!(keys, COLUMNS.iter().collect::<Vec<_>>());
        assert_eq!(keys[..OWN.len()], OWN);
    }

    #[test]
    fn errors_are_one_line_of_csv_and_rows_of_before_are_read() {
        let text = csv(&rows());
        assert_eq!(text.lines().count(), 1 + rows().len());
        let message = "unknown key `gpu`\n --> a.toml:3:1\n  |\n3 | gpu = 1\n  | ^^^\nhint: `gpus`";
        let line = "unknown key `gpu` --> a.toml:3:1; hint: `gpus`";
        assert_eq!(one_line(message), line);
        let before = format!("{}\na.toml,c0ffee,error,,,,,,wrong\n", OWN.join(","));
        let earlier = read(before.as_bytes(), Form::Csv);
        assert_eq!(
            earlier.rows,
            [BatchRow::failed("a.toml", "c0ffee", "wrong")]
        );
        assert!(earlier.unreadable.is_empty());
    }

    #[test]
    fn files_of_one_name_keep_their_folders() {
        let row = |path: &str| BatchRow::failed(path, "c0ffee", "wrong");
        let long = "a/folder/whose/path/is/longer/than/the/table/has/room/for";
        let [one, other] = ["a", "b"].map(|last| format!("{long}/{last}/job.toml"));
        let text = table(
            &[row(&one), row(&other), row("own.toml")],
            &Style::default(),
        );
        assert!(
            text.contains("/a/job.toml") && text.contains("/b/job.toml"),
            "{text}"
        );
        let alone = table(&[row(&one), row("own.toml")], &Style::default());
        assert!(!alone.contains("/a/job.toml"), "{alone}");
    }
}
