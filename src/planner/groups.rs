//! From costs to groups of the program: the framework's rules on stages and checkpointing.
//!
//! The formulation `layout choice` is a restriction of the same program: the framework's own even cut, and
//! one checkpointing flag for all layers as an axis of the combination.

use std::sync::Arc;

use formulations::staged::bounds::balance_bound_of;
use formulations::staged::{
    Group, Partition as ProgramPartition, Plan, RecomputeRule, Stage, near_even, plan_of,
};
use smallvec::SmallVec;

use crate::axis::FlaggedCombination;
use crate::cost_model::pipeline::{fewest_layers, framework_cut};
use crate::framework::{CheckpointRule, Partition};
use crate::layout::{self, Checkpointing, Combination, Layout, Recompute};
use crate::plan::Formulation;
use crate::rules::{self, Rule};

use super::constraints;
use super::cost_table::CostTable;
use super::quantise::{CombinationUnits, Leading, Shift};

/// A combination of discrete choices, whose layers and checkpointing are still open.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The combination.
    pub combination: Combination,
    /// Position of its coefficients in the table.
    pub units: usize,
    /// Position of its first entry in the table: earlier wins among equals.
    pub rank: usize,
    /// Checkpointing flags that no rule excludes.
    flags: SmallVec<[Checkpointing; 4]>,
    /// The stages with the layers that the widest cut leaves them, and what else it demands of them.
    widest: (Arc<[Stage]>, ProgramPartition),
}

/// One way to use a choice: a group of the program, and what its modes stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its part of the program.
    pub group: Group,
    /// The recompute mode that each mode of the group stands for.
    pub modes: Vec<Recompute>,
}

impl Choice {
    /// The combination with its checkpointing flag, where that is an axis.
    #[must_use]
    pub fn candidate(&self, formulation: Formulation) -> FlaggedCombination {
        FlaggedCombination {
            combination: self.combination,
            checkpointing: match formulation {
                Formulation::LayoutChoice => self.flags[0],
                Formulation::Staged => Checkpointing::None,
            },
        }
    }
}

impl Variant {
    /// The layout of a plan of the choice.
    #[must_use]
    pub fn layout(&self, choice: &Choice, plan: &Plan) -> Layout {
        let counts = plan.layers.iter().zip(&plan.recomputed);
        let stages = counts.map(|(&layers, counts)| {
            let mut recomputed = [0; Recompute::COUNT];
            for (&mode, &count) in self.modes.iter().zip(counts) {
                recomputed[mode as usize] = count as u32;
            }
            layout::Stage {
                layers: layers as u32,
                recomputed,
            }
        });
        Layout {
            combination: choice.combination,
            stages: stages.collect(),
        }
    }
}

/// Most variants of one choice, so that ranks of variants do not meet those of the next choice.
const MOST_VARIANTS: i64 = 1 << 20;

/// The choices of a table that break no rule, in its order.
#[must_use]
pub fn choices(table: &CostTable) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::with_capacity(table.units.len());
    let mut position = vec![usize::MAX; table.units.len()];
    for (rank, entry) in table.entries.iter().enumerate() {
        let Some(units) = entry.units else { continue };
        let FlaggedCombination {
            combination,
            checkpointing,
        } = entry.candidate;
        let flag_is_axis = table.formulation == Formulation::LayoutChoice;
        if position[units] == usize::MAX || flag_is_axis {
            position[units] = choices.len();
            let widest = widest(table, &combination, units, choices.last());
            choices.push(Choice {
                combination,
                units,
                rank,
                flags: SmallVec::new(),
                widest,
            });
        }
        choices[position[units]].flags.push(checkpointing);
    }
    choices
}

/// The stages of the widest cut of a combination: those of the choice before it where their costs are the same.
fn widest(
    table: &CostTable,
    combination: &Combination,
    units: usize,
    before: Option<&Choice>,
) -> (Arc<[Stage]>, ProgramPartition) {
    let units = &table.units[units];
    let is_same = |it: &&Choice| {
        let other = &table.units[it.units];
        Arc::ptr_eq(&other.stages, &units.stages) && other.leading == units.leading
    };
    if let Some(before) = before.filter(is_same) {
        return before.widest.clone();
    }
    let cut = cuts(table, combination).pop();
    let cut = cut.unwrap_or_else(|| open(table, combination));
    let ends = Ends {
        head: 0,
        leading: units.leading.map_or(Shift::NONE, Leading::least),
    };
    (stages(table, units, &cut, ends), partition(table, &cut))
}

