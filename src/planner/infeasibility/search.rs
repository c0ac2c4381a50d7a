//! Looks for the smallest sets of requirements whose absence leaves a layout.
//!
//! Every combination gets the set of what it breaks, by the walk of the space over values that are
//! wider than the instance's; memory is judged by a lower bound as soon as that can be told, and
//! exactly at the end. Only the sets that have no smaller one within them stay, which also cuts the
//! walk short.

use crate::axis::{Axis, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Combination};
use crate::plan::Formulation;
use crate::planner::quantise::{self, CombinationUnits};
use crate::planner::{Deadline, PlanError, TimeOver};
use crate::rules::{self, Requirement, Rule, RuleSet};
use crate::space::{Node, Step, Walk};

use super::memory_bound::{leanest, may_fit};
use super::memory_fit::{Freedom, Trial, units};
use super::relaxation::heads_are_alike;
use super::values::all_values;

/// Without these requirements there is a layout, and none without fewer of them: a *minimal
/// correction set* (Liffiton and Sakallah, Journal of Automated Reasoning 40, 2008).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction {
    /// What is dropped; empty if nothing has to be.
    pub dropped: RuleSet,
    /// A combination that keeps everything else.
    pub witness: FlaggedCombination,
}

/// A search through the combinations of one instance.
#[derive(Debug)]
pub(super) struct Search<'a> {
    instance: &'a Instance,
    /// The values that are walked.
    values: [Vec<u32>; Axis::COUNT],
    /// What each checkpointing flag can break.
    of_flags: Vec<Requirement>,
    /// The framework's own rules on stages first, then fewer of them.
    freedoms: Vec<Freedom>,
    /// Most requirements that a combination may break.
    level: u32,
    /// Whether a combination was left out because it breaks more.
    cut_short: bool,
    /// The most memory of a stage that any combination may take, in KiB.
    most: i64,
    /// Whether memory is over the capacity whatever follows, by the number of axes decided.
    is_over: [bool; Axis::COUNT],
    /// The smallest corrections so far.
    found: Vec<Correction>,
    deadline: Deadline,
    /// Whether the time was over before all was looked at.
    is_late: bool,
    /// Nodes that were visited.
    visits: u64,
}

/// Axes from the outermost loop to the innermost: what decides most of the rules comes first, then
/// what decides most of the memory. Checkpointing is judged for all flags at once.
const ORDER: [Axis; Axis::COUNT - 1] = [
    Axis::TensorParallel,
    Axis::PipelineParallel,
    Axis::ContextParallel,
    Axis::DataParallel,
    Axis::ExpertParallel,
    Axis::ExpertTensorParallel,
    Axis::VirtualStages,
    Axis::Sharding,
    Axis::MicroBatch,
    Axis::RmsNormKernel,
    Axis::AttentionKernel,
    Axis::SequenceParallel,
    Axis::Schedule,
];
/// Axes decided when all degrees are.
const DEGREES: usize = 7;
/// Nodes above them that are visited between two looks at the clock.
const VISITS_UNTIMED: u64 = 1 << 8;
/// Axes decided when the leanest layout is judged.
const BOUNDED: usize = 9;
/// Most GPUs looked at, as a multiple of those of the job or a node.
const MOST_TIMES_GPUS: u64 = 256;
/// Pipelines longer than this are not looked at: no network has so many layers.
const LONGEST_PIPELINE: u32 = 4096;

impl<'a> Search<'a> {
    pub(super) fn new(
        instance: &'a Instance,
        formulation: Formulation,
        deadline: Deadline,
    ) -> Self {
        Self {
            instance,
            values: all_values(instance),
            of_flags: Vec::new(),
            level: 0,
            cut_short: false,
            most: quantise::largest_capacity(instance),
            is_over: [false; Axis::COUNT],
            found: Vec::new(),
            freedoms: Freedom::all(instance, formulation),
            deadline,
            is_late: false,
            visits: 0,
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
            self.run()?;
            self.level += 1;
            if !self.cut_short || self.is_feasible() {
                break;
            }
        }
        let key = |it: &Correction| (it.dropped.len(), it.dropped);
        self.found.sort_by_key(key);
        Ok(self.found)
    }

    /// Whether some combination breaks nothing.
    ///
    /// # Errors
    ///
    /// When the time is over.
    pub(super) fn finds_layout(mut self) -> Result<bool, PlanError> {
        self.run()?;
        Ok(self.is_feasible())
    }

    /// Visits all combinations.
    fn run(&mut self) -> Result<(), PlanError> {
        // Unless the instance says otherwise, another kernel than the usual one is a correction.
        let mut judged = self.instance.clone();
        let usual = judged.space.values(Axis::RmsNormKernel).to_vec();
        judged.space.restrict(Axis::RmsNormKernel, usual);
        let of_flags = rules::requirements(&judged).filter(|it| {
            let axes = it.rule.axes(&judged, it.part);
            axes.is_some_and(|axes| axes.contains(Axis::Checkpointing))
        });
        self.of_flags = of_flags.collect();
        let mut walk = Walk::new(&judged, &ORDER, self.values.clone());
        walk.run(&mut |node| self.visit(node));
        if self.is_late && !self.is_feasible() {
            return Err(TimeOver.into());
        }
        Ok(())
    }

    fn is_feasible(&self) -> bool {
        self.found.iter().any(|it| it.dropped.is_empty())
    }

    /// Whether a combination that breaks `broken` is of no use.
    fn is_hopeless(&mut self, broken: RuleSet) -> bool {
        if self.found.iter().any(|it| it.dropped.is_part_of(broken)) {
            return true;
        }
        let breaks_more = broken.len() > self.level;
        self.cut_short |= breaks_more;
        breaks_more
    }

