//! From costs to groups of the program: the framework's rules on stages and checkpointing.
//!
//! The formulation `layout choice` is a restriction of the same program: the framework's own even cut, and
//! one checkpointing flag for all layers as an axis of the combination.

use formulations::staged::{
    Group, Partition as ProgramPartition, Plan, RecomputeRule, Stage, near_even, plan_of,
};

use crate::axis::FlaggedCombination;
use crate::cost_model::pipeline::{fewest_layers, framework_cut};
use crate::framework::{CheckpointRule, Partition};
use crate::layout::{self, Checkpointing, Combination, Layout, Recompute};
use crate::plan::Formulation;
use crate::rules::{self, Rule};

use super::constraints;
use super::cost_table::CostTable;

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
    flags: Vec<Checkpointing>,
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
            let mut recomputed = [0; 3];
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
            choices.push(Choice {
                combination,
                units,
                rank,
                flags: Vec::new(),
            });
        }
        choices[position[units]].flags.push(checkpointing);
    }
    choices
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
    let mut cuts = cuts(table, choice);
    let widest = cuts.pop().unwrap_or_else(|| open(table, choice));
    variant(table, choice, &widest, RecomputeRule::Free, 0)
}

/// Every way to use the choice that the framework's rules allow.
#[must_use]
pub fn variants(table: &CostTable, choice: &Choice) -> Vec<Variant> {
    let ways = ways(table, choice);
    (0..)
        .zip(ways)
        .map(|(index, (cut, rule))| with_head(table, choice, &cut, rule, index))
        .collect()
}

/// The variants of the choice of which one needs the least memory on every stage.
#[must_use]
pub fn lightest_variants(table: &CostTable, choice: &Choice) -> Vec<Variant> {
    let ways = ways(table, choice).into_iter();
    ways.filter(|(_, rule)| !matches!(rule, RecomputeRule::Uniform { .. }))
        .map(|(cut, rule)| with_head(table, choice, &cut, rule, 0))
        .collect()
}

/// Every cut with every rule on checkpointing.
fn ways(table: &CostTable, choice: &Choice) -> Vec<(Cut, RecomputeRule)> {
    let of_cut = |cut: Cut| {
        let rules = recompute_rules(table, choice, &cut).into_iter();
        rules.map(move |rule| (cut.clone(), rule))
    };
    cuts(table, choice).into_iter().flat_map(of_cut).collect()
}

/// The objective of a good plan of the choice, if one is found quickly: the framework's cut or the
/// near-even one with the least recomputation that fits; where rows concern the layers, the best of
/// some near-even cuts that keeps them.
#[must_use]
pub fn quick_objective(table: &CostTable, choice: &Choice) -> Option<i64> {
    let cuts = cuts(table, choice).into_iter();
    cuts.filter_map(|cut| quick_objective_of(table, choice, &cut))
        .min()
}

fn quick_objective_of(table: &CostTable, choice: &Choice, cut: &Cut) -> Option<i64> {
    let layers = i64::from(table.instance.job.transformer.layers);
    let middle_is_equal = table.instance.job.framework.partition == Partition::FirstAndLast;
    if constraints::concern_layers(table.instance) || matches!(cut, Cut::Open(_)) && middle_is_equal
    {
        return best_trial(table, choice, cut);
    }
    let value = |rule: RecomputeRule| {
        let group = with_head(table, choice, cut, rule, 0).group;
        match cut {
            Cut::Fixed(cut) => plan_of(&group, 0, &table.layers, cut).map(|plan| plan.objective),
            Cut::Open(_) => near_even(&group, layers),
        }
    };
    let rules = recompute_rules(table, choice, cut);
    // Among uniform counts the least that fits is quickest: the cut is the same for all.
    let (uniform, others): (Vec<RecomputeRule>, Vec<RecomputeRule>) = rules
        .into_iter()
        .partition(|rule| matches!(rule, RecomputeRule::Uniform { .. }));
    let first = uniform.partition_point(|&rule| value(rule).is_none());
    let uniform = uniform.get(first).copied();
    others.into_iter().chain(uniform).filter_map(value).min()
}

/// The plan of a variant of a choice that [`quick_objective`] found, or one as good.
#[must_use]
pub fn quick_plan(
    table: &CostTable,
    choice: &Choice,
    variant: &Variant,
    group: usize,
) -> Option<Plan> {
    let layers = i64::from(table.instance.job.transformer.layers);
    let stages = variant.group.stages.len() as i64;
    let (even, rest) = (layers / stages, layers % stages);
    let own = |stage: i64| even + i64::from((1..=rest).contains(&stage));
    let ways = cuts(table, choice);
    let mut tried: Vec<Vec<i64>> = ways
        .iter()
        .flat_map(|cut| trials(table, choice, cut))
        .collect();
    tried.push((0..stages).map(own).collect());
    let within = |cut: &&Vec<i64>| is_within(cut, &variant.group);
    let plans = tried.iter().filter(within);
    let plans = plans.filter_map(|cut| plan_of(&variant.group, group, &table.layers, cut));
    plans
        .filter(|plan| constraints::keeps(table.instance, &variant.layout(choice, plan)))
        .min_by_key(|plan| plan.objective)
}

