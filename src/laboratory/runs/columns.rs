//! The columns of a file of runs, and what their fields may hold.

use std::cell::RefCell;
use std::fmt::Arguments;

use csv::StringRecord;

use super::record::{NECESSARY, OPTIONAL, Status, UNUSED};
use crate::reading::spelling::nearest;

/// Columns for which the name of a preset in `model` may stand in.
const SHAPE: [&str; 5] = ["layers", "hidden", "ffn", "heads", "vocab"];

/// Necessary columns that a header lacks, each with a column of the file that may be meant.
pub(super) fn missing(header: &StringRecord) -> Vec<String> {
    let has_shape = SHAPE.iter().any(|column| has(header, column));
    let is_named = has(header, "model") && !has_shape;
    let absent = NECESSARY
        .iter()
        .filter(|&column| !(has(header, column) || is_named && SHAPE.contains(column)));
    absent
        .map(|column| {
            let unknown = header.iter().filter(|name| !is_known(name));
            match nearest(column, unknown).first() {
                Some(name) => format!("`{column}` (is it `{name}`?)"),
                None => format!("`{column}`"),
            }
        })
        .collect()
}

/// Columns that stand in a header more than once.
pub(super) fn repeated(header: &StringRecord) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (index, name) in header.iter().enumerate() {
        let before = header.iter().take(index).any(|other| other == name);
        let quoted = format!("`{name}`");
        if before && !name.is_empty() && !found.contains(&quoted) {
            found.push(quoted);
        }
    }
    found
}

/// Unknown columns that are near to a known one which the file lacks.
pub(super) fn misspelt(header: &StringRecord) -> Vec<String> {
    let unknown = header.iter().filter(|name| !is_known(name));
    unknown
        .filter_map(|name| {
            let absent = OPTIONAL
                .iter()
                .copied()
                .filter(|column| !has(header, column));
            let meant = *nearest(name, absent).first()?;
            Some(format!(
                "the unknown column `{name}` is ignored: did you mean `{meant}`?"
            ))
        })
        .collect()
}

fn has(header: &StringRecord, column: &str) -> bool {
    header.iter().any(|name| name == column)
}

fn is_known(name: &str) -> bool {
    [NECESSARY, OPTIONAL, UNUSED]
        .iter()
        .any(|columns| columns.contains(&name))
}

/// The columns of a row. A field that cannot be read counts as empty, and is noted.
pub(super) struct Fields<'f, 't> {
    field: &'f dyn Fn(&str) -> Option<&'t str>,
    faults: RefCell<Vec<String>>,
}

/// Longest part of a field that is shown.
const LONGEST_SHOWN: usize = 40;

impl<'f, 't> Fields<'f, 't> {
    pub(super) fn new(field: &'f dyn Fn(&str) -> Option<&'t str>) -> Self {
        Self {
            field,
            faults: RefCell::default(),
        }
    }

    /// What is wrong with the fields that were asked for, if anything is.
    pub(super) fn into_fault(self) -> Option<String> {
        let faults = self.faults.into_inner();
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    fn field(&self, column: &str) -> &'t str {
        (self.field)(column).map_or("", str::trim)
    }

    /// What `read` makes of a field; `None` where it is empty or not what is expected.
    fn checked<T>(
        &self,
        column: &str,
        expected: Arguments,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.field(column);
        let found = read(text);
        if found.is_none() && !text.is_empty() {
            let shown = match text.char_indices().nth(LONGEST_SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text.to_owned(),
            };
            let fault = format!("column `{column}` holds `{shown}`, not {expected}");
            self.faults.borrow_mut().push(fault);
        }
        found
    }

    pub(super) fn text(&self, column: &str) -> String {
        self.field(column).to_owned()
    }

    pub(super) fn lower_case(&self, column: &str) -> String {
        self.field(column).to_ascii_lowercase()
    }

    /// A number for which something holds.
    fn such(&self, column: &str, expected: Arguments, holds: impl Fn(f64) -> bool) -> Option<f64> {
        self.checked(column, expected, |text| {
            text.parse().ok().filter(|&number| holds(number))
        })
    }

    /// A number from 0 to `most`, in `unit`; `None` where the field is empty.
    pub(super) fn number(&self, column: &str, most: f64, unit: &str) -> Option<f64> {
        let expected = format_args!("a number{unit} from 0 to {most}");
        self.such(column, expected, |number| (0.0..=most).contains(&number))
    }

    /// A bus bandwidth in GB/s: no measured one is 0.
    pub(super) fn bandwidth(&self, column: &str) -> Option<f64> {
        const MOST: f64 = 1e6;
        let expected = format_args!("GB/s above 0 and up to {MOST}");
        self.such(column, expected, |number| number > 0.0 && number <= MOST)
    }

    /// A whole number (written `8` or `8.0`) from 0 to `most`.
    fn whole(&self, column: &str, most: f64) -> Option<u64> {
        let expected = format_args!("a whole number from 0 to {most}");
        let whole = |number: f64| (0.0..=most).contains(&number) && number.fract() == 0.0;
        let number = self.such(column, expected, whole);
        number.map(|number| number as u64)
    }

    pub(super) fn size(&self, column: &str) -> Option<u64> {
        self.whole(column, 1e9)
    }

    pub(super) fn degree(&self, column: &str) -> Option<u32> {
        let number = self.whole(column, f64::from(1 << 20));
        number.map(|number| number as u32)
    }

    pub(super) fn switch(&self, column: &str) -> Option<bool> {
        let expected = format_args!("true or false");
        self.checked(column, expected, |text| {
            match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            }
        })
    }

    pub(super) fn usually_true(&self, column: &str) -> bool {
        self.switch(column).unwrap_or(true)
    }

    pub(super) fn status(&self, column: &str) -> Status {
        let expected = format_args!("`ok` or `oom`");
        let status = self.checked(column, expected, Status::parse);
        status.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_columns_are_noticed() {
        let header = |names: &[&str]| StringRecord::from(names.to_vec());
        let check = |names: &[&str], expected: &[&str]| {
            let found = misspelt(&header(names)).join("\n");
            assert_eq!(found.lines().count(), expected.len(), "{found}");
            for part in expected {
                assert!(found.contains(part), "{found}");
            }
        };
        check(&["peak_memory_gb"], &["did you mean `peak_memory_gib`?"]);
        check(&["step_time_ms"], &["did you mean `step_time_s`?"]);
        check(&["KV_HEADS"], &["did you mean `kv_heads`?"]);
        // A note of the user's own, and a column beside the one that is meant.
        check(&["node_list", "loss", "date", "commit", "notes"], &[]);
        check(&["mfu", "mfu2"], &[]);
        let missing = missing(&header(&["seqlen", "status"])).join(" ");
        assert!(missing.contains("`seq_len` (is it `seqlen`?)"), "{missing}");
        assert_eq!(repeated(&header(&["mfu", "", "run", "", "mfu"])), ["`mfu`"]);
    }
}
