//! From costs to cells of the program `staged`: the framework's rules on stages and checkpointing.

use formulations::staged::{
    Cell as ProgramCell, Layer, Partition as ProgramPartition, RecomputeMode, RecomputeRule, Stage,
    Weights, near_even, plan_of,
};

use crate::axis::Candidate;
use crate::cost_model::pipeline::{even_partition, interleaved_partition};
use crate::framework::{CheckpointRule, Partition};
use crate::layout::{Cell, Checkpointing, Recompute};

use super::cost_table::CostTable;

/// A combination of discrete choices, whose layers and checkpointing are still open.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The combination.
    pub cell: Cell,
    /// Position of its coefficients in the table.
    pub units: usize,
    /// Position of its first entry in the table: earlier wins among equals.
    pub rank: usize,
    /// Checkpointing flags that no rule excludes.
    flags: Vec<Checkpointing>,
}

/// One way to use a choice: a cell of the program, and what its modes stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The cell.
    pub cell: ProgramCell,
    /// The recompute mode that each mode of the cell stands for.
    pub modes: Vec<Recompute>,
}

/// Most variants of one choice, so that ranks of variants do not meet those of the next choice.
const MOST_VARIANTS: i64 = 1 << 20;

/// The choices of a table that break no rule, in its order.
#[must_use]
pub fn choices(table: &CostTable) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::with_capacity(table.cells.len());
    let mut position = vec![usize::MAX; table.cells.len()];
    for (rank, entry) in table.entries.iter().enumerate() {
        let Some(units) = entry.cell else { continue };
        let Candidate {
            cell,
            checkpointing,
        } = entry.candidate;
        if position[units] == usize::MAX {
            position[units] = choices.len();
            choices.push(Choice {
                cell,
                units,
                rank,
                flags: Vec::new(),
            });
        }
        choices[position[units]].flags.push(checkpointing);
    }
    choices
}

/// The choice without its framework's rule on checkpointing: any layers by any permitted mode. No
/// variant of the choice is better than this.
#[must_use]
pub fn relaxed(table: &CostTable, choice: &Choice) -> Variant {
    variant(table, choice, RecomputeRule::Free, 0)
}

/// Every way to use the choice that the framework's rules allow.
#[must_use]
pub fn variants(table: &CostTable, choice: &Choice) -> Vec<Variant> {
    let rules = recompute_rules(table, choice);
    (0..)
        .zip(rules)
        .map(|(index, rule)| variant(table, choice, rule, index))
        .collect()
}

/// The variants of the choice of which one needs the least memory on every stage.
#[must_use]
pub fn lightest_variants(table: &CostTable, choice: &Choice) -> Vec<Variant> {
    let rules = recompute_rules(table, choice).into_iter();
    rules
        .filter(|rule| !matches!(rule, RecomputeRule::Uniform { .. }))
        .map(|rule| variant(table, choice, rule, 0))
        .collect()
}

/// The objective of a good plan of the choice, if one is found quickly: the near-even cut with the
/// least recomputation that fits.
#[must_use]
pub fn quick_objective(table: &CostTable, choice: &Choice) -> Option<i64> {
    let layers = i64::from(table.instance.job.transformer.layers);
    let cut = fixed_cut(table, choice);
    let value = |rule: RecomputeRule| {
        let cell = variant(table, choice, rule, 0).cell;
        match &cut {
            Some(cut) => plan_of(&cell, 0, cut).map(|plan| plan.objective),
            None => near_even(&cell, layers),
        }
    };
    let rules = recompute_rules(table, choice);
    // Among uniform counts the least that fits is quickest: the cut is the same for all.
    let (uniform, others): (Vec<RecomputeRule>, Vec<RecomputeRule>) = rules
        .into_iter()
        .partition(|rule| matches!(rule, RecomputeRule::Uniform { .. }));
    let first = uniform.partition_point(|&rule| value(rule).is_none());
    let uniform = uniform.get(first).copied();
    others.into_iter().chain(uniform).filter_map(value).min()
}

