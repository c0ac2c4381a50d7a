//! Whether the layers of a combination fit into memory, by the framework's rules or without
//! them.

use std::collections::HashMap;

use formulations::staged::{Layers, Shortage as Missing, fits, optimum, shortage};

use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::cost_model::Costs;
use crate::framework::CheckpointRule;
use crate::instance::Instance;
use crate::layout::{Checkpointing, Combination};
use crate::plan::{Extent, Formulation};
use crate::planner::cost_table::{CostTable, Entry};
use crate::planner::groups::{Choice, Variant, choices, variants};
use crate::planner::quantise::{self, CombinationUnits, Quantum, UNLIMITED};
use crate::planner::{Deadline, PlanError, TimeOver};
use crate::quantity::{Bytes, Seconds};
use crate::rules::{self, Requirement, Rule, RuleSet};
use crate::space;

use super::memory_bound::{leanest, may_fit};
use super::{KIB, Shortage};

/// An instance without none, one or both of the framework's rules on stages.
#[derive(Debug)]
pub(super) struct Freedom {
    /// The rules that are dropped.
    pub(super) dropped: RuleSet,
    instance: Instance,
    formulation: Formulation,
}

/// What is judged of a combination.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) combination: &'a Combination,
    /// Its coefficients.
    pub(super) units: &'a CombinationUnits,
    /// The ways to checkpoint that it may use.
    pub(super) flags: &'a [Checkpointing],
}

/// The coefficients of a combination; times do not matter.
pub(super) fn units(instance: &Instance, combination: &Combination) -> CombinationUnits {
    CombinationUnits::new(&Costs::new(&instance.job, combination), quantum())
}

fn quantum() -> Quantum {
    Quantum::for_times(Seconds::new(1.0), Seconds::new(1.0), 1)
}

impl Freedom {
    /// The instance by its own rules as `formulation` takes them, then with fewer of them.
    pub(super) fn all(instance: &Instance, formulation: Formulation) -> Vec<Self> {
        let cut = Rule::LayersCoverStages;
        let rule = Rule::CheckpointingByFramework;
        let drops: &[&[Rule]] = match instance.job.framework.checkpoint_rule {
            CheckpointRule::Free => &[&[], &[cut]],
            _ => &[&[], &[cut], &[rule], &[cut, rule]],
        };
        let freedoms = drops.iter().map(|dropped| {
            let dropped: RuleSet = dropped.iter().copied().map(Requirement::from).collect();
            let mut instance = instance.clone();
            if dropped.contains(cut) {
                rules::relax(&mut instance, cut);
            }
            if dropped.contains(rule) {
                instance.job.framework.checkpoint_rule = CheckpointRule::Free;
            }
            Self {
                dropped,
                instance,
                formulation: if dropped.is_empty() {
                    formulation
                } else {
                    Formulation::Staged
                },
            }
        });
        freedoms.collect()
    }

    /// Whether there is any cut into stages, whatever its memory.
    pub(super) fn has_cut(&self, combination: &Combination) -> bool {
        self.dropped.contains(Rule::LayersCoverStages)
            || rules::partition(&self.instance, combination).is_some()
    }

    /// Whether some layout of the combination fits into `capacity`, if not into what is allowed to it.
    /// The combination has a cut.
    pub(super) fn fits(&self, trial: Trial, capacity: Option<i64>) -> bool {
        let mut ways = self.ways(trial, capacity).into_iter();
        ways.any(|(_, variant)| fits(&variant.group, self.layers()))
    }

    fn layers(&self) -> i64 {
        i64::from(self.instance.job.transformer.layers)
    }

    /// The ways to use a combination.
    fn ways(&self, trial: Trial, capacity: Option<i64>) -> Vec<(Choice, Variant)> {
        let entries = trial.flags.iter().map(|&checkpointing| Entry {
            candidate: FlaggedCombination {
                combination: *trial.combination,
                checkpointing,
            },
            broken: RuleSet::EMPTY,
            units: Some(0),
        });
        let table = CostTable {
            instance: &self.instance,
            formulation: self.formulation,
            layers: Layers::alike(self.layers()),
            quantum: quantum(),
            capacity,
            units: vec![trial.units.clone()],
            entries: entries.collect(),
            applied_before: Vec::new(),
            extent: Extent::Whole,
        };
        let choices = choices(&table).into_iter();
        choices
            .flat_map(|choice| {
                let ways = variants(&table, &choice).into_iter();
                ways.map(move |variant| (choice.clone(), variant))
            })
            .collect()
    }
}

/// Of the layouts that keep everything but memory, the one that misses it by the least; `None` if one
/// fits, or none is possible with any memory.
///
/// # Errors
///
/// When the time is over.
pub(super) fn least_shortage(
    instance: &Instance,
    formulation: Formulation,
    deadline: Deadline,
) -> Result<Option<Shortage>, PlanError> {
    let listed = space::list_until(instance, deadline);
    let mut flags: HashMap<Combination, Vec<Checkpointing>> = HashMap::new();
    let mut combinations = Vec::new();
    for (flagged, _) in listed.combinations.iter().filter(|it| it.1.is_empty()) {
        let of_combination = flags.entry(flagged.combination).or_default();
        if of_combination.is_empty() {
            combinations.push(flagged.combination);
        }
        of_combination.push(flagged.checkpointing);
    }
    let own = Freedom {
        dropped: RuleSet::EMPTY,
        instance: instance.clone(),
        formulation,
    };
    let values = Axis::ALL.map(|axis| instance.space.values(axis).to_vec());
    let layers = Layers::alike(own.layers());
    let (mut missing, mut least) = (UNLIMITED, None);
    for combination in &combinations {
        deadline.check()?;
        let lean = leanest(&values, combination);
        let capacity = quantise::capacity(instance, combination);
        let below = capacity.saturating_add(missing) - 1;
        if !may_fit(instance, &values, &lean, AxisSet::EMPTY, below) {
            continue;
        }
        let trial = Trial {
            combination,
            units: &units(instance, combination),
            flags: &flags[combination],
        };
        for (choice, mut variant) in own.ways(trial, Some(below)) {
            variant.group.capacity = capacity.saturating_add(missing) - 1;
            if !fits(&variant.group, own.layers()) {
                continue;
            }
            // Against no capacity at all, what is missing is the peak itself.
            variant.group.capacity = 0;
            if let Some(Missing::Memory { amount, .. }) = shortage(&variant.group, own.layers()) {
                variant.group.capacity = amount;
                let plan = optimum(&variant.group, 0, &layers);
                least = plan.map(|plan| variant.layout(&choice, &plan)).or(least);
                missing = amount - capacity;
            }
        }
    }
    if listed.is_cut {
        return Err(TimeOver.into());
    }
    Ok(least.filter(|_| missing > 0).map(|layout| Shortage {
        amount: Bytes::new(missing as f64 * KIB),
        layout,
    }))
}
