//! The columns of a file of runs, and what their fields may hold.

use std::cell::RefCell;
use std::collections::HashMap;

use csv::StringRecord;

/// Columns without which no row can be modelled.
const REQUIRED: [&str; 14] = [
    "layers",
    "hidden",
    "ffn",
    "heads",
    "vocab",
    "gpu",
    "gpus",
    "seq_len",
    "global_batch",
    "micro_batch",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "status",
];

/// All other columns with a meaning.
const OPTIONAL: [&str; 30] = [
    "source",
    "group",
    "run",
    "framework",
    "model",
    "kv_heads",
    "mlp_matrices",
    "experts",
    "experts_per_token",
    "gpus_per_node",
    "internode_allreduce_gb_s",
    "intranode_allreduce_gb_s",
    "context_parallel",
    "expert_parallel",
    "virtual_stages",
    "schedule",
    "sequence_parallel",
    "checkpointing",
    "sharding",
    "precision",
    "gradient_bytes",
    "attention_kernel",
    "rmsnorm_kernel",
    "variant",
    "step_time_s",
    "peak_memory_gib",
    "peak_stage",
    "mfu",
    "timing_usable",
    "grade",
];

/// Least likeness (Jaro-Winkler, 1 for equal names) at which a name may be a misspelling.
const ALIKE: f64 = 0.85;

/// Necessary columns that a header lacks, each with a column of the file that may be meant.
pub(super) fn missing(header: &StringRecord) -> Vec<String> {
    let absent = REQUIRED.iter().filter(|&&column| !has(header, column));
    absent
        .map(|column| {
            let unknown = header.iter().filter(|name| !is_known(name));
            match nearest(column, unknown) {
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
            let absent = OPTIONAL.into_iter().filter(|column| !has(header, column));
            let meant = nearest(name, absent)?;
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
    REQUIRED.contains(&name) || OPTIONAL.contains(&name)
}

/// The one of the candidates that is most alike.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = name.to_ascii_lowercase().replace([' ', '-', '.'], "_");
    candidates
        .map(|candidate| {
            (
                strsim::jaro_winkler(&plain, &candidate.to_ascii_lowercase()),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// Positions of the columns, looked up once a file.
pub(super) struct Columns(HashMap<String, usize>);

impl Columns {
    pub(super) fn new(header: &StringRecord) -> Self {
        let names = header.iter().enumerate();
        Self(
            names
                .map(|(index, name)| (name.to_owned(), index))
                .collect(),
        )
    }
}

/// A row with access by column. A field that cannot be read counts as empty, and is noted.
pub(super) struct Fields<'a> {
    columns: &'a Columns,
    row: &'a StringRecord,
    faults: RefCell<Vec<String>>,
}

/// Longest part of a field that is shown.
const LONGEST_SHOWN: usize = 40;

impl<'a> Fields<'a> {
    pub(super) fn new(columns: &'a Columns, row: &'a StringRecord) -> Self {
        Self {
            columns,
            row,
            faults: RefCell::default(),
        }
    }

    /// What is wrong with the fields that were asked for, if anything is.
    pub(super) fn into_fault(self) -> Option<String> {
        let faults = self.faults.into_inner();
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    pub(super) fn note(&self, fault: String) {
        self.faults.borrow_mut().push(fault);
    }

    pub(super) fn text(&self, column: &'static str) -> &str {
        let index = self.columns.0.get(column);
        index
            .and_then(|&index| self.row.get(index))
            .map_or("", str::trim)
    }

    /// The text of a column, cut to what a message can hold.
    pub(super) fn shown(&self, column: &'static str) -> String {
        let text = self.text(column);
        match text.char_indices().nth(LONGEST_SHOWN) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        }
    }

    fn fault<T>(&self, column: &'static str, expected: &str) -> Option<T> {
        let shown = self.shown(column);
        self.note(format!("column `{column}` holds `{shown}`, not {expected}"));
        None
    }

    /// A number from 0 to `most`, in `unit`; `None` where the field is empty.
    pub(super) fn number(&self, column: &'static str, most: f64, unit: &str) -> Option<f64> {
        let text = self.text(column);
        if text.is_empty() {
            return None;
        }
        let number = text.parse::<f64>().ok();
        let number = number.filter(|number| (0.0..=most).contains(number));
        number.or_else(|| self.fault(column, &format!("a number{unit} from 0 to {most}")))
    }

    /// A bus bandwidth in GB/s: no measured one is 0.
    pub(super) fn bandwidth(&self, column: &'static str) -> Option<f64> {
        const MOST: f64 = 1e6;
        let text = self.text(column);
        if text.is_empty() {
            return None;
        }
        let number = text.parse::<f64>().ok();
        let number = number.filter(|number| *number > 0.0 && *number <= MOST);
        number.or_else(|| self.fault(column, &format!("GB/s above 0 and up to {MOST}")))
    }

    /// A whole number (written `8` or `8.0`) from 0 to `most`.
    fn whole(&self, column: &'static str, most: f64) -> Option<u64> {
        let text = self.text(column);
        if text.is_empty() {
            return None;
        }
        let number = text.parse::<f64>().ok();
        let number = number.filter(|n| (0.0..=most).contains(n) && n.fract() == 0.0);
        let number =
            number.or_else(|| self.fault(column, &format!("a whole number from 0 to {most}")));
        number.map(|number| number as u64)
    }

    pub(super) fn size(&self, column: &'static str) -> Option<u64> {
        self.whole(column, 1e9)
    }

    pub(super) fn degree(&self, column: &'static str) -> Option<u32> {
        let number = self.whole(column, f64::from(1 << 20));
        number.map(|number| number as u32)
    }

    pub(super) fn switch(&self, column: &'static str) -> Option<bool> {
        match self.text(column).to_ascii_lowercase().as_str() {
            "" => None,
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => self.fault(column, "true or false"),
        }
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
