//! What a framework calls the facts of a job: one table per framework, from which its files are written and
//! read.

use super::facts::Facts;
use super::settings::Settings;
use crate::axis::Axis;
use crate::framework::support::Aspect;
use crate::framework::{CheckpointRule, Framework, Partition};

/// How a framework's files say what a job is.
pub struct Dialect {
    /// The name of `export --to`.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The releases whose names and rules are known, the usual one first.
    pub releases: &'static [Release],
    /// The framework of the catalog that runs what these files say.
    pub framework: &'static str,
    /// What it can run beyond what the catalog says; each further entry is stricter.
    pub limits: &'static [Limits],
    /// How its files are written.
    pub syntax: Syntax,
    /// Keys of which any shows that a file is its own, apart by `|`.
    pub signs: &'static str,
    /// Its keys.
    pub rows: &'static [Row],
    /// Adds the framework's own columns to the facts of a layout, or says what cannot be said.
    pub(crate) own: fn(&mut Facts) -> Result<(), String>,
    /// Adds what follows from the framework's own columns, and its own rules.
    pub(crate) neutral: fn(&Settings, &mut Facts),
    /// What a reader of its files should know.
    pub(crate) remarks: fn(&Facts) -> Vec<String>,
    /// How it is launched.
    pub launcher: Launcher,
    /// The files that names and rules are from.
    pub source: &'static str,
}

/// A release of a framework.
#[derive(Debug)]
pub struct Release {
    /// Its name after `@`.
    pub name: &'static str,
    /// Why nothing can be written for it, where that is so.
    pub refused: Option<&'static str>,
}

/// A release that files are written for.
#[must_use]
pub const fn release(name: &'static str) -> Release {
    Release {
        name,
        refused: None,
    }
}

/// What a framework, or its files, cannot do.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The only values of an aspect, apart by blanks.
    pub values: &'static [(&'static str, &'static str)],
    /// The same, where a stricter entry adds some.
    pub further: &'static [(&'static str, &'static str)],
    /// How layers are cut, where not as the catalog says.
    pub partition: Option<Partition>,
    /// Which layers are recomputed, where not as the catalog says.
    pub checkpointing: Option<CheckpointRule>,
    /// Whether tensor parallelism always splits the sequence too.
    pub always_splits_sequence: bool,
}

impl Limits {
    /// Nothing beyond what the catalog says.
    pub const NONE: Self = Self {
        values: &[],
        further: &[],
        partition: None,
        checkpointing: None,
        always_splits_sequence: false,
    };

    /// The same with further values.
    #[must_use]
    pub const fn further(self, further: &'static [(&'static str, &'static str)]) -> Self {
        Self { further, ..self }
    }

    /// Restricts a framework.
    pub fn apply(&self, framework: &mut Framework) {
        for (name, values) in self.values.iter().chain(self.further) {
            let Some(aspect) = Aspect::all().find(|aspect| aspect.as_str() == *name) else {
                continue;
            };
            let codes = values
                .split(' ')
                .filter_map(|text| aspect.parse_value(text));
            let supported = framework.axes.of_mut(aspect);
            let kept = codes.filter(|&code| supported.has(code)).collect();
            supported.0 = Some(kept);
        }
        framework.partition = self.partition.unwrap_or(framework.partition);
        framework.checkpoint_rule = self.checkpointing.unwrap_or(framework.checkpoint_rule);
    }
}

/// How the files of a framework are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Command-line flags with dashes; a switch has no value.
    Flags,
    /// Command-line flags with underscores, each with a value.
    ValuedFlags,
    /// Assignments of Python to a configuration, `cfg.model.x=1` on a command line.
    Overrides,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

