//! Reasons in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::ComparisonBody;
use super::job::JobDocument;
use super::{EvaluatedDocument, NearestDocument, nearest_document, rounded, schema_of, write};
use crate::axis::Assignment;
use crate::change::Change;
use crate::explain::Explanation;
use crate::explain::binding::{Binding, Effect};
use crate::explain::reasons::{Clash, Reason, Reasons};
use crate::explain::repairs::Repair;
use crate::explain::why_not::{Verdict, WhyNot};
use crate::instance::Instance;
use crate::report::explanation::words;

/// Name and version of the explanation of an instance.
pub const EXPLANATION: &str = "parlayout/explanation/v1";

/// An explanation as a document of the format [`EXPLANATION`], on several lines.
#[must_use]
pub fn explanation(instance: &Instance, explanation: &Explanation) -> String {
    let mut document = ExplanationDocument::new(instance);
    match explanation {
        Explanation::Feasible(binding) => document.set_binding(instance, binding),
        Explanation::Infeasible(reasons) => document.set_reasons(instance, reasons),
    }
    write(&document)
}

/// The answer to "why not" as a document of the format [`EXPLANATION`], on several lines.
#[must_use]
pub fn why_not(instance: &Instance, answer: &WhyNot) -> String {
    let mut document = ExplanationDocument::new(instance);
    let batch = instance.job.workload.global_batch;
    let verdict = match &answer.verdict {
        Verdict::Chosen(best) => {
            document.best = Some(EvaluatedDocument::new(best, batch));
            "chosen"
        }
        Verdict::Compared(comparison) => {
            let best = &comparison.left.evaluated;
            document.best = Some(EvaluatedDocument::new(best, batch));
            document.comparison = Some(ComparisonBody::new(comparison));
            "compared"
        }
        Verdict::Impossible(reasons) => {
            document.set_reasons(instance, reasons);
            "impossible"
        }
        Verdict::NothingPossible(reasons) => {
            document.set_reasons(instance, reasons);
            "nothing-possible"
        }
    };
    document.why_not = Some(WhyNotDocument {
        asked: pairs(&answer.asked),
        unlisted: pairs(&answer.unlisted),
        verdict,
    });
    write(&document)
}

/// The JSON Schema of [`EXPLANATION`], shipped as `docs/explanation.schema.json`.
#[must_use]
pub fn explanation_schema() -> String {
    schema_of::<ExplanationDocument>(EXPLANATION)
}

fn pairs(assignment: &Assignment) -> Vec<String> {
    let all = assignment.0.iter();
    all.map(|&(axis, code)| format!("{axis}={}", axis.show(code)))
        .collect()
}

/// Why an instance has no layout, what limits its best one, or why that has not another choice.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplanationDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = EXPLANATION))]
    schema: &'static str,
    /// Name of the instance: the file's stem, or what the job is.
    instance: String,
    /// What was to be planned.
    job: JobDocument,
    /// The choice that was asked for and what became of it; null without `--why-not`.
    why_not: Option<WhyNotDocument>,
    /// The best layout; null where there is none.
    best: Option<EvaluatedDocument>,
    /// What dropping each limit alone would give, the largest gain first; empty without a layout
    /// and with `--why-not`.
    effects: Vec<EffectDocument>,
    /// What the accepted risk leaves of each GPU's memory, in GiB; null without `effects`.
    admissible_memory_gib: Option<f64>,
    /// The best layout (left) and the best with the choice asked for (right); null where the
    /// verdict is not `compared`.
    comparison: Option<ComparisonBody>,
    /// Sets of requirements that no layout satisfies together, disjoint and minimal; empty where
    /// there is a layout.
    clashes: Vec<Vec<ReasonDocument>>,
    /// The layout nearest to being possible; null where there is one.
    nearest: Option<NearestDocument>,
    /// Changes that give the instance a layout, the cheapest first, each solved.
    repairs: Vec<RepairDocument>,
    /// Whether the time was over before every repair was looked for, or every limit dropped.
    is_cut: bool,
}

