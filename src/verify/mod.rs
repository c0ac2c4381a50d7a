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
mod verdict;

use serde_json::Value;

use crate::axis::AxisSet;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::{CutShort, Evaluated, Formulation, Outcome, Plan, Proof};
use crate::planner::objective::{Count, on};
use crate::planner::{Best, Deadline, NEGLIGIBLE_RISK, PlanError, constraints, infeasibility};
use crate::reading::InputError;
use crate::report::document::{ReadError, strict_json};

use answer::Answer;
use search::{Found, Search, search};
pub use verdict::{
    BetterDocument, Counts, ProvenDocument, Rejected, VerdictDocument, VerdictStatus,
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

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Twice(place) => Rejected::new(place, "the key is written twice").into(),
            other => VerifyError::Unreadable(other.to_string()).into(),
        }
    }
}

/// Checks an answer.
///
/// # Errors
///
/// If the text is no answer of `solve`, or its instance cannot be read.
pub fn verify(text: &str, options: &Options) -> Result<VerdictDocument, VerifyError> {
    match checked(text, options) {
        Ok(verdict) => Ok(verdict),
        Err(Stop::Rejected(rejected)) => Ok(VerdictDocument::rejected(*rejected)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// The instance of an answer, on the number of GPUs that it chose, and its layout, which obeys every rule;
/// no layout where it has none.
///
/// # Errors
///
/// If the text is no answer of `solve`, or its layout breaks a rule.
pub fn saved(text: &str) -> Result<(Instance, Option<Layout>), VerifyError> {
    let read = || -> Result<Answer, Stop> { answer::read(&strict_json::parse(text)?) };
    let answer = read().map_err(|stop| match stop {
        Stop::Failed(error) => error,
        Stop::Rejected(rejected) => {
            VerifyError::Unreadable(format!("`{}`: {}", rejected.place, rejected.cause))
        }
    })?;
    let plan = answer.outcome.plan();
    let layout = plan.map(|plan| plan.choice.layout.clone());
    Ok((answer.instance, layout))
}

/// The instance and the layout of an answer, which obeys its rules.
///
/// # Errors
///
/// If the text is no answer of `solve`, its layout breaks a rule, or it has none.
pub fn saved_layout(text: &str) -> Result<(Instance, Layout), VerifyError> {
    match saved(text)? {
        (instance, Some(layout)) => Ok((instance, layout)),
        (_, None) => Err(VerifyError::Unreadable(
            "the answer has no layout".to_owned(),
        )),
    }
}

fn checked(text: &str, options: &Options) -> Result<VerdictDocument, Stop> {
    let document = strict_json::parse(text)?;
    let answer = answer::read(&document)?;
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
    let counts = answer.over.iter().flat_map(|(_, counts)| counts);
    for (at, count) in counts.enumerate() {
        checks.count(at, count, &answer.asked)?;
    }
    checks.outcome(&answer)?;
    if !checks.is_cut && answer.has_reasons() {
        checks.reasons(&document, &answer)?;
    }
    Ok(VerdictDocument::accepted(&answer, checks))
}

/// What an answer says to be best: no search may find a faster layout.
struct Claim<'a> {
    place: String,
    /// `None` where there is said to be no layout.
    layout: Option<&'a Evaluated>,
    /// Relative difference of step times that is left open.
    tolerance: f64,
    /// What is wrong where a faster layout is found.
    cause: &'static str,
}

impl<'a> Claim<'a> {
    fn new(place: impl Into<String>, layout: Option<&'a Evaluated>) -> Self {
        Self {
            place: place.into(),
            layout,
            tolerance: TOLERANCE,
            cause: match layout {
                Some(_) => "another layout is faster",
                None => "a layout satisfies every rule",
            },
        }
    }
}

/// The searches of an answer.
struct Checks<'a> {
    options: &'a Options<'a>,
    diverse: AxisSet,
    formulation: Formulation,
    searched: Option<Counts>,
    unchecked: Vec<String>,
    is_cut: bool,
}

impl Checks<'_> {
    fn note(&mut self, text: &str) {
        if self.unchecked.iter().all(|note| note != text) {
            self.unchecked.push(text.to_owned());
        }
    }

    /// Searches for better layouts than those that are claimed to be the best of an instance, best
    /// first. A proof counts the combinations that the search finds.
    fn hold(
        &mut self,
        instance: &Instance,
        claims: &[Claim],
        proof: Option<&Proof>,
    ) -> Result<(), Stop> {
        let sought = Search {
            formulation: self.formulation,
            diverse: self.diverse,
            count: claims.len(),
            options: self.options,
        };
        let found = search(instance, &sought);
        self.searched = Some(self.searched.unwrap_or_default().and(found.counts));
        if found.counts.open > 0 {
            self.is_cut = true;
            self.note("optimality: the time limit ended the search");
            return Ok(());
        }
        if let Some(proof) = proof {
            is_whole(proof, &found)?;
        }
        let mut pairs = claims.iter().zip(&found.best);
        let beaten = pairs.find(|(claim, best)| {
            let is_slower = |stated: &Evaluated| is_slower(stated, best, claim.tolerance);
            claim.layout.is_none_or(is_slower)
        });
        let Some((claim, best)) = beaten else {
            return Ok(());
        };
        // Your constraints over layers may leave less than the search finds.
        if self.formulation == Formulation::Staged && constraints::concern_layers(instance) {
            self.note(ROWS);
            return Ok(());
        }
        Err(Rejected {
            better: Some(BetterDocument::new(instance, best)),
            ..Rejected::new(&claim.place, claim.cause)
        }
        .into())
    }

    /// The answer on the chosen number of GPUs.
    fn outcome(&mut self, answer: &Answer) -> Result<(), Stop> {
        let instance = &answer.instance;
        match &answer.outcome {
            Outcome::Optimal(plan) => {
                self.optimal(instance, plan)?;
                self.safer(instance, plan)
            }
            Outcome::Feasible(_) => {
                self.note("the bound: a `feasible` answer does not say that its layout is best");
                Ok(())
            }
            Outcome::Infeasible(why) => {
                let claim = if answer.misses_demands {
                    let nearest = why.nearest.as_ref();
                    let fastest = nearest.and_then(|nearest| nearest.evaluated.as_ref());
                    Claim::new("infeasibility.nearest.layout", fastest)
                } else {
                    Claim::new("status", None)
                };
                self.hold(instance, &[claim], Some(&why.proof))
            }
            Outcome::Unknown(_) => {
                self.note("whether there is a layout: an `unknown` answer does not say");
                Ok(())
            }
        }
    }

    fn optimal(&mut self, instance: &Instance, plan: &Plan) -> Result<(), Stop> {
        // Of the chosen layout the proof says how much it leaves open.
        let mut claims = vec![Claim {
            tolerance: plan.proof.tolerance + ROUNDING,
            ..Claim::new("layout", Some(&plan.choice))
        }];
        // Where the time limit ended their search, others may be missing.
        let is_cut = plan.proof.cut_short.contains(&CutShort::NextBest);
        let known = if is_cut { 0 } else { plan.alternatives.len() };
        let others = plan.alternatives.iter().take(known).enumerate();
        claims.extend(others.map(|(at, other)| Claim {
            cause: "a faster layout is missing before it",
            ..Claim::new(format!("alternatives[{at}]"), Some(other))
        }));
        self.hold(instance, &claims, Some(&plan.proof))
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
        if plan.proof.cut_short.contains(&CutShort::Safer) {
            self.note("the safer layout: the time limit ended the search for it");
            return Ok(());
        }
        // The same combinations once more: they count once.
        let searched = self.searched;
        let claim = Claim {
            cause: "another layout with at most half the risk is faster",
            ..Claim::new("safer", plan.safer.as_ref())
        };
        self.hold(&answer::cautious(instance, risk), &[claim], None)?;
        self.searched = searched;
        Ok(())
    }

    /// One number of GPUs of an answer that leaves it open.
    fn count(&mut self, at: usize, count: &Count, asked: &Instance) -> Result<(), Stop> {
        let (key, layout) = match &count.best {
            Some(Best::Optimal(layout)) => ("layout", Some(layout)),
            Some(Best::Infeasible) => ("status", None),
            _ => return Ok(()),
        };
        let claim = Claim::new(format!("objective.counts[{at}].{key}"), layout);
        self.hold(&on(asked, count.gpus), &[claim], None)
    }

    /// Which rules clash, and the layout that is nearest to being possible.
    fn reasons(&mut self, document: &Value, answer: &Answer) -> Result<(), Stop> {
        let proof = answer.outcome.proof().clone();
        if proof.cut_short.contains(&CutShort::Reasons) {
            self.note("`infeasibility`: the answer's time limit ended its search for reasons");
            return figures::compare(document, answer, None);
        }
        let why = infeasibility::explain(&answer.instance, proof, self.options.deadline)?;
        if why.clashing_rules.is_empty() {
            self.note("`infeasibility`: the time limit ended the search for reasons");
            return Ok(());
        }
        let explained = Answer {
            outcome: Outcome::Infeasible(why),
            ..answer.clone()
        };
        figures::compare(document, &explained, None)
    }
}

