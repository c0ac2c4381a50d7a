//! The layout that a certificate claims, and what it says of it.

use crate::axis::{Axis, Candidate};
use crate::certificate::document::{Certificate, Winner};
use crate::certificate::format::ORDER;
use crate::certificate::space;
use crate::instance::Instance;
use crate::layout::{Layout, Stage};
use crate::plan::Formulation;

use super::budget::{Budget, TooLarge};
use super::optimum::best;
use super::permission::permitted;
use super::reason::Reasons;
use super::statement::{Settlement, Statement, recomputes_all};

/// The layout, if its values are listed ones: one for each axis, without checkpointing where the stages
/// decide that.
pub(super) fn layout(
    certificate: &Certificate,
    instance: &Instance,
    formulation: Formulation,
    reasons: &mut Reasons,
) -> Option<Layout> {
    let winner = certificate.winner.as_ref()?;
    let Some(candidate) = candidate(winner, instance, formulation) else {
        reasons.add(
            "winner.values",
            "do not name one listed value for each axis",
        );
        return None;
    };
    let stages = winner.stages.iter().map(|stage| Stage {
        layers: stage.layers,
        recomputed: stage.recomputed,
    });
    let layout = Layout {
        cell: candidate.cell,
        stages: stages.collect(),
    };
    if formulation == Formulation::LayoutChoice && !recomputes_all(&layout, candidate.checkpointing)
    {
        let cause = "does not say what the stages recompute";
        reasons.add("winner.values.checkpointing", cause);
    }
    Some(layout)
}

fn candidate(winner: &Winner, instance: &Instance, formulation: Formulation) -> Option<Candidate> {
    let assignment = space::assignment(&winner.values)?;
    let mut codes = [0; Axis::COUNT];
    let decided =
        |axis: Axis| formulation == Formulation::LayoutChoice || axis != Axis::Checkpointing;
    let axes: Vec<Axis> = ORDER.into_iter().filter(|&axis| decided(axis)).collect();
    if assignment.0.len() != axes.len() {
        return None;
    }
    for axis in axes {
        let code = assignment.get(axis)?;
        if !instance.space.values(axis).contains(&code) {
            return None;
        }
        codes[axis as usize] = code;
    }
    Some(Candidate::from_codes(&codes))
}

/// Compares what is said of the winner with what was recomputed.
pub(super) fn compare(winner: &Winner, statement: &Statement, reasons: &mut Reasons) {
    let (Some(numbers), Some(index)) = (&statement.numbers, statement.winner_index) else {
        let cause = "breaks a rule, or its stages do not hold the layers";
        reasons.add("winner", cause);
        return;
    };
    let layout = statement.claim.winner;
    let problem = statement.problem(index);
    if !layout.is_some_and(|layout| permitted(&problem, layout)) {
        let cause = "are not stages that the framework permits";
        reasons.add("winner.stages", cause);
    }
    reasons.compare("winner.objective", &winner.objective, &numbers.objective);
    reasons.compare("winner.mfu_ppb", &winner.mfu_ppb, &numbers.mfu_ppb);
    reasons.compare_lists("winner.memory_kib", &winner.memory_kib, &numbers.memory);
    reasons.compare(
        "winner.oom_probability_ppb",
        &winner.oom_probability_ppb,
        &numbers.oom_probability_ppb,
    );
    let stages = numbers.memory.iter().enumerate();
    for (stage, &memory) in stages.filter(|(_, memory)| **memory > statement.capacity) {
        let over = memory - statement.capacity;
        let cause = format!("exceeds the capacity by {over} KiB");
        reasons.add(format!("winner.stages[{stage}]"), cause);
    }
}

/// Whether nothing is wrong by [`is_best`].
pub(crate) fn is_first(statement: &Statement, budget: &Budget) -> Result<bool, TooLarge> {
    let mut reasons = Reasons::default();
    is_best(statement, &mut reasons, budget)?;
    Ok(reasons.is_empty())
}

/// The winner is the best layout of its combination by the tie rule, and no other combination has a
/// better one, or as good a one at an earlier position.
pub(super) fn is_best(
    statement: &Statement,
    reasons: &mut Reasons,
    budget: &Budget,
) -> Result<(), TooLarge> {
    let (Some(layout), Some(numbers), Some(winner)) = (
        statement.claim.winner,
        &statement.numbers,
        statement.winner_index,
    ) else {
        return Ok(());
    };
    for (index, settlement) in statement.settlements.iter().enumerate() {
        let Settlement::Solved(objective) = *settlement else {
            continue;
        };
        let order = statement.compare(objective, numbers.objective);
        let position = statement.open[index].position;
        if order.is_lt() {
            let cause = format!("is not best: combination {position} has {objective}");
            reasons.add("winner.objective", cause);
        } else if order.is_eq() && index < winner {
            let cause = format!("is not first: combination {position} has a layout as good");
            reasons.add("winner", cause);
        }
    }
    let best = best(&statement.problem(winner), budget)?;
    let stages: Vec<(i64, [i64; 3])> = layout
        .stages
        .iter()
        .map(|stage| (i64::from(stage.layers), stage.recomputed.map(i64::from)))
        .collect();
    if best.is_none_or(|best| best.stages != stages) {
        let cause = "are not those that the tie rule prefers in this combination";
        reasons.add("winner.stages", cause);
    }
    Ok(())
}
