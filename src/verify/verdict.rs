//! The checker's verdict: as a document, and for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Checks;
use super::answer::Answer as Checked;
use crate::count::{counted, grouped};
use crate::instance::Instance;
use crate::plan::{Evaluated, Formulation, Status};
use crate::report::document::{Document, LayoutDocument, rounded, rounded_probability};
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
    pub reasons: Vec<Rejected>,
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
    pub combinations: Option<Counts>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
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
pub struct Rejected {
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
    pub(super) fn accepted(answer: &Checked, checks: Checks) -> Self {
        Self {
            schema: Self::FORMAT.to_owned(),
            verdict: if checks.is_cut {
                VerdictStatus::Unfinished
            } else {
                VerdictStatus::Accepted
            },
            proven: Some(ProvenDocument::new(answer, checks.searched)),
            reasons: Vec::new(),
            reason_count: 0,
            unchecked: checks.unchecked,
        }
    }

    pub(super) fn rejected(reason: Rejected) -> Self {
        Self {
            schema: Self::FORMAT.to_owned(),
            verdict: VerdictStatus::Rejected,
            proven: None,
            reasons: vec![reason],
            reason_count: 1,
            unchecked: Vec::new(),
        }
    }
}

impl ProvenDocument {
    fn new(answer: &Checked, combinations: Option<Counts>) -> Self {
        let plan = answer.outcome.plan();
        let choice = plan.map(|plan| BetterDocument::new(&answer.instance, &plan.choice));
        let risk = plan.map(|plan| plan.choice.prediction.oom_probability);
        let gap = plan.map(|plan| plan.proof.gap);
        Self {
            status: answer.outcome.status(),
            formulation: answer.formulation(),
            combinations,
            mfu: choice.as_ref().map(|choice| choice.mfu),
            layout: choice.map(|choice| choice.layout),
            oom_probability: risk.map(rounded_probability),
            gap: gap.filter(|gap| gap.is_finite()).map(rounded),
        }
    }
}

impl Counts {
    /// Both together.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            broken: self.broken + other.broken,
            infeasible: self.infeasible + other.infeasible,
            pruned: self.pruned + other.pruned,
            solved: self.solved + other.solved,
            open: self.open + other.open,
        }
    }
}

impl Rejected {
    pub(super) fn new(place: impl Into<String>, cause: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            cause: cause.into(),
            stated: None,
            recomputed: None,
            better: None,
        }
    }
}

impl BetterDocument {
    pub(super) fn new(instance: &Instance, evaluated: &Evaluated) -> Self {
        let batch = instance.job.workload.global_batch;
        Self {
            layout: LayoutDocument::new(&evaluated.layout, batch),
            mfu: rounded(evaluated.prediction.mfu.value()),
            step_time_s: rounded(evaluated.prediction.step_time.value()),
        }
    }
}

impl Answer for VerdictDocument {
    /// The verdict, with what was checked or what is wrong.
    fn text(&self, style: &Style) -> String {
        let mut lines: Vec<String> = Vec::new();
        if let Some(proven) = &self.proven {
            lines.extend(self.proven_lines(proven, style));
        }
        for reason in &self.reasons {
            lines.extend(rejected(reason, style));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl VerdictDocument {
    fn proven_lines(&self, proven: &ProvenDocument, style: &Style) -> Vec<String> {
        let (word, meaning) = match self.verdict {
            VerdictStatus::Unfinished => ("not finished", Meaning::Warning),
            _ => ("accepted", Meaning::Good),
        };
        let says = match (proven.status, self.verdict) {
            (Status::Infeasible, VerdictStatus::Accepted) => {
                "infeasible: no layout satisfies every rule"
            }
            (Status::Infeasible, _) => "the answer says `infeasible`, which is not known yet",
            (Status::Unknown, _) => {
                "unknown: the answer names no layout, so there is none to check"
            }
            (status, _) => status.as_str(),
        };
        let mut lines = vec![style.wrapped(meaning, &format!("{word}: {says}"))];
        let layout = proven.layout.as_ref().zip(proven.mfu);
        lines.extend(layout.map(|(layout, mfu)| wrap(&layout_line(layout, mfu), 2)));
        lines.push(
            match proven.status {
                Status::Optimal | Status::Feasible => "Every figure and every rule was checked.",
                Status::Infeasible | Status::Unknown => "Every figure was checked.",
            }
            .to_owned(),
        );
        let counts = proven.combinations.as_ref();
        if let Some(counts) = counts.filter(|counts| counts.open == 0) {
            let searched = format!(
                "The space was searched again, {}: {} break a rule, {} have no layout that fits",
                counted(counts.total, "combination"),
                grouped(counts.broken),
                grouped(counts.infeasible)
            );
            let line = match counts.pruned + counts.solved {
                0 => format!("{searched}."),
                _ => format!(
                    "{searched}, {} cannot be as fast as what was found, {} were solved one by one.",
                    grouped(counts.pruned),
                    grouped(counts.solved)
                ),
            };
            lines.push(wrap(&line, 0));
        }
        let unchecked = self.unchecked.iter();
        lines.extend(unchecked.map(|text| wrap(&format!("Not checked: {text}."), 2)));
        lines
    }
}

fn rejected(reason: &Rejected, style: &Style) -> Vec<String> {
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
