//! What an answer says: read from its document, with everything that can be computed computed anew.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::objective;
use super::{Rejected, Stop, TOLERANCE, VerifyError, is_slower};
use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::instance::{self, Instance};
use crate::layout::Layout;
use crate::plan::{CutShort, Evaluated, Formulation, Infeasibility, Outcome, Plan, Proof, Status};
use crate::planner;
use crate::planner::objective::{Count, Goal};
use crate::quantity::{Mfu, Seconds};
use crate::report::Document;
use crate::report::document::{
    LayoutDocument, NeighbourDocument, ObjectiveDocument, ProofDocument, SolutionDocument,
};
use crate::rules::{self, Rule};

/// An answer.
#[derive(Clone)]
pub(super) struct Answer {
    /// The instance as asked.
    pub(super) asked: Instance,
    /// The instance on the chosen number of GPUs.
    pub(super) instance: Instance,
    pub(super) outcome: Outcome,
    pub(super) diverse: AxisSet,
    /// Where the answer is over several numbers of GPUs or to demands.
    pub(super) over: Option<(Goal, Vec<Count>)>,
    /// Whether there are layouts, and none meets the demands.
    pub(super) misses_demands: bool,
}

/// The answer of a document.
pub(super) fn read(document: &Value) -> Result<Answer, Stop> {
    let schema = document["schema"].as_str().unwrap_or_default();
    if schema != SolutionDocument::FORMAT {
        let text = format!(
            "the document is `{}`, not `{}`: `solve --format json` writes such a document",
            crate::reading::shown(schema),
            SolutionDocument::FORMAT
        );
        return Err(VerifyError::Unreadable(text).into());
    }
    let sections: Map<String, Value> = at(document, "resolved_instance").map_err(|_| {
        let text = "the answer has no `resolved_instance`: an earlier version wrote it";
        VerifyError::Unreadable(text.to_owned())
    })?;
    let name: String = at(document, "instance")?;
    let mut asked = instance::from_resolved(&name, &sections).map_err(VerifyError::Instance)?;
    // They say how the instance was typed.
    asked.warnings = at(document, "warnings")?;
    let diverse = instance::axes_named(&at::<Vec<String>>(document, "diverse")?)
        .ok_or_else(|| Rejected::new("diverse", "there is no such axis"))?;
    if let Some(stated) = at::<Option<ObjectiveDocument>>(document, "objective")? {
        return objective::read(document, &stated, asked, diverse);
    }
    Ok(Answer {
        outcome: outcome(document, &asked, diverse)?,
        instance: asked.clone(),
        asked,
        diverse,
        over: None,
        misses_demands: false,
    })
}

/// The value at a place, as what has to stand there.
pub(super) fn at<T: DeserializeOwned>(document: &Value, place: &str) -> Result<T, Stop> {
    serde_json::from_value(document[place].clone())
        .map_err(|cause| Rejected::new(place, cause.to_string()).into())
}

impl Answer {
    pub(super) fn formulation(&self) -> Formulation {
        self.outcome.proof().formulation
    }

    /// Whether the answer says which rules clash.
    pub(super) fn has_reasons(&self) -> bool {
        matches!(self.outcome, Outcome::Infeasible(_)) && !self.misses_demands
    }

    /// The document of the answer.
    pub(super) fn document(&self) -> Value {
        let document = match &self.over {
            None => SolutionDocument::new(&self.instance, &self.outcome),
            Some((goal, counts)) => {
                let answer = planner::objective::Answer {
                    instance: self.instance.clone(),
                    outcome: self.outcome.clone(),
                    counts: counts.clone(),
                };
                SolutionDocument::for_goal(&self.asked, goal, &answer)
            }
        };
        serde_json::to_value(document.diverse(self.diverse)).expect("documents are JSON")
    }
}

/// The instance that accepts half of a risk.
pub(super) fn cautious(instance: &Instance, risk: f64) -> Instance {
    Instance {
        max_oom_risk: risk / 2.0,
        ..instance.clone()
    }
}

