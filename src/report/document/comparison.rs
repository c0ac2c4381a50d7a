//! Two layouts side by side, term by term.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::components::MemoryComponents;
use super::prediction::PredictionDocument;
use super::{
    Document, EvaluationDocument, JobDocument, LayoutDocument, ReadError, SolutionDocument, rounded,
};
use crate::instance::Instance;
use crate::plan::{Evaluated, Violation};

/// Two layouts side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = ComparisonDocument::FORMAT))]
    pub schema: String,
    /// The comparison.
    #[serde(flatten)]
    pub body: ComparisonBody,
}

/// Two layouts, and where their time and memory differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonBody {
    /// The first layout, from which differences are counted.
    pub left: SideDocument,
    /// The second.
    pub right: SideDocument,
    /// In what the jobs differ so that their step times are not of the same work; empty where they are.
    #[serde(default)]
    pub jobs_differ_in: Vec<String>,
    /// Utilisation of the second minus that of the first (shares).
    pub mfu_difference: f64,
    /// Step time of the second minus that of the first, in seconds.
    pub step_time_difference_s: f64,
    /// Components of the step time, the largest difference first.
    pub time: Vec<TimeTerm>,
    /// Components of the memory of each side's fullest stage, the largest difference first.
    pub memory: Vec<MemoryTerm>,
}

/// A layout with what it was chosen for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideDocument {
    /// Name of the instance.
    pub instance: String,
    /// The job.
    #[serde(flatten)]
    pub job: JobDocument,
    /// The layout.
    pub layout: LayoutDocument,
    /// What the cost model says of it.
    pub prediction: PredictionDocument,
    /// Every rule that the layout breaks; empty for a legal layout and one read from a document.
    pub violations: Vec<Violation>,
}

/// A component of the step time on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeTerm {
    /// The component.
    pub component: String,
    /// On the first side, in seconds.
    pub left_s: f64,
    /// On the second, in seconds.
    pub right_s: f64,
    /// The second minus the first, in seconds.
    pub difference_s: f64,
    /// The component's part of `mfu_difference`, in proportion to its part of the difference in
    /// time; null where the two utilisations are not of the same work.
    pub mfu: Option<f64>,
}

/// A component of the memory on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryTerm {
    /// The component.
    pub component: String,
    /// On the first side's fullest stage, in GiB.
    pub left_gib: f64,
    /// On the second's, in GiB.
    pub right_gib: f64,
    /// The second minus the first, in GiB.
    pub difference_gib: f64,
}

impl Document for ComparisonDocument {
    const FORMAT: &'static str = "parlayout/comparison/v1";
}

impl ComparisonDocument {
    /// Compares two layouts.
    #[must_use]
    pub fn new(left: SideDocument, right: SideDocument) -> Self {
        Self {
            schema: Self::FORMAT.to_owned(),
            body: ComparisonBody::new(left, right),
        }
    }
}

/// Relative difference up to which the utilisations of two sides are of the same work; documents
/// round to six digits.
const SAME_WORK: f64 = 1e-4;

impl ComparisonBody {
    /// Compares two layouts. Differences are those between numbers as documents show them.
    #[must_use]
    pub fn new(left: SideDocument, right: SideDocument) -> Self {
        let (one, other) = (&left.prediction, &right.prediction);
        let work = |prediction: &PredictionDocument| prediction.mfu * prediction.step_time_s;
        let same_work = (work(one) / work(other) - 1.0).abs() < SAME_WORK;
        let change = other.step_time_s - one.step_time_s;
        let gained = other.mfu - one.mfu;
        let points = |difference: f64| {
            let share = if change == 0.0 {
                0.0
            } else {
                difference / change
            };
            same_work.then(|| rounded(gained * share))
        };
        let pairs = one.time.components();
        let mut time: Vec<TimeTerm> = pairs
            .zip(other.time.components())
            .filter(|((it, one), (_, other))| !it.is_of_experts() || *one + *other > 0.0)
            .map(|((component, left), (_, right))| TimeTerm {
                component: component.key().to_owned(),
                left_s: left,
                right_s: right,
                difference_s: rounded(right - left),
                mfu: points(right - left),
            })
            .collect();
        time.sort_by(|a, b| b.difference_s.abs().total_cmp(&a.difference_s.abs()));
        let fullest = |side: &PredictionDocument| {
            let stage = side.memory.stages.get(side.memory.fullest());
            stage.map(|stage| stage.components)
        };
        let (fullest_one, fullest_other) = (fullest(one), fullest(other));
        let pairs = fullest_one.iter().flat_map(MemoryComponents::components);
        let mut memory: Vec<MemoryTerm> = pairs
            .zip(fullest_other.iter().flat_map(MemoryComponents::components))
            .map(|((component, left), (_, right))| MemoryTerm {
                component: component.key().to_owned(),
                left_gib: left,
                right_gib: right,
                difference_gib: rounded(right - left),
            })
            .collect();
        memory.sort_by(|a, b| b.difference_gib.abs().total_cmp(&a.difference_gib.abs()));
        let jobs_differ_in = differences(&left.job, &right.job);
        Self {
            jobs_differ_in,
            mfu_difference: rounded(gained),
            step_time_difference_s: rounded(change),
            time,
            memory,
            left,
            right,
        }
    }
}