/// How a job is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `torchrun PROGRAM` with the flags, or with the file after an option.
    Torchrun(&'static str),
    /// Any other command, with `{nodes}`, `{per_node}`, `{gpus}` and `{file}`.
    Command(&'static str),
}

/// Largest number that is read, the longest sequence: products of two stay far from overflow.
const LARGEST: u64 = 1 << 27;

/// A key of a framework's files.
pub struct Row {
    /// The keys that state it, apart by `|`: the first is written, all are read.
    pub keys: &'static str,
    /// The column of facts.
    pub column: &'static str,
    /// How it is written.
    pub form: Form,
    /// What holds where nothing is stated, as files have it.
    pub default: Option<&'static str>,
    /// The default for people, where the network computes something else with another value.
    pub computes: Option<&'static str>,
}

/// How a fact is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A whole number.
    Number,
    /// Any text or number.
    Text,
    /// `true` or `false`.
    Switch,
    /// Our words, and theirs.
    Words(&'static [(&'static str, &'static str)]),
    /// Always this, with no meaning for a layout.
    Always(&'static str),
}

const fn row(keys: &'static str, column: &'static str, form: Form) -> Row {
    Row {
        keys,
        column,
        form,
        default: None,
        computes: None,
    }
}

/// A whole number.
#[must_use]
pub const fn number(keys: &'static str, column: &'static str) -> Row {
    row(keys, column, Form::Number)
}

/// Any text or number.
#[must_use]
pub const fn text(keys: &'static str, column: &'static str) -> Row {
    row(keys, column, Form::Text)
}

/// A switch, which usually is off.
#[must_use]
pub const fn switch(keys: &'static str, column: &'static str) -> Row {
    row(keys, column, Form::Switch).or("false")
}

/// A choice.
#[must_use]
pub const fn words(
    keys: &'static str,
    column: &'static str,
    words: &'static [(&'static str, &'static str)],
) -> Row {
    row(keys, column, Form::Words(words))
}

/// A key that is always written.
#[must_use]
pub const fn always(key: &'static str, value: &'static str) -> Row {
    row(key, "", Form::Always(value))
}

impl Row {
    /// The same with what holds where nothing is stated.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// The same of a key that changes what the network computes.
    #[must_use]
    pub const fn numeric(self) -> Self {
        Self {
            computes: self.default,
            ..self
        }
    }

    /// The same, with the default in words.
    #[must_use]
    pub const fn numeric_or(self, words: &'static str) -> Self {
        Self {
            computes: Some(words),
            ..self
        }
    }

    const fn is_constant(&self) -> bool {
        matches!(self.form, Form::Always(_))
    }

    /// Whether a key is one of its own.
    fn has(&self, key: &str) -> bool {
        self.keys.split('|').any(|own| own == key)
    }

    /// The key that is written.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.keys.split('|').next().unwrap_or_default()
    }

    /// The fact that a value of the file is; `None` if it is none.
    fn fact(&self, theirs: &str) -> Option<String> {
        match self.form {
            Form::Number => {
                let number: u64 = theirs.replace('_', "").parse().ok()?;
                (number <= LARGEST).then(|| number.to_string())
            }
            Form::Text => Some(theirs.to_owned()),
            Form::Switch => match theirs.to_ascii_lowercase().as_str() {
                "" | "true" | "1" | "yes" | "on" => Some("true".to_owned()),
                "false" | "0" | "no" | "off" => Some("false".to_owned()),
                _ => None,
            },
            Form::Words(words) => {
                let same = |(_, word): &&(&str, &str)| word.eq_ignore_ascii_case(theirs);
                words.iter().find(same).map(|(ours, _)| (*ours).to_owned())
            }
            Form::Always(_) => None,
        }
    }

    /// What a file has of a fact; `None` if it has no word for it.
    fn value(&self, ours: &str) -> Option<String> {
        match self.form {
            Form::Words(words) => {
                let same = |(word, _): &&(&str, &str)| *word == ours;
                words
                    .iter()
                    .find(same)
                    .map(|(_, theirs)| (*theirs).to_owned())
            }
            Form::Always(value) => Some(value.to_owned()),
            _ => Some(ours.to_owned()),
        }
    }
}

/// A key of a file that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// The default, where that is another and the network computes something else with it.
    pub default: Option<&'static str>,
    /// Whether it is a switch.
    pub is_switch: bool,
}

