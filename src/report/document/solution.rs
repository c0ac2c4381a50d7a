//! The answer to an instance, and the evaluation of one layout.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Document, JobDocument, LayoutDocument, ObjectiveDocument, PredictionDocument, Trust, rounded,
    rounded_probability,
};
use crate::axis::{AxisSet, FlaggedCombination};
use crate::instance::{Instance, resolved};
use crate::layout::Layout;
use crate::plan::{
    Combinations, CutShort, Evaluated, Extent, Formulation, Infeasibility, Nearest, Outcome, Proof,
    Status, Violation,
};
use crate::planner::objective::{Answer, Goal};
use crate::rules;

/// The answer to an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SolutionDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = SolutionDocument::FORMAT))]
    pub schema: String,
    /// Name of the instance: the file's stem, or what the job is.
    pub instance: String,
    /// What was to be planned.
    pub job: JobDocument,
    /// `optimal`: the layout is proven best. `feasible`: a limit ended the search, the layout is
    /// the best known. `infeasible`: proven that no layout satisfies every rule. `unknown`: a
    /// limit ended the search before any layout was known.
    pub status: Status,
    /// The chosen layout; null where there is none.
    pub layout: Option<LayoutDocument>,
    /// What the cost model says of the chosen layout; null where there is none.
    pub prediction: Option<PredictionDocument>,
    /// The next-best layouts, best first.
    pub alternatives: Vec<NeighbourDocument>,
    /// The best layout with less than half the risk of running out of memory; null where the
    /// chosen one's risk is not worth mentioning.
    pub safer: Option<NeighbourDocument>,
    /// What was to be best, where that is more than the fastest layout; else null.
    pub objective: Option<ObjectiveDocument>,
    /// Why there is no layout; null unless the status is `infeasible`.
    pub infeasibility: Option<InfeasibilityDocument>,
    /// The extent of the search and what it proves.
    pub proof: ProofDocument,
    /// How far to trust the prediction.
    pub trust: Trust,
    /// What the reader should know, though it is not an error.
    pub warnings: Vec<String>,
    /// Axes in one of which each listed layout differs from every other; empty where they are only
    /// different combinations.
    #[serde(default)]
    pub diverse: Vec<String>,
    /// The whole instance in the keys of an instance file, every figure stated, to the last digit. Where
    /// the number of GPUs was open, it is the instance as it was asked, on its own number.
    #[serde(default)]
    pub resolved_instance: Map<String, Value>,
}

/// The evaluation of one layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = EvaluationDocument::FORMAT))]
    pub schema: String,
    /// Name of the instance: the file's stem, or what the job is.
    pub instance: String,
    /// What the layout is evaluated for.
    pub job: JobDocument,
    /// The layout.
    pub layout: LayoutDocument,
    /// What the cost model says of it, also where a rule is broken.
    pub prediction: PredictionDocument,
    /// Every rule that the layout breaks; empty for a legal layout.
    pub violations: Vec<Violation>,
    /// How far to trust the prediction.
    pub trust: Trust,
    /// What the reader should know, though it is not an error.
    pub warnings: Vec<String>,
}

/// A layout with its prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluatedDocument {
    /// The layout.
    pub layout: LayoutDocument,
    /// What the cost model says of it.
    pub prediction: PredictionDocument,
}

/// A layout with its prediction, and how far it is from the chosen one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourDocument {
    /// The layout and its prediction.
    #[serde(flatten)]
    pub evaluated: EvaluatedDocument,
    /// Its MFU less the chosen layout's.
    pub mfu_distance: f64,
    /// Its step time less the chosen layout's, in seconds.
    pub step_time_distance_s: f64,
    /// Its peak memory less the chosen layout's, in GiB.
    pub peak_distance_gib: f64,
    /// Its probability of running out of memory less the chosen layout's.
    pub oom_probability_distance: f64,
}

/// Why no layout is possible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InfeasibilityDocument {
    /// The smallest set of rules that no combination satisfies together.
    pub clashing_rules: Vec<String>,
    /// The combination that misses the fewest rules by the least; null where the space is empty.
    pub nearest: Option<NearestDocument>,
}

