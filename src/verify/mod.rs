//! Checks an answer by another method than the one that found it.
//!
//! The answer is the JSON document of `solve`. Its instance is read from `resolved_instance`, every
//! figure is computed anew from the layouts and compared to the last printed digit, every layout is
//! held against every rule, and the whole space is searched again: each combination on its own, by
//! the dynamic program over stages, without the program that HiGHS solves and without a bound of the
//! answer.

mod answer;
mod figures;
mod objective;
mod search;
mod strict_json;
mod verdict;

use crate::axis::AxisSet;
use crate::instance::Instance;
use crate::plan::{self, Evaluated, Formulation, Infeasibility, Outcome, Plan, Proof};
use crate::planner::NEGLIGIBLE_RISK;
use crate::planner::{Deadline, PlanError, constraints, infeasibility};
use crate::quantity::Seconds;
use crate::reading::InputError;
use crate::report::document::Status;

use answer::Answer;
pub use search::Extent;
use search::{Found, Search, search};
pub use verdict::{
    BetterDocument, CountsDocument, ProvenDocument, ReasonDocument, VerdictDocument, VerdictStatus,
};

/// Relative difference of step times within which layouts count as equally fast: no proof may leave
/// more open.
pub const TOLERANCE: f64 = 1e-4;
/// Relative difference that the search's own rounding may make.
const ROUNDING: f64 = 1e-8;

/// How to check.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// When the search has to end.
    pub deadline: Deadline,
    /// Told how many combinations of how many are searched.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The text is no answer.
    #[error("{0}")]
    Unreadable(String),
    /// `resolved_instance` is no instance.
    #[error("`resolved_instance` is no instance: {0}")]
    Instance(#[from] InputError),
    /// What explains an infeasible instance failed.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// What the checker says.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Everything that was checked is true.
    Accepted(Accepted),
    /// Something is false.
    Rejected(Rejected),
}

/// What was checked of a true answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The status of the answer.
    pub status: Status,
    /// The program that the answer is of.
    pub formulation: Formulation,
    /// The chosen layout.
    pub layout: Option<Named>,
    /// What the answer says of the distance to its bound.
    pub gap: f64,
    /// The extent of the search, over all numbers of GPUs; `None` where nothing was to be searched.
    pub searched: Option<Extent>,
    /// What was not checked, and why.
    pub unchecked: Vec<String>,
    /// Whether the time was over before all was searched.
    pub is_cut: bool,
}

/// A layout that a verdict names.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// The layout, with its prediction.
    pub evaluated: Evaluated,
    /// Sequences of one optimizer step.
    pub global_batch: u64,
}

impl Named {
    fn new(instance: &Instance, evaluated: &Evaluated) -> Self {
        Self {
            evaluated: evaluated.clone(),
            global_batch: instance.job.workload.global_batch,
        }
    }
}

/// The first thing that is false.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejected {
    /// Where in the document, such as `prediction.mfu`.
    pub place: String,
    /// What is wrong.
    pub cause: String,
    /// The value in the document, where one value is wrong.
    pub stated: Option<String>,
    /// What it has to be.
    pub recomputed: Option<String>,
    /// A layout that is better than the answer says is possible.
    pub better: Option<Named>,
}

impl Rejected {
    fn new(place: impl Into<String>, cause: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            cause: cause.into(),
            stated: None,
            recomputed: None,
            better: None,
        }
    }

    fn better(
        place: impl Into<String>,
        cause: impl Into<String>,
        instance: &Instance,
        better: &Evaluated,
    ) -> Self {
        Self {
            better: Some(Named::new(instance, better)),
            ..Self::new(place, cause)
        }
    }
}

/// Why the checks end early.
enum Stop {
    Rejected(Box<Rejected>),
    Failed(VerifyError),
}

impl From<Rejected> for Stop {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(Box::new(rejected))
    }
}

impl From<VerifyError> for Stop {
    fn from(error: VerifyError) -> Self {
        Self::Failed(error)
    }
}

impl From<PlanError> for Stop {
    fn from(error: PlanError) -> Self {
        Self::Failed(error.into())
    }
}

