//! Chooses among given layouts, whose stages are decided: in whole numbers, as the program would.
//!
//! The rules on discrete choices are not checked here: who gives the layouts has done so.

use crate::cost_model::{Costs, Vocabulary};
use crate::job::Job;
use crate::layout::Layout;
use crate::quantity::Seconds;

use super::quantise::{CombinationUnits, Quantum, capacity_at_risk};

/// A layout that may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct GivenLayout<'a> {
    /// What it is for. Jobs may differ in what one run measured or stated.
    pub job: &'a Job,
    /// The layout.
    pub layout: &'a Layout,
    /// Which of its stages hold embedding and head.
    pub vocabulary: Vocabulary,
    /// Predicted step time, from which the unit of time follows.
    pub step_time: Seconds,
    /// Whether it must fit.
    pub memory: MemoryCheck,
}

/// Whether a layout must fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryCheck {
    /// By its predicted peak.
    Checked,
    /// What decides its peak is not known: it may be chosen.
    Unknown,
}

/// The `count` best of the layouts that fit at the accepted risk of running out of memory, the best first;
/// of equal utilisation the earlier layout wins.
#[must_use]
pub fn best(layouts: &[GivenLayout], max_oom_risk: f64, count: usize) -> Vec<usize> {
    let costs = layouts.iter().map(|given| Cost::new(given, max_oom_risk));
    let fitting = costs.enumerate().filter(|(_, cost)| cost.fits);
    let mut best: Vec<(i64, usize)> = fitting.map(|(index, cost)| (-cost.profit, index)).collect();
    best.sort_unstable();
    best.truncate(count);
    best.into_iter().map(|(_, index)| index).collect()
}

/// What is known of a layout.
struct Cost {
    /// Utilisation in parts per billion.
    profit: i64,
    fits: bool,
}

impl Cost {
    fn new(given: &GivenLayout, max_oom_risk: f64) -> Self {
        let (job, layout) = (given.job, given.layout);
        let costs = Costs::new(job, &layout.combination).with_vocabulary(given.vocabulary);
        // Layouts are not compared layer by layer: the finest unit serves best.
        let quantum = Quantum::for_times(given.step_time, Seconds::ZERO, 1);
        let units = CombinationUnits::new(&costs, quantum);
        let capacity = capacity_at_risk(job, &layout.combination, max_oom_risk);
        Self {
            profit: quantum.parts_per_billion(job, units.step_time(&layout.stages)),
            fits: given.memory == MemoryCheck::Unknown || units.peak(layout) <= capacity,
        }
    }
}
