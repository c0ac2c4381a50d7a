//! Whether the layers of a combination fit into memory, by the framework's rules or without
//! them.

use formulations::staged::{Layers, Shortage, fits, optimum, shortage};

use crate::axis::FlaggedCombination;
use crate::cost_model::Costs;
use crate::framework::CheckpointRule;
use crate::instance::Instance;
use crate::layout::{Checkpointing, Combination, Layout};
use crate::plan::{Extent, Formulation};
use crate::planner::cost_table::{CostTable, Entry};
use crate::planner::groups::{Choice, Variant, choices, variants};
use crate::planner::quantise::{self, CellUnits, Quantum};
use crate::quantity::Seconds;
use crate::rules::{self, Requirement, Rule, RuleSet};
use crate::space;

/// An instance without none, one or both of the framework's rules on stages.
#[derive(Debug)]
pub(super) struct Freedom {
    /// The rules that are dropped.
    pub(super) dropped: RuleSet,
    instance: Instance,
}

/// Judges combinations of one instance.
#[derive(Debug)]
pub(super) struct MemoryFit {
    /// The framework's own rules first, then with fewer of them.
    pub(super) freedoms: Vec<Freedom>,
    formulation: Formulation,
    quantum: Quantum,
    layers: i64,
}

/// How far a combination is from fitting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shortfall {
    /// What is missing on the fullest GPU, in KiB.
    pub(super) amount: i64,
    /// The layout that would run with so much more.
    pub(super) layout: Layout,
}

impl MemoryFit {
    /// Judges as `formulation` does.
    pub(super) fn new(instance: &Instance, formulation: Formulation) -> Self {
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
                rules::relax(&mut instance, Rule::LayersCoverStages);
            }
            if dropped.contains(rule) {
                instance.job.framework.checkpoint_rule = CheckpointRule::Free;
            }
            Freedom { dropped, instance }
        });
        Self {
            freedoms: freedoms.collect(),
            formulation,
            quantum: Quantum::for_times(Seconds::new(1.0), Seconds::new(1.0)),
            layers: i64::from(instance.job.transformer.layers),
        }
    }

    /// What a stage may hold, in KiB.
    pub(super) fn capacity(&self) -> i64 {
        quantise::capacity(&self.freedoms[0].instance)
    }

    /// The coefficients of a combination.
    pub(super) fn units(&self, combination: &Combination) -> CellUnits {
        let job = &self.freedoms[0].instance.job;
        CellUnits::new(&Costs::new(job, combination), self.quantum)
    }

    /// Whether there is any cut into stages, whatever its memory.
    pub(super) fn has_cut(freedom: &Freedom, combination: &Combination) -> bool {
        freedom.dropped.contains(Rule::LayersCoverStages)
            || crate::rules::partition(&freedom.instance, combination).is_some()
    }

    /// Whether some layout of the combination fits into `capacity` with these checkpointing flags. The
    /// combination has a cut.
    pub(super) fn fits(
        &self,
        freedom: &Freedom,
        combination: &Combination,
        units: &CellUnits,
        flags: &[Checkpointing],
        capacity: i64,
    ) -> bool {
        if self.is_layout_choice(freedom) {
            return flags
                .iter()
                .any(|&flag| self.uniform_peak(combination, units, flag).0 <= capacity);
        }
        let of_combination = self.variants(freedom, combination, units, flags, capacity);
        of_combination
            .iter()
            .any(|(_, variant)| fits(&variant.group, self.layers))
    }

    /// Whether a combination may fit, whatever the framework's rules: no layout of the combination fits if not.
    pub(super) fn may_fit(
        &self,
        combination: &Combination,
        flags: &[Checkpointing],
        capacity: i64,
    ) -> bool {
        let freest = &self.freedoms[self.freedoms.len() - 1];
        let of_combination = self.variants(
            freest,
            combination,
            &self.units(combination),
            flags,
            capacity,
        );
        of_combination
            .iter()
            .any(|(_, variant)| fits(&variant.group, self.layers))
    }

    /// The least that the combination misses with these flags by the framework's own rules; `None` if it
    /// fits into `capacity` or has no layout at all.
    pub(super) fn shortfall(
        &self,
        combination: &Combination,
        units: &CellUnits,
        flags: &[Checkpointing],
        capacity: i64,
    ) -> Option<Shortfall> {
        let own = &self.freedoms[0];
        if self.is_layout_choice(own) {
            let peaks = flags.iter().filter_map(|&flag| {
                let (peak, layout) = self.uniform_peak(combination, units, flag);
                Some((peak, layout?))
            });
            let (peak, layout) = peaks.min_by_key(|&(peak, _)| peak)?;
            let amount = peak - capacity;
            return (amount > 0).then_some(Shortfall { amount, layout });
        }
        let of_combination = self.variants(own, combination, units, flags, capacity);
        let amount = |variant: &Variant| match shortage(&variant.group, self.layers) {
            Some(Shortage::Memory { amount, .. }) => amount,
            None => 0,
            Some(Shortage::Layers) => i64::MAX,
        };
        let least = of_combination
            .into_iter()
            .map(|(choice, variant)| (amount(&variant), choice, variant));
        let (amount, choice, mut variant) = least.min_by_key(|&(amount, ..)| amount)?;
        if amount == 0 || amount == i64::MAX {
            return None;
        }
        variant.group.capacity += amount;
        let plan = optimum(&variant.group, 0, &Layers::alike(self.layers))?;
        Some(Shortfall {
            amount,
            layout: variant.layout(&choice, &plan),
        })
    }

    fn is_layout_choice(&self, freedom: &Freedom) -> bool {
        self.formulation == Formulation::LayoutChoice && freedom.dropped.is_empty()
    }

    /// Peak memory and layout of the framework's own cut under one flag.
    fn uniform_peak(
        &self,
        combination: &Combination,
        units: &CellUnits,
        checkpointing: Checkpointing,
    ) -> (i64, Option<Layout>) {
        let candidate = FlaggedCombination {
            combination: *combination,
            checkpointing,
        };
        let Some(layout) = space::layout(&self.freedoms[0].instance, &candidate) else {
            return (i64::MAX, None);
        };
        let stages = layout.stages.iter().enumerate();
        let peak = stages.map(|(index, stage)| units.stage_memory(index, stage));
        (peak.max().unwrap_or(0), Some(layout))
    }

    /// The ways to use the combination with these flags.
    fn variants(
        &self,
        freedom: &Freedom,
        combination: &Combination,
        units: &CellUnits,
        flags: &[Checkpointing],
        capacity: i64,
    ) -> Vec<(Choice, Variant)> {
        let entries = flags.iter().map(|&checkpointing| Entry {
            candidate: FlaggedCombination {
                combination: *combination,
                checkpointing,
            },
            broken: RuleSet::EMPTY,
            cell: Some(0),
        });
        let table = CostTable {
            instance: &freedom.instance,
            formulation: Formulation::Staged,
            layers: Layers::alike(self.layers),
            quantum: self.quantum,
            capacity,
            cells: vec![units.clone()],
            entries: entries.collect(),
            applied_before: Vec::new(),
            extent: Extent::Whole,
        };
        let choices = choices(&table);
        choices
            .iter()
            .flat_map(|choice| {
                let ways = variants(&table, choice).into_iter();
                ways.map(|variant| (choice.clone(), variant))
            })
            .collect()
    }
}