/// Which numbers of layers the stages of a variant have.
#[derive(Debug, Clone)]
enum Cut {
    /// These.
    Fixed(Vec<i64>),
    /// Any, of which so many are the fewest.
    Open(Vec<i64>),
}

/// The choice without its framework's rule on checkpointing: any layers by any permitted mode, the head
/// keeping nothing. No variant of the choice is better than this.
#[must_use]
pub fn relaxed(table: &CostTable, choice: &Choice) -> Variant {
    variant(table, choice, choice.widest.clone(), RecomputeRule::Free)
}

/// The first bound of the [`relaxed`] choice.
#[must_use]
pub fn first_bound(table: &CostTable, choice: &Choice) -> i64 {
    let units = &table.units[choice.units];
    let objective = (&units.weights, units.constant);
    balance_bound_of(
        &choice.widest.0,
        &units.layer,
        objective,
        table.layers.count(),
    )
}

/// Every way to use the choice that the framework's rules allow.
#[must_use]
pub fn variants(table: &CostTable, choice: &Choice) -> Vec<Variant> {
    let of_cut = |cut: Cut| {
        let rules = recompute_rules(table, choice, &cut);
        of_rules(table, choice, &cut, rules)
    };
    let all = cuts(table, &choice.combination)
        .into_iter()
        .flat_map(of_cut);
    let mut variants: Vec<Variant> = all.collect();
    for (index, variant) in (0..).zip(&mut variants) {
        variant.group.rank += i64::min(index, MOST_VARIANTS - 1);
    }
    variants
}

/// The variants of the choice of which one needs the least memory on every stage.
#[must_use]
pub fn lightest_variants(table: &CostTable, choice: &Choice) -> Vec<Variant> {
    let of_cut = |cut: Cut| {
        let mut rules = recompute_rules(table, choice, &cut);
        rules.retain(|rule| !matches!(rule, RecomputeRule::Uniform { .. }));
        of_rules(table, choice, &cut, rules)
    };
    cuts(table, &choice.combination)
        .into_iter()
        .flat_map(of_cut)
        .collect()
}

/// A good plan of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Quick {
    /// Its objective, or a little more.
    pub objective: i64,
    /// Which of the [`variants`] it is of.
    pub variant: usize,
    /// Layers of each stage.
    pub layers: Vec<i64>,
}

/// A good plan of the choice, if one is found quickly: the framework's cut or the near-even one with the
/// least recomputation that fits; where rows concern the layers, the best of some near-even cuts that
/// keeps them.
#[must_use]
pub fn quick(table: &CostTable, choice: &Choice) -> Option<Quick> {
    let mut before = 0;
    let mut best: Option<Quick> = None;
    for cut in cuts(table, &choice.combination) {
        let rules = recompute_rules(table, choice, &cut);
        let of_cut = of_rules(table, choice, &cut, rules);
        let found = quick_of(table, choice, &cut, &of_cut).map(|found| Quick {
            variant: before + found.variant,
            ..found
        });
        best = best.into_iter().chain(found).min_by_key(|it| it.objective);
        before += of_cut.len();
    }
    best
}

