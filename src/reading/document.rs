//! TOML text as a tree in which every value knows where it was written.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::error::{Problems, shown};
use crate::files::{Content, read_text};

/// A text that values are read from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// What messages call it: the path of a file, or the command line.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
    /// The folder that paths within it are relative to.
    pub(crate) folder: PathBuf,
    /// Whether lines are numbered.
    pub(crate) kind: SourceKind,
}

impl Source {
    /// A file that the value at `at` names.
    pub(crate) fn named_at(file: &Path, at: &Origin, problems: &mut Problems) -> Option<Arc<Self>> {
        match read_text(file, Content::Settings) {
            Ok(text) => Some(Arc::new(Self::of_file(file, text))),
            Err(error) => {
                let file = shown(&file.to_string_lossy());
                let text = format!("cannot read `{file}`: {}", error.reason);
                problems.add(at, text, error.hint);
                None
            }
        }
    }

    /// The text of a file.
    pub(crate) fn of_file(file: &Path, text: String) -> Self {
        Self {
            name: file.display().to_string(),
            text,
            folder: file.parent().unwrap_or(Path::new("")).to_owned(),
            kind: SourceKind::File,
        }
    }
}

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKind {
    /// A file, shown with line and column.
    File,
    /// A table of the catalog, which is never at fault and not shown.
    Catalog,
    /// One argument of the command line.
    Argument,
}

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The text.
    pub(crate) source: Arc<Source>,
    /// Bytes of the text.
    pub(crate) span: Range<usize>,
}

impl Origin {
    /// Bytes of `source`.
    pub(crate) fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        Self {
            source: Arc::clone(source),
            span,
        }
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The value.
    pub(crate) value: Tree,
    /// Its place.
    pub(crate) origin: Origin,
}

/// A TOML value.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    /// A string.
    Text(String),
    /// A whole number; `None` if it has more digits than an `i128` holds.
    Integer(Option<i128>),
    /// A number with a fraction; may be infinite or not a number.
    Float(f64),
    /// `true` or `false`.
    Switch(bool),
    /// A date or time, which no key takes.
    Date,
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A table, in the order of its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// Keys and values; each key once.
    pub(crate) entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) key_origin: Origin,
    /// The value.
    pub(crate) node: Node,
}

impl Table {
    /// The value of `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    /// Drops the entries whose key does not satisfy `keep`.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.entries.retain(|entry| keep(&entry.key));
    }
}

impl Node {
    /// The value as it was typed.
    pub(crate) fn written(&self) -> &str {
        &self.origin.source.text[self.origin.span.clone()]
    }
}

impl Tree {
    /// The tree of a number of JSON.
    pub(crate) fn of_number(number: &serde_json::Number) -> Self {
        let whole = number.as_i64().map(i128::from);
        match whole.or_else(|| number.as_u64().map(i128::from)) {
            Some(whole) => Self::Integer(Some(whole)),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    /// What messages call the kind of value, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number with a fraction",
            Self::Switch(_) => "`true` or `false`",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// What the parser says of a key that is written twice.
const DUPLICATE: &str = "duplicate key";

/// Parses a document. Syntax errors are collected in `problems`; the parser stops at the first,
/// except that a key written twice leaves the rest readable.
pub(crate) fn parse(source: &Arc<Source>, problems: &mut Problems) -> Table {
    // A byte order mark is legal before TOML and no part of it.
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let shift = source.text.len() - text.len();
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) if error.message() == DUPLICATE => {
            let (table, errors) = DeTable::parse_recoverable(text);
            if !errors.iter().all(|error| error.message() == DUPLICATE) {
                syntax_problem(source, &error, shift, problems);
                return Table::default();
            }
            for error in &errors {
                syntax_problem(source, error, shift, problems);
            }
            table
        }
        Err(error) => {
            syntax_problem(source, &error, shift, problems);
            return Table::default();
        }
    };
    Reading { source, shift }.table(table.into_inner())
}

/// Parses a single value.
pub(crate) fn parse_value(source: &Arc<Source>, start: usize) -> Option<Node> {
    let value = DeValue::parse(&source.text[start..]).ok()?;
    Some(
        Reading {
            source,
            shift: start,
        }
        .node(value),
    )
}

/// Turns the parser's types into ours.
struct Reading<'a> {
    source: &'a Arc<Source>,
    /// Bytes of the source before the parsed text.
    shift: usize,
}

impl Reading<'_> {
    fn origin(&self, span: Range<usize>) -> Origin {
        Origin::new(self.source, span.start + self.shift..span.end + self.shift)
    }

    fn table(&self, table: DeTable<'_>) -> Table {
        let entries = table.into_iter().map(|(key, value)| Entry {
            key_origin: self.origin(key.span()),
            key: key.into_inner().into_owned(),
            node: self.node(value),
        });
        Table {
            entries: entries.collect(),
        }
    }

    /// The parser limits how deep values nest, so recursion is safe.
    fn node(&self, value: Spanned<DeValue<'_>>) -> Node {
        let origin = self.origin(value.span());
        let value = match value.into_inner() {
            DeValue::String(text) => Tree::Text(text.into_owned()),
            DeValue::Integer(number) => Tree::Integer(integer(&number)),
            DeValue::Float(number) => Tree::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(on) => Tree::Switch(on),
            DeValue::Datetime(_) => Tree::Date,
            DeValue::Array(items) => {
                Tree::List(items.into_iter().map(|item| self.node(item)).collect())
            }
            DeValue::Table(table) => Tree::Table(self.table(table)),
        };
        Node { value, origin }
    }
}

fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

fn syntax_problem(
    source: &Arc<Source>,
    error: &toml::de::Error,
    shift: usize,
    problems: &mut Problems,
) {
    let end = source.text.len();
    let span = error.span().map_or(end..end, |span| {
        (span.start + shift).min(end)..(span.end + shift).min(end)
    });
    let origin = Origin::new(source, span);
    let message = error.message();
    if message == DUPLICATE {
        let key = shown(&source.text[origin.span.clone()]);
        problems.add(
            &origin,
            format!("`{key}` is written twice"),
            "keep one of the two",
        );
    } else if message.contains("recursion") {
        let hint = "no key takes more than a list within a table";
        problems.add(&origin, "the values nest too deeply", hint);
    } else {
        problems.add(
            &origin,
            format!("the text is not TOML: {message}"),
            "a line is `key = value` or `[section]`; text stands in double quotes",
        );
    }
}
