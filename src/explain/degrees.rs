//! The best layout of each tensor- and pipeline-parallel degree, or why there is none.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::axis::{Axis, FlaggedCombination};
use crate::count::counted;
use crate::instance::Instance;
use crate::plan::{Evaluated, Violation};
use crate::planner::infeasibility::least_shortage;
use crate::planner::{self, Best, Deadline, PlanError, PlanOptions, Progress};
use crate::quantity::Bytes;
use crate::rules::{Requirement, Rule, RuleSet};
use crate::space::{self, Step, Walk};

/// The best layout of each pair of degrees.
#[derive(Debug, Clone, PartialEq)]
pub struct Degrees {
    /// Tensor-parallel degrees, ascending.
    pub tensor: Vec<u32>,
    /// Pipeline stages, ascending.
    pub pipeline: Vec<u32>,
    /// What there is of each pair, all tensor-parallel degrees of the first number of stages first.
    pub cells: Vec<Cell>,
}

/// What there is of a pair of degrees.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// The best layout.
    Best(Box<Evaluated>),
    /// No layout, by a rule.
    Impossible(Violation),
    /// The time was over before that was known.
    Unknown,
}

impl Degrees {
    /// What there is of the pair at these positions.
    #[must_use]
    pub fn cell(&self, tensor: usize, pipeline: usize) -> &Cell {
        &self.cells[pipeline * self.tensor.len() + tensor]
    }

    /// Degrees with whose values no pair has a layout, at the ends, are left out.
    fn without_empty_ends(mut self) -> Self {
        let is_empty = |cells: &[&Cell]| cells.iter().all(|it| !matches!(it, Cell::Best(_)));
        while self.pipeline.len() > 1 {
            let last = self.pipeline.len() - 2;
            let rows = [last, last + 1].map(|row| {
                let cells = (0..self.tensor.len()).map(|at| self.cell(at, row));
                is_empty(&cells.collect::<Vec<_>>())
            });
            if rows != [true, true] {
                break;
            }
            self.pipeline.pop();
            self.cells.truncate(self.pipeline.len() * self.tensor.len());
        }
        self
    }
}

/// Solves the instance with each pair of the degrees that it lists.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn degrees(
    instance: &Instance,
    deadline: Deadline,
    progress: &Progress,
) -> Result<Degrees, PlanError> {
    let values = |axis: Axis| {
        let mut values = instance.space.values(axis).to_vec();
        values.sort_unstable();
        values
    };
    let [tensor, pipeline] = [Axis::TensorParallel, Axis::PipelineParallel].map(values);
    let rows = pipeline.iter();
    let pairs: Vec<(u32, u32)> = rows
        .flat_map(|&stages| tensor.iter().map(move |&ranks| (ranks, stages)))
        .collect();
    let done = AtomicUsize::new(0);
    let solve = |&pair: &(u32, u32)| {
        let cell = cell(instance, pair, deadline);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, pairs.len());
        cell
    };
    let cells: Result<Vec<Cell>, PlanError> = pairs.par_iter().map(solve).collect();
    let found = Degrees {
        tensor,
        pipeline,
        cells: cells?,
    };
    Ok(found.without_empty_ends())
}

fn cell(
    instance: &Instance,
    (tensor, pipeline): (u32, u32),
    deadline: Deadline,
) -> Result<Cell, PlanError> {
    let gpus = instance.job.cluster.gpus;
    if !u64::from(gpus).is_multiple_of(u64::from(tensor) * u64::from(pipeline)) {
        let product = u64::from(tensor) * u64::from(pipeline);
        return Ok(Cell::Impossible(Violation {
            rule: Rule::GpuCount.as_str().to_owned(),
            message: format!(
                "TP x PP does not divide the {}, such as {tensor} x {pipeline} = {product}",
                counted(gpus, "GPU")
            ),
        }));
    }
    let mut pinned = instance.clone();
    pinned.space.restrict(Axis::TensorParallel, vec![tensor]);
    pinned
        .space
        .restrict(Axis::PipelineParallel, vec![pipeline]);
    let Some(nearest) = nearest(&pinned, deadline) else {
        return Ok(Cell::Unknown);
    };
    if let Some(violation) = violation(&pinned, nearest) {
        return Ok(Cell::Impossible(violation));
    }
    let options = PlanOptions {
        deadline,
        ..PlanOptions::default()
    };
    Ok(match planner::best(&pinned, &options)? {
        Best::Optimal(best) | Best::Feasible(best) => Cell::Best(Box::new(best)),
        Best::Unknown => Cell::Unknown,
        Best::Infeasible => match least_shortage(&pinned, deadline) {
            Ok(missing) => Cell::Impossible(by_layers(missing)),
            Err(PlanError::TimeOver(_)) => Cell::Unknown,
            Err(error) => return Err(error),
        },
    })
}

/// The combination that breaks the fewest rules on discrete choices, the first of equals; `None` where the
/// time is over.
fn nearest(instance: &Instance, deadline: Deadline) -> Option<(FlaggedCombination, RuleSet)> {
    let values = Axis::ALL.map(|axis| instance.space.values(axis).to_vec());
    let mut found: Option<(FlaggedCombination, RuleSet)> = None;
    let mut steps = 0_u32;
    Walk::new(instance, &space::ORDER, values).run(&mut |node| {
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(1 << 10) && deadline.is_over() {
            found = None;
            return Step::Stop;
        }
        if found.is_some_and(|(_, broken)| broken.len() <= node.broken.len()) {
            return Step::Skip;
        }
        if node.is_leaf() {
            found = Some((node.flagged(), node.broken));
        }
        if node.is_leaf() && node.broken.is_empty() {
            return Step::Stop;
        }
        Step::Descend
    });
    found
}

/// The first rule that a combination breaks.
fn violation(
    instance: &Instance,
    (flagged, broken): (FlaggedCombination, RuleSet),
) -> Option<Violation> {
    let Requirement { rule, part } = broken.iter().next()?;
    Some(Violation {
        rule: rule.part_name(instance, part),
        message: rule.message(instance, &flagged, part)?,
    })
}

/// Why no choice of layers is possible, where the combinations are.
fn by_layers(missing: Option<Bytes>) -> Violation {
    match missing {
        Some(missing) => Violation {
            rule: Rule::MemoryCapacity.as_str().to_owned(),
            message: format!("even the leanest layout needs {missing} more memory per GPU"),
        },
        None => Violation {
            rule: Rule::LayersCoverStages.as_str().to_owned(),
            message: "no cut of the layers into so many stages is allowed".to_owned(),
        },
    }
}