/// The same among the variants of one cut.
fn quick_of(table: &CostTable, choice: &Choice, cut: &Cut, variants: &[Variant]) -> Option<Quick> {
    let layers = i64::from(table.instance.job.transformer.layers);
    let has_rows = constraints::concern_layers(table.instance);
    let middle_is_equal = table.instance.job.framework.partition == Partition::FirstAndLast;
    match cut {
        Cut::Open(fewest) if !has_rows && !middle_is_equal => {
            let (stages, all) = (fewest.len() as i64, layers);
            let (even, rest) = (all / stages, all % stages);
            let own = |stage: i64| even + i64::from((1..=rest).contains(&stage));
            let objective = |variant: &Variant| near_even(&variant.group, layers);
            let (objective, variant) = least(variants, objective)?;
            Some(Quick {
                objective,
                variant,
                layers: (0..stages).map(own).collect(),
            })
        }
        _ => {
            let tried = match cut {
                Cut::Fixed(cut) => vec![cut.clone()],
                Cut::Open(_) => trial_cuts(&relaxed(table, choice).group, layers),
            };
            let best = tried.into_iter().filter_map(|layers| {
                let objective = |variant: &Variant| {
                    let plan = plan_of(&variant.group, 0, &table.layers, &layers)?;
                    let layout = has_rows.then(|| variant.layout(choice, &plan));
                    let keeps = layout.is_none_or(|it| constraints::keeps(table.instance, &it));
                    keeps.then_some(plan.objective)
                };
                let (objective, variant) = least(variants, objective)?;
                Some(Quick {
                    objective,
                    variant,
                    layers,
                })
            });
            best.min_by_key(|it| it.objective)
        }
    }
}

/// The least objective of the variants of one cut, and of which. Among uniform counts the least that fits is
/// quickest.
fn least(
    variants: &[Variant],
    objective: impl Fn(&Variant) -> Option<i64>,
) -> Option<(i64, usize)> {
    let is_uniform = |it: &Variant| matches!(it.group.recompute, RecomputeRule::Uniform { .. });
    let first = variants.iter().position(is_uniform).unwrap_or(0);
    let uniform = variants[first..]
        .iter()
        .take_while(|it| is_uniform(it))
        .count();
    let uniform = first..first + uniform;
    let fitting = variants[uniform.clone()].partition_point(|it| objective(it).is_none());
    let others = (0..variants.len()).filter(|index| !uniform.contains(index));
    let tried = others.chain(uniform.clone().nth(fitting));
    let objectives = tried.filter_map(|index| Some((objective(&variants[index])?, index)));
    objectives.min()
}

/// Cuts whose first and last stages have up to a few layers more or less than the others, which are
/// near even, or equal where the group asks for it.
fn trial_cuts(group: &Group, layers: i64) -> Vec<Vec<i64>> {
    const FARTHEST: i64 = 4;
    let count = group.stages.len() as i64;
    let even = layers / count;
    let near = even - FARTHEST..=even + FARTHEST;
    let cut = |first: i64, last: i64| {
        let (middle, rest) = (count - 2, layers - first - last);
        let ends = if middle == 0 {
            rest == 0
        } else {
            rest >= middle
        };
        let equal = group.partition == ProgramPartition::Free || middle == 0 || rest % middle == 0;
        (ends && equal).then(|| {
            let own = |stage: i64| rest / middle + i64::from(stage < rest % middle);
            let mut cut = vec![first];
            cut.extend((0..middle).map(own));
            cut.push(last);
            cut
        })
    };
    let cuts: Vec<Vec<i64>> = match count {
        1 => vec![vec![layers]],
        2 => (1..layers)
            .filter_map(|first| cut(first, layers - first))
            .collect(),
        _ => near
            .clone()
            .flat_map(|first| near.clone().filter_map(move |last| cut(first, last)))
            .collect(),
    };
    cuts.into_iter()
        .filter(|cut| is_within(cut, group))
        .collect()
}

/// Whether every stage has no fewer and no more layers than it may, and those in the middle are equal where
/// they have to be.
fn is_within(cut: &[i64], group: &Group) -> bool {
    let mut bounds = cut.iter().zip(group.stages.iter());
    let middle = &cut[1.min(cut.len() - 1)..cut.len() - 1];
    bounds.all(|(&own, stage)| (stage.lower_layers..=stage.upper_layers).contains(&own))
        && (group.partition == ProgramPartition::Free || middle.windows(2).all(|it| it[0] == it[1]))
}

/// The recompute modes that the choice may use, in the order of [`Recompute::ALL`]. A mode that
/// saves nothing is of use only where every layer has to recompute.
fn modes(table: &CostTable, choice: &Choice) -> Vec<Recompute> {
    let units = &table.units[choice.units];
    let forced = !choice.flags.contains(&Checkpointing::None);
    let permitted = |mode: Recompute| {
        choice
            .flags
            .iter()
            .any(|flag| flag.recompute() == Some(mode))
            && (forced || units.modes[mode as usize].activation < units.layer.activation)
    };
    Recompute::ALL
        .iter()
        .copied()
        .filter(|&mode| permitted(mode))
        .collect()
}

