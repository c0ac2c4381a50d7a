//! The quantised costs of every combination of a space.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use formulations::deadline::Deadline;
use formulations::staged::Layers;

use crate::axis::FlaggedCombination;
use crate::cost_model::{CostModel, Costs};
use crate::instance::Instance;
use crate::layout::Combination;
use crate::plan::{Extent, Formulation};
use crate::quantity::Seconds;
use crate::rules::{Rule, RuleSet};
use crate::space::{self, Listing};

use super::quantise::{self, CombinationUnits, Quantum, StageLists};

/// One combination of the space.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The combination.
    pub candidate: FlaggedCombination,
    /// Rules on discrete choices that it breaks.
    pub broken: RuleSet,
    /// Position of its coefficients, where it breaks none.
    pub units: Option<usize>,
}

/// Costs of a whole space, in whole numbers.
#[derive(Debug)]
pub struct CostTable<'a> {
    /// The instance.
    pub instance: &'a Instance,
    /// Which program the costs are for: `layout choice` restricts stages and checkpointing.
    pub formulation: Formulation,
    /// The layers of the network.
    pub layers: Layers,
    /// Unit of time.
    pub quantum: Quantum,
    /// Memory of a stage that is allowed whatever the accepted risk says, in KiB.
    pub capacity: Option<i64>,
    /// Coefficients of each combination that breaks no rule, checkpointing apart.
    pub units: Vec<CombinationUnits>,
    /// The combinations, in the order that breaks ties.
    pub entries: Vec<Entry>,
    /// Rules whose violators are not listed.
    pub applied_before: Vec<Rule>,
    /// Which combinations of the space are listed.
    pub extent: Extent,
}

/// The part of a time limit that the listing may take is one over this: what follows takes longer.
const LISTING: u32 = 4;
/// The part of what is then left that costs may take, and of what is left then that rounding them may.
const COSTS: u32 = 3;

/// Combinations whose costs are computed between two looks at the clock.
const ENTRIES_UNTIMED: usize = 64;

impl<'a> CostTable<'a> {
    /// Lists the space and quantises its costs; combinations that break a rule on discrete
    /// choices have none.
    #[must_use]
    pub fn new(instance: &'a Instance, formulation: Formulation) -> Self {
        Self::within(instance, formulation, Deadline::NEVER)
    }

    /// The same, as far as a share of the time allows.
    #[must_use]
    pub fn within(instance: &'a Instance, formulation: Formulation, deadline: Deadline) -> Self {
        let listed = space::list_until(instance, deadline.part(LISTING));
        Self::of(instance, formulation, listed, quantum, deadline)
    }

    /// The same in the finest unit of time, for searches that need no small numbers.
    #[must_use]
    pub fn exactly(instance: &'a Instance, formulation: Formulation, deadline: Deadline) -> Self {
        let listed = space::list_until(instance, deadline);
        Self::of(instance, formulation, listed, finest_quantum, deadline)
    }

    fn of(
        instance: &'a Instance,
        formulation: Formulation,
        mut listed: Listing,
        unit: fn(&[Costs], u32) -> Quantum,
        deadline: Deadline,
    ) -> Self {
        let mut positions: HashMap<Combination, usize, FixedState> = HashMap::default();
        let mut model = CostModel::new(&instance.job);
        let mut costs: Vec<Costs> = Vec::new();
        let mut units_of = |candidate: &FlaggedCombination| {
            *positions.entry(candidate.combination).or_insert_with(|| {
                costs.push(model.costs(&candidate.combination));
                costs.len() - 1
            })
        };
        let share = deadline.part(COSTS);
        let mut entries: Vec<Entry> = Vec::with_capacity(listed.combinations.len());
        for (number, &(candidate, broken)) in listed.combinations.iter().enumerate() {
            if number % ENTRIES_UNTIMED == ENTRIES_UNTIMED - 1 && share.is_over() {
                listed.is_cut = true;
                break;
            }
            entries.push(Entry {
                candidate,
                broken,
                units: broken.is_empty().then(|| units_of(&candidate)),
            });
        }
        let layers = instance.job.transformer.layers;
        let quantum = unit(&costs, layers);
        let units = rounded(&costs, quantum, deadline.part(COSTS));
        let is_reached = |entry: &Entry| entry.units.is_none_or(|index| index < units.len());
        if let Some(end) = entries.iter().position(|entry| !is_reached(entry)) {
            listed.is_cut = true;
            entries.truncate(end);
        }
        drop(costs);
        Self {
            instance,
            formulation,
            layers: Layers::alike(i64::from(layers)),
            quantum,
            capacity: None,
            units,
            entries,
            applied_before: listed.applied_before,
            extent: if listed.is_cut {
                Extent::Cut
            } else {
                Extent::Whole
            },
        }
    }

