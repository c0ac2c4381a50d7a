//! The checker's verdict: as a document, and for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Extent, Named, Verdict};
use crate::plan::Formulation;
use crate::report::document::{Document, LayoutDocument, Status, rounded};
use crate::report::layout_text::line;
use crate::report::style::{Meaning, Style, wrap};
use crate::report::{Answer, number};

/// What the checker says of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = VerdictDocument::FORMAT))]
    pub schema: String,
    /// Whether the answer is true.
    pub verdict: VerdictStatus,
    /// The status of the answer; null where it is rejected.
    pub status: Option<Status>,
    /// The program that the answer is of; null where it is rejected.
    pub formulation: Option<Formulation>,
    /// The chosen layout; null where there is none, and where the answer is rejected.
    pub layout: Option<LayoutFigures>,
    /// The extent of the search, over all numbers of GPUs; null where nothing was to be searched.
    pub searched: Option<SearchedDocument>,
    /// What was not checked, and why.
    pub unchecked: Vec<String>,
    /// The first thing that is wrong; null where the answer is accepted.
    pub reason: Option<ReasonDocument>,
}

/// Whether an answer is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum VerdictStatus {
    /// All that was checked is true.
    Accepted,
    /// The time limit ended the search; rules and figures are true.
    Unfinished,
    /// Something is false.
    Rejected,
}

/// A layout with its speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutFigures {
    /// The layout.
    #[serde(flatten)]
    pub layout: LayoutDocument,
    /// Its model FLOP utilisation.
    pub mfu: f64,
    /// Its step time, in seconds.
    pub step_time_s: f64,
}

/// How much was searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedDocument {
    /// Combinations of the space.
    pub combinations: u64,
    /// They break a rule on discrete choices.
    pub broken: u64,
    /// A simple bound excludes them, given what the search itself has found.
    pub passed_over: u64,
    /// Their best layout was computed, or that they have none.
    pub searched: u64,
}

/// Something in an answer that is not as it has to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonDocument {
    /// Where in the answer, such as `prediction.mfu`.
    pub place: String,
    /// What is wrong.
    pub cause: String,
    /// The value in the answer; null where not one value is wrong.
    pub stated: Option<String>,
    /// What it has to be; null where not one value is wrong.
    pub recomputed: Option<String>,
    /// A layout that is better than the answer says is possible; null where it is not about that.
    pub better: Option<LayoutFigures>,
}

impl Document for VerdictDocument {
    const FORMAT: &'static str = "parlayout/verdict/v1";
}

impl VerdictDocument {
    /// The verdict on an answer.
    #[must_use]
    pub fn new(verdict: &Verdict) -> Self {
        let empty = Self {
            schema: Self::FORMAT.to_owned(),
            verdict: VerdictStatus::Rejected,
            status: None,
            formulation: None,
            layout: None,
            searched: None,
            unchecked: Vec::new(),
            reason: None,
        };
        match verdict {
            Verdict::Accepted(accepted) => Self {
                verdict: if accepted.is_cut {
                    VerdictStatus::Unfinished
                } else {
                    VerdictStatus::Accepted
                },
                status: Some(accepted.status),
                formulation: Some(accepted.formulation),
                layout: accepted.layout.as_ref().map(LayoutFigures::new),
                searched: accepted.searched.map(SearchedDocument::new),
                unchecked: accepted.unchecked.clone(),
                ..empty
            },
            Verdict::Rejected(rejected) => Self {
                reason: Some(ReasonDocument {
                    place: rejected.place.clone(),
                    cause: rejected.cause.clone(),
                    stated: rejected.stated.clone(),
                    recomputed: rejected.recomputed.clone(),
                    better: rejected.better.as_ref().map(LayoutFigures::new),
                }),
                ..empty
            },
        }
    }
}

impl Answer for VerdictDocument {
    /// The verdict, with what was checked or what is wrong.
    fn text(&self, style: &Style) -> String {
        let mut lines = match &self.reason {
            Some(reason) => rejected(reason, style),
            None => accepted(self, style),
        };
        lines.push(String::new());
        lines.join("\n")
    }
}

fn accepted(verdict: &VerdictDocument, style: &Style) -> Vec<String> {
    let (word, meaning) = match verdict.verdict {
        VerdictStatus::Unfinished => ("not finished", Meaning::Warning),
        _ => ("accepted", Meaning::Good),
    };
    let status = verdict.status.map_or("", Status::as_str);
    let mut lines = vec![style.paint(meaning, &format!("{word}: {status}"))];
    lines.extend(verdict.layout.as_ref().map(|it| wrap(&it.line(), 2)));
    lines.push("Every figure and every rule was checked.".to_owned());
    if let Some(searched) = &verdict.searched {
        let line = format!(
            "{} combinations were searched again: {} break a rule, {} cannot be as fast as what was \
             found, {} were solved one by one.",
            searched.combinations, searched.broken, searched.passed_over, searched.searched
        );
        lines.push(wrap(&line, 0));
    }
    let unchecked = verdict.unchecked.iter();
    lines.extend(unchecked.map(|text| wrap(&format!("Not checked: {text}."), 2)));
    lines
}

fn rejected(reason: &ReasonDocument, style: &Style) -> Vec<String> {
    let headline = format!("rejected: `{}`: {}", reason.place, reason.cause);
    let mut lines = vec![style.wrapped(Meaning::Bad, &headline)];
    if let (Some(stated), Some(recomputed)) = (&reason.stated, &reason.recomputed) {
        lines.push(wrap(&format!("  the answer says {stated}"), 4));
        lines.push(wrap(&format!("  computed anew   {recomputed}"), 4));
    }
    let better = reason.better.as_ref();
    lines.extend(better.map(|it| wrap(&format!("  {}", it.line()), 4)));
    lines
}

impl LayoutFigures {
    fn new(named: &Named) -> Self {
        let prediction = &named.evaluated.prediction;
        Self {
            layout: LayoutDocument::new(&named.evaluated.layout, named.global_batch),
            mfu: rounded(prediction.mfu.value()),
            step_time_s: rounded(prediction.step_time.value()),
        }
    }

    fn line(&self) -> String {
        format!(
            "MFU {}: {}",
            number::exact_mfu(self.mfu),
            line(&self.layout.layout())
        )
    }
}

impl SearchedDocument {
    const fn new(extent: Extent) -> Self {
        Self {
            combinations: extent.combinations,
            broken: extent.broken,
            passed_over: extent.passed_over,
            searched: extent.searched,
        }
    }
}
