//! Rows of the user's own: linear in what a layout decides.

use std::fmt;

use crate::axis::{Axis, FlaggedCombination};
use crate::choice::choice;
use crate::layout::Layout;

/// A named row `sum_i a_i q_i (<=, >=, =) right` over the [`Decision`]s `q_i` of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    /// The name in files, violations and the program's rows.
    pub name: String,
    /// `a_i` and `q_i`, each decision once.
    pub terms: Vec<Term>,
    /// How the sides compare.
    pub comparison: Comparison,
    /// The right side.
    pub right: i64,
}

/// `coefficient * decision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// `a`.
    pub coefficient: i64,
    /// `q`.
    pub decision: Decision,
}

choice!(
    /// How the left side compares with the right, by its key in instance files.
    Comparison {
        /// `<=`.
        AtMost = "at_most",
        /// `>=`.
        AtLeast = "at_least",
        /// `=`.
        Equals = "equals",
    }
);

/// A number that a layout decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The value of an axis whose values are numbers.
    Degree(Axis),
    /// 1 where the axis has the value with this code, else 0.
    Is(Axis, u32),
    /// Micro-batches of a step and replica, `M`.
    MicroBatches,
    /// Layers of the stage with this index; 0 where the pipeline is shorter.
    Layers(u32),
    /// Layers of the last stage.
    LayersLast,
    /// Recomputed layers of all stages and modes together.
    CheckpointedLayers,
}

impl Decision {
    /// Whether the combination of discrete choices alone decides it.
    #[must_use]
    pub const fn is_of_combination(self) -> bool {
        matches!(self, Self::Degree(_) | Self::Is(..) | Self::MicroBatches)
    }

    /// Its value in a layout that takes `global_batch` sequences a step.
    fn value(self, layout: &Layout, global_batch: u64) -> i64 {
        // No decision names the flag that holds for all layers.
        let candidate = FlaggedCombination::plain(layout.combination);
        let layers =
            |stage: Option<&crate::layout::Stage>| stage.map_or(0, |stage| i64::from(stage.layers));
        match self {
            Self::Degree(axis) => i64::from(candidate.code(axis)),
            Self::Is(axis, code) => i64::from(candidate.code(axis) == code),
            Self::MicroBatches => layout.combination.micro_batches(global_batch) as i64,
            Self::Layers(index) => layers(layout.stages.get(index as usize)),
            Self::LayersLast => layers(layout.stages.last()),
            Self::CheckpointedLayers => {
                let stages = layout.stages.iter();
                stages
                    .map(|stage| i64::from(stage.checkpointed_layers()))
                    .sum()
            }
        }
    }
}

impl Constraint {
    /// Whether the combination of discrete choices alone decides the left side.
    #[must_use]
    pub fn is_of_combination(&self) -> bool {
        self.terms
            .iter()
            .all(|term| term.decision.is_of_combination())
    }

    /// The left side in a layout that takes `global_batch` sequences a step.
    #[must_use]
    pub fn left(&self, layout: &Layout, global_batch: u64) -> i64 {
        let terms = self.terms.iter();
        terms
            .map(|term| term.coefficient * term.decision.value(layout, global_batch))
            .sum()
    }

    /// Whether the row holds with this left side.
    #[must_use]
    pub const fn holds(&self, left: i64) -> bool {
        match self.comparison {
            Comparison::AtMost => left <= self.right,
            Comparison::AtLeast => left >= self.right,
            Comparison::Equals => left == self.right,
        }
    }
}

impl Comparison {
    /// In words: `at most`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::AtMost => "at most",
            Self::AtLeast => "at least",
            Self::Equals => "exactly",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Degree(axis) => write!(f, "{axis}"),
            Self::Is(axis, code) => write!(f, "({axis}={})", axis.show(*code)),
            Self::MicroBatches => f.write_str("micro_batches"),
            Self::Layers(0) => f.write_str("layers_first"),
            Self::Layers(index) => write!(f, "layers[{index}]"),
            Self::LayersLast => f.write_str("layers_last"),
            Self::CheckpointedLayers => f.write_str("checkpointed_layers"),
        }
    }
}

/// The left side: `tensor_parallel + 2 pipeline_parallel`.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, term) in self.terms.iter().enumerate() {
            let sign = match (position, term.coefficient < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            f.write_str(sign)?;
            if term.coefficient.abs() != 1 {
                write!(f, "{} ", term.coefficient.abs())?;
            }
            write!(f, "{}", term.decision)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn row(terms: &[(i64, Decision)]) -> Constraint {
        let terms = terms.iter().map(|&(coefficient, decision)| Term {
            coefficient,
            decision,
        });
        Constraint {
            name: "row".to_owned(),
            terms: terms.collect(),
            comparison: Comparison::AtMost,
            right: 16,
        }
    }

    #[test]
    fn the_left_side_is_linear_in_the_layout() {
        let layout = fixture::llama_405b_layout();
        let check = |terms: &[(i64, Decision)], expected: i64| {
            assert_eq!(row(terms).left(&layout, 2048), expected, "{}", row(terms));
        };
        check(&[(1, Decision::Degree(Axis::TensorParallel))], 8);
        check(&[(2, Decision::Degree(Axis::PipelineParallel))], 32);
        check(&[(1, Decision::MicroBatches)], 32);
        check(&[(1, Decision::Is(Axis::TensorParallel, 8))], 1);
        check(&[(1, Decision::Is(Axis::TensorParallel, 4))], 0);
        check(
            &[(1, Decision::Layers(0)), (-1, Decision::Layers(1))],
            7 - 8,
        );
        check(&[(1, Decision::Layers(99)), (3, Decision::LayersLast)], 21);
        check(&[(1, Decision::CheckpointedLayers)], 5);
    }

    #[test]
    fn it_reads_as_a_formula() {
        let terms = [
            (-1, Decision::Degree(Axis::TensorParallel)),
            (2, Decision::Layers(3)),
            (-3, Decision::Is(Axis::Sharding, 3)),
        ];
        assert_eq!(
            row(&terms).to_string(),
            "-tensor_parallel + 2 layers[3] - 3 (sharding=zero-3)"
        );
        assert!(row(&terms).holds(16) && !row(&terms).holds(17));
    }
}
