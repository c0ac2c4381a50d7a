//! Walks the universe for the smallest sets of requirements whose absence leaves a layout.

use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Combination};
use crate::plan::Formulation;
use crate::planner::quantise::{CellUnits, UNLIMITED};
use crate::planner::{Deadline, PlanError};
use crate::rules::{self, Rule};

use super::broken;
use super::floor;
use super::requirement::{Requirement, RequirementSet};
use super::room::{Room, Shortfall};
use super::universe::Universe;

/// Without these requirements there is a layout, and none without fewer of them: a *minimal
/// correction set* (Liffiton and Sakallah, Journal of Automated Reasoning 40, 2008).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction {
    /// What is dropped; empty if nothing has to be.
    pub dropped: RequirementSet,
    /// A combination that keeps everything else.
    pub witness: FlaggedCombination,
}

/// Looks at the combinations of one instance.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    instance: &'a Instance,
    universe: Universe,
    room: Room,
    codes: [u32; Axis::COUNT],
    /// Most requirements that a combination may break.
    level: u32,
    /// Whether a combination was left out because it breaks more.
    cut_short: bool,
    /// Memory of a stage, in KiB.
    capacity: i64,
    goal: Goal,
    deadline: Deadline,
    /// Whether the time was over before all was looked at.
    is_late: bool,
}

/// What is looked for.
#[derive(Debug)]
enum Goal {
    /// The smallest corrections, so far.
    Corrections(Vec<Correction>),
    /// The combination that keeps everything but memory and misses least, so far.
    LeastShortfall(Option<Shortfall>),
}

/// Axes from the outermost loop to the innermost: what decides most of the rules comes first, then
/// what decides most of the memory.
const ORDER: [Axis; Axis::COUNT - 1] = [
    Axis::TensorParallel,
    Axis::PipelineParallel,
    Axis::ContextParallel,
    Axis::ExpertParallel,
    Axis::DataParallel,
    Axis::VirtualStages,
    Axis::Sharding,
    Axis::MicroBatch,
    Axis::RmsNormKernel,
    Axis::AttentionKernel,
    Axis::SequenceParallel,
    Axis::Schedule,
];
/// Axes decided when all degrees are.
const DEGREES: usize = 6;
/// Axes decided when a bound of the memory is computed.
const BOUNDED: usize = 8;
/// Most GPUs looked at, as a multiple of those of the job or a node.
const MOST_TIMES_GPUS: u64 = 256;
/// Pipelines longer than this are not looked at: no network has so many layers.
const LONGEST_PIPELINE: u32 = 4096;

/// Broken by what is not looked at further.
const OUT_OF_QUESTION: RequirementSet = RequirementSet::from_bits(u64::MAX);

impl<'a> Walk<'a> {
    pub(super) fn new(
        instance: &'a Instance,
        formulation: Formulation,
        deadline: Deadline,
    ) -> Self {
        let room = Room::new(instance, formulation);
        Self {
            instance,
            universe: Universe::new(instance),
            codes: Axis::ALL.map(neutral),
            level: 0,
            cut_short: false,
            capacity: room.capacity(),
            goal: Goal::Corrections(Vec::new()),
            room,
            deadline,
            is_late: false,
        }
    }

    /// The smallest corrections, those with fewest requirements first.
    ///
    /// # Errors
    ///
    /// When the time is over.
    pub(super) fn corrections(mut self) -> Result<Vec<Correction>, PlanError> {
        loop {
            self.cut_short = false;
            self.search()?;
            self.level += 1;
            if !self.cut_short || self.is_feasible() {
                break;
            }
        }
        Ok(match self.goal {
            Goal::Corrections(mut found) => {
                found.sort_by_key(|it| (it.dropped.len(), it.dropped));
                found
            }
            Goal::LeastShortfall(_) => Vec::new(),
        })
    }

    /// Whether some combination breaks nothing.
    ///
    /// # Errors
    ///
    /// When the time is over.
    pub(super) fn finds_layout(mut self) -> Result<bool, PlanError> {
        self.search()?;
        Ok(self.is_feasible())
    }

    /// Visits all combinations.
    fn search(&mut self) -> Result<(), PlanError> {
        self.visit(0, RequirementSet::EMPTY);
        if self.is_late && !self.is_feasible() {
            return Err(PlanError::TimeOver);
        }
        Ok(())
    }