    /// Memory of a stage that the combination may take, in KiB.
    #[must_use]
    pub fn capacity_of(&self, combination: &Combination) -> i64 {
        let allowed = || quantise::capacity(self.instance, combination);
        self.capacity.unwrap_or_else(allowed)
    }

    /// The same costs for an instance that differs in the accepted risk alone.
    #[must_use]
    pub fn at_risk_of(self, instance: &Instance) -> CostTable<'_> {
        CostTable {
            instance,
            formulation: self.formulation,
            layers: self.layers,
            capacity: self.capacity,
            quantum: self.quantum,
            units: self.units,
            entries: self.entries,
            applied_before: self.applied_before,
            extent: self.extent,
        }
    }
}

/// The first costs in whole numbers, as many as there is time for.
fn rounded(costs: &[Costs], quantum: Quantum, deadline: Deadline) -> Vec<CombinationUnits> {
    let mut lists = StageLists::default();
    let timely = (0..costs.len()).take_while(|number| {
        number % ENTRIES_UNTIMED != ENTRIES_UNTIMED - 1 || !deadline.is_over()
    });
    let units = timely.map(|number| CombinationUnits::sharing(&costs[number], quantum, &mut lists));
    units.collect()
}

/// The unit of time for a space: fine enough for the layers of every combination that may be near the best.
fn quantum(costs: &[Costs], layers: u32) -> Quantum {
    // Combinations this far from the best even without a bubble are not it.
    const NEAR: f64 = 1.3;
    let ideal: Vec<Seconds> = costs
        .iter()
        .map(|costs| ideal_step_time(costs, layers))
        .collect();
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let fastest = least(&mut ideal.iter().map(|time| time.value()));
    let near = costs
        .iter()
        .zip(&ideal)
        .filter(|(_, time)| time.value() <= NEAR * fastest);
    let chunk =
        |costs: &Costs| costs.layer().time.total() / f64::from(costs.combination.virtual_stages);
    let layer = least(&mut near.map(|(costs, _)| chunk(costs).value()));
    let sane = |time: f64| Seconds::new(time.clamp(1e-18, 1e12));
    Quantum::for_times(sane(fastest), sane(layer), most_stages(costs))
}

/// The finest unit of time for a space.
fn finest_quantum(costs: &[Costs], layers: u32) -> Quantum {
    let ideal = costs
        .iter()
        .map(|costs| ideal_step_time(costs, layers).value());
    let fastest = ideal.fold(f64::INFINITY, f64::min);
    let fastest = Seconds::new(fastest.clamp(1e-18, 1e12));
    Quantum::for_times(fastest, Seconds::ZERO, most_stages(costs))
}

/// The longest pipeline.
fn most_stages(costs: &[Costs]) -> u32 {
    let stages = costs
        .iter()
        .map(|costs| costs.combination.pipeline_parallel);
    stages.max().unwrap_or(1)
}

/// Step time of a combination whose work splits evenly over its stages, without recomputation.
fn ideal_step_time(costs: &Costs, layers: u32) -> Seconds {
    costs.layer().time.total()
        * (costs.micro_batches as f64 * f64::from(layers)
            / f64::from(costs.combination.pipeline_parallel))
}
