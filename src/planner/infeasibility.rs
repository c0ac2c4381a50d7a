//! Why no combination of a space is possible.
//!
//! Every combination, among values that are wider than the space, breaks some requirements of the
//! instance: rules, listed values, forbidden combinations. The smallest such sets are the
//! *corrections*: without them there is a layout. A set of requirements clashes if and only if it
//! has one of every correction, so a smallest clash is a minimum hitting set of the corrections
//! (Reiter, Artificial Intelligence 32, 1987), found by the program [`hitting_set`].

mod memory_bound;
mod memory_fit;
mod relaxation;
mod rows;
mod search;
mod values;

use std::time::Duration;

use formulations::hitting_set;
use formulations::staged::StagedError;

pub use relaxation::without;
pub use search::Correction;
pub use values::unlisted_values;

use crate::axis::FlaggedCombination;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::{CutShort, Evaluated, Formulation, Infeasibility, Nearest, Proof};
use crate::quantity::Bytes;
use crate::rules::{self, Rule, RuleSet};
use search::Search;

use super::{Deadline, PlanError, PlanOptions, TimeOver, best, constraints, evaluate};

/// What an infeasible instance suffers from.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Sets of requirements without which there is a layout, the smallest first.
    pub corrections: Vec<Correction>,
    /// Sets of requirements that no layout satisfies together, disjoint, the smallest first. Each is
    /// minimal: without any one of its requirements the others can be satisfied.
    pub clashes: Vec<RuleSet>,
    /// The layout that keeps everything but memory and misses least.
    pub least_shortage: Option<Shortage>,
}

/// What is missing of memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortage {
    /// On the fullest GPU.
    pub amount: Bytes,
    /// The layout that misses it.
    pub layout: Layout,
}

/// Finds the reasons for which `formulation` has no layout of the instance.
///
/// # Errors
///
/// When the solver fails, or the time is over.
pub fn analyse(
    instance: &Instance,
    formulation: Formulation,
    deadline: Deadline,
) -> Result<Analysis, PlanError> {
    let corrections = Search::new(instance, formulation, deadline).corrections()?;
    let corrections = if constraints::concern_layers(instance) {
        rows::with_layer_rows(instance, &corrections, deadline)?
    } else {
        corrections
    };
    Ok(Analysis {
        clashes: clashes(&corrections)?,
        corrections,
        least_shortage: memory_fit::least_shortage(instance, formulation, deadline)?,
    })
}

/// Whether the instance has a layout, rows about layers apart: quicker than a plan.
///
/// # Errors
///
/// When the time is over.
pub fn may_have_layout(instance: &Instance, deadline: Deadline) -> Result<bool, PlanError> {
    Search::new(instance, Formulation::Staged, deadline).finds_layout()
}