/// Checks an answer.
///
/// # Errors
///
/// If the text is no answer of `solve`, or its instance cannot be read.
pub fn verify(text: &str, options: &Options) -> Result<Verdict, VerifyError> {
    match checked(text, options) {
        Ok(accepted) => Ok(Verdict::Accepted(accepted)),
        Err(Stop::Rejected(rejected)) => Ok(Verdict::Rejected(*rejected)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn checked(text: &str, options: &Options) -> Result<Accepted, Stop> {
    let document = strict_json::parse(text)?;
    let asked = answer::asked(&document)?;
    let answer = match answer::goal(&document, &asked)? {
        None => Answer::read(&document, asked)?,
        Some(goal) => objective::read(&document, &asked, goal)?,
    };
    let mut checks = Checks {
        options,
        diverse: answer.diverse,
        formulation: answer.formulation(),
        searched: None,
        unchecked: Vec::new(),
        is_cut: false,
    };
    // Reasons take the longest to compute, and only where the rest is true.
    let later = answer.has_reasons().then_some("infeasibility");
    figures::compare(&document, &answer, later)?;
    for count in answer.counts() {
        checks.count(&count)?;
    }
    checks.outcome(&answer.instance, &answer.outcome, answer.misses_demands)?;
    if !checks.is_cut && answer.has_reasons() {
        checks.reasons(&document, answer.clone())?;
    }
    Ok(Accepted {
        status: (&answer.outcome).into(),
        formulation: answer.formulation(),
        layout: answer
            .outcome
            .plan()
            .map(|plan| Named::new(&answer.instance, &plan.choice)),
        gap: answer.outcome.proof().gap,
        searched: checks.searched,
        unchecked: checks.unchecked,
        is_cut: checks.is_cut,
    })
}

/// The searches of an answer.
struct Checks<'a> {
    options: &'a Options<'a>,
    diverse: AxisSet,
    formulation: Formulation,
    searched: Option<Extent>,
    unchecked: Vec<String>,
    is_cut: bool,
}

impl Checks<'_> {
    fn note(&mut self, text: &str) {
        if self.unchecked.iter().all(|note| note != text) {
            self.unchecked.push(text.to_owned());
        }
    }

    /// The best layouts of `count` classes; `None` where the time was over.
    fn search(&mut self, instance: &Instance, count: usize) -> Option<Found> {
        let found = search(
            instance,
            &Search {
                formulation: self.formulation,
                diverse: self.diverse,
                count,
                options: self.options,
            },
        );
        self.searched = Some(self.searched.unwrap_or_default().and(found.extent));
        if found.extent.open > 0 {
            self.is_cut = true;
            self.note("optimality: the time limit ended the search");
            return None;
        }
        Some(found)
    }

    /// Whether your constraints may leave less than the search finds.
    fn is_weaker(&self, instance: &Instance) -> bool {
        self.formulation == Formulation::Staged && constraints::concern_layers(instance)
    }

    /// The answer on the chosen number of GPUs.
    fn outcome(
        &mut self,
        instance: &Instance,
        outcome: &Outcome,
        misses_demands: bool,
    ) -> Result<(), Stop> {
        match outcome {
            Outcome::Optimal(plan) => {
                self.optimal(instance, plan)?;
                self.safer(instance, plan)
            }
            Outcome::Feasible(_) => {
                self.note("the bound: a `feasible` answer does not say that its layout is best");
                Ok(())
            }
            Outcome::Infeasible(why) if misses_demands => self.missed(instance, why),
            Outcome::Infeasible(_) => self.infeasible(instance, "status", Some(outcome.proof())),
            Outcome::Unknown(_) => {
                self.note("anything: an `unknown` answer says nothing");
                Ok(())
            }
        }
    }

    fn optimal(&mut self, instance: &Instance, plan: &Plan) -> Result<(), Stop> {
        let stated: Vec<&Evaluated> = std::iter::once(&plan.choice)
            .chain(&plan.alternatives)
            .collect();
        let Some(found) = self.search(instance, stated.len()) else {
            return Ok(());
        };
        is_whole(&plan.proof, &found)?;
        for (rank, (layout, best)) in stated.iter().zip(&found.best).enumerate() {
            // Of the chosen layout the proof says how much it leaves open.
            let tolerance = match rank {
                0 => plan.proof.tolerance + ROUNDING,
                _ => TOLERANCE,
            };
            if !is_slower_by(layout, best, tolerance) {
                continue;
            }
            if self.is_weaker(instance) {
                self.note(ROWS);
                return Ok(());
            }
            let (place, cause) = match rank {
                0 => ("layout".to_owned(), "another layout is faster".to_owned()),
                rank => (
                    format!("alternatives[{}]", rank - 1),
                    "a faster layout is missing before it".to_owned(),
                ),
            };
            return Err(Rejected::better(place, cause, instance, best).into());
        }
        Ok(())
    }

    /// The layout with less risk is the best of its kind, and one is listed where there is one.
    fn safer(&mut self, instance: &Instance, plan: &Plan) -> Result<(), Stop> {
        let risk = plan.choice.prediction.oom_probability;
        if risk < NEGLIGIBLE_RISK {
            return match plan.safer {
                None => Ok(()),
                Some(_) => Err(Rejected::new("safer", "the layout has no risk to halve").into()),
            };
        }
        let cautious = answer::cautious(instance, risk);
        // The same combinations once more: they count once.
        let searched = self.searched;
        let found = self.search(&cautious, 1);
        self.searched = searched;
        let Some(found) = found else {
            return Ok(());
        };
        let Some(best) = found.best.first() else {
            return Ok(());
        };
        let is_best = plan
            .safer
            .as_ref()
            .is_some_and(|safer| !is_slower(safer, best));
        if is_best {
            return Ok(());
        }
        if self.is_weaker(instance) {
            self.note(ROWS);
            return Ok(());
        }
        let cause = "another layout with at most half the risk is faster";
        Err(Rejected::better("safer", cause, instance, best).into())
    }

    /// The layout that misses the demands is the fastest.
    fn missed(&mut self, instance: &Instance, why: &Infeasibility) -> Result<(), Stop> {
        let nearest = why.nearest.as_ref();
        let Some(fastest) = nearest.and_then(|nearest| nearest.evaluated.as_ref()) else {
            return Ok(());
        };
        let Some(found) = self.search(instance, 1) else {
            return Ok(());
        };
        is_whole(&why.proof, &found)?;
        match found.best.first() {
            Some(best) if is_slower(fastest, best) && !self.is_weaker(instance) => {
                let place = "infeasibility.nearest.layout";
                Err(Rejected::better(place, "another layout is faster", instance, best).into())
            }
            _ => Ok(()),
        }
    }

    /// No combination has a layout.
    fn infeasible(
        &mut self,
        instance: &Instance,
        place: &str,
        proof: Option<&Proof>,
    ) -> Result<(), Stop> {
        let Some(found) = self.search(instance, 1) else {
            return Ok(());
        };
        if let Some(proof) = proof {
            is_whole(proof, &found)?;
        }
        match found.best.into_iter().next() {
            None => Ok(()),
            Some(_) if self.is_weaker(instance) => {
                self.note(ROWS);
                Ok(())
            }
            Some(best) => {
                let cause = "a layout satisfies every rule";
                Err(Rejected::better(place, cause, instance, &best).into())
            }
        }
    }

    /// One number of GPUs of an answer that leaves it open.
    fn count(&mut self, count: &objective::Stated) -> Result<(), Stop> {
        match count.status {
            "optimal" => {
                let Some(found) = self.search(&count.instance, 1) else {
                    return Ok(());
                };
                match (count.layout, found.best.into_iter().next()) {
                    (Some(stated), Some(best)) if is_slower(stated, &best) => {
                        if self.is_weaker(&count.instance) {
                            self.note(ROWS);
                            return Ok(());
                        }
                        let place = format!("{}.layout", count.place);
                        Err(Rejected::better(
                            place,
                            "another layout is faster",
                            &count.instance,
                            &best,
                        )
                        .into())
                    }
                    _ => Ok(()),
                }
            }
            "infeasible" => {
                let place = format!("{}.status", count.place);
                self.infeasible(&count.instance, &place, None)
            }
            _ => Ok(()),
        }
    }

    /// Which rules clash, and the layout that is nearest to being possible.
    fn reasons(&mut self, document: &serde_json::Value, mut answer: Answer) -> Result<(), Stop> {
        let proof = answer.outcome.proof().clone();
        let left = self.options.deadline;
        let why = infeasibility::explain(&answer.instance, proof, left)?;
        if why.clashing_rules.is_empty() {
            self.note("`infeasibility`: the time limit ended the search for reasons");
            return Ok(());
        }
        answer.outcome = Outcome::Infeasible(why);
        figures::compare(document, &answer, None)
    }
}

/// What is said where the search knows nothing of constraints over layers.
const ROWS: &str = "optimality under your constraints over layers: the search does not know them, and \
                    finds better layouts that break them";

/// A proof over a whole space counts the combinations that the search finds in it.
fn is_whole(proof: &Proof, found: &Found) -> Result<(), Stop> {
    let (place, stated, recomputed) = if proof.cells != found.extent.total {
        let counts = (proof.cells, found.extent.total);
        ("proof.cells", counts.0.to_string(), counts.1.to_string())
    } else if proof.applied_before != found.applied_before {
        let rules = (&proof.applied_before, &found.applied_before);
        (
            "proof.applied_before",
            rules.0.join(", "),
            rules.1.join(", "),
        )
    } else if proof.extent == plan::Extent::Cut {
        ("proof.extent", "cut".to_owned(), "whole".to_owned())
    } else {
        return Ok(());
    };
    Err(Rejected {
        stated: Some(stated),
        recomputed: Some(recomputed),
        ..Rejected::new(place, "the space has other combinations")
    }
    .into())
}

/// Whether a layout takes longer than another by more than the tolerance.
fn is_slower(stated: &Evaluated, best: &Evaluated) -> bool {
    is_slower_by(stated, best, TOLERANCE)
}

fn is_slower_by(stated: &Evaluated, best: &Evaluated, tolerance: f64) -> bool {
    let time = |evaluated: &Evaluated| -> Seconds { evaluated.prediction.step_time };
    time(stated) > time(best) * (1.0 + tolerance)
}
