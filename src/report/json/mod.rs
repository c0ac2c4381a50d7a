//! Answers for programs: versioned JSON documents, described in `docs/json.md`.
//!
//! The structs here are the format; they are apart from the types of the planner so that these
//! may change and the format does not. Numbers are rounded to six significant digits, so that
//! the bytes are the same on every machine.

mod calibration;
mod comparison;
mod components;
mod explanation;
mod job;
mod layout;
mod objective;
mod pareto;
mod prediction;
mod price;
mod proof;
mod reading;
mod verdict;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::axis::{Axis, AxisSet};
use crate::cost_model::prediction::Prediction;
use crate::instance::{Instance, resolved};
use crate::laboratory::calibrate::Calibrated;
use crate::plan::{Evaluated, Infeasibility, Nearest, Outcome, Plan, Violation};
use crate::planner::objective::{Answer, Goal};
use crate::report::calibration::Subject;
use calibration::CalibrationDocument;
pub use comparison::{COMPARISON, comparison, comparison_schema};
pub use explanation::{EXPLANATION, explanation, explanation_schema, why_not};
use job::{JobDocument, Trust};
use layout::{CandidateDocument, LayoutDocument};
use objective::ObjectiveDocument;
use prediction::PredictionDocument;
use proof::{ProofDocument, ViolationDocument};
pub(crate) use reading::layout;
pub use reading::side;

/// Name and version of the answer to an instance.
pub const SOLUTION: &str = "parlayout/solution/v1";
/// Name and version of the evaluation of one layout.
pub const EVALUATION: &str = "parlayout/evaluation/v1";

pub use calibration::CALIBRATION;
pub use pareto::{PARETO, pareto, pareto_schema};
pub use price::{PRICE, price, price_schema};
pub use verdict::{VERDICT, verdict, verdict_schema};

/// The answer to an instance as a document of the format [`SOLUTION`], on several lines.
#[must_use]
pub fn solution(instance: &Instance, outcome: &Outcome) -> String {
    diverse_solution(instance, outcome, AxisSet::EMPTY)
}

/// The same where the listed layouts differ from each other in one of some axes.
#[must_use]
pub fn diverse_solution(instance: &Instance, outcome: &Outcome, diverse: AxisSet) -> String {
    let asked = Asked { instance, diverse };
    write(&SolutionDocument::new(asked, instance, outcome, None))
}

/// The answer to an instance over several numbers of GPUs as a document of the format [`SOLUTION`].
#[must_use]
pub fn solution_for(instance: &Instance, goal: &Goal, answer: &Answer, diverse: AxisSet) -> String {
    let objective = ObjectiveDocument::new(goal, answer);
    write(&SolutionDocument::new(
        Asked { instance, diverse },
        &answer.instance,
        &answer.outcome,
        Some(objective),
    ))
}

/// The evaluation of one layout as a document of the format [`EVALUATION`], on several lines.
#[must_use]
pub fn evaluation(instance: &Instance, evaluated: &Evaluated, violations: &[Violation]) -> String {
    let global_batch = instance.job.workload.global_batch;
    write(&EvaluationDocument {
        schema: EVALUATION,
        instance: instance.name.clone(),
        job: JobDocument::new(&instance.job),
        layout: LayoutDocument::new(&evaluated.layout, global_batch),
        prediction: PredictionDocument::new(&evaluated.prediction),
        violations: violations.iter().map(ViolationDocument::new).collect(),
        trust: Trust::new(&instance.job.cluster.calibration),
        warnings: instance.warnings.clone(),
    })
}

/// The result of a calibration as a document of the format [`CALIBRATION`], on several lines.
#[must_use]
pub fn calibration(subject: &Subject, calibrated: &Calibrated) -> String {
    write(&CalibrationDocument::new(subject, calibrated))
}

/// The JSON Schema of [`CALIBRATION`], shipped as `docs/calibration.schema.json`.
#[must_use]
pub fn calibration_schema() -> String {
    schema_of::<CalibrationDocument>(CALIBRATION)
}

/// The JSON Schema of [`SOLUTION`], shipped as `docs/solution.schema.json`.
#[must_use]
pub fn solution_schema() -> String {
    schema_of::<SolutionDocument>(SOLUTION)
}

/// The JSON Schema of [`EVALUATION`], shipped as `docs/evaluation.schema.json`.
#[must_use]
pub fn evaluation_schema() -> String {
    schema_of::<EvaluationDocument>(EVALUATION)
}

