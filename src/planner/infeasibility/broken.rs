//! Which requirements a combination breaks.

use crate::axis::{Axis, FlaggedCombination};
use crate::constraint::Decision;
use crate::framework::FusedRmsNorm;
use crate::instance::Instance;
use crate::layout::{
    AttentionKernel, Checkpointing, Combination, Layout, RmsNormKernel, Schedule, SequenceParallel,
};
use crate::rules::{Rule, RuleSet};

use super::relaxation::heads_are_alike;
use super::requirement::{Requirement, RequirementSet};
use super::universe::Universe;

/// Rules that are judged with the stages and flags, or told apart by requirements of their own.
const JUDGED_LAST: [Rule; 4] = [
    Rule::LayersCoverStages,
    Rule::RmsNormKernelExcludesCheckpointing,
    Rule::Forbidden,
    Rule::Constraint,
];

/// The broken rules as requirements.
pub(super) fn by_rules(instance: &Instance, rules: RuleSet) -> RequirementSet {
    let same = heads_are_alike(instance) && rules.contains(Rule::HeadsDivisible);
    rules
        .iter()
        .map(|requirement| requirement.rule)
        .filter(|rule| *rule != Rule::AllowedValues && !JUDGED_LAST.contains(rule))
        .filter(|rule| !same || *rule != Rule::KeyValueHeadsDivisible)
        .map(Requirement::Rule)
        .collect()
}

/// The forbidden combinations and the rows over discrete choices that are broken whatever the axes
/// that are not decided.
pub(super) fn by_own_rules(
    instance: &Instance,
    candidate: &FlaggedCombination,
    is_decided: impl Fn(Axis) -> bool,
) -> RequirementSet {
    let space = &instance.space;
    let mut broken = RequirementSet::EMPTY;
    for (index, assignment) in space.forbidden.iter().enumerate() {
        let known = assignment.0.iter().all(|&(axis, _)| is_decided(axis));
        let matches = known && assignment.matches(candidate);
        broken = broken.with_if(Requirement::Forbidden(index), matches);
    }
    let layout = Layout {
        combination: candidate.combination,
        stages: Vec::new(),
    };
    let batch = instance.job.workload.global_batch;
    for (index, row) in space.constraints.iter().enumerate() {
        let known = row.terms.iter().all(|term| match term.decision {
            Decision::Degree(axis) | Decision::Is(axis, _) => is_decided(axis),
            Decision::MicroBatches => is_decided(Axis::MicroBatch),
            Decision::Layers(_) | Decision::LayersLast | Decision::CheckpointedLayers => false,
        });
        let holds = !known || row.holds(row.left(&layout, batch));
        broken = broken.with_if(Requirement::Constraint(index), !holds);
    }
    broken
}

/// A cell that needs no more memory than any with the same degrees, sharding and micro-batch.
pub(super) fn leanest(universe: &Universe, cell: &Combination) -> Combination {
    let has = |axis: Axis, code: u32| universe.values(axis).contains(&code);
    let flash = [AttentionKernel::Flash2, AttentionKernel::Flash1];
    let kernels = flash.into_iter().chain([AttentionKernel::MegatronFused]);
    let mut lean = *cell;
    lean.attention_kernel = kernels
        .into_iter()
        .find(|&kernel| has(Axis::AttentionKernel, kernel as u32))
        .unwrap_or(AttentionKernel::Torch);
    lean.rmsnorm_kernel = RmsNormKernel::Fused;
    lean.virtual_stages = 1;
    lean.schedule = Schedule::OneForwardOneBackward;
    lean.sequence_parallel = SequenceParallel::On;
    lean
}

/// The checkpointing flags to try.
pub(super) fn flags(universe: &Universe) -> Vec<Checkpointing> {
    let codes = universe.values(Axis::Checkpointing).iter();
    codes
        .map(|&code| Checkpointing::ALL[code as usize])
        .collect()
}

/// The sets of flags worth a look, with what they break: for each such set all flags that
/// break no more.
pub(super) fn flag_sets(
    instance: &Instance,
    universe: &Universe,
    cell: &Combination,
) -> Vec<(RequirementSet, Vec<Checkpointing>)> {
    let of_flags: Vec<(RequirementSet, Checkpointing)> = flags(universe)
        .into_iter()
        .map(|flag| (by_flag(instance, universe, cell, flag), flag))
        .collect();
    let mut sets: Vec<RequirementSet> = (1_u32..1 << of_flags.len())
        .map(|chosen| {
            let chosen =
                (of_flags.iter().enumerate()).filter(|(index, _)| chosen >> index & 1 == 1);
            chosen.fold(RequirementSet::EMPTY, |set, (_, of)| set.union(of.0))
        })
        .collect();
    sets.sort_by_key(|set| (set.len(), *set));
    sets.dedup();
    sets.into_iter()
        .map(|set| {
            let allowed = of_flags.iter().filter(|of| of.0.is_part_of(set));
            (set, allowed.map(|of| of.1).collect())
        })
        .collect()
}

fn by_flag(
    instance: &Instance,
    universe: &Universe,
    cell: &Combination,
    checkpointing: Checkpointing,
) -> RequirementSet {
    let candidate = FlaggedCombination {
        combination: *cell,
        checkpointing,
    };
    let axis = Axis::Checkpointing;
    let listed =
        !universe.is_limited(axis) || instance.space.values(axis).contains(&candidate.code(axis));
    let excluded = checkpointing != Checkpointing::None
        && cell.rmsnorm_kernel == RmsNormKernel::Fused
        && instance.job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing;
    let kernel = Requirement::Rule(Rule::RmsNormKernelExcludesCheckpointing);
    let forbidden = instance.space.forbidden.iter().enumerate();
    forbidden
        .filter(|(_, assignment)| assignment.matches(&candidate))
        .map(|(index, _)| Requirement::Forbidden(index))
        .fold(RequirementSet::EMPTY, RequirementSet::with)
        .with_if(Requirement::Listed(axis), !listed)
        .with_if(kernel, excluded)
}