/// The outcome that a document states, its layouts legal and their figures computed anew. Reasons
/// are left out.
pub(super) fn outcome(
    document: &Value,
    instance: &Instance,
    diverse: AxisSet,
) -> Result<Outcome, Stop> {
    let stated: ProofDocument = at(document, "proof")?;
    let mut proof = proof(&stated)?;
    let status: Status = at(document, "status")?;
    if status == Status::Unknown {
        return Ok(Outcome::Unknown(proof));
    }
    if status == Status::Infeasible {
        return Ok(Outcome::Infeasible(Infeasibility {
            clashing_rules: Vec::new(),
            nearest: None,
            proof,
        }));
    }
    let choice = legal(instance, at(document, "layout")?, "layout")?;
    let others: Vec<NeighbourDocument> = at(document, "alternatives")?;
    let alternatives = others.into_iter().enumerate().map(|(at, other)| {
        let place = format!("alternatives[{at}].layout");
        legal(instance, Some(other.evaluated.layout), &place)
    });
    let alternatives: Vec<Evaluated> = alternatives.collect::<Result<_, _>>()?;
    let safer: Option<NeighbourDocument> = at(document, "safer")?;
    let safer = safer.map(|other| {
        let cautious = cautious(instance, choice.prediction.oom_probability);
        legal(&cautious, Some(other.evaluated.layout), "safer.layout")
    });
    if status == Status::Optimal {
        proof.bound_mfu = choice.prediction.mfu;
    } else {
        (proof.bound_mfu, proof.gap) = bound(&stated, &choice)?;
    }
    let plan = Plan {
        choice,
        alternatives,
        safer: safer.transpose()?,
        proof,
    };
    in_order(&plan, diverse)?;
    Ok(match status {
        Status::Optimal => Outcome::Optimal(plan),
        _ => Outcome::Feasible(plan),
    })
}

/// A layout that obeys every rule, with its prediction.
pub(super) fn legal(
    instance: &Instance,
    stated: Option<LayoutDocument>,
    place: &str,
) -> Result<Evaluated, Stop> {
    let stated = stated.ok_or_else(|| Rejected::new(place, "there is no layout"))?;
    let layout = stated.layout();
    let combination = FlaggedCombination::plain(layout.combination);
    // Beyond these bounds the rules themselves cannot count.
    let is_listed = |axis: Axis| {
        instance
            .space
            .values(axis)
            .contains(&combination.code(axis))
    };
    let mut axes = Axis::ALL.into_iter();
    if let Some(axis) = axes.find(|&axis| axis != Axis::Checkpointing && !is_listed(axis)) {
        let cause = "the value is not among those that may be tried";
        return Err(Rejected::new(format!("{place}.{axis}"), cause).into());
    }
    let most = instance.job.transformer.layers;
    let within = layout.stages.iter().all(|stage| {
        stage.layers <= most
            && stage.recomputed.iter().all(|&count| count <= most)
            && stage.checkpointed_layers() <= stage.layers
    });
    if !within {
        let cause = "a stage has more layers than there are, or recomputes more than it has";
        return Err(Rejected::new(format!("{place}.stages"), cause).into());
    }
    match rules::violations(instance, &layout).first() {
        None => Ok(planner::evaluate(instance, layout)),
        Some(broken) => {
            let cause = format!("it breaks the rule `{}`: {}", broken.rule, broken.message);
            Err(Rejected::new(place, cause).into())
        }
    }
}

/// Listed layouts differ, and none is faster than one before it.
fn in_order(plan: &Plan, diverse: AxisSet) -> Result<(), Stop> {
    let one_flag = plan.proof.formulation == Formulation::LayoutChoice;
    let tells_apart = |axis: &Axis| {
        let usual = diverse.is_empty() && (one_flag || *axis != Axis::Checkpointing);
        usual || diverse.contains(*axis)
    };
    let key = |layout: &Layout| -> Vec<u32> {
        let combination = FlaggedCombination {
            combination: layout.combination,
            checkpointing: layout.checkpointing(),
        };
        let axes = Axis::ALL.into_iter().filter(tells_apart);
        axes.map(|axis| combination.code(axis)).collect()
    };
    let mut seen = vec![key(&plan.choice.layout)];
    let mut slowest = &plan.choice;
    for (at, other) in plan.alternatives.iter().enumerate() {
        let key = key(&other.layout);
        let place = format!("alternatives[{at}]");
        if seen.contains(&key) {
            let cause = "it is listed before, or differs in no axis that it should";
            return Err(Rejected::new(place, cause).into());
        }
        if is_slower(slowest, other, TOLERANCE) {
            return Err(Rejected::new(place, "it is faster than one before it").into());
        }
        seen.push(key);
        slowest = other;
    }
    Ok(())
}