/// What an answer is to.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    instance: &'a Instance,
    diverse: AxisSet,
}

/// The answer to an instance.
#[derive(Debug, Serialize, JsonSchema)]
struct SolutionDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = SOLUTION))]
    schema: &'static str,
    /// Name of the instance: the file's stem, or what the job is.
    instance: String,
    /// What was to be planned.
    job: JobDocument,
    /// `optimal`: the layout is proven best. `feasible`: a limit ended the search, the layout is
    /// the best known. `infeasible`: proven that no layout satisfies every rule. `unknown`: a
    /// limit ended the search before any layout was known.
    #[schemars(extend("enum" = ["optimal", "feasible", "infeasible", "unknown"]))]
    status: &'static str,
    /// The chosen layout; null where there is none.
    layout: Option<LayoutDocument>,
    /// What the cost model says of the chosen layout; null where there is none.
    prediction: Option<PredictionDocument>,
    /// The next-best layouts, best first.
    alternatives: Vec<NeighbourDocument>,
    /// The best layout with less than half the risk of running out of memory; null where the
    /// chosen one's risk is not worth mentioning.
    safer: Option<NeighbourDocument>,
    /// What was to be best, where that is more than the fastest layout; else null.
    objective: Option<ObjectiveDocument>,
    /// Why there is no layout; null unless the status is `infeasible`.
    infeasibility: Option<InfeasibilityDocument>,
    /// The extent of the search and what it proves.
    proof: ProofDocument,
    /// How far to trust the prediction.
    trust: Trust,
    /// What the reader should know, though it is not an error.
    warnings: Vec<String>,
    /// Axes in one of which each listed layout differs from every other; empty where they are only
    /// different combinations.
    diverse: Vec<&'static str>,
    /// The whole instance in the keys of an instance file, every figure stated, to the last digit. Where
    /// the number of GPUs was open, it is the instance as it was asked, on its own number.
    resolved_instance: Map<String, Value>,
}

/// The evaluation of one layout.
#[derive(Debug, Serialize, JsonSchema)]
struct EvaluationDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = EVALUATION))]
    schema: &'static str,
    /// Name of the instance: the file's stem, or what the job is.
    instance: String,
    /// What the layout is evaluated for.
    job: JobDocument,
    /// The layout.
    layout: LayoutDocument,
    /// What the cost model says of it, also where a rule is broken.
    prediction: PredictionDocument,
    /// Every rule that the layout breaks; empty for a legal layout.
    violations: Vec<ViolationDocument>,
    /// How far to trust the prediction.
    trust: Trust,
    /// What the reader should know, though it is not an error.
    warnings: Vec<String>,
}

/// A layout with its prediction.
#[derive(Debug, Serialize, JsonSchema)]
struct EvaluatedDocument {
    /// The layout.
    layout: LayoutDocument,
    /// What the cost model says of it.
    prediction: PredictionDocument,
}

/// A layout with its prediction, and how far it is from the chosen one.
#[derive(Debug, Serialize, JsonSchema)]
struct NeighbourDocument {
    /// The layout and its prediction.
    #[serde(flatten)]
    evaluated: EvaluatedDocument,
    /// Its MFU less the chosen layout's.
    mfu_distance: f64,
    /// Its step time less the chosen layout's, in seconds.
    step_time_distance_s: f64,
    /// Its peak memory less the chosen layout's, in GiB.
    peak_distance_gib: f64,
    /// Its probability of running out of memory less the chosen layout's.
    oom_probability_distance: f64,
}

/// Why no layout is possible.
#[derive(Debug, Serialize, JsonSchema)]
struct InfeasibilityDocument {
    /// The smallest set of rules that no combination satisfies together.
    clashing_rules: Vec<String>,
    /// The combination that misses the fewest rules by the least; null where the space is empty.
    nearest: Option<NearestDocument>,
}

/// The combination that misses the fewest rules by the least.
#[derive(Debug, Serialize, JsonSchema)]
struct NearestDocument {
    /// The combination.
    candidate: CandidateDocument,
    /// Its layout; null where its degrees allow none.
    layout: Option<LayoutDocument>,
    /// What it would use; null where that cannot be said.
    prediction: Option<PredictionDocument>,
    /// The rules that it breaks.
    violations: Vec<ViolationDocument>,
}

