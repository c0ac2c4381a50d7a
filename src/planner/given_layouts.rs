//! Chooses among given layouts with the program `layout choice`: its items are the layouts, its
//! rows the memory of every stage.
//!
//! The rules on discrete choices have no rows here: who gives the layouts has run them.

use formulations::layout_choice::{self as program, Data, Item, LeftSide, Rule as Row};
use formulations::model::Sense;
use formulations::solve::{Outcome as Solved, SolverOptions};

use crate::axis::{Axis, FlaggedCombination};
use crate::cost_model::{Costs, Vocabulary};
use crate::job::Job;
use crate::layout::Layout;
use crate::quantity::Seconds;

use super::quantise::{CellUnits, Quantum, capacity_at_risk};
use super::{PlanError, encode};

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
}

/// The program over `layouts` at the accepted risk of running out of memory: profit is the
/// utilisation in parts per billion; of equal profit the earlier layout wins.
///
/// Where the jobs leave unequal capacities, a layout's memory is counted by what it leaves free.
#[must_use]
pub fn data(layouts: &[GivenLayout], max_oom_risk: f64) -> Data {
    let costs: Vec<Cost> = layouts
        .iter()
        .map(|given| Cost::new(given, max_oom_risk))
        .collect();
    let capacity = costs.first().map_or(0, |cost| cost.capacity);
    let memory: Vec<Vec<i64>> = costs
        .iter()
        .map(|cost| {
            let stages = cost.memory.iter();
            stages
                .map(|peak| peak - (cost.capacity - capacity))
                .collect()
        })
        .collect();
    let memory: Vec<&[i64]> = memory.iter().map(Vec::as_slice).collect();
    let candidates: Vec<FlaggedCombination> = layouts
        .iter()
        .map(|given| FlaggedCombination {
            combination: given.layout.combination,
            checkpointing: given.layout.checkpointing(),
        })
        .collect();
    let values = values(&candidates);
    let choice = |candidate: &FlaggedCombination| {
        let positions = Axis::ALL.map(|axis| {
            let codes = &values[axis as usize];
            codes.partition_point(|&code| code < candidate.code(axis))
        });
        positions.to_vec()
    };
    let items = candidates.iter().zip(&costs).map(|(candidate, cost)| Item {
        choice: choice(candidate),
        profit: cost.profit,
    });
    Data {
        axes: encode::axes(|axis| &values[axis as usize]),
        items: items.collect(),
        rules: encode::memory_rows(&memory, capacity),
    }
}

/// The codes that occur on each axis, ascending.
fn values(candidates: &[FlaggedCombination]) -> [Vec<u32>; Axis::COUNT] {
    Axis::ALL.map(|axis| {
        let codes = candidates.iter().map(|candidate| candidate.code(axis));
        let mut codes: Vec<u32> = codes.collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    })
}

/// What the program knows of a layout.
struct Cost {
    profit: i64,
    memory: Vec<i64>,
    capacity: i64,
}

impl Cost {
    fn new(given: &GivenLayout, max_oom_risk: f64) -> Self {
        let (job, layout) = (given.job, given.layout);
        let costs = Costs::new(job, &layout.combination).with_vocabulary(given.vocabulary);
        // Layouts are not compared layer by layer: the finest unit serves best.
        let quantum = Quantum::for_times(given.step_time, Seconds::ZERO);
        let units = CellUnits::new(&costs, quantum);
        let stages = layout.stages.iter().enumerate();
        Self {
            profit: quantum.parts_per_billion(job, units.step_time(&layout.stages)),
            memory: stages
                .map(|(index, stage)| units.stage_memory(index, stage))
                .collect(),
            capacity: capacity_at_risk(job, max_oom_risk),
        }
    }
}

/// The `count` best items of the program, best first; fewer where fewer fit. Each is the optimum
/// of the program in which those before it are excluded by a row.
///
/// # Errors
///
/// When the solver fails.
pub fn best(mut data: Data, count: usize) -> Result<Vec<usize>, PlanError> {
    let mut best = Vec::new();
    while best.len() < count.min(data.items.len()) {
        match program::solve(&data, &SolverOptions::default())? {
            Solved::Optimal { solution, .. } | Solved::Feasible { solution, .. } => {
                data.rules.push(excluded(&data, solution.item, best.len()));
                best.push(solution.item);
            }
            Solved::Infeasible { .. } | Solved::Unknown { .. } => break,
        }
    }
    Ok(best)
}

fn excluded(data: &Data, item: usize, number: usize) -> Row {
    let items = 0..data.items.len();
    Row {
        name: format!("chosen_before({number})"),
        left: LeftSide::OverItems(items.map(|other| i64::from(other == item)).collect()),
        sense: Sense::AtMost,
        right: 0,
    }
}
