//! Rows of the user's own in a document.

use crate::axis::Axis;
use crate::constraint::{Comparison, Constraint, Decision, Term};

use super::document::ConstraintRow;

/// Largest numbers of a row, so that no sum overflows.
const LARGEST_COEFFICIENT: i64 = 1_000_000;
const LARGEST_RIGHT: i64 = 1_000_000_000_000;
const LARGEST_INDEX: u32 = 1 << 20;
const MOST_TERMS: usize = 1000;

/// Every way to compare.
const COMPARISONS: [Comparison; 3] = [Comparison::AtMost, Comparison::AtLeast, Comparison::Equals];

/// What rows are in order of.
type Key = (Vec<(String, i64)>, &'static str, i64);

/// The key of a row; its name is not part of it.
pub(crate) fn key(row: &Constraint) -> Key {
    let terms = row.terms.iter();
    let terms = terms.map(|term| (term.decision.to_string(), term.coefficient));
    (terms.collect(), row.comparison.as_str(), row.right)
}

/// The rows of an instance in order, with their terms in order, each once.
pub(super) fn sorted(rows: &[Constraint]) -> Vec<Constraint> {
    let mut rows: Vec<Constraint> = rows.to_vec();
    for row in &mut rows {
        row.terms
            .sort_by_cached_key(|term| term.decision.to_string());
    }
    rows.sort_by_cached_key(key);
    rows.dedup_by_key(|row| key(row));
    rows
}

/// The row as it is stated.
pub(super) fn write(row: &Constraint, differences: Vec<i64>) -> ConstraintRow {
    let terms = row.terms.iter();
    ConstraintRow {
        terms: terms
            .map(|term| (term.coefficient, term.decision.to_string()))
            .collect(),
        comparison: row.comparison.as_str().to_owned(),
        right: row.right,
        differences,
    }
}

/// The row that is stated, if it is one.
pub(crate) fn read(stated: &ConstraintRow) -> Option<Constraint> {
    let term = |(coefficient, text): &(i64, String)| {
        let possible = (-LARGEST_COEFFICIENT..=LARGEST_COEFFICIENT).contains(coefficient);
        Some(Term {
            coefficient: Some(*coefficient).filter(|&coefficient| possible && coefficient != 0)?,
            decision: decision(text)?,
        })
    };
    let terms: Vec<Term> = stated.terms.iter().map(term).collect::<Option<_>>()?;
    let comparison = COMPARISONS
        .into_iter()
        .find(|comparison| comparison.as_str() == stated.comparison)?;
    let sound = terms.len() <= MOST_TERMS
        && (-LARGEST_RIGHT..=LARGEST_RIGHT).contains(&stated.right)
        && stated.terms.windows(2).all(|pair| pair[0].1 < pair[1].1);
    sound.then_some(Constraint {
        name: String::new(),
        terms,
        comparison,
        right: stated.right,
    })
}

/// The decision that is written `text`.
fn decision(text: &str) -> Option<Decision> {
    let bracketed =
        |open: &str, close: &str| text.strip_prefix(open).and_then(|t| t.strip_suffix(close));
    let decision = match text {
        "micro_batches" => Decision::MicroBatches,
        "layers_first" => Decision::Layers(0),
        "layers_last" => Decision::LayersLast,
        "checkpointed_layers" => Decision::CheckpointedLayers,
        _ => {
            if let Some(index) = bracketed("layers[", "]") {
                let index: u32 = index.parse().ok()?;
                Decision::Layers(Some(index).filter(|index| *index <= LARGEST_INDEX)?)
            } else if let Some((axis, value)) =
                bracketed("(", ")").and_then(|is| is.split_once('='))
            {
                let axis = Axis::parse(axis).filter(|&axis| axis != Axis::Checkpointing)?;
                Decision::Is(axis, axis.parse_value(value)?)
            } else {
                Decision::Degree(Axis::parse(text).filter(|axis| axis.names().is_none())?)
            }
        }
    };
    // Each decision has one spelling.
    (decision.to_string() == text).then_some(decision)
}
