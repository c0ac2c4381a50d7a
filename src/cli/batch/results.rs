//! The file of results of a batch: it grows as instances are solved, and no finished row is ever lost.
//!
//! Rows are appended, each by one write; the file as a whole is only replaced by a file that has every row.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use parlayout::files::{self, Content};
use parlayout::report::batch::{BatchRow, BatchStatus, Earlier, Form, is_new, read};

use super::complain;

/// The results of this batch and of those before it.
pub(super) struct Results {
    path: PathBuf,
    form: Form,
    earlier: HashMap<String, BatchRow>,
    file: Mutex<File>,
    unreadable: Unreadable,
}

/// Whether the file had lines that are no rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    None,
    Some,
}

impl Results {
    /// Opens the file and reads the rows that it already holds. Lines that are no rows go to a file beside.
    pub(super) fn open(path: &Path) -> Result<Self> {
        files::may_write(path)?;
        let csv = path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("csv"));
        let form = if csv { Form::Csv } else { Form::JsonLines };
        let bytes = if path.exists() {
            files::read(path, Content::Results)?
        } else {
            Vec::new()
        };
        let earlier = read(&bytes, form);
        if earlier.rows.is_empty() && !is_new(&bytes, form) {
            bail!(
                "`{}` exists and holds no rows of an earlier batch: name another file, or remove it",
                path.display()
            );
        }
        let unreadable = keep_apart(path, &earlier)?;
        let text = form.all(&earlier.rows);
        if text.as_bytes() != bytes {
            files::write(path, &text)?;
        }
        let file = OpenOptions::new().append(true).create(true).open(path);
        let earlier = earlier.rows.into_iter();
        Ok(Self {
            path: path.to_owned(),
            form,
            earlier: earlier
                .map(|row| (row.instance().to_owned(), row))
                .collect(),
            file: Mutex::new(file.with_context(|| format!("cannot write `{}`", path.display()))?),
            unreadable,
        })
    }

    /// The earlier answer for the same input, unless it was a failure or stopped at a limit.
    pub(super) fn earlier(&self, instance: &str, digest: &str) -> Option<BatchRow> {
        let row = self.earlier.get(instance)?;
        let settled = matches!(row.status(), BatchStatus::Optimal | BatchStatus::Infeasible);
        (settled && row.digest() == digest).then(|| row.clone())
    }

    pub(super) fn append(&self, row: &BatchRow) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(self.form.one(row).as_bytes())
            .with_context(|| format!("cannot write `{}`", self.path.display()))
    }

    /// Writes all rows in order, in place of those in the order of solving; earlier rows of instances that
    /// this batch does not name stay.
    pub(super) fn finish(self, rows: &[BatchRow]) -> Result<Unreadable> {
        let earlier = self.earlier.iter();
        let mut all: BTreeMap<&str, &BatchRow> = earlier
            .map(|(instance, row)| (instance.as_str(), row))
            .collect();
        all.extend(rows.iter().map(|row| (row.instance(), row)));
        let rows: Vec<BatchRow> = all.into_values().cloned().collect();
        files::write(&self.path, &self.form.all(&rows))?;
        Ok(self.unreadable)
    }
}

/// Appends the lines that are no rows to a file beside, and says so.
fn keep_apart(path: &Path, earlier: &Earlier) -> Result<Unreadable> {
    if earlier.unreadable.is_empty() {
        return Ok(Unreadable::None);
    }
    let mut beside: OsString = path.into();
    beside.push(".unreadable");
    let lines = earlier.unreadable.iter();
    let bytes: Vec<u8> = lines.clone().flat_map(|(_, line)| line.clone()).collect();
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(&beside)
        .and_then(|mut file| file.write_all(&bytes))
        .with_context(|| format!("cannot write `{}`", beside.display()))?;
    let numbers: Vec<String> = lines
        .take(MOST_NAMED)
        .map(|(number, _)| number.to_string())
        .collect();
    let more = earlier.unreadable.len() - numbers.len();
    complain(&format!(
        "error: `{}` has lines that are no rows of a batch: {}{}\nhint: they are kept in `{}`; all other \
         rows stay",
        path.display(),
        numbers.join(", "),
        if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        },
        beside.display()
    ));
    Ok(Unreadable::Some)
}

/// Most lines that are named by their numbers.
const MOST_NAMED: usize = 20;
