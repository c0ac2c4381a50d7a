//! The answers to many instances as JSON lines or CSV, written row by row and read back whatever became of
//! the file.

use serde_json::{Value as Json, json};

use super::{BatchRow, COLUMNS, OWN};

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
pub(super) fn one_line(text: &str) -> String {
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
