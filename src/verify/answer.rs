//! What an answer says: read from its document, with everything that can be computed computed anew.

use serde_json::Value;

use super::TOLERANCE;
use super::objective::Stated;
use super::{Rejected, Stop, VerifyError};
use crate::axis::{Axis, AxisSet, FlaggedCombination};

use crate::instance::{self, Instance};
use crate::layout::{Checkpointing, Layout};
use crate::plan::{Evaluated, Extent, Formulation, Infeasibility, Outcome, Plan, Proof};
use crate::planner;
use crate::planner::objective::{self, Count, Goal, Objective};
use crate::quantity::{Mfu, Seconds};
use crate::report::Document;
use crate::report::document::{LayoutDocument, SolutionDocument};
use crate::rules::{self, Rule};

/// What the answer is to.
pub(super) struct Asked {
    pub(super) instance: Instance,
    diverse: AxisSet,
}

/// An answer.
#[derive(Clone)]
pub(super) struct Answer {
    /// The instance as asked.
    asked: Instance,
    /// The instance on the chosen number of GPUs.
    pub(super) instance: Instance,
    pub(super) outcome: Outcome,
    pub(super) diverse: AxisSet,
    /// Where the answer is over several numbers of GPUs or to demands.
    pub(super) over: Option<(Goal, Vec<Count>)>,
    /// Whether there are layouts, and none meets the demands.
    pub(super) misses_demands: bool,
}

/// The instance of an answer.
pub(super) fn asked(document: &Value) -> Result<Asked, Stop> {
    let schema = document["schema"].as_str().unwrap_or_default();
    if schema != SolutionDocument::FORMAT {
        let text = format!(
            "the document is `{}`, not `{}`: `solve --format json` writes such a document",
            crate::reading::shown(schema),
            SolutionDocument::FORMAT
        );
        return Err(VerifyError::Unreadable(text).into());
    }
    let Some(sections) = document["resolved_instance"].as_object() else {
        let text = "the answer has no `resolved_instance`: an earlier version wrote it";
        return Err(VerifyError::Unreadable(text.to_owned()).into());
    };
    let name = text_at(document, "instance")?;
    let mut instance = instance::from_resolved(name, sections).map_err(VerifyError::Instance)?;
    // They say how the instance was typed.
    instance.warnings = texts_at(document, "warnings")?;
    let diverse = instance::axes(&texts_at(document, "diverse")?)
        .ok_or_else(|| Rejected::new("diverse", "there is no such axis"))?;
    Ok(Asked { instance, diverse })
}

/// What was sought, where that is more than the fastest layout.
pub(super) fn goal(document: &Value, asked: &Asked) -> Result<Option<Goal>, Stop> {
    let stated = &document["objective"];
    if stated.is_null() {
        return Ok(None);
    }
    let name = text_at(stated, "name")?;
    let objective = Objective::ALL
        .into_iter()
        .find(|objective| objective.as_str() == name)
        .ok_or_else(|| Rejected::new("objective.name", "there is no such objective"))?;
    let demands = &stated["asked"];
    let list = demands["gpus"].as_array();
    let counts = list.and_then(|list| list.iter().map(count).collect::<Option<Vec<u32>>>());
    let counts = counts.unwrap_or_default();
    let expected = match counts.as_slice() {
        [first, .., last] if objective.is_over_counts() => {
            objective::counts(&asked.instance.job.cluster, *first, *last)
        }
        [only] if objective.is_over_counts() => vec![*only],
        _ => vec![asked.instance.job.cluster.gpus],
    };
    if counts != expected {
        let cause = "these are not the numbers of GPUs between the first and the last";
        return Err(Rejected::new("objective.asked.gpus", cause).into());
    }
    Ok(Some(Goal {
        objective,
        deadline: demands["deadline_s"].as_f64().map(Seconds::new),
        at_least_mfu: demands["at_least_mfu"].as_f64().map(Mfu::new),
        steps: stated["steps"].as_u64(),
        counts,
    }))
}

impl Answer {
    /// The answer on the instance's own GPUs.
    pub(super) fn read(document: &Value, asked: Asked) -> Result<Self, Stop> {
        Ok(Self {
            outcome: outcome(document, &asked.instance)?,
            instance: asked.instance.clone(),
            asked: asked.instance,
            diverse: asked.diverse,
            over: None,
            misses_demands: false,
        })
    }

