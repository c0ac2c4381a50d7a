//! What is wrong with an input, shown with the place and a remedy.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::document::{Origin, SourceKind};
use super::{join, spelling};

/// Why an input cannot be used.
#[derive(Debug, Clone, Error)]
pub enum InputError {
    /// The file cannot be read as text.
    #[error("cannot read `{}`: {reason}\nhint: {hint}", shown(&.path.to_string_lossy()))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What stands in the way.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// The text breaks rules: all that were found.
    #[error("{0}")]
    Broken(Problems),
}

impl InputError {
    /// The first line, without place and remedy, for a table of many files.
    #[must_use]
    pub fn summary(&self) -> String {
        let text = self.to_string();
        let first = text.lines().next().unwrap_or_default().to_owned();
        match self {
            Self::Broken(problems) if problems.list.len() > 1 => {
                format!("{first} (and {} more)", problems.list.len() - 1)
            }
            _ => first,
        }
    }
}

/// Everything that is wrong with an input.
///
/// Displays as one text that reads after `error: `; each further problem starts with `error: `
/// itself.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    list: Vec<Problem>,
    warnings: Vec<String>,
    elsewhere: Option<Elsewhere>,
}

/// A hint for a key that belongs in another section than that at the path: `elsewhere(path, key)`.
pub(crate) type Elsewhere = fn(&str, &str) -> Option<String>;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong: lowercase, no final period.
    pub text: String,
    /// What to do about it.
    pub hint: String,
    /// The value at fault; `None` if it is about the input as a whole.
    origin: Option<Origin>,
}

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or `command line`.
    pub source: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Most problems that are printed.
const MOST_SHOWN: usize = 30;
/// Characters of a line that are printed at most.
const WIDEST: usize = 90;

impl Problems {
    /// No problems yet of a text whose sections are known to `elsewhere`.
    pub(crate) fn of_sections(elsewhere: Elsewhere) -> Self {
        Self {
            elsewhere: Some(elsewhere),
            ..Self::default()
        }
    }

    /// The problems, in the order of the text.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// Adds a problem of the value at `origin`.
    pub(crate) fn add(
        &mut self,
        origin: &Origin,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add_anywhere(Some(origin), text, hint);
    }

    /// Adds a problem that may have no place.
    pub(crate) fn add_anywhere(
        &mut self,
        origin: Option<&Origin>,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.list.push(Problem {
            text: text.into(),
            hint: hint.into(),
            origin: origin
                .filter(|origin| origin.source.kind != SourceKind::Catalog)
                .cloned(),
        });
    }

    /// Adds a key that the section at `path`, which has the keys `known`, does not have.
    pub(crate) fn add_unknown_key(
        &mut self,
        origin: &Origin,
        path: &str,
        key: &str,
        known: &[&'static str],
    ) {
        if let Some(what) = spelling::not_modelled(key) {
            let text = format!("`{}` is not modelled yet: {what}", shown(&join(path, key)));
            self.add(origin, text, "remove the key, or plan without it");
            return;
        }
        let elsewhere = |key: &str| self.elsewhere.and_then(|hint| hint(path, key));
        let hint = elsewhere(key)
            .or_else(|| spelling::did_you_mean(key, known.iter().copied()))
            .or_else(|| elsewhere(spelling::synonym(key)?))
            .unwrap_or_else(|| {
                format!("known keys here: {}", spelling::list(known.iter().copied()))
            });
        self.add(
            origin,
            format!("unknown key `{}`", shown(&join(path, key))),
            hint,
        );
    }

    /// Notes what the reader should know, though it is not an error.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// Adds all of another list.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.list.append(&mut other.list);
        self.warnings.append(&mut other.warnings);
    }

    /// `value` and the warnings, unless there are problems.
    pub(crate) fn none_or<T>(mut self, value: Option<T>) -> Result<(T, Vec<String>), InputError> {
        match value {
            Some(value) if self.list.is_empty() => Ok((value, self.warnings)),
            _ => {
                debug_assert!(!self.list.is_empty(), "a value is missing without a reason");
                self.list.sort_by_key(Problem::position);
                Err(InputError::Broken(self))
            }
        }
    }
}

impl Problem {
    /// Where the problem is, if at one place.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let origin = self.origin.as_ref()?;
        let (line, start) = line_of(origin);
        let before = &origin.source.text[start..origin.span.start];
        Some(Place {
            source: origin.source.name.clone(),
            line,
            column: before.chars().count() + 1,
        })
    }

    /// Files before arguments, each in the order of its text, and at last what has no place.
    fn position(&self) -> (u8, usize) {
        match &self.origin {
            Some(origin) if origin.source.kind == SourceKind::File => (0, origin.span.start),
            Some(origin) => (1, origin.span.start),
            None => (2, 0),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.list.iter().take(MOST_SHOWN).enumerate() {
            if position > 0 {
                f.write_str("\nerror: ")?;
            }
            writeln!(f, "{}", problem.text)?;
            if let Some(origin) = &problem.origin {
                write_place(f, problem, origin)?;
            }
            if !problem.hint.is_empty() {
                writeln!(f, "hint: {}", problem.hint)?;
            }
        }
        if self.list.len() > MOST_SHOWN {
            writeln!(f, "\nand {} more", self.list.len() - MOST_SHOWN)?;
        }
        Ok(())
    }
}

/// The line with the value underlined.
fn write_place(f: &mut fmt::Formatter<'_>, problem: &Problem, origin: &Origin) -> fmt::Result {
    let Some(place) = problem.place() else {
        return Ok(());
    };
    let number = match origin.source.kind {
        SourceKind::File => place.line.to_string(),
        SourceKind::Argument | SourceKind::Catalog => String::new(),
    };
    let margin = " ".repeat(number.len());
    match origin.source.kind {
        SourceKind::File => writeln!(
            f,
            "{margin} --> {}:{}:{}",
            shown(&place.source),
            place.line,
            place.column
        )?,
        SourceKind::Argument | SourceKind::Catalog => {
            writeln!(f, "{margin} --> {}", place.source)?;
        }
    }
    let (_, start) = line_of(origin);
    let text = &origin.source.text;
    let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line: Vec<char> = text[start..end].trim_end_matches('\r').chars().collect();
    let column = place.column - 1;
    let marked = text[origin.span.start..origin.span.end.min(end).max(origin.span.start)]
        .chars()
        .count();
    // A long line is cut to a window that starts a little before the value.
    let first = if line.len() <= WIDEST {
        0
    } else {
        column.saturating_sub(WIDEST / 3)
    };
    let last = line.len().min(first + WIDEST);
    let (before, after) = (
        if first > 0 { "…" } else { "" },
        if last < line.len() { "…" } else { "" },
    );
    let window: String = line[first.min(last)..last]
        .iter()
        .map(|c| if c.is_control() { ' ' } else { *c })
        .collect();
    let carets = marked.min(last.saturating_sub(column)).max(1);
    let indent = column - first.min(column) + before.chars().count();
    writeln!(f, "{margin} |")?;
    writeln!(f, "{number} | {before}{window}{after}")?;
    writeln!(f, "{margin} | {}{}", " ".repeat(indent), "^".repeat(carets))
}

/// Number of the line in which the origin starts, from 1, and the byte at which it starts.
fn line_of(origin: &Origin) -> (usize, usize) {
    let before = &origin.source.text[..origin.span.start];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, start)
}

/// Text of the user, safe to print: no control characters, not too long.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}
