//! Why an instance has no layout, what limits its best one, or why not another choice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ComparisonBody, Document, EvaluatedDocument, JobDocument, NearestDocument, SideDocument,
    rounded,
};
use crate::axis::{Assignment, Axis};
use crate::change::{Change, words as row_words};
use crate::explain::Explanation;
use crate::explain::binding::{Binding, Effect};
use crate::explain::reasons::{Reason, Reasons, percentage};
use crate::explain::repairs::Repair;
use crate::instance::Instance;
use crate::quantity::BytesPerSecond;
use crate::report::number::grouped;

/// Why an instance has no layout, what limits its best one, or why not another choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = ExplanationDocument::FORMAT))]
    pub schema: String,
    /// Name of the instance: the file's stem, or what the job is.
    pub instance: String,
    /// What was to be planned.
    pub job: JobDocument,
    /// The choice that was asked for and what became of it; null without `--why-not`.
    pub why_not: Option<WhyNotDocument>,
    /// The best layout; null where there is none.
    pub best: Option<EvaluatedDocument>,
    /// What dropping each limit alone would give, the largest gain first; empty without a layout
    /// and with `--why-not`.
    pub effects: Vec<EffectDocument>,
    /// What the accepted risk leaves of each GPU's memory, in GiB; null without `effects`.
    pub admissible_memory_gib: Option<f64>,
    /// The best layout (left) and the best with the choice asked for (right); null where the
    /// verdict is not `compared`.
    pub comparison: Option<ComparisonBody>,
    /// Sets of requirements that no layout satisfies together, disjoint and minimal; empty where
    /// there is a layout.
    pub clashes: Vec<Vec<Reason>>,
    /// The layout nearest to being possible; null where there is one.
    pub nearest: Option<NearestDocument>,
    /// Changes that give the instance a layout, the cheapest first, each solved.
    pub repairs: Vec<RepairDocument>,
    /// Whether the time was over before every repair was looked for, or every limit dropped.
    pub is_cut: bool,
    /// Limits that there was no time to drop.
    #[serde(default)]
    pub untried: u64,
    /// The accepted probability of running out of memory.
    #[serde(default)]
    pub max_oom_risk: f64,
}

/// A choice that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyNotDocument {
    /// The values, such as `tensor_parallel=8`.
    pub asked: Vec<String>,
    /// Those of them that the instance does not list.
    pub unlisted: Vec<String>,
    /// What became of it.
    pub verdict: WhyNotVerdict,
}

/// What became of a choice that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum WhyNotVerdict {
    /// The best layout has it.
    Chosen,
    /// The best layout with it is in `comparison`.
    Compared,
    /// No layout has it.
    Impossible,
    /// The instance has no layout at all.
    NothingPossible,
}

/// What dropping one limit alone would give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectDocument {
    /// The limit: a rule, or a key of the instance.
    pub limit: String,
    /// How the best layout stands to it.
    pub now: String,
    /// Utilisation gained (a share).
    pub mfu_gain: f64,
    /// The best layout without it.
    pub without: EvaluatedDocument,
}

/// Changes that give the instance a layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepairDocument {
    /// The changes, all of which are needed.
    pub changes: Vec<ChangeDocument>,
    /// Sum of their costs, by which repairs are ordered.
    pub cost: f64,
    /// The best layout then.
    pub best: EvaluatedDocument,
}

/// A change of the instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeDocument {
    /// The argument of `--set`.
    pub set: String,
    /// The change in words, with its amount.
    pub words: String,
    /// Its cost (docs/explain.md).
    pub cost: f64,
}

impl Document for ExplanationDocument {
    const FORMAT: &'static str = "parlayout/explanation/v1";
}