    /// Of the combinations that keep everything but memory, the one that misses least.
    ///
    /// # Errors
    ///
    /// When the time is over.
    pub(super) fn least_shortfall(mut self) -> Result<Option<Shortfall>, PlanError> {
        let capacity = self.capacity;
        self.goal = Goal::LeastShortfall(None);
        self.capacity = UNLIMITED;
        self.search()?;
        Ok(match self.goal {
            Goal::LeastShortfall(Some(least)) => Some(Shortfall {
                amount: self.capacity + 1 - capacity,
                ..least
            }),
            _ => None,
        })
    }

    fn is_feasible(&self) -> bool {
        matches!(&self.goal, Goal::Corrections(found)
            if found.iter().any(|correction| correction.dropped.is_empty()))
    }

    /// Whether a combination that breaks `broken` is of no use.
    fn is_hopeless(&mut self, broken: RequirementSet) -> bool {
        if broken == OUT_OF_QUESTION {
            return true;
        }
        if let Goal::Corrections(found) = &self.goal
            && found.iter().any(|it| it.dropped.is_part_of(broken))
        {
            return true;
        }
        if broken.len() > self.level {
            self.cut_short = true;
            return true;
        }
        false
    }

    fn visit(&mut self, depth: usize, broken: RequirementSet) {
        if depth == DEGREES {
            self.is_late |= self.deadline.is_over();
        }
        if self.is_late || self.is_hopeless(broken) {
            return;
        }
        let Some(&axis) = ORDER.get(depth) else {
            self.judge(broken);
            return;
        };
        for position in 0..self.universe.values(axis).len() {
            let code = self.universe.values(axis)[position];
            self.codes[axis as usize] = code;
            let listed =
                !self.universe.is_limited(axis) || self.instance.space.values(axis).contains(&code);
            let broken = broken.with_if(Requirement::Listed(axis), !listed);
            let broken = self.broken_so_far(depth + 1, broken);
            self.visit(depth + 1, broken);
        }
        self.codes[axis as usize] = neutral(axis);
    }

    /// Adds what is broken whatever the axes that are still open.
    fn broken_so_far(&mut self, decided: usize, broken: RequirementSet) -> RequirementSet {
        let broken = self.broken_by_memory(decided, broken);
        let last = decided == ORDER.len();
        if decided != DEGREES && decided != BOUNDED && !last || self.is_hopeless(broken) {
            return broken;
        }
        let candidate = FlaggedCombination::from_codes(&self.codes);
        let cluster = &self.instance.job.cluster;
        let most_gpus = MOST_TIMES_GPUS * u64::from(cluster.gpus.max(cluster.gpus_per_node));
        if candidate.combination.pipeline_parallel > LONGEST_PIPELINE
            || candidate.combination.gpus() > most_gpus
        {
            return OUT_OF_QUESTION;
        }
        let rules = rules::broken(self.instance, &candidate);
        let own_cut = Room::has_cut(&self.room.freedoms[0], &candidate.combination);
        let is_decided = |axis: Axis| ORDER[..decided].contains(&axis);
        let broken = broken
            .union(broken::by_rules(self.instance, rules))
            .union(broken::by_own_rules(self.instance, &candidate, is_decided))
            .with_if(Requirement::Rule(Rule::LayersCoverStages), !own_cut);
        if decided != BOUNDED || self.is_hopeless(broken) {
            return broken;
        }
        let lean = broken::leanest(&self.universe, &candidate.combination);
        let flags = broken::flags(&self.universe);
        let memory = Requirement::Rule(Rule::MemoryCapacity);
        let fits = broken.contains(memory) || self.room.may_fit(&lean, &flags, self.capacity);
        self.over_capacity(broken, !fits)
    }

