//! Many instances, one row each: as a table for people, as JSON lines or CSV for programs.

mod file;
mod table;

pub use file::{Earlier, Form, csv, csv_line, is_new, json_line, json_lines, read};
pub use table::table;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::document::{PredictionDocument, rounded, rounded_probability};
use super::layout_text::line;
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

#[cfg(test)]
mod tests {
    use super::file::one_line;
    use super::*;
    use crate::fixture;
    use crate::plan::Infeasibility;
    use crate::report::style::{Style, WIDTH, columns};

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
