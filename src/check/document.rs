//! What a check found: as a document, and for people.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::export::Target;
use crate::launch::Facts;
use crate::plan::Evaluated;
use crate::report::document::{Document, PredictionDocument, rounded};
use crate::report::style::{Meaning, Style, wrap};
use crate::report::{Answer, layout_text, number};
use crate::rules::Rule;

/// What was found in a launch file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = CheckDocument::FORMAT))]
    pub schema: String,
    /// The file, as it was named.
    pub file: String,
    /// The framework whose file it is.
    pub framework: String,
    /// The release whose rules were applied.
    pub release: String,
    /// Whether it can be launched.
    pub verdict: Verdict,
    /// The layout in one line; null where a choice is not known.
    pub layout: Option<String>,
    /// What is wrong, or worth knowing: errors first.
    pub findings: Vec<Finding>,
    /// What is not known and would let more be said.
    pub unknown: Vec<Unknown>,
    /// Time and memory; null where the layout breaks a rule, or something is not known.
    pub prediction: Option<PredictionDocument>,
    /// The legal layout that differs in the fewest choices; null where nothing is wrong.
    pub repair: Option<RepairDocument>,
    /// The best layout that was found; null where none was, or something is not known.
    pub optimum: Option<OptimumDocument>,
}

/// Whether a file can be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Verdict {
    /// No rule is broken, and it fits as far as that is known.
    Fine,
    /// A rule is broken.
    Broken,
    /// It runs out of memory.
    DoesNotFit,
}

/// How bad a finding is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Level {
    /// It does not run.
    Error,
    /// It runs, and costs more than it should.
    Warning,
    /// It is worth knowing.
    Note,
}

/// Something in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// The rule, by its name in docs/rules.md or of its own.
    pub rule: String,
    /// What is found.
    pub message: String,
    /// The key or flag; null where no line states it.
    pub key: Option<String>,
    /// The line, from 1; null where no line states it.
    pub line: Option<u32>,
    /// What would be right; null where the message says it.
    pub repair: Option<String>,
    /// Where the rule comes from; null for a recommendation.
    pub source: Option<String>,
}

/// Something that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// What it is.
    pub what: String,
    /// The argument that states it.
    pub argument: String,
}

/// A layout that is legal and near.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepairDocument {
    /// What changes, in the words of a layout.
    pub change: String,
    /// The layout in one line.
    pub layout: String,
    /// Lines of the file that change; what a variable or several keys state is not among them.
    pub edits: Vec<Edit>,
    /// Its model FLOP utilisation.
    pub mfu: f64,
    /// Its step time, in seconds.
    pub step_time_s: f64,
}

/// A line that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    /// The line, from 1.
    pub line: u32,
    /// The line as it is.
    pub old: String,
    /// The line as it should be.
    pub new: String,
}

/// The best layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptimumDocument {
    /// The layout in one line.
    pub layout: String,
    /// Its model FLOP utilisation.
    pub mfu: f64,
    /// Its step time, in seconds.
    pub step_time_s: f64,
    /// By how much a step of the file's layout takes longer (a share); null where that breaks a rule.
    pub slower: Option<f64>,
    /// Whether it is proven to be the best, or the time limit came before.
    pub is_proven: bool,
}

impl Document for CheckDocument {
    const FORMAT: &'static str = "parlayout/check/v1";
}

impl CheckDocument {
    pub(super) fn new(path: &Path, target: Target, unknown: Vec<Unknown>) -> Self {
        Self {
            schema: Self::FORMAT.to_owned(),
            file: path.display().to_string(),
            framework: target.as_str().to_owned(),
            release: target.dialect().releases[0].name.to_owned(),
            verdict: Verdict::Fine,
            layout: None,
            findings: Vec::new(),
            unknown,
            prediction: None,
            repair: None,
            optimum: None,
        }
    }

    /// With the verdict that follows from the findings.
    pub(super) fn judged(mut self) -> Self {
        let errors = || self.findings.iter().filter(|it| it.level == Level::Error);
        self.verdict = if errors().next().is_none() {
            Verdict::Fine
        } else if errors().all(|it| it.rule.starts_with(Rule::MemoryCapacity.as_str())) {
            Verdict::DoesNotFit
        } else {
            Verdict::Broken
        };
        self
    }
}

impl Finding {
    pub(super) fn new(level: Level, rule: &str, message: String) -> Self {
        Self {
            level,
            rule: rule.to_owned(),
            message,
            key: None,
            line: None,
            repair: None,
            source: None,
        }
    }

    /// With the place of the first of these columns that a line states.
    pub(super) fn at(mut self, facts: &Facts, columns: &[&str]) -> Self {
        if let Some(place) = columns.iter().find_map(|column| facts.place(column)) {
            self.key = Some(place.key.clone());
            self.line = Some(place.line);
        }
        self
    }
}

impl RepairDocument {
    pub(super) fn new(change: String, edits: Vec<Edit>, better: &Evaluated) -> Self {
        Self {
            change,
            layout: layout_text::line(&better.layout),
            edits,
            mfu: rounded(better.prediction.mfu.value()),
            step_time_s: rounded(better.prediction.step_time.value()),
        }
    }
}

impl OptimumDocument {
    pub(super) fn new(best: &Evaluated, slower: Option<f64>, is_proven: bool) -> Self {
        Self {
            layout: layout_text::line(&best.layout),
            mfu: rounded(best.prediction.mfu.value()),
            step_time_s: rounded(best.prediction.step_time.value()),
            slower: slower.map(|share| rounded(share.max(0.0))),
            is_proven,
        }
    }
}