/// What a proof states; bounds are left out.
fn proof(stated: &ProofDocument) -> Result<Proof, Stop> {
    let rule = |name: &String| {
        let mut rules = rules::ALL.iter().map(|rule| Rule::as_str(*rule));
        rules.find(|rule| rule == name)
    };
    let applied: Option<Vec<&str>> = stated.applied_before.iter().map(rule).collect();
    let tolerance = stated.tolerance.unwrap_or(0.0);
    if !(0.0..TOLERANCE).contains(&tolerance) {
        return Err(Rejected::new("proof.tolerance", "it is not possible").into());
    }
    let (sum, all) = (stated.combinations.settled(), stated.combinations.all);
    let unreached = stated.cut_short.contains(&CutShort::Screening);
    if sum > all || sum < all && !unreached {
        let cause = "the combinations are not those infeasible, pruned and solved together";
        return Err(Rejected::new("proof.cells", cause).into());
    }
    Ok(Proof {
        formulation: stated.formulation,
        bound_mfu: Mfu::ZERO,
        bound_parts: 0,
        gap: 0.0,
        tolerance,
        combinations: stated.combinations,
        extent: stated.extent,
        cut_short: stated.cut_short.clone(),
        applied_before: applied
            .ok_or_else(|| Rejected::new("proof.applied_before", "there is no such rule"))?,
        solver: stated.solver.clone(),
    })
}

/// The bound of a layout that is not proven best, and its gap: they say the same.
fn bound(stated: &ProofDocument, choice: &Evaluated) -> Result<(Mfu, f64), Stop> {
    const ROUNDING: f64 = 2e-5;
    let (bound, gap) = match (stated.bound_mfu, stated.gap) {
        (Some(bound), Some(gap)) => (bound, gap),
        (None, None) => return Ok((Mfu::new(f64::INFINITY), f64::INFINITY)),
        _ => return Err(Rejected::new("proof.gap", "there is no bound to it").into()),
    };
    let between = bound / choice.prediction.mfu.value() - 1.0;
    if gap < 0.0 || (between - gap).abs() > ROUNDING * (1.0 + gap) {
        let cause = "it is not the distance of the bound from the layout";
        return Err(Rejected::new("proof.gap", cause).into());
    }
    Ok((Mfu::new(bound), gap))
}

/// What was sought, where that is more than the fastest layout.
pub(super) fn goal(stated: &ObjectiveDocument, asked: &Instance) -> Result<Goal, Stop> {
    const MOST_GPUS: u32 = 1 << 20;
    let (objective, counts) = (stated.name, &stated.asked.gpus);
    let cluster = &asked.job.cluster;
    let is_possible = counts.iter().all(|gpus| (1..=MOST_GPUS).contains(gpus));
    let expected = match counts.as_slice() {
        [first, .., last] if objective.is_over_counts() && is_possible => {
            planner::objective::counts(cluster, *first, *last)
        }
        [only] if objective.is_over_counts() && is_possible => vec![*only],
        _ => vec![cluster.gpus],
    };
    if *counts != expected {
        let cause = "these are not the numbers of GPUs between the first and the last";
        return Err(Rejected::new("objective.asked.gpus", cause).into());
    }
    Ok(Goal {
        objective,
        deadline: stated.asked.deadline_s.map(Seconds::new),
        at_least_mfu: stated.asked.at_least_mfu.map(Mfu::new),
        steps: stated.steps,
        counts: expected,
    })
}
