//! Pareto fronts: memory against utilisation, GPUs against time.
//!
//! Every point is the best layout of an instance that was solved with its memory or its GPUs, so none
//! is dominated by a layout of the space at that size.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::tokens_per_second;
use crate::choice::choice;
use crate::cost_model::memory;
use crate::instance::Instance;
use crate::plan::Evaluated;
use crate::planner::objective::on;
use crate::planner::{self, Best, PlanError, PlanOptions, Progress};
use crate::quantity::Bytes;

choice!(
    /// Which two figures are traded.
    FrontKind {
        /// Usable memory of a GPU against MFU.
        MemoryMfu = "memory-mfu",
        /// Number of GPUs against step time.
        GpusTime = "gpus-time",
    }
);

/// Which front is solved, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sought {
    /// [`FrontKind::MemoryMfu`], from a sixty-fourth of the memory of a GPU to four times as much.
    Memory,
    /// [`FrontKind::GpusTime`], over these numbers of GPUs.
    Gpus(Vec<u32>),
}

impl Sought {
    /// The figures of the front.
    #[must_use]
    pub const fn kind(&self) -> FrontKind {
        match self {
            Self::Memory => FrontKind::MemoryMfu,
            Self::Gpus(_) => FrontKind::GpusTime,
        }
    }
}

/// The layouts that no other beats in both figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Front {
    /// Which figures.
    pub kind: FrontKind,
    /// From the least memory or the fewest GPUs up.
    pub points: Vec<Point>,
    /// Instances that were solved for it.
    pub solved: usize,
    /// Those of them whose answer is not proven, because the time was over.
    pub unproven: usize,
}

/// A layout of a front.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// GPUs of the job.
    pub gpus: u32,
    /// Usable memory that a GPU needs for the layout at the accepted risk.
    pub memory: Bytes,
    /// The layout.
    pub evaluated: Evaluated,
}

impl Point {
    fn new(instance: &Instance, evaluated: Evaluated) -> Self {
        Self {
            gpus: instance.job.cluster.gpus,
            memory: needed_memory(instance, evaluated.prediction.memory.peak()),
            evaluated,
        }
    }

    /// Training tokens a second over all GPUs.
    #[must_use]
    pub fn tokens_per_second(&self) -> f64 {
        tokens_per_second(&self.evaluated, self.gpus)
    }
}

/// Solves what the front needs.
///
/// # Errors
///
/// When the solver fails, or an answer fails its verification.
pub fn front(
    instance: &Instance,
    sought: &Sought,
    options: &PlanOptions,
    progress: &Progress,
) -> Result<Front, PlanError> {
    let kind = sought.kind();
    let trials = match sought {
        Sought::Memory => memory_trials(instance, options, progress)?,
        Sought::Gpus(counts) => {
            let done = AtomicUsize::new(0);
            let solve = |&gpus: &u32| {
                let after = on(instance, gpus);
                let best = planner::best(&after, options)?;
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, counts.len());
                Ok(Trial::new(&after, best))
            };
            let trials: Result<Vec<Trial>, PlanError> = counts.par_iter().map(solve).collect();
            trials?
        }
    };
    let (solved, proven) = (trials.len(), trials.iter().filter(|trial| trial.is_proven));
    let unproven = solved - proven.count();
    let points = trials.into_iter().filter_map(|trial| trial.point);
    Ok(Front {
        kind,
        points: undominated(kind, points),
        solved,
        unproven,
    })
}

/// One instance that was solved for a front.
struct Trial {
    /// Its best layout, if it has one.
    point: Option<Point>,
    /// Whether the time did not end the search.
    is_proven: bool,
}

impl Trial {
    fn new(instance: &Instance, best: Best) -> Self {
        Self {
            is_proven: best.is_proven(),
            point: best.into_layout().map(|it| Point::new(instance, it)),
        }
    }
}

/// Keeps what is better than everything smaller, by more than the rounding of the programs.
fn undominated(kind: FrontKind, points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut points: Vec<Point> = points.collect();
    let size = |point: &Point| match kind {
        FrontKind::MemoryMfu => point.memory.value(),
        FrontKind::GpusTime => f64::from(point.gpus),
    };
    let worth = |point: &Point| match kind {
        FrontKind::MemoryMfu => point.evaluated.prediction.mfu.value(),
        FrontKind::GpusTime => 1.0 / point.evaluated.prediction.step_time.value(),
    };
    points.sort_by(|a, b| {
        let by_size = size(a).total_cmp(&size(b));
        by_size.then(worth(b).total_cmp(&worth(a)))
    });
    let mut best = 0.0;
    points.retain(|point| {
        let better = worth(point) > best * (1.0 + 1e-6);
        if better {
            best = worth(point);
        }
        better
    });
    points
}

/// The least usable memory with which a peak is within the accepted risk: the inverse of
/// [`memory::admissible_peak`].
fn needed_memory(instance: &Instance, peak: Bytes) -> Bytes {
    let error = instance.job.cluster.calibration.memory;
    let one = Bytes::new(1.0);
    peak / memory::admissible_peak(one, error, instance.max_oom_risk).value()
}

/// Ranges of memory that are searched side by side; fixed, so that the answer does not depend on the
/// machine.
const RANGES: i32 = 16;
/// Smallest and largest memory, as multiples of what a GPU has.
const SMALLEST: f64 = 1.0 / 64.0;
const LARGEST: f64 = 4.0;
/// Breakpoints nearer to each other than this share of the memory are taken together.
const RESOLUTION: f64 = 0.02;

/// The best layouts at the breakpoints of the memory: from the upper end of a range, the best layout
/// is found, then the best with less memory than it needs, and so on to the lower end.
fn memory_trials(
    instance: &Instance,
    options: &PlanOptions,
    progress: &Progress,
) -> Result<Vec<Trial>, PlanError> {
    let own = instance.job.cluster.accelerator.usable_memory.value();
    let at = |range: i32| {
        own * SMALLEST * (LARGEST / SMALLEST).powf(f64::from(range) / f64::from(RANGES))
    };
    let ranges = (0..RANGES).into_par_iter();
    let done = AtomicUsize::new(0);
    let solve = |range: i32| {
        let trials = descend(instance, at(range), at(range + 1), options);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, RANGES as usize);
        trials
    };
    let found: Result<Vec<Vec<Trial>>, PlanError> = ranges.map(solve).collect();
    Ok(found?.into_iter().flatten().collect())
}

fn descend(
    instance: &Instance,
    lower: f64,
    upper: f64,
    options: &PlanOptions,
) -> Result<Vec<Trial>, PlanError> {
    let mut trials = Vec::new();
    let mut memory = upper;
    while memory > lower {
        let mut after = instance.clone();
        after.job.cluster.accelerator.usable_memory = Bytes::new(memory);
        let trial = Trial::new(instance, planner::best(&after, options)?);
        let needed = trial.point.as_ref().map(|point| point.memory.value());
        trials.push(trial);
        let Some(needed) = needed else { break };
        memory = needed.min(memory) * (1.0 - RESOLUTION);
    }
    Ok(trials)
}

/// Most GPUs of a front unless named, as a multiple of the job's.
pub const MORE_GPUS: u32 = 2;