/// The framework's rule on checkpointing, as a list of rules of the program.
fn recompute_rules(table: &CostTable, choice: &Choice, cut: &Cut) -> Vec<RecomputeRule> {
    let modes = modes(table, choice);
    let none = choice.flags.contains(&Checkpointing::None);
    let rule = match table.formulation {
        Formulation::LayoutChoice => CheckpointRule::AllOrNothing,
        Formulation::Staged => table.instance.job.framework.checkpoint_rule,
    };
    let all_layers = (0..modes.len()).map(|mode| RecomputeRule::AllLayers { mode });
    if table.units[choice.units].leading.is_some() {
        // Which layers of two kinds are recomputed, where some are, is not decided.
        return none
            .then_some(RecomputeRule::None)
            .into_iter()
            .chain(all_layers)
            .collect();
    }
    if none && rule == CheckpointRule::Free {
        let mut rules = vec![RecomputeRule::Free];
        // The head keeps less where all layers are recomputed.
        if counts_head(&choice.combination, cut) {
            rules.extend(all_layers);
        }
        return rules;
    }
    let mut rules = Vec::new();
    if none {
        rules.push(RecomputeRule::None);
    }
    for (mode, &recompute) in modes.iter().enumerate() {
        if none && rule == CheckpointRule::SameCount && recompute == Recompute::Full {
            let most = most_layers(table, cut);
            rules.extend((1..most).map(|count| RecomputeRule::Uniform { mode, count }));
        }
        rules.push(RecomputeRule::AllLayers { mode });
    }
    rules
}

/// Most layers that a stage can have.
fn most_layers(table: &CostTable, cut: &Cut) -> i64 {
    let most = |cut: &[i64]| cut.iter().copied().max().unwrap_or(0);
    match cut {
        Cut::Fixed(cut) => most(cut),
        Cut::Open(fewest) => {
            let others = fewest.iter().sum::<i64>() - most(fewest);
            i64::from(table.instance.job.transformer.layers) - others
        }
    }
}

/// Whether stages may have any number of layers, also none.
fn any_cut(table: &CostTable) -> bool {
    let relaxed = rules::relaxed(table.instance);
    relaxed.contains(Rule::LayersCoverStages)
}

/// The ways to cut the layers: the framework's own where it leaves no freedom, else any. Equal chunks are
/// apart from others, of which the head's keeps more.
fn cuts(table: &CostTable, combination: &Combination) -> Vec<Cut> {
    let job = &table.instance.job;
    let partition = job.framework.partition;
    let fixed = |partition: Partition| {
        let cut = framework_cut(partition, &job.transformer, combination)?;
        Some(Cut::Fixed(cut.into_iter().map(i64::from).collect()))
    };
    let is_open = match partition {
        Partition::Free => true,
        Partition::FirstAndLast => combination.virtual_stages == 1,
        Partition::EmbeddingAndHead
        | Partition::Equal
        | Partition::EqualOrEndsLess
        | Partition::ByCost
        | Partition::Even => false,
    };
    let is_open = is_open && table.formulation == Formulation::Staged || any_cut(table);
    if !is_open {
        return fixed(partition).into_iter().collect();
    }
    let equal = fixed(Partition::Equal).filter(|cut| !counts_head(combination, cut));
    let equal = equal.filter(|_| combination.virtual_stages > 1);
    equal
        .into_iter()
        .chain([open(table, combination)])
        .collect()
}

/// Any cut that leaves no model chunk empty, or any at all where that is no rule; the first stage has the
/// leading layers of another kind in any case.
fn open(table: &CostTable, combination: &Combination) -> Cut {
    let any = any_cut(table);
    let transformer = &table.instance.job.transformer;
    let fewest = |stage: u32| match (any, stage) {
        (true, 0) => i64::from(transformer.order().leading),
        (true, _) => 0,
        (false, _) => i64::from(fewest_layers(transformer, combination, stage)),
    };
    Cut::Open((0..combination.pipeline_parallel).map(fewest).collect())
}

