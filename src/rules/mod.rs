//! What a layout has to obey: one file per rule.
//!
//! A rule says by how much a combination breaks it. From that amount follow the predicate of the
//! walk through the space ([`broken`]), the coefficients of the program's row of the same name
//! ([`Rule::amount`]), the violations of a finished layout ([`violations`]), the requirements and
//! repairs of explanations, the checks of an exporter ([`refusals`]) and the table in
//! `docs/rules.md`. A new rule is one file and one line below.

mod definition;
mod set;

pub use definition::{
    Applies, Case, Definition, Figure, FrameworkChange, MEGATRON_LM, Parts, Remedy, Software,
};
pub use framework_supports::aspect as supported_aspect;
pub use layers_cover_stages::partition;
pub use memory_capacity::{admissible, admissible_of};
pub use set::{Requirement, RuleSet};

use std::fmt;

use crate::axis::{AxisSet, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Layout};
use crate::plan::Violation;

/// Declares the rules: a variant and the module that defines it.
macro_rules! registry {
    ($($variant:ident in $module:ident,)+) => {
        $(mod $module;)+

        /// A rule; the order is that of lists and messages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each is documented in its file")]
        pub enum Rule {
            $($variant,)+
        }

        /// Every rule; those on memory last.
        pub const ALL: &[Rule] = &[$(Rule::$variant,)+];

        impl Rule {
            /// What the rule's file says.
            #[must_use]
            pub const fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$variant => &$module::RULE,)+
                }
            }
        }
    };
}

registry! {
    GpuCount in gpu_count,
    GpusFillNodes in gpus_fill_nodes,
    HeadsDivisible in heads_divisible,
    KeyValueHeadsDivisible in key_value_heads_divisible,
    TensorParallelWithinDomain in tensor_parallel_within_domain,
    GlobalBatchDivisible in global_batch_divisible,
    SequenceDivisible in sequence_divisible,
    LayersCoverStages in layers_cover_stages,
    SequenceParallelNeedsTensorParallel in sequence_parallel_needs_tensor_parallel,
    InterleavingNeedsPipeline in interleaving_needs_pipeline,
    InterleavingMicroBatches in interleaving_micro_batches,
    FrameworkSupports in framework_supports,
    ExpertsDivisible in experts_divisible,
    ExpertRanksDivisible in expert_ranks_divisible,
    ExpertsNeedSequenceParallel in experts_need_sequence_parallel,
    CheckpointingByFramework in checkpointing_by_framework,
    RmsNormKernelExcludesCheckpointing in rmsnorm_kernel_excludes_checkpointing,
    InterleavingFillsPipeline in interleaving_fills_pipeline,
    FullShardingAlone in full_sharding_alone,
    AllowedValues in allowed_values,
    Forbidden in forbidden,
    Constraint in constraint,
    MemoryCapacity in memory_capacity,
}

