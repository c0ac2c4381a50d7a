//! Findings as SARIF 2.1.0, which code hosts and editors show beside the lines (OASIS, 2020).
//!
//! Written by hand: `serde-sarif` brings a generator of types and a dozen crates for these few keys.

use serde_json::{Value, json};

use super::{CheckDocument, Finding, Level};

impl CheckDocument {
    /// The findings as SARIF.
    #[must_use]
    pub fn sarif(&self) -> String {
        let mut names: Vec<&str> = self.findings.iter().map(|it| it.rule.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let rules: Vec<Value> = names.iter().map(|name| json!({ "id": name })).collect();
        let results: Vec<Value> = self.findings.iter().map(|it| self.result(it)).collect();
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": { "name": "parlayout", "rules": rules } },
                "results": results,
            }],
        });
        crate::report::document::write(&log)
    }

    fn result(&self, finding: &Finding) -> Value {
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let repair = finding.repair.as_ref().map(|repair| format!("; {repair}"));
        let text = format!("{}{}", finding.message, repair.unwrap_or_default());
        let mut result = json!({
            "ruleId": finding.rule,
            "level": level,
            "message": { "text": text },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": self.file },
                "region": { "startLine": finding.line.unwrap_or(1) },
            } }],
        });
        let edits = self.repair.iter().flat_map(|repair| &repair.edits);
        let edits: Vec<Value> = edits
            .map(|edit| {
                json!({
                    "deletedRegion": { "startLine": edit.line, "startColumn": 1, "endColumn": edit.old.chars().count() + 1 },
                    "insertedContent": { "text": edit.new },
                })
            })
            .collect();
        if finding.level == Level::Error && !edits.is_empty() {
            let change = self
                .repair
                .as_ref()
                .map_or("", |repair| repair.change.as_str());
            result["fixes"] = json!([{
                "description": { "text": change },
                "artifactChanges": [{
                    "artifactLocation": { "uri": self.file },
                    "replacements": edits,
                }],
            }]);
        }
        result
    }
}