/// The recompute modes that the choice may use, in the order of [`Recompute::ALL`]. A mode that
/// saves nothing is of use only where every layer has to recompute.
fn modes(table: &CostTable, choice: &Choice) -> Vec<Recompute> {
    let units = &table.cells[choice.units];
    let forced = !choice.flags.contains(&Checkpointing::None);
    let permitted = |mode: Recompute| {
        choice
            .flags
            .iter()
            .any(|flag| flag.recompute() == Some(mode))
            && (forced || units.kept[mode as usize] < units.activations)
    };
    Recompute::ALL
        .iter()
        .copied()
        .filter(|&mode| permitted(mode))
        .collect()
}

/// The framework's rule on checkpointing, as a list of rules of the program.
fn recompute_rules(table: &CostTable, choice: &Choice) -> Vec<RecomputeRule> {
    let modes = modes(table, choice);
    let none = choice.flags.contains(&Checkpointing::None);
    let rule = table.instance.job.framework.checkpoint_rule;
    if none && rule == CheckpointRule::Free {
        return vec![RecomputeRule::Free];
    }
    let mut rules = Vec::new();
    if none {
        rules.push(RecomputeRule::None);
    }
    for (mode, &recompute) in modes.iter().enumerate() {
        if none && rule == CheckpointRule::SameCount && recompute == Recompute::Full {
            let most = most_layers(table, choice);
            rules.extend((1..most).map(|count| RecomputeRule::Uniform { mode, count }));
        }
        rules.push(RecomputeRule::AllLayers { mode });
    }
    rules
}

/// Most layers that a stage can have.
fn most_layers(table: &CostTable, choice: &Choice) -> i64 {
    let layers = i64::from(table.instance.job.transformer.layers);
    let others = i64::from(choice.cell.pipeline_parallel) - 1;
    fixed_cut(table, choice)
        .and_then(|cut| cut.into_iter().max())
        .unwrap_or(layers - others * i64::from(choice.cell.virtual_stages))
}

/// The cut, where the framework leaves no freedom.
fn fixed_cut(table: &CostTable, choice: &Choice) -> Option<Vec<i64>> {
    let job = &table.instance.job;
    let partition = job.framework.partition;
    let stages = choice.cell.pipeline_parallel;
    if choice.cell.virtual_stages > 1 {
        let chunks = choice.cell.virtual_stages;
        let cut = interleaved_partition(job.transformer.layers, stages, chunks)?;
        return Some(cut.into_iter().map(i64::from).collect());
    }
    match partition {
        Partition::Free | Partition::FirstAndLast => None,
        Partition::EmbeddingAndHead | Partition::Equal | Partition::Even => {
            let cut = even_partition(partition, job.transformer.layers, stages)?;
            Some(cut.into_iter().map(i64::from).collect())
        }
    }
}

fn variant(table: &CostTable, choice: &Choice, rule: RecomputeRule, index: i64) -> Variant {
    let units = &table.cells[choice.units];
    let modes = modes(table, choice);
    let cut = fixed_cut(table, choice);
    let most = most_layers(table, choice);
    let stages = units.stages.iter().enumerate().map(|(stage, own)| {
        let fixed = cut.as_ref().map(|cut| cut[stage]);
        Stage {
            extra_time: own.extra_time,
            extra_delta: own.extra_delta,
            fixed_memory: own.fixed_memory,
            in_flight: own.in_flight,
            lower_layers: fixed.unwrap_or(i64::from(choice.cell.virtual_stages)),
            upper_layers: fixed.unwrap_or(most),
        }
    });
    let cell = ProgramCell {
        stages: stages.collect(),
        weights: Weights {
            slowest: units.max_weight,
            total: units.sum_weight,
            delta: units.delta_weight,
        },
        constant: units.constant,
        layer: Layer {
            time: units.layer_time,
            delta: units.layer_delta,
            memory: units.layer_memory,
            activation: units.activations,
        },
        modes: modes
            .iter()
            .map(|&mode| RecomputeMode {
                extra_time: units.recompute_time[mode as usize],
                activation: units.kept[mode as usize],
                workspace: units.workspace[mode as usize],
            })
            .collect(),
        recompute: rule,
        partition: match table.instance.job.framework.partition {
            Partition::FirstAndLast => ProgramPartition::EqualMiddle,
            _ => ProgramPartition::Free,
        },
        capacity: table.capacity,
        rank: choice.rank as i64 * MOST_VARIANTS + index.min(MOST_VARIANTS - 1),
    };
    Variant { cell, modes }
}