/// The combination that misses the fewest rules by the least.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearestDocument {
    /// The combination.
    pub candidate: FlaggedCombination,
    /// Its layout; null where its degrees allow none.
    pub layout: Option<LayoutDocument>,
    /// What it would use; null where that cannot be said.
    pub prediction: Option<PredictionDocument>,
    /// The rules that it breaks.
    pub violations: Vec<Violation>,
}

/// The extent of the search and what it proves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofDocument {
    /// Which program was solved.
    pub formulation: Formulation,
    /// No layout of the space has a higher MFU; null where no bound is known.
    pub bound_mfu: Option<f64>,
    /// Relative distance between the plan and the bound, 0 when optimal; null without a plan.
    pub gap: Option<f64>,
    /// Relative distance by which a layout that the program takes for no better may still be faster, since
    /// it computes in whole quanta of time; null without a plan.
    pub tolerance: Option<f64>,
    /// `cut` where the time limit came before all combinations of the space were listed: then the counts
    /// are those of the listed ones, and the bound holds for all.
    pub extent: Extent,
    /// Parts of the search that the time limit ended; without the bounds of some combinations these are not
    /// counted among those that are infeasible, pruned or solved.
    #[serde(default)]
    pub cut_short: Vec<CutShort>,
    /// The combinations of the space.
    #[serde(flatten)]
    pub combinations: Combinations,
    /// Rules that were applied before the program was built, because the space is too large to
    /// carry their violators as columns.
    pub applied_before: Vec<String>,
    /// Name and version of the solver.
    pub solver: String,
}

impl Document for SolutionDocument {
    const FORMAT: &'static str = "parlayout/solution/v1";
}

impl Document for EvaluationDocument {
    const FORMAT: &'static str = "parlayout/evaluation/v1";
}

impl SolutionDocument {
    /// The answer to an instance.
    #[must_use]
    pub fn new(instance: &Instance, outcome: &Outcome) -> Self {
        let global_batch = instance.job.workload.global_batch;
        let plan = outcome.plan();
        let choice = plan.map(|plan| EvaluatedDocument::new(&plan.choice, global_batch));
        let neighbour = |other: &Evaluated| {
            let choice = choice.as_ref()?;
            Some(NeighbourDocument::new(choice, other, global_batch))
        };
        let alternatives = plan.map_or(&[][..], |plan| &plan.alternatives);
        let cluster = &instance.job.cluster;
        Self {
            schema: Self::FORMAT.to_owned(),
            instance: instance.name.clone(),
            job: JobDocument::new(&instance.job),
            status: outcome.status(),
            alternatives: alternatives.iter().filter_map(neighbour).collect(),
            safer: plan
                .and_then(|plan| plan.safer.as_ref())
                .and_then(neighbour),
            layout: choice.as_ref().map(|choice| choice.layout.clone()),
            prediction: choice.as_ref().map(|choice| choice.prediction.clone()),
            objective: None,
            infeasibility: match outcome {
                Outcome::Infeasible(infeasibility) => {
                    Some(InfeasibilityDocument::new(infeasibility, global_batch))
                }
                _ => None,
            },
            proof: ProofDocument::new(outcome.proof(), plan.is_some()),
            trust: plan.map_or_else(
                || Trust::new(cluster, &instance.job.framework),
                |plan| Trust::of_layout(&instance.job, &plan.choice.layout),
            ),
            warnings: warnings(instance, plan.map(|plan| &plan.choice.layout)),
            diverse: Vec::new(),
            resolved_instance: resolved(instance),
        }
    }

    /// The answer to an instance over several numbers of GPUs.
    #[must_use]
    pub fn for_goal(instance: &Instance, goal: &Goal, answer: &Answer) -> Self {
        Self {
            objective: Some(ObjectiveDocument::new(goal, answer)),
            resolved_instance: resolved(instance),
            ..Self::new(&answer.instance, &answer.outcome)
        }
    }

    /// The same where the listed layouts differ from each other in one of some axes.
    #[must_use]
    pub fn diverse(self, axes: AxisSet) -> Self {
        Self {
            diverse: axes.iter().map(|axis| axis.as_str().to_owned()).collect(),
            ..self
        }
    }

