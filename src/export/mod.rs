//! Writes a layout as the settings of a training framework: what each calls them stands in
//! [`launch`](crate::launch).
//!
//! What a framework cannot say is never written as something else: it is an [`ExportError`], and [`on`]
//! is the instance under the framework's rules, whose plan can be said. What is written is read back
//! before it is handed out.

use std::path::Path;

use crate::axis::{Assignment, Axis};
use crate::catalog;
use crate::choice::choice;
use crate::instance::Instance;
use crate::launch::dialect::{self, Dialect, Entry, Release, Syntax};
use crate::launch::{self, Facts, Stated, frameworks, render, script};
use crate::layout::{Layout, SequenceParallel};
use crate::rules::{self, MEGATRON_LM, Rule};

choice!(
    /// A framework that layouts can be written for.
    Target {
        /// Command-line flags of Megatron-LM.
        MegatronLm = "megatron-lm",
        /// Assignments to a configuration of Megatron-Bridge or `NeMo`.
        MegatronBridge = "megatron-bridge",
        /// torchtitan's TOML.
        Torchtitan = "torchtitan",
        /// nanotron's YAML.
        Nanotron = "nanotron",
        /// DeepSpeed's JSON.
        DeepSpeed = "deepspeed",
        /// Command-line flags of Megatron-DeepSpeed.
        MegatronDeepSpeed = "megatron-deepspeed",
        /// GPT-NeoX's YAML.
        GptNeoX = "gpt-neox",
        /// The YAML of Accelerate, which TRL uses.
        Accelerate = "accelerate",
        /// Axolotl's YAML.
        Axolotl = "axolotl",
        /// LLaMA-Factory's YAML.
        LlamaFactory = "llama-factory",
        /// Command-line flags of ms-swift on Megatron.
        MsSwift = "ms-swift",
        /// `MaxText`'s YAML.
        MaxText = "maxtext",
    }
);

impl Target {
    /// What it calls the facts of a layout.
    #[must_use]
    pub fn dialect(self) -> &'static Dialect {
        frameworks::named(self.as_str()).expect("every target has a file in `launch`")
    }

    /// Whether it is what runs the layouts of a framework of the catalog, by its name.
    #[must_use]
    pub fn runs(self, framework: &str) -> bool {
        let own = self.dialect().framework;
        let alike = own == MEGATRON_LM.framework && framework.starts_with("aleph-alpha-scaling");
        alike || framework.starts_with(own) || framework == "unrestricted"
    }

    /// The target and release that `megatron-lm` or `torchtitan@v0.2.2` names.
    ///
    /// # Errors
    ///
    /// A message for the user: what is not known, and what is.
    pub fn of_release(text: &str) -> Result<(Self, &'static Release), String> {
        let (name, release) = text.split_once('@').unwrap_or((text, ""));
        let target = Self::parse(name).ok_or_else(|| {
            format!(
                "`{name}` is none of the frameworks {}",
                Self::NAMES.join(", ")
            )
        })?;
        let releases = target.dialect().releases;
        let found = match release {
            "" => releases.first(),
            wanted => releases.iter().find(|it| it.name == wanted),
        };
        let known: Vec<&str> = releases.iter().map(|it| it.name).collect();
        let found = found.ok_or_else(|| {
            format!(
                "the names and rules of {name} are known for {}, not for `{release}`",
                known.join(", ")
            )
        })?;
        match found.refused {
            Some(reason) => Err(reason.to_owned()),
            None => Ok((target, found)),
        }
    }
}

/// Why a framework cannot run a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{target}` cannot run this layout:\n- {}", reasons.join("\n- "))]
pub struct ExportError {
    /// The framework.
    pub target: Target,
    /// Every reason, with what would be right.
    pub reasons: Vec<String>,
}

/// A layout in the words of a framework.
#[derive(Debug, Clone)]
pub struct Exported {
    target: Target,
    facts: Facts,
    entries: Vec<Entry>,
    /// What a reader of the file should know.
    pub comments: Vec<String>,
}

impl Exported {
    /// The file, or the flags one a line; comments first, where a file may have any.
    #[must_use]
    pub fn file(&self) -> String {
        render::text(self.target.dialect(), &self.entries, &self.comments)
    }