    /// Adds the memory that is missing whatever the axes that are still open, by a lower limit.
    fn broken_by_memory(&self, decided: usize, broken: RequirementSet) -> RequirementSet {
        let memory = Requirement::Rule(Rule::MemoryCapacity);
        let axes = &ORDER[..decided];
        let has_moved = matches!(
            axes.last(),
            Some(
                Axis::PipelineParallel
                    | Axis::ContextParallel
                    | Axis::DataParallel
                    | Axis::Sharding
                    | Axis::MicroBatch
            )
        );
        if !has_moved || broken.contains(memory) {
            return broken;
        }
        let candidate = FlaggedCombination::from_codes(&self.codes);
        if candidate.combination.pipeline_parallel > LONGEST_PIPELINE {
            return OUT_OF_QUESTION;
        }
        let open = ORDER[decided..].iter().copied();
        let open = open.fold(AxisSet::EMPTY, AxisSet::with);
        let (instance, universe) = (self.instance, &self.universe);
        let fits = floor::may_fit(instance, universe, &candidate, open, self.capacity);
        self.over_capacity(broken, !fits)
    }

    /// What a combination that is over the capacity breaks.
    fn over_capacity(&self, broken: RequirementSet, is_over: bool) -> RequirementSet {
        match self.goal {
            Goal::Corrections(_) => {
                broken.with_if(Requirement::Rule(Rule::MemoryCapacity), is_over)
            }
            // Worse than the best so far.
            Goal::LeastShortfall(_) if is_over => OUT_OF_QUESTION,
            Goal::LeastShortfall(_) => broken,
        }
    }

    /// Judges stages and memory of a combination under every set of checkpointing flags.
    fn judge(&mut self, broken: RequirementSet) {
        let cell = FlaggedCombination::from_codes(&self.codes).combination;
        let mut units: Option<CellUnits> = None;
        for (of_flags, flags) in broken::flag_sets(self.instance, &self.universe, &cell) {
            let broken = broken.union(of_flags);
            if self.is_hopeless(broken) {
                continue;
            }
            let units = units.get_or_insert_with(|| self.room.units(&cell));
            match self.goal {
                Goal::Corrections(_) => self.judge_freedoms(broken, &cell, units, &flags),
                Goal::LeastShortfall(_) => self.take_shortfall(&cell, units, &flags),
            }
        }
    }

    /// Judges a cell with the framework's rules on stages and without them.
    fn judge_freedoms(
        &mut self,
        broken: RequirementSet,
        cell: &Combination,
        units: &CellUnits,
        flags: &[Checkpointing],
    ) {
        let memory = Requirement::Rule(Rule::MemoryCapacity);
        for index in 0..self.room.freedoms.len() {
            let broken = broken.union(self.room.freedoms[index].dropped);
            if !Room::has_cut(&self.room.freedoms[index], cell) || self.is_hopeless(broken) {
                continue;
            }
            let freedom = &self.room.freedoms[index];
            let over = !broken.contains(memory)
                && !self.room.fits(freedom, cell, units, flags, self.capacity);
            let broken = broken.with_if(memory, over);
            if !self.is_hopeless(broken) {
                self.take_correction(broken, cell, flags);
            }
        }
    }

    fn take_correction(
        &mut self,
        dropped: RequirementSet,
        cell: &Combination,
        flags: &[Checkpointing],
    ) {
        let Goal::Corrections(found) = &mut self.goal else {
            return;
        };
        found.retain(|other| !dropped.is_part_of(other.dropped));
        found.push(Correction {
            dropped,
            witness: FlaggedCombination {
                combination: *cell,
                checkpointing: flags.first().copied().unwrap_or(Checkpointing::None),
            },
        });
    }

    fn take_shortfall(&mut self, cell: &Combination, units: &CellUnits, flags: &[Checkpointing]) {
        let own = &self.room.freedoms[0];
        if !Room::has_cut(own, cell) || !self.room.fits(own, cell, units, flags, self.capacity) {
            return;
        }
        // Against no capacity at all, what is missing is the peak itself.
        if let Some(least) = self.room.shortfall(cell, units, flags, 0) {
            self.capacity = least.amount - 1;
            self.goal = Goal::LeastShortfall(Some(least));
        }
    }
}

/// A value that breaks nothing by itself.
const fn neutral(axis: Axis) -> u32 {
    match axis {
        Axis::SequenceParallel
        | Axis::Sharding
        | Axis::AttentionKernel
        | Axis::RmsNormKernel
        | Axis::Checkpointing
        | Axis::Schedule => 0,
        _ => 1,
    }
}
