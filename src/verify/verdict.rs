//! The checker's verdict: as a document, and for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Accepted, Extent, Named, Rejected, Verdict};
use crate::plan::Formulation;
use crate::report::document::{Document, LayoutDocument, Status, rounded, rounded_probability};
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
    /// What was checked; null where the answer is rejected.
    pub proven: Option<ProvenDocument>,
    /// The first thing that is wrong; empty where the answer is accepted.
    pub reasons: Vec<ReasonDocument>,
    /// How many are listed.
    pub reason_count: u64,
    /// What was not checked, and why.
    pub unchecked: Vec<String>,
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

/// What was checked of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenDocument {
    /// The status of the answer.
    pub status: Status,
    /// The program that the answer is of.
    pub formulation: Formulation,
    /// Combinations by how they were searched again, over all numbers of GPUs; null where nothing
    /// was to be searched.
    pub combinations: Option<CountsDocument>,
    /// The layout; null where there is none.
    pub layout: Option<LayoutDocument>,
    /// Its MFU; null without a layout.
    pub mfu: Option<f64>,
    /// Its risk of running out of memory; null without a layout.
    pub oom_probability: Option<f64>,
    /// Relative distance of its step time to the bound, 0 when optimal; null without a layout or a
    /// bound.
    pub gap: Option<f64>,
}

/// Combinations by how the search dealt with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountsDocument {
    /// All combinations of the space.
    pub total: u64,
    /// They break a rule on discrete choices.
    pub broken: u64,
    /// None of their layouts fits into memory.
    pub infeasible: u64,
    /// A simple bound excludes them, given what the search itself has found.
    pub pruned: u64,
    /// Their best layout was computed.
    pub solved: u64,
    /// A limit ended the search before.
    pub open: u64,
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
    pub better: Option<BetterDocument>,
}

/// A layout with its speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BetterDocument {
    /// The layout.
    pub layout: LayoutDocument,
    /// Its model FLOP utilisation.
    pub mfu: f64,
    /// Its step time, in seconds.
    pub step_time_s: f64,
}

impl Document for VerdictDocument {
    const FORMAT: &'static str = "parlayout/verdict/v1";
}

impl VerdictDocument {
    /// The verdict on an answer.
    #[must_use]
    pub fn new(verdict: &Verdict) -> Self {
        let (word, proven, reasons, unchecked) = match verdict {
            Verdict::Accepted(accepted) => {
                let word = if accepted.is_cut {
                    VerdictStatus::Unfinished
                } else {
                    VerdictStatus::Accepted
                };
                let proven = ProvenDocument::new(accepted);
                (word, Some(proven), Vec::new(), accepted.unchecked.clone())
            }
            Verdict::Rejected(rejected) => {
                let reasons = vec![ReasonDocument::new(rejected)];
                (VerdictStatus::Rejected, None, reasons, Vec::new())
            }
        };
        Self {
            schema: Self::FORMAT.to_owned(),
            verdict: word,
            proven,
            reason_count: reasons.len() as u64,
            reasons,
            unchecked,
        }
    }
}

impl ProvenDocument {
    fn new(accepted: &Accepted) -> Self {
        let layout = accepted.layout.as_ref();
        let prediction = layout.map(|named| &named.evaluated.prediction);
        Self {
            status: accepted.status,
            formulation: accepted.formulation,
            combinations: accepted.searched.map(CountsDocument::new),
            layout: layout.map(layout_document),
            mfu: prediction.map(|prediction| rounded(prediction.mfu.value())),
            oom_probability: prediction
                .map(|prediction| rounded_probability(prediction.oom_probability)),
            gap: (layout.is_some() && accepted.gap.is_finite()).then(|| rounded(accepted.gap)),
        }
    }
}

impl ReasonDocument {
    fn new(rejected: &Rejected) -> Self {
        let better = rejected.better.as_ref();
        Self {
            place: rejected.place.clone(),
            cause: rejected.cause.clone(),
            stated: rejected.stated.clone(),
            recomputed: rejected.recomputed.clone(),
            better: better.map(|named| BetterDocument {
                layout: layout_document(named),
                mfu: rounded(named.evaluated.prediction.mfu.value()),
                step_time_s: rounded(named.evaluated.prediction.step_time.value()),
            }),
        }
    }
}

impl CountsDocument {
    const fn new(extent: Extent) -> Self {
        Self {
            total: extent.total,
            broken: extent.broken,
            infeasible: extent.infeasible,
            pruned: extent.pruned,
            solved: extent.solved,
            open: extent.open,
        }
    }
}

fn layout_document(named: &Named) -> LayoutDocument {
    LayoutDocument::new(&named.evaluated.layout, named.global_batch)
}

impl Answer for VerdictDocument {
    /// The verdict, with what was checked or what is wrong.
    fn text(&self, style: &Style) -> String {
        let mut lines: Vec<String> = Vec::new();
        if let Some(proven) = &self.proven {
            lines.extend(self.accepted(proven, style));
        }
        for reason in &self.reasons {
            lines.extend(rejected(reason, style));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl VerdictDocument {
    fn accepted(&self, proven: &ProvenDocument, style: &Style) -> Vec<String> {
        let (word, meaning) = match self.verdict {
            VerdictStatus::Unfinished => ("not finished", Meaning::Warning),
            _ => ("accepted", Meaning::Good),
        };
        let headline = format!("{word}: {}", proven.status.as_str());
        let mut lines = vec![style.paint(meaning, &headline)];
        let layout = proven.layout.as_ref().zip(proven.mfu);
        lines.extend(layout.map(|(layout, mfu)| wrap(&layout_line(layout, mfu), 2)));
        lines.push("Every figure and every rule was checked.".to_owned());
        let counts = proven.combinations.as_ref();
        if let Some(counts) = counts.filter(|counts| counts.open == 0) {
            let line = format!(
                "The space was searched again, {} combinations: {} break a rule, {} have no layout that \
                 fits, {} cannot be as fast as what was found, {} were solved one by one.",
                counts.total, counts.broken, counts.infeasible, counts.pruned, counts.solved
            );
            lines.push(wrap(&line, 0));
        }
        let unchecked = self.unchecked.iter();
        lines.extend(unchecked.map(|text| wrap(&format!("Not checked: {text}."), 2)));
        lines
    }
}

fn rejected(reason: &ReasonDocument, style: &Style) -> Vec<String> {
    let headline = format!("rejected: `{}`: {}", reason.place, reason.cause);
    let mut lines = vec![style.wrapped(Meaning::Bad, &headline)];
    if let (Some(stated), Some(recomputed)) = (&reason.stated, &reason.recomputed) {
        lines.push(wrap(&format!("  the answer says {stated}"), 4));
        lines.push(wrap(&format!("  computed anew   {recomputed}"), 4));
    }
    let better = reason.better.as_ref();
    lines.extend(better.map(|it| {
        let line = layout_line(&it.layout, it.mfu);
        wrap(&format!("  {line}"), 4)
    }));
    lines
}

fn layout_line(layout: &LayoutDocument, mfu: f64) -> String {
    format!("MFU {}: {}", number::exact_mfu(mfu), line(&layout.layout()))
}