/// Reads facts from settings; what is `stated` already comes first.
#[must_use]
pub(crate) fn read(dialect: &Dialect, settings: &Settings, stated: Facts) -> Facts {
    let mut facts = stated;
    let rows = dialect.rows.iter().chain(LAUNCHER);
    for row in rows.filter(|row| !row.is_constant()) {
        let place = settings.place(row.keys);
        match settings.text(row.keys) {
            // -1 leaves a number to the framework.
            Some("-1") if row.form == Form::Number => {}
            Some(theirs) => {
                if let Some(ours) = row.fact(theirs) {
                    facts.note_at(row.column, ours, place);
                } else {
                    let key = place.map_or(row.key(), |(key, _)| key);
                    facts.unset.insert(key.to_owned(), theirs.to_owned());
                }
            }
            None if settings.is_usual(row.keys) => {
                let usual = row.default.and_then(|default| row.fact(default));
                facts.note(row.column, usual);
            }
            None => {}
        }
    }
    let known = |name: &str| dialect.has(name) || LAUNCHER.iter().any(|row| row.has(name));
    for (name, written) in &settings.unset {
        if known(name) {
            facts.unset.insert(name.clone(), written.clone());
        }
    }
    // One node is what `torchrun` and its like start unless told otherwise.
    if facts.number("gpus_per_node").is_some() && settings.is_usual(LAUNCHER[0].keys) {
        facts.note("nodes", Some(1));
    }
    let started = facts.number("nodes").zip(facts.number("gpus_per_node"));
    facts.note(
        "gpus",
        started.map(|(nodes, each)| nodes.saturating_mul(each)),
    );
    (dialect.neutral)(settings, &mut facts);
    facts
}

/// What starts a job says how many GPUs it has: `torchrun`, `deepspeed`, `srun`.
const LAUNCHER: &[Row] = &[
    number("nnodes|num_nodes|nodes|nnode", "nodes"),
    number("nproc_per_node|num_gpus|gpus_per_node", "gpus_per_node"),
];

/// The entries of a file that says these facts of a layout and its job.
///
/// # Errors
///
/// What the framework's files cannot say, each with what is possible.
pub fn write(dialect: &Dialect, facts: &Facts) -> Result<Vec<Entry>, Vec<String>> {
    let mut facts = facts.clone();
    let mut refused: Vec<String> = (dialect.own)(&mut facts).err().into_iter().collect();
    let mut entries = Vec::new();
    for row in dialect.rows {
        let fact = match row.form {
            Form::Always(value) => value,
            _ => match facts.text(row.column) {
                Some(fact) => fact,
                None => continue,
            },
        };
        let Some(value) = row.value(fact) else {
            let (title, column) = (dialect.title, row.column.replace('_', " "));
            refused.push(format!("{title} has no {column} `{fact}`"));
            continue;
        };
        let default = row
            .computes
            .filter(|_| row.default.is_none_or(|usual| usual != value));
        entries.push(Entry {
            key: row.key(),
            value,
            default,
            is_switch: row.form == Form::Switch,
        });
    }
    if refused.is_empty() {
        Ok(entries)
    } else {
        Err(refused)
    }
}

impl Dialect {
    /// The ending of its files' names.
    #[must_use]
    pub const fn extension(&self) -> &'static str {
        match self.syntax {
            Syntax::Flags | Syntax::ValuedFlags => "sh",
            Syntax::Overrides => "py",
            Syntax::Toml => "toml",
            Syntax::Yaml => "yaml",
            Syntax::Json => "json",
        }
    }

    /// Whether its files leave an axis to the program: kernels, and where no key says them the replicas,
    /// which follow from the GPUs, and the micro-batch of a trainer.
    #[must_use]
    pub fn leaves(&self, axis: Axis) -> bool {
        match axis {
            Axis::AttentionKernel | Axis::RmsNormKernel => true,
            Axis::MicroBatch => !self.has_column(axis.as_str()),
            _ => false,
        }
    }

    /// Whether a key is one of its own.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.rows.iter().any(|row| row.has(key))
    }

    /// Whether its files state a column.
    #[must_use]
    pub fn has_column(&self, column: &str) -> bool {
        self.rows.iter().any(|row| row.column == column)
    }

    /// Whether settings are its own.
    pub(crate) fn is_of(&self, settings: &Settings) -> bool {
        settings.place(self.signs).is_some()
    }
}