    fn visit(&mut self, node: &Node) -> Step {
        self.visits += 1;
        let is_costly = node.decided >= DEGREES || self.visits.is_multiple_of(VISITS_UNTIMED);
        self.is_late |= is_costly && self.deadline.is_over();
        if self.is_late {
            return Step::Stop;
        }
        let combination = node.flagged().combination;
        let cluster = &self.instance.job.cluster;
        let most_gpus = MOST_TIMES_GPUS * u64::from(cluster.gpus.max(cluster.gpus_per_node));
        if combination.pipeline_parallel > LONGEST_PIPELINE || combination.gpus() > most_gpus {
            return Step::Skip;
        }
        let broken = self.without_repetition(node.broken);
        if self.is_hopeless(broken) {
            return Step::Skip;
        }
        let is_over = self.is_over(node, &combination);
        self.is_over[node.decided] = is_over;
        let broken = broken.with_if(Rule::MemoryCapacity, is_over);
        if self.is_hopeless(broken) {
            return Step::Skip;
        }
        if node.is_leaf() {
            self.judge(broken, &combination);
        }
        Step::Descend
    }

    /// Where every head has a key and a value of its own, the rules on heads are one.
    fn without_repetition(&self, broken: RuleSet) -> RuleSet {
        if heads_are_alike(self.instance) && broken.contains(Rule::HeadsDivisible) {
            return broken.without(RuleSet::EMPTY.with(Rule::KeyValueHeadsDivisible));
        }
        broken
    }

    /// Whether what is decided needs more memory than the capacity, whatever follows: by a lower
    /// bound, then by the leanest layout.
    fn is_over(&self, node: &Node, combination: &Combination) -> bool {
        let Some(last) = node.decided.checked_sub(1) else {
            return false;
        };
        if self.is_over[last] {
            return true;
        }
        let lean = leanest(&self.values, combination);
        let decides_memory = matches!(
            ORDER[last],
            Axis::PipelineParallel
                | Axis::ContextParallel
                | Axis::DataParallel
                | Axis::Sharding
                | Axis::MicroBatch
        );
        let fits_by_bound =
            !decides_memory || may_fit(self.instance, &self.values, &lean, node.open(), self.most);
        let fits = fits_by_bound && (node.decided != BOUNDED || self.fits_without_rules(&lean));
        !fits
    }

    /// Whether some layout of a combination fits whatever the framework's rules.
    fn fits_without_rules(&self, combination: &Combination) -> bool {
        let trial = Trial {
            combination,
            units: &units(self.instance, combination),
            flags: &flags(&self.values),
        };
        let freest = self.freedoms.last();
        freest.is_some_and(|freest| freest.fits(trial, Some(self.most)))
    }

    /// Judges stages and memory of a combination under every set of checkpointing flags.
    fn judge(&mut self, broken: RuleSet, combination: &Combination) {
        let mut own: Option<CombinationUnits> = None;
        for (of_flags, flags) in self.flag_sets(combination) {
            let broken = broken.union(of_flags);
            if self.is_hopeless(broken) {
                continue;
            }
            let units = own.get_or_insert_with(|| units(self.instance, combination));
            let trial = Trial {
                combination,
                units,
                flags: &flags,
            };
            self.judge_freedoms(broken, trial);
        }
    }

    /// The sets of flags worth a look, with what they break: for each such set all flags that break
    /// no more.
    fn flag_sets(&self, combination: &Combination) -> Vec<(RuleSet, Vec<Checkpointing>)> {
        let of_flags: Vec<(RuleSet, Checkpointing)> = flags(&self.values)
            .into_iter()
            .map(|checkpointing| {
                let flagged = FlaggedCombination {
                    combination: *combination,
                    checkpointing,
                };
                let is_broken =
                    |it: &&Requirement| it.rule.amount(self.instance, &flagged, it.part) > 0;
                let broken = self.of_flags.iter().filter(is_broken).copied();
                (broken.collect(), checkpointing)
            })
            .collect();
        let mut sets: Vec<RuleSet> = Vec::new();
        for (broken, _) in &of_flags {
            let unions: Vec<RuleSet> = sets.iter().map(|set| set.union(*broken)).collect();
            sets.extend(unions);
            sets.push(*broken);
        }
        sets.sort_by_key(|set| (set.len(), *set));
        sets.dedup();
        sets.into_iter()
            .map(|set| {
                let allowed = of_flags.iter().filter(|of| of.0.is_part_of(set));
                (set, allowed.map(|of| of.1).collect())
            })
            .collect()
    }

    /// Judges a combination with the framework's rules on stages and without them.
    fn judge_freedoms(&mut self, broken: RuleSet, trial: Trial) {
        for index in 0..self.freedoms.len() {
            let freedom = &self.freedoms[index];
            let broken = broken.union(freedom.dropped);
            if !freedom.has_cut(trial.combination) || self.is_hopeless(broken) {
                continue;
            }
            let is_over =
                !broken.contains(Rule::MemoryCapacity) && !self.freedoms[index].fits(trial, None);
            let dropped = broken.with_if(Rule::MemoryCapacity, is_over);
            if self.is_hopeless(dropped) {
                continue;
            }
            let checkpointing = trial.flags.first().copied().unwrap_or_default();
            self.found.retain(|it| !dropped.is_part_of(it.dropped));
            self.found.push(Correction {
                dropped,
                witness: FlaggedCombination {
                    combination: *trial.combination,
                    checkpointing,
                },
            });
        }
    }
}

/// The checkpointing flags to try.
pub(super) fn flags(values: &[Vec<u32>; Axis::COUNT]) -> Vec<Checkpointing> {
    let codes = values[Axis::Checkpointing as usize].iter();
    codes
        .map(|&code| Checkpointing::ALL[code as usize])
        .collect()
}
