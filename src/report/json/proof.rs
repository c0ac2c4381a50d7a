//! The extent of the search, and broken rules, in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::rounded;
use crate::plan::{Extent, Proof, Violation};

/// The extent of the search and what it proves.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProofDocument {
    /// Which program was solved.
    #[schemars(extend("enum" = ["layout-choice", "staged"]))]
    formulation: &'static str,
    /// No layout of the space has a higher MFU; null where no bound is known.
    bound_mfu: Option<f64>,
    /// Relative distance between the plan and the bound, 0 when optimal; null without a plan.
    gap: Option<f64>,
    /// `cut` where the time limit came before all combinations of the space were listed: then the counts
    /// are those of the listed ones, and the bound holds for all.
    #[schemars(extend("enum" = ["whole", "cut"]))]
    extent: &'static str,
    /// Combinations of the space.
    cells: u64,
    /// Combinations that break a rule.
    cells_infeasible: u64,
    /// Combinations that a bound excludes.
    cells_pruned: u64,
    /// Combinations that are columns of the program; they may break a rule, which is then one of
    /// its rows.
    cells_solved: u64,
    /// Rules that were applied before the program was built, because the space is too large to
    /// carry their violators as columns.
    applied_before: Vec<String>,
    /// Name and version of the solver.
    solver: String,
}

/// A rule that a layout breaks.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ViolationDocument {
    /// The rule's name, such as `memory_capacity(0)`.
    rule: String,
    /// What is wrong, with the amount, and what would be right.
    message: String,
}

impl ProofDocument {
    /// The proof; without a plan there is neither bound nor gap.
    pub(super) fn new(proof: &Proof, has_plan: bool) -> Self {
        let known = |number: f64| (has_plan && number.is_finite()).then(|| rounded(number));
        Self {
            formulation: proof.formulation.as_str(),
            bound_mfu: known(proof.bound_mfu.value()),
            gap: known(proof.gap),
            extent: match proof.extent {
                Extent::Whole => "whole",
                Extent::Cut => "cut",
            },
            cells: proof.cells,
            cells_infeasible: proof.cells_infeasible,
            cells_pruned: proof.cells_pruned,
            cells_solved: proof.cells_solved,
            applied_before: proof
                .applied_before
                .iter()
                .map(ToString::to_string)
                .collect(),
            solver: proof.solver.clone(),
        }
    }
}

impl ViolationDocument {
    pub(super) fn new(violation: &Violation) -> Self {
        Self {
            rule: violation.rule.clone(),
            message: violation.message.clone(),
        }
    }
}