/// The cut where it is fixed, else some near-even ones.
fn trials(table: &CostTable, choice: &Choice, cut: &Cut) -> Vec<Vec<i64>> {
    let layers = i64::from(table.instance.job.transformer.layers);
    match cut {
        Cut::Fixed(cut) => vec![cut.clone()],
        Cut::Open(_) => trial_cuts(&relaxed(table, choice).group, layers),
    }
}

/// The least objective over some cuts that keep every row.
fn best_trial(table: &CostTable, choice: &Choice, cut: &Cut) -> Option<i64> {
    let cuts = trials(table, choice, cut);
    let rules = recompute_rules(table, choice, cut).into_iter();
    let objectives = rules.filter_map(|rule| {
        let variant = with_head(table, choice, cut, rule, 0);
        let plans = cuts
            .iter()
            .filter_map(|cut| plan_of(&variant.group, 0, &table.layers, cut));
        plans
            .filter(|plan| constraints::keeps(table.instance, &variant.layout(choice, plan)))
            .map(|plan| plan.objective)
            .min()
    });
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
    let mut bounds = cut.iter().zip(&group.stages);
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
    if none && rule == CheckpointRule::Free {
        let mut rules = vec![RecomputeRule::Free];
        // The head keeps less where all layers are recomputed.
        if counts_head(choice, cut) {
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
fn cuts(table: &CostTable, choice: &Choice) -> Vec<Cut> {
    let (job, combination) = (&table.instance.job, &choice.combination);
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
    let equal = fixed(Partition::Equal).filter(|cut| !counts_head(choice, cut));
    let equal = equal.filter(|_| combination.virtual_stages > 1);
    equal.into_iter().chain([open(table, choice)]).collect()
}

/// Any cut that leaves no model chunk empty, or any at all where that is no rule.
fn open(table: &CostTable, choice: &Choice) -> Cut {
    let any = any_cut(table);
    let fewest = |stage: u32| {
        if any {
            0
        } else {
            i64::from(fewest_layers(&choice.combination, stage))
        }
    };
    Cut::Open(
        (0..choice.combination.pipeline_parallel)
            .map(fewest)
            .collect(),
    )
}

/// Whether the head counts as a layer in the memory of the last stage of these cuts.
fn counts_head(choice: &Choice, cut: &Cut) -> bool {
    let chunks = i64::from(choice.combination.virtual_stages);
    let has_equal_chunks =
        |cut: &Vec<i64>| cut.iter().all(|&own| own == cut[0] && own % chunks == 0);
    chunks > 1 && !matches!(cut, Cut::Fixed(cut) if has_equal_chunks(cut))
}

/// The variant with the memory of a head that counts as a layer.
fn with_head(
    table: &CostTable,
    choice: &Choice,
    cut: &Cut,
    rule: RecomputeRule,
    index: i64,
) -> Variant {
    let mut variant = variant(table, choice, cut, rule, index);
    let group = &mut variant.group;
    if let Some(last) = group.stages.last_mut()
        && counts_head(choice, cut)
    {
        last.fixed_memory += last.in_flight
            * match rule {
                RecomputeRule::AllLayers { mode } => group.modes[mode].activation,
                _ => group.kinds[0].activation,
            };
    }
    variant
}

fn variant(
    table: &CostTable,
    choice: &Choice,
    cut: &Cut,
    rule: RecomputeRule,
    index: i64,
) -> Variant {
    let units = &table.units[choice.units];
    let modes = modes(table, choice);
    let most = most_layers(table, cut);
    let stages = units.stages.iter().enumerate().map(|(stage, own)| {
        let (lower_layers, upper_layers) = match cut {
            Cut::Fixed(cut) => (cut[stage], cut[stage]),
            Cut::Open(fewest) => (fewest[stage], most),
        };
        Stage {
            lower_layers,
            upper_layers,
            ..*own
        }
    });
    let group = Group {
        values: Vec::new(),
        stages: stages.collect(),
        weights: units.weights,
        constant: units.constant,
        kinds: vec![units.layer],
        modes: modes
            .iter()
            .map(|&mode| units.modes[mode as usize])
            .collect(),
        recompute: rule,
        partition: match table.instance.job.framework.partition {
            Partition::FirstAndLast if !any_cut(table) && matches!(cut, Cut::Open(_)) => {
                ProgramPartition::EqualMiddle
            }
            _ => ProgramPartition::Free,
        },
        capacity: table.capacity_of(&choice.combination),
        rank: choice.rank as i64 * MOST_VARIANTS + index.min(MOST_VARIANTS - 1),
    };
    Variant { group, modes }
}