    /// The answer to demands, or over several numbers of GPUs.
    pub(super) fn over(
        asked: &Asked,
        over: (Goal, Vec<Count>),
        instance: Instance,
        outcome: Outcome,
        misses_demands: bool,
    ) -> Self {
        Self {
            asked: asked.instance.clone(),
            diverse: asked.diverse,
            over: Some(over),
            instance,
            outcome,
            misses_demands,
        }
    }

    pub(super) fn formulation(&self) -> Formulation {
        self.outcome.proof().formulation
    }

    /// What is said of each number of GPUs.
    pub(super) fn counts(&self) -> impl Iterator<Item = Stated<'_>> {
        let counts = self.over.iter().flat_map(|(_, counts)| counts).enumerate();
        counts.map(|(at, count)| Stated::new(at, count, &self.asked))
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
                let answer = objective::Answer {
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
pub(super) fn outcome(document: &Value, instance: &Instance) -> Result<Outcome, Stop> {
    let proof = proof(&document["proof"])?;
    let status = text_at(document, "status")?;
    if status != "optimal" && status != "feasible" {
        return match status {
            "infeasible" => Ok(Outcome::Infeasible(Infeasibility {
                clashing_rules: Vec::new(),
                nearest: None,
                proof,
            })),
            "unknown" => Ok(Outcome::Unknown(proof)),
            _ => Err(Rejected::new("status", "there is no such status").into()),
        };
    }
    let choice = legal(instance, &document["layout"], "layout")?;
    let others = document["alternatives"].as_array().into_iter().flatten();
    let alternatives = others.enumerate().map(|(at, other)| {
        let place = format!("alternatives[{at}].layout");
        legal(instance, &other["layout"], &place)
    });
    let alternatives: Vec<Evaluated> = alternatives.collect::<Result<_, _>>()?;
    let safer = match &document["safer"] {
        Value::Null => None,
        other => {
            let cautious = cautious(instance, choice.prediction.oom_probability);
            Some(legal(&cautious, &other["layout"], "safer.layout")?)
        }
    };
    let proof = if status == "optimal" {
        Proof {
            bound_mfu: choice.prediction.mfu,
            gap: 0.0,
            ..proof
        }
    } else {
        bounded(proof, &document["proof"], &choice)?
    };
    let plan = Plan {
        choice,
        alternatives,
        safer,
        proof,
    };
    in_order(document, &plan)?;
    Ok(match status {
        "optimal" => Outcome::Optimal(plan),
        _ => Outcome::Feasible(plan),
    })
}

/// A layout that obeys every rule, with its prediction.
pub(super) fn legal(instance: &Instance, stated: &Value, place: &str) -> Result<Evaluated, Stop> {
    let layout: LayoutDocument = serde_json::from_value(stated.clone())
        .map_err(|cause| Rejected::new(place, cause.to_string()))?;
    let layout = layout.layout();
    let most = instance.job.transformer.layers;
    let combination = FlaggedCombination {
        combination: layout.combination,
        checkpointing: Checkpointing::None,
    };
    // Beyond these bounds the rules themselves cannot count.
    let strange = Axis::ALL.into_iter().find(|&axis| {
        axis != Axis::Checkpointing
            && !instance
                .space
                .values(axis)
                .contains(&combination.code(axis))
    });
    if let Some(axis) = strange {
        let cause = "the value is not among those that may be tried";
        return Err(Rejected::new(format!("{place}.{axis}"), cause).into());
    }
    let is_within = |count: &u32| *count <= most;
    let within = layout.stages.iter().all(|stage| {
        is_within(&stage.layers)
            && stage.recomputed.iter().all(is_within)
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
fn in_order(document: &Value, plan: &Plan) -> Result<(), Stop> {
    let diverse = instance::axes(&texts_at(document, "diverse")?).unwrap_or_default();
    let key = |layout: &Layout| -> Vec<u32> {
        let combination = FlaggedCombination {
            combination: layout.combination,
            checkpointing: layout.checkpointing(),
        };
        let one_flag = plan.proof.formulation == Formulation::LayoutChoice;
        let axes = Axis::ALL.into_iter().filter(|&axis| {
            if diverse.is_empty() {
                one_flag || axis != Axis::Checkpointing
            } else {
                diverse.contains(axis)
            }
        });
        axes.map(|axis| combination.code(axis)).collect()
    };
    let mut seen = vec![key(&plan.choice.layout)];
    let mut slowest = &plan.choice;
    for (at, other) in plan.alternatives.iter().enumerate() {
        let key = key(&other.layout);
        let cause = if seen.contains(&key) {
            "it is listed before, or differs in no axis that it should"
        } else if super::is_slower(slowest, other) {
            "it is faster than one before it"
        } else {
            seen.push(key);
            slowest = other;
            continue;
        };
        return Err(Rejected::new(format!("alternatives[{at}]"), cause).into());
    }
    Ok(())
}

/// What a proof states; bounds are left out.
fn proof(stated: &Value) -> Result<Proof, Stop> {
    let place = |key: &str| format!("proof.{key}");
    let wrong = |key: &str| Rejected::new(place(key), "it is missing or not possible");
    let count = |key: &str| -> Result<u64, Stop> {
        let count = stated[key].as_u64();
        count.ok_or_else(|| wrong(key).into())
    };
    let formulation = [Formulation::Staged, Formulation::LayoutChoice]
        .into_iter()
        .find(|formulation| stated["formulation"] == formulation.as_str())
        .ok_or_else(|| wrong("formulation"))?;
    let extent = match stated["extent"].as_str() {
        Some("whole") => Extent::Whole,
        Some("cut") => Extent::Cut,
        _ => return Err(wrong("extent").into()),
    };
    let rule = |name: String| {
        let mut rules = rules::ALL.iter().map(|rule| Rule::as_str(*rule));
        rules.find(|rule| *rule == name)
    };
    let applied = texts_at(stated, "applied_before")?.into_iter().map(rule);
    let proof = Proof {
        formulation,
        bound_mfu: Mfu::ZERO,
        bound_parts: 0,
        gap: 0.0,
        tolerance: match &stated["tolerance"] {
            Value::Null => 0.0,
            stated => (stated.as_f64())
                .filter(|stated| (0.0..TOLERANCE).contains(stated))
                .ok_or_else(|| wrong("tolerance"))?,
        },
        cells: count("cells")?,
        cells_infeasible: count("cells_infeasible")?,
        cells_pruned: count("cells_pruned")?,
        cells_solved: count("cells_solved")?,
        extent,
        applied_before: applied
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("applied_before"))?,
        solver: text_at(stated, "solver")?.to_owned(),
    };
    let parts = [
        proof.cells_infeasible,
        proof.cells_pruned,
        proof.cells_solved,
    ];
    let sum = parts
        .iter()
        .fold(0_u64, |sum, part| sum.saturating_add(*part));
    if sum != proof.cells {
        let cause = "the combinations are not those infeasible, pruned and solved together";
        return Err(Rejected::new(place("cells"), cause).into());
    }
    Ok(proof)
}

/// The proof with the bound of a layout that is not proven best: bound and gap say the same.
fn bounded(proof: Proof, stated: &Value, choice: &Evaluated) -> Result<Proof, Stop> {
    const ROUNDING: f64 = 2e-5;
    let known = (stated["bound_mfu"].as_f64(), stated["gap"].as_f64());
    let (bound, gap) = match known {
        (Some(bound), Some(gap)) => (bound, gap),
        (None, None) => (f64::INFINITY, f64::INFINITY),
        _ => return Err(Rejected::new("proof.gap", "there is no bound to it").into()),
    };
    let between = bound / choice.prediction.mfu.value() - 1.0;
    let agrees = gap.is_infinite() || (between - gap).abs() <= ROUNDING * (1.0 + gap);
    if !agrees || gap < 0.0 {
        let cause = "it is not the distance of the bound from the layout";
        return Err(Rejected::new("proof.gap", cause).into());
    }
    Ok(Proof {
        bound_mfu: Mfu::new(bound),
        gap,
        ..proof
    })
}

/// A count of GPUs.
pub(super) fn count(value: &Value) -> Option<u32> {
    let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
    count.filter(|count| (1..=1 << 20).contains(count))
}

/// The text of a key.
pub(super) fn text_at<'a>(value: &'a Value, key: &str) -> Result<&'a str, Stop> {
    let text = value[key].as_str();
    text.ok_or_else(|| Rejected::new(key, "it is missing or no text").into())
}

/// The texts of a key.
fn texts_at(value: &Value, key: &str) -> Result<Vec<String>, Stop> {
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let list = value[key].as_array();
    let texts = list.and_then(|list| list.iter().map(text).collect());
    texts.ok_or_else(|| Rejected::new(key, "it is missing or no list of texts").into())
}