impl SolutionDocument {
    fn new(
        asked: Asked,
        instance: &Instance,
        outcome: &Outcome,
        objective: Option<ObjectiveDocument>,
    ) -> Self {
        let global_batch = instance.job.workload.global_batch;
        let evaluated = |evaluated: &Evaluated| EvaluatedDocument::new(evaluated, global_batch);
        let alternatives = |plan: &Plan| {
            let others = plan.alternatives.iter();
            others
                .map(|other| NeighbourDocument::new(&plan.choice, other, global_batch))
                .collect()
        };
        let plan = outcome.plan();
        let choice = plan.map(|plan| evaluated(&plan.choice));
        let (layout, prediction) = match choice {
            Some(choice) => (Some(choice.layout), Some(choice.prediction)),
            None => (None, None),
        };
        Self {
            schema: SOLUTION,
            instance: instance.name.clone(),
            job: JobDocument::new(&instance.job),
            status: outcome.status(),
            layout,
            prediction,
            alternatives: plan.map(alternatives).unwrap_or_default(),
            safer: plan.and_then(|plan| {
                let safer = plan.safer.as_ref()?;
                Some(NeighbourDocument::new(&plan.choice, safer, global_batch))
            }),
            objective,
            infeasibility: match outcome {
                Outcome::Infeasible(infeasibility) => {
                    Some(InfeasibilityDocument::new(infeasibility, global_batch))
                }
                _ => None,
            },
            proof: ProofDocument::new(outcome.proof(), plan.is_some()),
            trust: Trust::new(&instance.job.cluster.calibration),
            warnings: instance.warnings.clone(),
            diverse: asked.diverse.iter().map(Axis::as_str).collect(),
            resolved_instance: resolved(asked.instance),
        }
    }
}

impl EvaluatedDocument {
    fn new(evaluated: &Evaluated, global_batch: u64) -> Self {
        Self {
            layout: LayoutDocument::new(&evaluated.layout, global_batch),
            prediction: PredictionDocument::new(&evaluated.prediction),
        }
    }
}

impl NeighbourDocument {
    fn new(choice: &Evaluated, other: &Evaluated, global_batch: u64) -> Self {
        let (ours, theirs) = (&choice.prediction, &other.prediction);
        // Between numbers as the document shows them, so that what looks equal is.
        let distance =
            |of: fn(&Prediction) -> f64| rounded(rounded(of(theirs)) - rounded(of(ours)));
        let risk = |prediction: &Prediction| rounded_probability(prediction.oom_probability);
        Self {
            evaluated: EvaluatedDocument::new(other, global_batch),
            mfu_distance: distance(|prediction| prediction.mfu.value()),
            step_time_distance_s: distance(|prediction| prediction.step_time.value()),
            peak_distance_gib: distance(|prediction| prediction.memory.peak().gib()),
            oom_probability_distance: rounded_probability(risk(theirs) - risk(ours)),
        }
    }
}

impl InfeasibilityDocument {
    fn new(infeasibility: &Infeasibility, global_batch: u64) -> Self {
        Self {
            clashing_rules: infeasibility.clashing_rules.clone(),
            nearest: infeasibility
                .nearest
                .as_ref()
                .map(|nearest| nearest_document(nearest, global_batch)),
        }
    }
}

fn nearest_document(nearest: &Nearest, global_batch: u64) -> NearestDocument {
    let evaluated = nearest.evaluated.as_ref();
    NearestDocument {
        candidate: CandidateDocument::new(&nearest.candidate),
        layout: evaluated.map(|evaluated| LayoutDocument::new(&evaluated.layout, global_batch)),
        prediction: evaluated.map(|evaluated| PredictionDocument::new(&evaluated.prediction)),
        violations: nearest
            .violations
            .iter()
            .map(ViolationDocument::new)
            .collect(),
    }
}

/// Rounds to six significant digits.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// Rounds a probability to six decimals: what is below a millionth is nothing to plan with.
pub(crate) fn rounded_probability(probability: f64) -> f64 {
    (probability * 1e6).round() / 1e6
}

/// A document on several lines, with a final line break.
pub(crate) fn write(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document)
        .expect("documents have string keys and no fallible serialisation");
    text.push('\n');
    text
}

/// The schema of what is written (not of what could be read: every key is always there).
pub(crate) fn schema_of<Document: JsonSchema>(title: &str) -> String {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<Document>();
    schema.insert("title".to_owned(), title.into());
    write(&schema)
}

#[cfg(test)]
mod tests;