    /// A script that starts the job on its nodes.
    #[must_use]
    pub fn script(&self) -> String {
        script::script(
            self.target.dialect(),
            &self.facts,
            &self.entries,
            &self.comments,
        )
    }

    /// Whether the file cannot have comments, so that they are to be said elsewhere.
    #[must_use]
    pub fn has_no_comments(&self) -> bool {
        self.target.dialect().syntax == Syntax::Json
    }
}

/// The settings that make `target` run this layout, ready to be copied.
///
/// # Errors
///
/// If the framework has no way to run the layout.
pub fn export(target: Target, instance: &Instance, layout: &Layout) -> Result<String, ExportError> {
    let release = &target.dialect().releases[0];
    Ok(write(target, release, instance, layout, &[])?.file())
}

/// The layout in the words of a release of a framework; `notes` become comments.
///
/// # Errors
///
/// If the framework cannot run or say the layout; with every reason and what would be right.
pub fn write(
    target: Target,
    release: &Release,
    instance: &Instance,
    layout: &Layout,
    notes: &[String],
) -> Result<Exported, ExportError> {
    let dialect = target.dialect();
    let refused = |reasons: Vec<String>| ExportError { target, reasons };
    let there = on(target, instance, 0).unwrap_or_else(|| instance.clone());
    let mut reasons = refusals(target, &there, layout);
    reasons.extend(unwritten(dialect, instance));
    if !reasons.is_empty() {
        return Err(refused(reasons));
    }
    let mut facts = launch::facts_of(instance, layout);
    if instance.space.is_listed(Axis::AttentionKernel) {
        facts.set("kernels_listed", true);
    }
    let entries = dialect::write(dialect, &facts).map_err(refused)?;
    let mut comments = vec![heading(dialect, release, instance, &facts)];
    comments.extend(notes.iter().cloned());
    comments.extend(planned_for(target, &instance.job.framework.name));
    comments.extend((dialect.remarks)(&facts));
    comments.extend(rules::advice(&there, layout));
    comments.extend(defaults(dialect, &entries));
    let exported = Exported {
        target,
        facts,
        entries,
        comments,
    };
    read_back(&exported, instance, layout).map_err(|reason| refused(vec![reason]))?;
    Ok(exported)
}

/// The instance under the rules of a framework, as far as they say which layouts are possible there: `None`
/// beyond its strictest ones. Memory and speed stay those of the instance.
#[must_use]
pub fn on(target: Target, instance: &Instance, strictness: usize) -> Option<Instance> {
    let dialect = target.dialect();
    let limits = dialect.limits.get(strictness)?;
    let own = catalog::framework(dialect.framework).ok()?;
    let mut job = instance.job.clone();
    let framework = &mut job.framework;
    dialect.name.clone_into(&mut framework.name);
    framework.axes = own.axes;
    framework.partition = own.partition;
    framework.checkpoint_rule = own.checkpoint_rule;
    framework.fused_rmsnorm = own.fused_rmsnorm;
    limits.apply(framework);
    let mut there = instance.with_job(job);
    if limits.always_splits_sequence {
        let degrees = there.space.values(Axis::TensorParallel).to_vec();
        let without = degrees
            .into_iter()
            .filter(|&degree| degree > 1)
            .map(|degree| {
                let off = SequenceParallel::Off as u32;
                Assignment(vec![
                    (Axis::TensorParallel, degree),
                    (Axis::SequenceParallel, off),
                ])
            });
        there.space.forbidden.extend(without);
    }
    Some(there)
}

/// Why the framework refuses a layout.
fn refusals(target: Target, there: &Instance, layout: &Layout) -> Vec<String> {
    let is_megatron = target.dialect().framework == MEGATRON_LM.framework;
    let groups = Rule::InterleavingFillsPipeline.as_str();
    let refused = rules::refusals(&MEGATRON_LM, there, layout).into_iter();
    let mut refused: Vec<String> = refused
        .filter(|it| is_megatron || it.rule != groups)
        .map(|it| it.message)
        .collect();
    let cut = rules::violations(there, layout).into_iter();
    let cut = cut.filter(|it| it.rule == Rule::LayersCoverStages.as_str());
    refused.extend(cut.map(|it| it.message));
    refused
}

