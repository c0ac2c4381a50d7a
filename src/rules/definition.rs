//! What the file of a rule says.

use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::framework::Framework;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{Combination, Layout};
use crate::plan::{Evaluated, Violation};

/// A rule.
pub struct Definition {
    /// The one name of the rule, in docs, code, LP text, violations and explanations.
    pub name: &'static str,
    /// What has to hold, as a phrase.
    pub demands: &'static str,
    /// The axes that decide it, as far as the combination does; [`Parts::Several`] has those of a
    /// part.
    pub axes: &'static [Axis],
    /// How often an instance states it.
    pub parts: Parts,
    /// The amount by which a combination breaks it whatever its layers; 0 where it is kept.
    pub amount: fn(&Case) -> u64,
    /// What is wrong with a combination that breaks it, with the amount and what would be right.
    pub message: fn(&Case) -> String,
    /// What a part of it demands of an instance, where that says more than [`Self::demands`].
    pub demand: fn(&Instance, usize) -> String,
    /// What a layout breaks, where its layers matter; else the amounts of its combination say so.
    pub in_layout: Option<fn(&Instance, &Layout) -> Vec<Violation>>,
    /// How a best layout stands to the rule, where the layout may be better without it: then an
    /// explanation tries that.
    pub limits: fn(&Instance, &Evaluated, usize) -> Option<String>,
    /// What can be changed where the rule is broken.
    pub remedy: Remedy,
    /// Whether layouts that are searched for obey it.
    pub applies: Applies,
    /// The software that refuses what breaks it, or advises against it.
    pub refused_by: &'static [Software],
    /// Where it comes from.
    pub source: &'static str,
}

impl Definition {
    /// What most rules have in common.
    pub(super) const USUAL: Self = Self {
        name: "",
        demands: "",
        axes: &[],
        parts: Parts::One,
        amount: |_| 0,
        message: |_| String::new(),
        demand: |_, _| String::new(),
        in_layout: None,
        limits: |_, _, _| None,
        remedy: Remedy::None,
        applies: Applies::Always,
        refused_by: &[],
        source: "",
    };
}

/// What a rule is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The instance.
    pub instance: &'a Instance,
    /// The combination.
    pub flagged: &'a FlaggedCombination,
    /// Which part of the rule: the position of a forbidden combination, say.
    pub part: usize,
}

impl Case<'_> {
    pub(super) const fn job(&self) -> &Job {
        &self.instance.job
    }

    pub(super) const fn combination(&self) -> &Combination {
        &self.flagged.combination
    }

    pub(super) fn tensor_parallel(&self) -> u64 {
        u64::from(self.combination().tensor_parallel)
    }

    pub(super) fn pipeline_parallel(&self) -> u64 {
        u64::from(self.combination().pipeline_parallel)
    }

    pub(super) const fn micro_batches(&self) -> u64 {
        let batch = self.instance.job.workload.global_batch;
        self.combination().micro_batches(batch)
    }
}

/// How often an instance states a rule.
#[derive(Clone, Copy)]
pub enum Parts {
    /// Once.
    One,
    /// As often as it lists something.
    Several {
        /// How often.
        count: fn(&Instance) -> usize,
        /// The name of a part.
        name: fn(&Instance, usize) -> String,
        /// The axes that decide a part; `None` where the layers do.
        axes: fn(&Instance, usize) -> Option<AxisSet>,
    },
}

/// What can be changed where a rule is broken.
#[derive(Debug, Clone, Copy)]
pub enum Remedy {
    /// Nothing that a user decides, such as the number of heads.
    None,
    /// What the instance itself lists, forbids or demands.
    Instance,
    /// A key of the framework.
    Framework(FrameworkChange),
    /// A figure of the job.
    Figure(Figure),
    /// The nearest value that the framework has.
    Supported,
}

/// A key of the framework that is set to what frees layouts.
#[derive(Debug, Clone, Copy)]
pub struct FrameworkChange {
    /// The key in `[framework]`.
    pub key: &'static str,
    /// Its value then.
    pub to: &'static str,
    /// What such a framework is.
    pub words: &'static str,
    /// Sets it.
    pub set: fn(&mut Framework),
}

impl PartialEq for FrameworkChange {
    fn eq(&self, other: &Self) -> bool {
        (self.key, self.to) == (other.key, other.to)
    }
}

/// A figure of the job that decides whether a rule can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// GPUs of the job.
    Gpus,
    /// Memory of a GPU.
    Memory,
    /// Sequences of a step.
    GlobalBatch,
    /// Tokens of a sequence.
    SequenceLength,
}

/// Which layouts obey a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// All.
    Always,
    /// Those that are written for the software that refuses others.
    InExports,
    /// None: it is advice of the software that is named.
    AsAdvice,
}

/// A training framework that layouts are written for, in the version whose rules are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Software {
    /// Its name.
    pub name: &'static str,
    /// The version.
    pub version: &'static str,
    /// The framework of the catalog that says which values it has.
    pub framework: &'static str,
}

/// Megatron-LM, by `megatron/training/arguments.py` and
/// `megatron/core/transformer/transformer_config.py`.
pub const MEGATRON_LM: Software = Software {
    name: "Megatron-LM",
    version: "main branch of August 2026",
    framework: "megatron-lm",
};