/// Whether the head counts as a layer in the memory of the last stage of these cuts.
fn counts_head(combination: &Combination, cut: &Cut) -> bool {
    let chunks = i64::from(combination.virtual_stages);
    let has_equal_chunks =
        |cut: &Vec<i64>| cut.iter().all(|&own| own == cut[0] && own % chunks == 0);
    chunks > 1 && !matches!(cut, Cut::Fixed(cut) if has_equal_chunks(cut))
}

/// A variant for each rule on checkpointing, all with this cut; those whose stages are alike share them.
fn of_rules(
    table: &CostTable,
    choice: &Choice,
    cut: &Cut,
    rules: Vec<RecomputeRule>,
) -> Vec<Variant> {
    let counts_head = counts_head(&choice.combination, cut);
    let units = &table.units[choice.units];
    let (modes, partition) = (modes(table, choice), partition(table, cut));
    let mut known: Option<(Ends, Arc<[Stage]>)> = None;
    let of_rule = |rule: RecomputeRule| {
        let leading = match (rule, units.leading) {
            (RecomputeRule::AllLayers { mode }, Some(leading)) => {
                leading.recomputed[modes[mode] as usize]
            }
            _ => Shift::NONE,
        };
        let head = match rule {
            _ if !counts_head => 0,
            RecomputeRule::AllLayers { mode } => units.modes[modes[mode] as usize].activation,
            _ => units.layer.activation,
        };
        let ends = Ends { head, leading };
        let last = known.take().filter(|(of, _)| *of == ends);
        let (_, shared) = last.unwrap_or_else(|| (ends, stages(table, units, cut, ends)));
        known = Some((ends, shared.clone()));
        variant(table, choice, (shared, partition), rule)
    };
    rules.into_iter().map(of_rule).collect()
}

/// What the stages at the ends need more under a rule on checkpointing.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ends {
    /// Memory of the last stage for each chunk in flight, where the head counts as a layer.
    head: i64,
    /// Of the first stage, where leading layers of another kind are recomputed.
    leading: Shift,
}

/// The stages of a combination.
fn stages(table: &CostTable, units: &CombinationUnits, cut: &Cut, ends: Ends) -> Arc<[Stage]> {
    let most = most_layers(table, cut);
    let last = units.stages.len() - 1;
    let stages = units.stages.iter().enumerate().map(|(stage, own)| {
        let (lower_layers, upper_layers) = match cut {
            Cut::Fixed(cut) => (cut[stage], cut[stage]),
            Cut::Open(fewest) => (fewest[stage], most),
        };
        let head = if stage == last { ends.head } else { 0 };
        let shift = if stage == 0 {
            ends.leading
        } else {
            Shift::NONE
        };
        Stage {
            extra_time: own.extra_time + shift.time,
            fixed_memory: own.fixed_memory + own.in_flight * head + shift.memory,
            lower_layers,
            upper_layers,
            ..*own
        }
    });
    stages.collect()
}

/// What a cut demands of the stages beside their own limits.
fn partition(table: &CostTable, cut: &Cut) -> ProgramPartition {
    match table.instance.job.framework.partition {
        Partition::FirstAndLast if !any_cut(table) && matches!(cut, Cut::Open(_)) => {
            ProgramPartition::EqualMiddle
        }
        _ => ProgramPartition::Free,
    }
}

fn variant(
    table: &CostTable,
    choice: &Choice,
    (stages, partition): (Arc<[Stage]>, ProgramPartition),
    rule: RecomputeRule,
) -> Variant {
    let units = &table.units[choice.units];
    let modes = modes(table, choice);
    let group = Group {
        values: Vec::new(),
        stages,
        weights: units.weights,
        constant: units.constant,
        kinds: vec![units.layer],
        modes: modes
            .iter()
            .map(|&mode| units.modes[mode as usize])
            .collect(),
        recompute: rule,
        partition,
        capacity: table.capacity_of(&choice.combination),
        rank: choice.rank as i64 * MOST_VARIANTS,
    };
    Variant { group, modes }
}