/// What no file says yet of a network.
fn unwritten(dialect: &Dialect, instance: &Instance) -> Option<String> {
    let transformer = &instance.job.transformer;
    // Others take the network by its name.
    let shapes_it = dialect.has_column("hidden");
    let parts = [
        (
            transformer.experts.is_some() && !dialect.has_column("experts_per_token"),
            "its experts",
        ),
        (
            shapes_it && transformer.latent_attention.is_some() && !dialect.has_column("latent"),
            "latent attention",
        ),
        (
            shapes_it && transformer.windows.is_some(),
            "windows of attention",
        ),
        (
            shapes_it
                && transformer.prediction_layers > 0
                && !dialect.has_column("prediction_layers"),
            "layers that predict further tokens",
        ),
    ];
    let (_, part) = parts.into_iter().find(|(has, _)| *has)?;
    let name = &transformer.name;
    Some(format!(
        "{part} of {name} cannot be written for {} yet",
        dialect.title
    ))
}

/// Checks that what is written says the layout.
fn read_back(exported: &Exported, instance: &Instance, layout: &Layout) -> Result<(), String> {
    let dialect = exported.target.dialect();
    let (title, facts) = (dialect.title, &exported.facts);
    let mut stated = Facts::default();
    for column in ["layers", "gpus"] {
        stated.note(column, facts.text(column));
    }
    let stated = Stated {
        facts: stated,
        ..Stated::default()
    };
    let name = format!("layout.{}", dialect.extension());
    let read = launch::read_text(Path::new(&name), &exported.file(), &stated);
    let read =
        read.map_err(|error| format!("what is written for {title} cannot be read: {error}"))?;
    let mut said = read.facts;
    if let Some(problem) = said.problems().first() {
        return Err(format!("{title} would refuse it: {}", problem.message));
    }
    for axis in Axis::ALL.into_iter().filter(|axis| dialect.leaves(*axis)) {
        said.note(axis.as_str(), facts.text(axis.as_str()));
    }
    match launch::layout(&said, instance) {
        Ok(read) if read == *layout => Ok(()),
        Ok(_) => Err(format!(
            "{title} cannot say which layers are where and what they recompute"
        )),
        Err(cause) => Err(format!("{title} cannot say it: {cause}")),
    }
}

fn heading(dialect: &Dialect, release: &Release, instance: &Instance, facts: &Facts) -> String {
    let command = script::command(dialect, facts);
    let (what, with) = match dialect.syntax {
        Syntax::Flags | Syntax::ValuedFlags => ("flags", "them"),
        _ => ("settings", "them"),
    };
    format!(
        "{} ({}) {what} of {}. Run `{command}` with {with} and with your data, tokenizer, learning rate and \
         checkpoints.",
        dialect.title, release.name, instance.name
    )
}

/// A layout of another framework: it runs here, but not as predicted.
fn planned_for(target: Target, framework: &str) -> Option<String> {
    let dialect = target.dialect();
    let text = format!(
        "The layout was planned for {framework}, whose memory and speed are others than {}'s: plan with \
         `--framework {}` for its own.",
        dialect.title, dialect.framework
    );
    (!target.runs(framework)).then_some(text)
}

/// What is written of the numbers that a network computes and is not the default.
fn defaults<'a>(dialect: &Dialect, entries: &'a [Entry]) -> impl Iterator<Item = String> + 'a {
    let is_flag = matches!(dialect.syntax, Syntax::Flags | Syntax::ValuedFlags);
    let is_bare = dialect.syntax == Syntax::Flags;
    entries.iter().filter_map(move |entry| {
        let default = entry.default?;
        if is_bare && entry.is_switch && entry.value != "true" {
            return None;
        }
        let key = if is_bare {
            entry.key.replace('_', "-")
        } else {
            entry.key.to_owned()
        };
        let dashes = if is_flag { "--" } else { "" };
        let value = match (is_bare && entry.is_switch, is_flag) {
            (true, _) => String::new(),
            (false, true) => format!(" {}", entry.value),
            (false, false) => format!(" = {}", entry.value),
        };
        Some(format!("`{dashes}{key}{value}`: the default is {default}."))
    })
}

#[cfg(test)]
mod tests;