/// The best layout of a relaxed instance; `None` if it has none, or if its rows of the user's own
/// cannot be kept by the program without what was dropped.
///
/// # Errors
///
/// When the solver fails, its answer fails the verification, or the time is over.
pub fn best_layout(
    instance: &Instance,
    deadline: Deadline,
) -> Result<Option<Evaluated>, PlanError> {
    deadline.check()?;
    let options = PlanOptions {
        deadline,
        ..PlanOptions::default()
    };
    match best(instance, &options) {
        Ok(best) if best.is_proven() => Ok(best.into_layout()),
        Ok(_) => Err(TimeOver.into()),
        Err(PlanError::Staged(StagedError::Data { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The least additional memory of a GPU, within what the accepted risk leaves, with which the
/// instance has a layout, rows about layers apart; `None` if it has one already, or none with any
/// memory.
///
/// # Errors
///
/// When the time is over.
pub fn least_shortage(instance: &Instance, deadline: Deadline) -> Result<Option<Bytes>, PlanError> {
    let least = memory_fit::least_shortage(instance, Formulation::Staged, deadline)?;
    Ok(least.map(|least| least.amount))
}

/// Bytes of the unit of memory.
const KIB: f64 = 1024.0;

impl Analysis {
    /// The requirements without any one of which there is a layout, whatever else holds. If there
    /// are any, they are part of the only clash.
    #[must_use]
    pub fn each_enough(&self) -> RuleSet {
        let alone = self.corrections.iter().filter(|it| it.dropped.len() == 1);
        alone.fold(RuleSet::EMPTY, |set, it| set.union(it.dropped))
    }
}

/// The smallest clash, then the smallest that shares nothing with those before, and so on.
fn clashes(corrections: &[Correction]) -> Result<Vec<RuleSet>, PlanError> {
    let sets = corrections.iter().map(|it| it.dropped.bits());
    let mut open = hitting_set::Data {
        sets: sets.collect(),
    };
    let mut clashes = Vec::new();
    while !open.sets.is_empty()
        && let Some(clash) = hitting_set::solve(&open).map_err(StagedError::from)?
    {
        clashes.push(RuleSet::from_bits(clash));
        for set in &mut open.sets {
            *set &= !clash;
        }
    }
    Ok(clashes)
}

/// Longest time for the reasons beside the answer of a program; `explain` takes more.
const LONGEST_EXPLANATION: Duration = Duration::from_secs(30);

/// The smallest set of requirements that clash, and the layout nearest to being possible; neither
/// where the time is over before they are known.
///
/// # Errors
///
/// When the solver fails.
pub(crate) fn explain(
    instance: &Instance,
    mut proof: Proof,
    deadline: Deadline,
) -> Result<Infeasibility, PlanError> {
    let deadline = deadline.earlier(Deadline::after(Some(LONGEST_EXPLANATION)));
    let explained = analyse(instance, proof.formulation, deadline)
        .and_then(|analysis| Ok((nearest(instance, &analysis, deadline)?, analysis)));
    let (clash, nearest) = match explained {
        Ok((nearest, analysis)) => (analysis.clashes.first().copied(), nearest),
        Err(PlanError::TimeOver(_)) => {
            proof.cut_short.push(CutShort::Reasons);
            (None, None)
        }
        Err(error) => return Err(error),
    };
    let clash = clash.unwrap_or_default();
    Ok(Infeasibility {
        clashing_rules: clash.iter().map(|it| it.name(instance)).collect(),
        nearest,
        proof,
    })
}

/// The layout that misses memory by the least; where choices clash before memory does, without what
/// a smallest correction drops besides.
///
/// # Errors
///
/// When the solver fails, or the time is over.
pub fn nearest(
    instance: &Instance,
    analysis: &Analysis,
    deadline: Deadline,
) -> Result<Option<Nearest>, PlanError> {
    let (layout, witness) = if let Some(shortage) = &analysis.least_shortage {
        (Some(shortage.layout.clone()), None)
    } else if let Some(correction) = smallest(&analysis.corrections) {
        let layout = layout_without(instance, correction, deadline)?;
        (layout, Some(correction.witness))
    } else {
        (None, None)
    };
    let candidate = layout.as_ref().map(|layout| FlaggedCombination {
        combination: layout.combination,
        checkpointing: layout.checkpointing(),
    });
    let evaluated = layout.map(|layout| evaluate(instance, layout));
    let violations = evaluated.as_ref().map_or_else(Vec::new, |evaluated| {
        rules::violations(instance, &evaluated.layout)
    });
    Ok(candidate.or(witness).map(|candidate| Nearest {
        candidate,
        evaluated,
        violations,
    }))
}

/// The first of the corrections with fewest requirements, rather one on the job's GPUs.
fn smallest(corrections: &[Correction]) -> Option<&Correction> {
    let gpus = Rule::GpuCount;
    corrections
        .iter()
        .min_by_key(|it| (it.dropped.len(), it.dropped.contains(gpus)))
}

/// The best layout without what a correction drops; where that is memory, the one that misses it
/// by the least.
fn layout_without(
    instance: &Instance,
    correction: &Correction,
    deadline: Deadline,
) -> Result<Option<Layout>, PlanError> {
    let memory = Rule::MemoryCapacity;
    let Correction { dropped, witness } = correction;
    if dropped.contains(memory) {
        let relaxed = without(
            instance,
            dropped.without(RuleSet::EMPTY.with(memory)),
            witness,
        );
        let least = memory_fit::least_shortage(&relaxed, Formulation::Staged, deadline)?;
        return Ok(least.map(|least| least.layout));
    }
    let best = best_layout(&without(instance, *dropped, witness), deadline)?;
    Ok(best.map(|best| best.layout))
}