/// What is said where the search knows nothing of constraints over layers.
const ROWS: &str = "optimality under your constraints over layers: the search does not know them, and \
                    finds better layouts that break them";

/// A proof over a whole space counts the combinations that the search finds in it.
fn is_whole(proof: &Proof, found: &Found) -> Result<(), Stop> {
    let rules = [&proof.applied_before, &found.applied_before].map(|rules| rules.join(", "));
    let [stated_rules, rules] = rules;
    let counts = [proof.combinations.all, found.counts.total].map(|count| count.to_string());
    let [stated_count, count] = counts;
    let facts = [
        ("proof.cells", stated_count, count),
        ("proof.applied_before", stated_rules, rules),
        ("proof.extent", proof.extent.to_string(), "whole".to_owned()),
    ];
    let mut facts = facts.into_iter();
    match facts.find(|(_, stated, recomputed)| stated != recomputed) {
        None => Ok(()),
        Some((place, stated, recomputed)) => Err(Rejected {
            stated: Some(stated),
            recomputed: Some(recomputed),
            ..Rejected::new(place, "the space has other combinations")
        }
        .into()),
    }
}

/// Whether a layout takes longer than another by more than a tolerance.
fn is_slower(stated: &Evaluated, best: &Evaluated, tolerance: f64) -> bool {
    let [stated, best] = [stated, best].map(|evaluated| evaluated.prediction.step_time);
    stated > best * (1.0 + tolerance)
}