impl Rule {
    /// The rule's name in docs, code, LP text, violations and explanations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.definition().name
    }

    /// How many times the instance states the rule: once, or as often as it forbids a combination,
    /// say.
    #[must_use]
    pub fn parts(self, instance: &Instance) -> usize {
        match self.definition().parts {
            Parts::One => 1,
            Parts::Several { count, .. } => count(instance),
        }
    }

    /// The name of one part of the rule, such as `forbidden(0)`.
    #[must_use]
    pub fn part_name(self, instance: &Instance, part: usize) -> String {
        match self.definition().parts {
            Parts::One => self.as_str().to_owned(),
            Parts::Several { name, .. } => name(instance, part),
        }
    }

    /// What a part of the rule demands of the instance.
    #[must_use]
    pub fn demand(self, instance: &Instance, part: usize) -> String {
        let demand = (self.definition().demand)(instance, part);
        if demand.is_empty() {
            self.definition().demands.to_owned()
        } else {
            demand
        }
    }

    /// What is wrong with a combination that breaks one part of the rule whatever its layers.
    #[must_use]
    pub fn message(
        self,
        instance: &Instance,
        flagged: &FlaggedCombination,
        part: usize,
    ) -> Option<String> {
        let case = Case {
            instance,
            flagged,
            part,
        };
        let definition = self.definition();
        ((definition.amount)(&case) > 0).then(|| (definition.message)(&case))
    }

    /// The amount by which a combination breaks one part of the rule whatever its layers, 0 where
    /// it keeps it: the coefficients of the rule's row in the program.
    #[must_use]
    pub fn amount(self, instance: &Instance, flagged: &FlaggedCombination, part: usize) -> u64 {
        (self.definition().amount)(&Case {
            instance,
            flagged,
            part,
        })
    }

    /// The axes that decide a part of the rule; `None` where the layers do.
    #[must_use]
    pub fn axes(self, instance: &Instance, part: usize) -> Option<AxisSet> {
        let definition = self.definition();
        match definition.parts {
            Parts::One => {
                let axes = definition.axes.iter();
                Some(axes.fold(AxisSet::EMPTY, |set, &axis| set.with(axis)))
            }
            Parts::Several { axes, .. } => axes(instance, part),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a combination breaks whatever its layers, but for rules that are not applied.
#[must_use]
pub fn broken(instance: &Instance, flagged: &FlaggedCombination) -> RuleSet {
    let broken = |it: &Requirement| it.rule.amount(instance, flagged, it.part) > 0;
    requirements(instance).filter(broken).collect()
}

/// The rules that are applied to layouts of the instance, each of their parts.
pub fn requirements(instance: &Instance) -> impl Iterator<Item = Requirement> {
    applied(instance).flat_map(|rule| {
        let parts = 0..rule.parts(instance);
        parts.map(move |part| Requirement { rule, part })
    })
}

/// Every rule that a layout breaks, with the amount; none for a layout that can run.
#[must_use]
pub fn violations(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    applied(instance)
        .flat_map(|rule| violations_of(rule, instance, layout))
        .collect()
}

/// Why a training framework refuses a layout, with what would be right.
#[must_use]
pub fn refusals(software: &Software, instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let refused = ALL.iter().filter(|rule| {
        let definition = rule.definition();
        definition.applies != Applies::AsAdvice && definition.refused_by.contains(software)
    });
    refused
        .flat_map(|&rule| violations_of(rule, instance, layout))
        .collect()
}

/// What the framework of an instance advises against in a layout that it runs.
#[must_use]
pub fn advice(instance: &Instance, layout: &Layout) -> Vec<String> {
    let framework = &instance.job.framework.name;
    let advised = ALL.iter().filter(|rule| {
        let definition = rule.definition();
        let mut by = definition.refused_by.iter();
        definition.applies == Applies::AsAdvice && by.any(|it| it.framework == framework)
    });
    advised
        .flat_map(|&rule| violations_of(rule, instance, layout))
        .map(|it| it.message)
        .collect()
}

/// The rules that are not applied: what an explanation drops to see what a rule costs.
#[must_use]
pub const fn relaxed(instance: &Instance) -> RuleSet {
    RuleSet::from_bits(instance.space.relaxed)
}

/// Does without a rule.
pub fn relax(instance: &mut Instance, rule: Rule) {
    instance.space.relaxed = relaxed(instance).with(rule).bits();
}

/// The rules that every layout of the instance obeys.
pub fn applied(instance: &Instance) -> impl Iterator<Item = Rule> {
    let relaxed = relaxed(instance);
    let applies =
        move |rule: &Rule| rule.definition().applies == Applies::Always && !relaxed.contains(*rule);
    ALL.iter().copied().filter(applies)
}

/// The parts of one rule that a layout breaks.
fn violations_of(rule: Rule, instance: &Instance, layout: &Layout) -> Vec<Violation> {
    if let Some(in_layout) = rule.definition().in_layout {
        return in_layout(instance, layout);
    }
    let flagged = flagged(layout);
    let mut found: Vec<Violation> = Vec::new();
    for part in 0..rule.parts(instance) {
        for flagged in &flagged {
            let violation = rule
                .message(instance, flagged, part)
                .map(|message| Violation {
                    rule: rule.part_name(instance, part),
                    message,
                });
            found.extend(violation.filter(|violation| !found.contains(violation)));
        }
    }
    found
}

/// The combination with each checkpointing flag that describes some layer: each has to be permitted.
fn flagged(layout: &Layout) -> Vec<FlaggedCombination> {
    let mut flags = layout.flags();
    if flags.is_empty() {
        flags.push(Checkpointing::None);
    }
    let flagged = flags.into_iter().map(|checkpointing| FlaggedCombination {
        combination: layout.combination,
        checkpointing,
    });
    flagged.collect()
}

#[cfg(test)]
mod tests;