impl ExplanationDocument {
    /// The explanation of an instance, or of a choice that was asked for.
    #[must_use]
    pub fn new(instance: &Instance, asked: Option<&Assignment>, explanation: &Explanation) -> Self {
        let mut document = Self {
            schema: Self::FORMAT.to_owned(),
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
            untried: 0,
            max_oom_risk: instance.max_oom_risk,
        };
        let batch = instance.job.workload.global_batch;
        let verdict = match explanation {
            Explanation::Feasible(binding) => {
                document.set_binding(instance, binding);
                WhyNotVerdict::Chosen
            }
            Explanation::Chosen(best) => {
                document.best = Some(EvaluatedDocument::new(best, batch));
                WhyNotVerdict::Chosen
            }
            Explanation::Compared { best, with_it } => {
                let side = |it| SideDocument::new(instance, it, Vec::new());
                document.best = Some(EvaluatedDocument::new(best, batch));
                document.comparison = Some(ComparisonBody::new(side(best), side(with_it)));
                WhyNotVerdict::Compared
            }
            Explanation::Impossible(reasons) => {
                document.set_reasons(instance, reasons);
                WhyNotVerdict::Impossible
            }
            Explanation::Infeasible(reasons) => {
                document.set_reasons(instance, reasons);
                WhyNotVerdict::NothingPossible
            }
        };
        document.why_not = asked.map(|asked| {
            let pairs = asked.0.iter().copied();
            let unlisted = pairs
                .clone()
                .filter(|(axis, code)| !instance.space.values(*axis).contains(code));
            WhyNotDocument {
                asked: pairs.map(pair).collect(),
                unlisted: unlisted.map(pair).collect(),
                verdict,
            }
        });
        document
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
        self.untried = binding.untried as u64;
        self.effects = binding.effects.iter().map(effect).collect();
    }

    fn set_reasons(&mut self, instance: &Instance, reasons: &Reasons) {
        let batch = instance.job.workload.global_batch;
        self.clashes.clone_from(&reasons.clashes);
        let nearest = reasons.nearest.as_ref();
        self.nearest = nearest.map(|nearest| NearestDocument::new(nearest, batch));
        self.is_cut = reasons.repairs_cut;
        self.repairs = reasons.repairs.iter().map(|it| repair(it, batch)).collect();
    }
}

/// A value of an axis, such as `tensor_parallel=8`.
fn pair((axis, code): (Axis, u32)) -> String {
    format!("{axis}={}", axis.show(code))
}

fn repair(repair: &Repair, batch: u64) -> RepairDocument {
    let changed_batch = repair.changes.iter().find_map(|change| match change {
        Change::GlobalBatch { to, .. } => Some(*to),
        _ => None,
    });
    let changes = repair.changes.iter();
    RepairDocument {
        changes: changes
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

/// A change with its amount.
fn words(change: &Change) -> String {
    match change {
        Change::Values { axis, from, to } => {
            format!(
                "{axis} {} instead of {}",
                axis.any_of(to),
                axis.any_of(from)
            )
        }
        Change::Permit { permitted, .. } => {
            let all: Vec<String> = permitted.iter().map(ToString::to_string).collect();
            format!("permit {}", all.join(" and "))
        }
        Change::Rows { changed, .. } => row_words(changed),
        Change::OomRisk { from, to } => format!(
            "accept a risk of {} % instead of {} %",
            percentage(*to),
            percentage(*from)
        ),
        Change::Framework(change) => change.words.to_owned(),
        Change::InterNodeBandwidth { from, to } => bandwidth("between", *from, *to),
        Change::IntraNodeBandwidth { from, to } => bandwidth("within", *from, *to),
        Change::GlobalBatch { from, to } => {
            let (from, to) = (grouped(*from), grouped(*to));
            format!("a global batch of {to} instead of {from}")
        }
        Change::SequenceLength { from, to } => {
            let (from, to) = (grouped(*from), grouped(*to));
            format!("sequences of {to} tokens instead of {from}")
        }
        Change::SmallerOptimizer => "optimizer states in bf16".to_owned(),
        Change::Gpus { from, to } => {
            let more = if to > from { "more" } else { "fewer" };
            let [difference, from, to] =
                [from.abs_diff(*to), *from, *to].map(|gpus| grouped(u64::from(gpus)));
            format!("{difference} {more} GPUs ({to} instead of {from})")
        }
        Change::Memory { from, to } => {
            let gigabytes = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
            format!(
                "{} more memory per GPU ({} instead of {})",
                gigabytes((*to - *from).value()),
                gigabytes(to.value()),
                gigabytes(from.value())
            )
        }
    }
}

fn bandwidth(place: &str, from: BytesPerSecond, to: BytesPerSecond) -> String {
    let [from, to] = [from, to].map(|bandwidth| bandwidth.value() / 1e9);
    format!("{to:.0} GB/s {place} nodes instead of {from:.0}")
}