    /// The chosen layout with its prediction.
    #[must_use]
    pub fn choice(&self) -> Option<(&LayoutDocument, &PredictionDocument)> {
        self.layout.as_ref().zip(self.prediction.as_ref())
    }
}

impl EvaluationDocument {
    /// The evaluation of one layout, with the rules that it breaks.
    #[must_use]
    pub fn new(instance: &Instance, evaluated: &Evaluated, violations: &[Violation]) -> Self {
        let global_batch = instance.job.workload.global_batch;
        Self {
            schema: Self::FORMAT.to_owned(),
            instance: instance.name.clone(),
            job: JobDocument::new(&instance.job),
            layout: LayoutDocument::new(&evaluated.layout, global_batch),
            prediction: PredictionDocument::new(&evaluated.prediction),
            violations: violations.to_vec(),
            trust: Trust::of_layout(&instance.job, &evaluated.layout),
            warnings: warnings(instance, Some(&evaluated.layout)),
        }
    }
}

/// What the reader should know: of the instance, and what its framework advises against in a layout.
fn warnings(instance: &Instance, layout: Option<&Layout>) -> Vec<String> {
    let mut warnings = instance.warnings.clone();
    let advice = layout.map(|layout| rules::advice(instance, layout));
    for advice in advice.into_iter().flatten() {
        // An instance that comes from an answer brings the answer's.
        if !warnings.contains(&advice) {
            warnings.push(advice);
        }
    }
    warnings
}

impl EvaluatedDocument {
    /// A layout for steps of so many sequences, with its prediction.
    #[must_use]
    pub fn new(evaluated: &Evaluated, global_batch: u64) -> Self {
        Self {
            layout: LayoutDocument::new(&evaluated.layout, global_batch),
            prediction: PredictionDocument::new(&evaluated.prediction),
        }
    }
}

impl NeighbourDocument {
    /// Distances are those between numbers as the document shows them, so that what looks equal is.
    fn new(choice: &EvaluatedDocument, other: &Evaluated, global_batch: u64) -> Self {
        let evaluated = EvaluatedDocument::new(other, global_batch);
        let (ours, theirs) = (&choice.prediction, &evaluated.prediction);
        Self {
            mfu_distance: rounded(theirs.mfu - ours.mfu),
            step_time_distance_s: rounded(theirs.step_time_s - ours.step_time_s),
            peak_distance_gib: rounded(theirs.memory.peak_gib - ours.memory.peak_gib),
            oom_probability_distance: rounded_probability(
                theirs.oom_probability - ours.oom_probability,
            ),
            evaluated,
        }
    }
}

impl InfeasibilityDocument {
    fn new(infeasibility: &Infeasibility, global_batch: u64) -> Self {
        let nearest = infeasibility.nearest.as_ref();
        Self {
            clashing_rules: infeasibility.clashing_rules.clone(),
            nearest: nearest.map(|nearest| NearestDocument::new(nearest, global_batch)),
        }
    }
}

impl NearestDocument {
    /// The combination nearest to being possible.
    #[must_use]
    pub fn new(nearest: &Nearest, global_batch: u64) -> Self {
        let evaluated = nearest.evaluated.as_ref();
        let evaluated = evaluated.map(|it| EvaluatedDocument::new(it, global_batch));
        let (layout, prediction) = evaluated.map(|it| (it.layout, it.prediction)).unzip();
        Self {
            candidate: nearest.candidate,
            layout,
            prediction,
            violations: nearest.violations.clone(),
        }
    }
}

impl ProofDocument {
    /// The proof; without a plan there is neither bound nor gap.
    fn new(proof: &Proof, has_plan: bool) -> Self {
        let known = |number: f64| (has_plan && number.is_finite()).then(|| rounded(number));
        Self {
            formulation: proof.formulation,
            bound_mfu: known(proof.bound_mfu.value()),
            gap: known(proof.gap),
            tolerance: known(proof.tolerance),
            extent: proof.extent,
            cut_short: proof.cut_short.clone(),
            combinations: proof.combinations,
            applied_before: proof
                .applied_before
                .iter()
                .map(ToString::to_string)
                .collect(),
            solver: proof.solver.clone(),
        }
    }
}
