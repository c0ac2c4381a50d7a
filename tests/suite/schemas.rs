//! The shipped JSON Schemas.

use parlayout::check::CheckDocument;
use parlayout::laboratory::report::CalibrationDocument;
use parlayout::laboratory::report::backtest::Answer;
use parlayout::report::Document;
use parlayout::report::document::{
    ComparisonDocument, EvaluationDocument, ExplanationDocument, ParetoDocument, PriceDocument,
    SolutionDocument,
};
use parlayout::verify::VerdictDocument;

use crate::support::project;

/// Compares a shipped schema with the code; with `PARLAYOUT_WRITE_SCHEMA=1`, writes it.
fn check(file: &str, schema: &str) {
    let path = project(&format!("docs/{file}"));
    if std::env::var_os("PARLAYOUT_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, schema).expect("docs/ is writable");
    }
    let shipped = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        shipped == schema,
        "docs/{file} is not the schema of the code: run the tests with PARLAYOUT_WRITE_SCHEMA=1"
    );
}

#[test]
fn the_shipped_schemas_are_current() {
    check("solution.schema.json", &SolutionDocument::schema());
    check("evaluation.schema.json", &EvaluationDocument::schema());
    check("backtest.schema.json", &Answer::schema());
    check("calibration.schema.json", &CalibrationDocument::schema());
    check("explanation.schema.json", &ExplanationDocument::schema());
    check("comparison.schema.json", &ComparisonDocument::schema());
    check("price.schema.json", &PriceDocument::schema());
    check("pareto.schema.json", &ParetoDocument::schema());
    check("verdict.schema.json", &VerdictDocument::schema());
    check("check.schema.json", &CheckDocument::schema());
}