/// A choice that was asked for.
#[derive(Debug, Serialize, JsonSchema)]
struct WhyNotDocument {
    /// The values, such as `tensor_parallel=8`.
    asked: Vec<String>,
    /// Those of them that the instance does not list.
    unlisted: Vec<String>,
    /// `chosen`: the best layout has them. `compared`: the best layout with them is in
    /// `comparison`. `impossible`: no layout has them. `nothing-possible`: the instance has no
    /// layout at all.
    #[schemars(extend("enum" = ["chosen", "compared", "impossible", "nothing-possible"]))]
    verdict: &'static str,
}

/// What dropping one limit alone would give.
#[derive(Debug, Serialize, JsonSchema)]
struct EffectDocument {
    /// The limit: a rule, or a key of the instance.
    limit: String,
    /// How the best layout stands to it.
    now: String,
    /// Utilisation gained (a share).
    mfu_gain: f64,
    /// The best layout without it.
    without: EvaluatedDocument,
}

/// One requirement that clashes with others.
#[derive(Debug, Serialize, JsonSchema)]
struct ReasonDocument {
    /// The rule's name, or the key of what is listed.
    requirement: String,
    /// Whether the instance has a layout without this requirement alone.
    enough: bool,
    /// What it demands, with amounts.
    message: String,
}

/// Changes that give the instance a layout.
#[derive(Debug, Serialize, JsonSchema)]
struct RepairDocument {
    /// The changes, all of which are needed.
    changes: Vec<ChangeDocument>,
    /// Sum of their costs, by which repairs are ordered.
    cost: f64,
    /// The best layout then.
    best: EvaluatedDocument,
}

/// A change of the instance.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeDocument {
    /// The argument of `--set`.
    set: String,
    /// The change in words, with its amount.
    words: String,
    /// Its cost (docs/explain.md).
    cost: f64,
}

impl ExplanationDocument {
    fn new(instance: &Instance) -> Self {
        Self {
            schema: EXPLANATION,
            instance: instance.name.clone(),
            job: JobDocument::new(&instance.job),
            why_not: None,
            best: None,
            effects: Vec::new(),
            admissible_memory_gib: None,
            comparison: None,
            clashes: Vec::new(),
            nearest: None,
            repairs: Vec::new(),
            is_cut: false,
        }
    }

    fn set_binding(&mut self, instance: &Instance, binding: &Binding) {
        let batch = instance.job.workload.global_batch;
        self.best = Some(EvaluatedDocument::new(&binding.plan.choice, batch));
        self.admissible_memory_gib = Some(rounded(binding.admissible.gib()));
        let effect = |effect: &Effect| EffectDocument {
            limit: effect.name.clone(),
            now: effect.now.clone(),
            mfu_gain: rounded(effect.gain.value()),
            without: EvaluatedDocument::new(&effect.without, batch),
        };
        self.is_cut = binding.untried > 0;
        self.effects = binding.effects.iter().map(effect).collect();
    }

    fn set_reasons(&mut self, instance: &Instance, reasons: &Reasons) {
        let batch = instance.job.workload.global_batch;
        self.clashes = reasons.clashes.iter().map(clash).collect();
        let nearest = reasons.nearest.as_ref();
        self.nearest = nearest.map(|nearest| nearest_document(nearest, batch));
        self.is_cut = reasons.repairs_cut;
        self.repairs = reasons.repairs.iter().map(|it| repair(it, batch)).collect();
    }
}

fn clash(clash: &Clash) -> Vec<ReasonDocument> {
    let documents = |reasons: &[Reason], enough: bool| -> Vec<ReasonDocument> {
        let reasons = reasons.iter();
        reasons
            .map(|reason| ReasonDocument {
                requirement: reason.name.clone(),
                enough,
                message: reason.message.clone(),
            })
            .collect()
    };
    let mut all = documents(&clash.each_enough, true);
    all.extend(documents(&clash.besides, false));
    all
}

fn repair(repair: &Repair, batch: u64) -> RepairDocument {
    let changed_batch = repair.changes.iter().find_map(|change| match change {
        Change::GlobalBatch { to, .. } => Some(*to),
        _ => None,
    });
    RepairDocument {
        changes: repair
            .changes
            .iter()
            .map(|change| ChangeDocument {
                set: change.assignment(),
                words: words(change),
                cost: rounded(change.cost()),
            })
            .collect(),
        cost: rounded(repair.cost()),
        best: EvaluatedDocument::new(&repair.evaluated, changed_batch.unwrap_or(batch)),
    }
}