impl Answer for CheckDocument {
    fn text(&self, style: &Style) -> String {
        let mut lines = vec![self.headline(style)];
        lines.extend(self.layout.as_ref().map(|layout| wrap(layout, 2)));
        for finding in &self.findings {
            lines.push(String::new());
            lines.extend(self.finding_lines(finding, style));
        }
        let blocks = [
            self.prediction_lines(),
            self.repair_lines(style),
            self.optimum_lines(style),
        ];
        for block in blocks.into_iter().filter(|block| !block.is_empty()) {
            lines.push(String::new());
            lines.extend(block);
        }
        if !self.unknown.is_empty() {
            lines.push(String::new());
            lines.push("Not known, and would let more be said:".to_owned());
            let unknown = self.unknown.iter();
            lines
                .extend(unknown.map(|it| wrap(&format!("  {}: give {}", it.what, it.argument), 4)));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl CheckDocument {
    fn headline(&self, style: &Style) -> String {
        let count = self
            .findings
            .iter()
            .filter(|it| it.level == Level::Error)
            .count();
        let (word, meaning) = match self.verdict {
            Verdict::Fine if self.prediction.is_some() => {
                ("legal, and fits".to_owned(), Meaning::Good)
            }
            Verdict::Fine => ("no rule is broken".to_owned(), Meaning::Good),
            Verdict::Broken => (number::counted(count, "rule") + " broken", Meaning::Bad),
            Verdict::DoesNotFit => ("does not fit".to_owned(), Meaning::Bad),
        };
        style.wrapped(
            meaning,
            &format!(
                "{}: {} ({}), {word}",
                self.file, self.framework, self.release
            ),
        )
    }

    fn finding_lines(&self, finding: &Finding, style: &Style) -> Vec<String> {
        let (word, meaning) = match finding.level {
            Level::Error => ("error", Meaning::Bad),
            Level::Warning => ("warning", Meaning::Warning),
            Level::Note => ("note", Meaning::Heading),
        };
        let place = finding
            .line
            .map_or(String::new(), |line| format!("{}:{line}: ", self.file));
        let mut lines = vec![style.wrapped(
            meaning,
            &format!("{place}{word}[{}]: {}", finding.rule, finding.message),
        )];
        let key = finding.key.as_ref().map(|key| format!("  key: {key}"));
        let repair = finding
            .repair
            .as_ref()
            .map(|repair| format!("  repair: {repair}"));
        let source = finding
            .source
            .as_ref()
            .map(|source| format!("  source: {source}"));
        let further = key.into_iter().chain(repair).chain(source);
        lines.extend(further.map(|text| wrap(&text, 4)));
        lines
    }

    fn prediction_lines(&self) -> Vec<String> {
        let Some(prediction) = &self.prediction else {
            return Vec::new();
        };
        let memory = &prediction.memory;
        let peaks: Vec<String> = memory
            .stages
            .iter()
            .map(|stage| number::gib(stage.peak_gib))
            .collect();
        let runs = peaks.chunk_by(|one, other| one == other);
        let runs = runs.map(|run| match run.len() {
            1 => run[0].clone(),
            times => format!("{} x{times}", run[0]),
        });
        vec![
            wrap(
                &format!(
                    "memory: {} GiB by stage, of {} GiB; {} risk of running out of it",
                    runs.collect::<Vec<_>>().join(", "),
                    number::gib(memory.capacity_gib),
                    number::risk(prediction.oom_probability)
                ),
                2,
            ),
            wrap(
                &format!(
                    "speed: {} a step, MFU {}, {:.0} tokens/s/GPU",
                    number::duration(prediction.step_time_s),
                    number::mfu(prediction.mfu),
                    prediction.tokens_per_s_per_gpu
                ),
                2,
            ),
        ]
    }

    fn repair_lines(&self, style: &Style) -> Vec<String> {
        let Some(repair) = &self.repair else {
            return Vec::new();
        };
        let text = format!(
            "nearest repair: {}; {} a step, MFU {}",
            repair.change,
            number::duration(repair.step_time_s),
            number::mfu(repair.mfu)
        );
        let mut lines = vec![style.wrapped(Meaning::Good, &text)];
        for edit in &repair.edits {
            lines.push(format!("  @@ {}:{} @@", self.file, edit.line));
            lines.push(format!("  -{}", shown(&edit.old)));
            lines.push(format!("  +{}", shown(&edit.new)));
        }
        lines
    }

    fn optimum_lines(&self, style: &Style) -> Vec<String> {
        let Some(best) = &self.optimum else {
            return Vec::new();
        };
        let word = if best.is_proven {
            "the optimum"
        } else {
            "the best known"
        };
        let distance = match best.slower {
            Some(share) if share < 0.0005 => format!("as fast as {word}"),
            Some(share) => format!(
                "a step takes {} longer than that of {word}",
                number::percent(share)
            ),
            None => word.to_owned(),
        };
        let text = format!(
            "{distance}: {} a step, MFU {}, with {}",
            number::duration(best.step_time_s),
            number::mfu(best.mfu),
            best.layout
        );
        vec![style.wrapped(Meaning::Heading, &text)]
    }
}

/// A line of a file without what a terminal would obey.
fn shown(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).collect()
}
