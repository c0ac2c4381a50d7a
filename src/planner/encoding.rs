//! From what screening leaves to the program: groups, axes, and the rules with the combinations that break
//! them.

use formulations::staged::{
    self as program, Axis as ProgramAxis, Data, Excluded, Names, Plan as ProgramPlan, RecomputeRule,
};

use crate::axis::{Axis, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Combination, Layout};
use crate::rules::{self, Requirement, Rule};

use super::cost_table::CostTable;
use super::groups::{self, Variant};
use super::screening::{ChoiceBound, Screening};
use super::{Deadline, constraints};

/// The program over the open choices.
#[derive(Debug)]
pub struct Encoded {
    /// Data of the program.
    pub data: Data,
    /// The choice and variant of each group of the program.
    pub(super) variants: Vec<(usize, Variant)>,
}

/// Which combinations that break a rule the program carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excluding {
    /// All that are listed: the program shows every rule.
    Shown,
    /// None: for answers of which no program is shown.
    LeftOut,
}

/// Encodes the open choices with the variants that the framework's rules allow, while there is time.
#[must_use]
pub fn encode(
    table: &CostTable,
    screening: &mut Screening,
    excluding: Excluding,
    deadline: Deadline,
) -> Encoded {
    let shown = excluding == Excluding::Shown && table.applied_before.is_empty();
    // What may be best first.
    let mut order: Vec<(i64, usize)> = (screening.bounds.iter().enumerate())
        .filter_map(|(index, bound)| match *bound {
            ChoiceBound::Open(value) => Some((value, index)),
            ChoiceBound::Infeasible if shown => Some((i64::MAX, index)),
            _ => None,
        })
        .collect();
    order.sort_unstable();
    let mut variants: Vec<(usize, Variant)> = Vec::new();
    for (value, index) in order {
        // What is known to have a plan is always part of the program.
        if screening.quick == Some(index) || !deadline.is_over() {
            let of_choice = groups::variants(table, &screening.choices[index]);
            variants.extend(of_choice.into_iter().map(|variant| (index, variant)));
        } else if let ChoiceBound::Open(_) = screening.bounds[index] {
            let bound = value.saturating_sub(screening.slack);
            screening.bounds[index] = ChoiceBound::Unreached(bound);
        }
    }
    variants.sort_by_key(|(index, _)| *index);
    let combinations: Vec<Combination> = variants
        .iter()
        .map(|(index, _)| screening.choices[*index].combination)
        .collect();
    let mut axes = Axes::of(table.instance);
    let groups = variants.iter().zip(&combinations);
    let groups = groups.map(|((_, variant), combination)| program::Group {
        values: axes.values(combination, &checkpointing(variant)),
        ..variant.group.clone()
    });
    let mut data = Data {
        layers: table.layers.clone(),
        groups: groups.collect(),
        side_rows: constraints::side_rows(table.instance, &combinations),
        names: Names {
            memory: Rule::MemoryCapacity.as_str().to_owned(),
            layers: Rule::LayersCoverStages.as_str().to_owned(),
        },
        units: table.quantum.solver_units(),
        ..Data::default()
    };
    if excluding == Excluding::Shown && !deadline.is_over() {
        exclude(table, &mut axes, &mut data);
    }
    data.axes = axes.axes;
    Encoded { data, variants }
}

/// Adds the rules and the combinations that break them. The rows over layers are rules too, for groups in
/// which they cannot hold.
fn exclude(table: &CostTable, axes: &mut Axes<'_>, data: &mut Data) {
    let instance = table.instance;
    let requirements: Vec<Requirement> = rules::requirements(instance).collect();
    let names = requirements.iter();
    let names = names.map(|it| it.rule.part_name(instance, it.part));
    data.rules = names.collect();
    let broken = table.entries.iter().filter(|it| !it.broken.is_empty());
    let excluded = broken.map(|entry| {
        let amounts = requirements.iter().enumerate();
        let amounts = amounts.map(|(index, it)| {
            let amount = it.rule.amount(instance, &entry.candidate, it.part);
            (index, amount)
        });
        let flag = entry.candidate.code(Axis::Checkpointing);
        let flag = Axis::Checkpointing.show(flag);
        Excluded {
            values: axes.values(&entry.candidate.combination, &flag),
            broken: amounts.filter(|&(_, amount)| amount > 0).collect(),
        }
    });
    data.excluded = excluded.collect();
}

/// The axes of the program: those of the space, with what stages may do of their own.
struct Axes<'a> {
    instance: &'a Instance,
    axes: Vec<ProgramAxis>,
}

impl<'a> Axes<'a> {
    fn of(instance: &'a Instance) -> Self {
        let axes = Axis::ALL.map(|axis| ProgramAxis {
            name: axis.as_str().to_owned(),
            values: (instance.space.values(axis).iter())
                .map(|&code| axis.show(code))
                .collect(),
        });
        Self {
            instance,
            axes: axes.to_vec(),
        }
    }

    /// The position of each value; a new value of checkpointing is added.
    fn values(&mut self, combination: &Combination, checkpointing: &str) -> Vec<usize> {
        let candidate = FlaggedCombination {
            combination: *combination,
            checkpointing: Checkpointing::None,
        };
        let position = |axis: Axis| {
            if axis == Axis::Checkpointing {
                let values = &mut self.axes[axis as usize].values;
                let known = values.iter().position(|value| value == checkpointing);
                return known.unwrap_or_else(|| {
                    values.push(checkpointing.to_owned());
                    values.len() - 1
                });
            }
            let code = candidate.code(axis);
            let values = self.instance.space.values(axis).iter();
            values.take_while(|&&value| value != code).count()
        };
        Axis::ALL.map(position).to_vec()
    }
}

/// The value of a group on the axis of checkpointing.
fn checkpointing(variant: &Variant) -> String {
    let mode = match variant.group.recompute {
        RecomputeRule::Free => return "by-stage".to_owned(),
        RecomputeRule::Uniform { count, .. } => return format!("{count}-a-stage"),
        RecomputeRule::None => None,
        RecomputeRule::AllLayers { mode } => Some(variant.modes[mode]),
    };
    let mut flags = Checkpointing::ALL.iter();
    let flag = flags.find(|flag| flag.recompute() == mode);
    flag.map_or_else(String::new, |&flag| Axis::Checkpointing.show(flag as u32))
}

impl Encoded {
    /// The layout of a plan of the program.
    pub(super) fn layout(&self, screening: &Screening, plan: &ProgramPlan) -> Layout {
        let (choice, variant) = &self.variants[plan.group];
        variant.layout(&screening.choices[*choice], plan)
    }

    /// The class of a group of the program.
    pub(super) fn class(&self, screening: &Screening, group: usize) -> usize {
        screening.classes[self.variants[group].0]
    }
}
