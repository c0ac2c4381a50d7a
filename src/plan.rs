//! The answer to an instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axis::FlaggedCombination;
use crate::choice::choice;
use crate::cost_model::prediction::Prediction;
use crate::layout::Layout;
use crate::quantity::Mfu;

choice!(
    /// How a search ended.
    Status {
        /// The layout is proven best.
        Optimal = "optimal",
        /// A limit ended the search: the layout is the best known.
        Feasible = "feasible",
        /// Proven: no layout satisfies every rule.
        Infeasible = "infeasible",
        /// A limit ended the search before any layout was known.
        Unknown = "unknown",
    }
);

/// How the search ended, with what it found.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The plan is proven best.
    Optimal(Plan),
    /// A limit ended the search; the plan is the best known.
    Feasible(Plan),
    /// Proven: no layout satisfies every rule.
    Infeasible(Infeasibility),
    /// A limit ended the search before any plan was known.
    Unknown(Proof),
}

impl Outcome {
    /// How it ended.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Optimal(_) => Status::Optimal,
            Self::Feasible(_) => Status::Feasible,
            Self::Infeasible(_) => Status::Infeasible,
            Self::Unknown(_) => Status::Unknown,
        }
    }

    /// The plan, where there is one.
    #[must_use]
    pub const fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Optimal(plan) | Self::Feasible(plan) => Some(plan),
            Self::Infeasible(_) | Self::Unknown(_) => None,
        }
    }

    /// What was proven.
    #[must_use]
    pub const fn proof(&self) -> &Proof {
        match self {
            Self::Optimal(plan) | Self::Feasible(plan) => &plan.proof,
            Self::Infeasible(infeasibility) => &infeasibility.proof,
            Self::Unknown(proof) => proof,
        }
    }
}

/// A layout with its prediction, its neighbours and its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The chosen layout.
    pub choice: Evaluated,
    /// The next-best layouts, best first.
    pub alternatives: Vec<Evaluated>,
    /// The best layout with less than half the risk of running out of memory, where the chosen
    /// one's is worth mentioning.
    pub safer: Option<Evaluated>,
    /// What was proven of the choice.
    pub proof: Proof,
}

impl Plan {
    /// Whether no layout can be better than the choice.
    #[must_use]
    pub const fn gap_is_closed(&self) -> bool {
        self.proof.gap <= 0.0
    }
}

/// A layout and what the cost model says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The layout.
    pub layout: Layout,
    /// Its time and memory.
    pub prediction: Prediction,
}

/// The extent of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Which program was solved.
    pub formulation: Formulation,
    /// No layout of the space has a higher MFU.
    pub bound_mfu: Mfu,
    /// The same as the program states it, rounded to quanta: parts per billion.
    pub bound_parts: i64,
    /// Relative distance between the plan and the bound; 0 when optimal.
    pub gap: f64,
    /// Relative distance by which a layout that the program takes for no better may still be faster, since
    /// it computes in whole quanta of time.
    pub tolerance: f64,
    /// The combinations of the space.
    pub combinations: Combinations,
    /// Which combinations were looked at.
    pub extent: Extent,
    /// Parts of the search that the time limit ended.
    pub cut_short: Vec<CutShort>,
    /// Rules that were applied before the program was built, because the space is too large to
    /// carry their violators as columns.
    pub applied_before: Vec<&'static str>,
    /// Name and version of the solver.
    pub solver: String,
}

/// How many combinations a space has, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Combinations {
    /// Combinations of the space.
    #[serde(rename = "cells")]
    pub all: u64,
    /// Combinations that break a rule.
    #[serde(rename = "cells_infeasible")]
    pub infeasible: u64,
    /// Combinations that a bound excludes.
    #[serde(rename = "cells_pruned")]
    pub pruned: u64,
    /// Combinations that are columns of the program; they may break a rule, which is then one of
    /// its rows.
    #[serde(rename = "cells_solved")]
    pub solved: u64,
}

impl Combinations {
    /// Those of which it is known what became of them.
    #[must_use]
    pub fn settled(self) -> u64 {
        let parts = [self.infeasible, self.pruned, self.solved];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

choice!(
    /// A part of a search that the time limit ended.
    CutShort {
        /// The list of the combinations.
        Listing = "listing",
        /// Their bounds.
        Screening = "screening",
        /// The program.
        Program = "program",
        /// The next-best layouts.
        NextBest = "next-best",
        /// The search for a safer layout.
        Safer = "safer",
        /// The reasons why there is no layout.
        Reasons = "reasons",
    }
);

impl CutShort {
    /// What it is, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Listing => "the list of the combinations",
            Self::Screening => "the bounds of the combinations",
            Self::Program => "the program",
            Self::NextBest => "the next-best layouts",
            Self::Safer => "the search for a safer layout",
            Self::Reasons => "the reasons",
        }
    }
}

choice!(
    /// How much of a space was looked at.
    Extent {
        /// All of it.
        Whole = "whole",
        /// What could be listed before the time was over.
        Cut = "cut",
    }
);

choice!(
    /// A mixed-integer program.
    Formulation {
        /// Combination, layers and checkpointed layers of every stage together.
        Staged = "staged",
        /// One-hot axes and one binary a combination.
        LayoutChoice = "layout-choice",
    }
);

/// Why no layout is possible.
#[derive(Debug, Clone, PartialEq)]
pub struct Infeasibility {
    /// The smallest set of rules that no combination satisfies together.
    pub clashing_rules: Vec<String>,
    /// The layout nearest to being possible.
    pub nearest: Option<Nearest>,
    /// The extent of the search.
    pub proof: Proof,
}

/// The combination that misses the fewest rules by the least.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// The combination.
    pub candidate: FlaggedCombination,
    /// What it would use, where that can be said.
    pub evaluated: Option<Evaluated>,
    /// The rules that it breaks.
    pub violations: Vec<Violation>,
}

/// A rule that a layout breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// The rule's name in docs, code and LP text, such as `memory_capacity(0)`.
    pub rule: String,
    /// What is wrong, with the amount, and what would be right.
    pub message: String,
}
