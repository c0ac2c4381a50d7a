//! The answers as documents: one serialisable view per answer, which is its JSON at the same time,
//! described in `docs/json.md`. Tables, CSV and pictures are rendered from these alone, so that an
//! answer that was saved can be shown, compared and checked like a fresh one.
//!
//! Numbers are rounded to six significant digits, so that the bytes are the same on every machine.

mod comparison;
mod components;
mod explanation;
mod job;
mod layout;
mod objective;
mod pareto;
mod prediction;
mod price;
mod solution;
pub(crate) mod strict_json;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::Status;

pub use comparison::{ComparisonBody, ComparisonDocument, MemoryTerm, SideDocument, TimeTerm};
pub use components::{MemoryComponents, TimeDocument};
pub use explanation::{
    ChangeDocument, EffectDocument, ExplanationDocument, RepairDocument, WhyNotDocument,
    WhyNotVerdict,
};
pub use job::{JobDocument, LearnedDocument, ScarceDocument, Trust};
pub use layout::{LayoutDocument, RecomputedDocument, StageDocument};
pub use objective::{AskedDocument, CountDocument, CountStatus, ObjectiveDocument};
pub use pareto::{ParetoDocument, PointDocument};
pub use prediction::{MemoryDocument, PredictionDocument, StageMemoryDocument};
pub use price::{BestDocument, OfferDocument, PriceDocument};
pub use solution::{
    EvaluatedDocument, EvaluationDocument, InfeasibilityDocument, NearestDocument,
    NeighbourDocument, ProofDocument, SolutionDocument,
};

/// An answer as a document of a versioned format.
pub trait Document: Serialize + JsonSchema + Sized {
    /// Name and version of the format, the value of the key `schema`.
    const FORMAT: &'static str;

    /// The document as JSON on several lines.
    #[must_use]
    fn json(&self) -> String {
        write(self)
    }

    /// Reads a document again.
    ///
    /// # Errors
    ///
    /// If the text is no JSON, of another format, lacks a key or has one twice.
    fn read(text: &str) -> Result<Self, ReadError>
    where
        Self: DeserializeOwned,
    {
        let document = strict_json::parse(text)?;
        match document["schema"].as_str() {
            Some(format) if format == Self::FORMAT => Ok(serde_json::from_value(document)?),
            format => Err(ReadError::Format {
                found: format.unwrap_or("unnamed").to_owned(),
                expected: format!("`{}`", Self::FORMAT),
            }),
        }
    }

    /// The JSON Schema of the format, shipped in `docs/`.
    #[must_use]
    fn schema() -> String {
        let generator = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        let mut schema = generator.into_root_schema_for::<Self>();
        schema.insert("title".to_owned(), Self::FORMAT.into());
        write(&schema)
    }
}

/// Why a text is not the document that was expected.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No JSON.
    #[error("the text is not JSON: {0}")]
    NoJson(serde_json::Error),
    /// A key is written twice.
    #[error("the key `{0}` is written twice")]
    Twice(String),
    /// A key is missing, or of another type.
    #[error("the document cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// Another document.
    #[error("the document is `{found}`, not {expected}")]
    Format {
        /// Its format.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A document without a layout.
    #[error("the document has no layout: it is {0}")]
    NoLayout(Status),
}

/// Rounds to six significant digits.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// Rounds a probability to six decimals: what is below a millionth is nothing to plan with.
pub(crate) fn rounded_probability(probability: f64) -> f64 {
    (probability * 1e6).round() / 1e6
}

/// A document on several lines, with a final line break.
pub(crate) fn write(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document)
        .expect("documents have string keys and no fallible serialisation");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