/// In what two jobs differ so that a step of one is not a step of the other.
fn differences(one: &JobDocument, other: &JobDocument) -> Vec<String> {
    let pairs = [
        (
            "model",
            one.model != other.model || one.parameters != other.parameters,
        ),
        ("GPUs", one.gpus != other.gpus),
        (
            "sequence length",
            one.sequence_length != other.sequence_length,
        ),
        ("global batch", one.global_batch != other.global_batch),
        ("MFU convention", one.mfu_convention != other.mfu_convention),
    ];
    let differing = pairs.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name.to_owned()).collect()
}

impl SideDocument {
    /// A layout of an instance, with the rules that it breaks.
    #[must_use]
    pub fn new(instance: &Instance, evaluated: &Evaluated, violations: Vec<Violation>) -> Self {
        let job = JobDocument::new(&instance.job);
        let layout = LayoutDocument::new(&evaluated.layout, job.global_batch);
        let prediction = PredictionDocument::new(&evaluated.prediction);
        Self {
            violations,
            ..Self::of(instance.name.clone(), job, layout, prediction)
        }
    }

    fn of(
        instance: String,
        job: JobDocument,
        layout: LayoutDocument,
        prediction: PredictionDocument,
    ) -> Self {
        Self {
            instance,
            job,
            layout,
            prediction,
            violations: Vec::new(),
        }
    }

    /// The layout of a document of `solve` or `evaluate`.
    ///
    /// # Errors
    ///
    /// If the text is no such document, or has no layout.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        match SolutionDocument::read(text) {
            Ok(answer) => match answer.layout.zip(answer.prediction) {
                Some((layout, prediction)) => {
                    Ok(Self::of(answer.instance, answer.job, layout, prediction))
                }
                None => Err(ReadError::NoLayout(answer.status)),
            },
            Err(ReadError::Format { found, .. }) if found == EvaluationDocument::FORMAT => {
                let answer = EvaluationDocument::read(text)?;
                let (layout, prediction) = (answer.layout, answer.prediction);
                Ok(Self::of(answer.instance, answer.job, layout, prediction))
            }
            Err(ReadError::Format { found, expected }) => Err(ReadError::Format {
                found,
                expected: format!("{expected} or `{}`", EvaluationDocument::FORMAT),
            }),
            Err(other) => Err(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn side(step_time: f64) -> SideDocument {
        let mut evaluated = fixture::llama_13b_plan().choice;
        let mfu = 0.705 * 26.53 / step_time;
        let stage = fixture::stage(26.1, 26.1, 2.4, 18.4, 1.3);
        evaluated.prediction = fixture::prediction(mfu, step_time, &[stage]);
        SideDocument::new(&fixture::llama_13b(), &evaluated, Vec::new())
    }

    #[test]
    fn terms_sum_to_the_difference() {
        let body = ComparisonBody::new(side(26.53), side(30.0));
        let seconds: f64 = body.time.iter().map(|term| term.difference_s).sum();
        assert!((seconds - 3.47).abs() < 1e-4);
        let points = body.time.iter().map(|term| term.mfu);
        let points: f64 = points.map(|it| it.expect("the work is the same")).sum();
        assert!((points - body.mfu_difference).abs() < 1e-5);
        assert_eq!(body.time[0].component, "gemm");
    }

    #[test]
    fn equal_sides_differ_nowhere() {
        let body = ComparisonBody::new(side(26.53), side(26.53));
        assert!(body.time.iter().all(|term| term.difference_s.abs() < 1e-12));
        assert!(body.time.iter().all(|term| term.mfu == Some(0.0)));
    }

    #[test]
    fn other_jobs_are_named() {
        assert!(
            ComparisonBody::new(side(26.53), side(30.0))
                .jobs_differ_in
                .is_empty()
        );
        let mut other = side(30.0);
        other.job.global_batch *= 2;
        other.job.gpus *= 4;
        let body = ComparisonBody::new(side(26.53), other);
        assert_eq!(body.jobs_differ_in, ["GPUs", "global batch"]);
    }

    #[test]
    fn other_work_has_no_common_utilisation() {
        let mut other = side(30.0);
        other.prediction.mfu = 0.3;
        let body = ComparisonBody::new(side(26.53), other);
        assert!(body.time.iter().all(|term| term.mfu.is_none()));
    }
}
