//! Pareto fronts: memory against utilisation, GPUs against time.
//!
//! Every point is the best layout of an instance that was solved with its memory or its GPUs, so none
//! is dominated by a layout of the space at that size.

use rayon::prelude::*;

use super::tokens_per_second;
use crate::cost_model::memory;
use crate::instance::Instance;
use crate::plan::Evaluated;
use crate::planner::objective::{counts, on};
use crate::planner::{self, PlanError, PlanOptions};
use crate::quantity::Bytes;

/// Which two figures are traded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontKind {
    /// Usable memory of a GPU against MFU.
    MemoryMfu,
    /// Number of GPUs against step time.
    GpusTime,
}

impl FrontKind {
    /// The spelling in flags and output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MemoryMfu => "memory-mfu",
            Self::GpusTime => "gpus-time",
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
    kind: FrontKind,
    options: &PlanOptions,
) -> Result<Front, PlanError> {
    let points = match kind {
        FrontKind::MemoryMfu => memory_points(instance, options)?,
        FrontKind::GpusTime => gpus_points(instance, options)?,
    };
    let solved = points.len();
    Ok(Front {
        kind,
        points: undominated(kind, points.into_iter().flatten()),
        solved,
    })
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
fn memory_points(
    instance: &Instance,
    options: &PlanOptions,
) -> Result<Vec<Option<Point>>, PlanError> {
    let own = instance.job.cluster.accelerator.usable_memory.value();
    let at = |range: i32| {
        own * SMALLEST * (LARGEST / SMALLEST).powf(f64::from(range) / f64::from(RANGES))
    };
    let ranges = (0..RANGES).into_par_iter();
    let found: Result<Vec<Vec<Option<Point>>>, PlanError> = ranges
        .map(|range| descend(instance, at(range), at(range + 1), options))
        .collect();
    Ok(found?.into_iter().flatten().collect())
}

fn descend(
    instance: &Instance,
    lower: f64,
    upper: f64,
    options: &PlanOptions,
) -> Result<Vec<Option<Point>>, PlanError> {
    let mut points = Vec::new();
    let mut memory = upper;
    while memory > lower {
        let mut after = instance.clone();
        after.job.cluster.accelerator.usable_memory = Bytes::new(memory);
        let found = planner::best(&after, options)?.into_layout();
        let Some(evaluated) = found else {
            points.push(None);
            break;
        };
        let point = Point::new(instance, evaluated);
        memory = point.memory.value().min(memory) * (1.0 - RESOLUTION);
        points.push(Some(point));
    }
    Ok(points)
}

/// Most GPUs of the front, as a multiple of the job's.
const MORE_GPUS: u32 = 2;

fn gpus_points(
    instance: &Instance,
    options: &PlanOptions,
) -> Result<Vec<Option<Point>>, PlanError> {
    let cluster = &instance.job.cluster;
    let numbers = counts(cluster, 1, cluster.gpus.saturating_mul(MORE_GPUS));
    let solve = |&gpus: &u32| {
        let after = on(instance, gpus);
        let found = planner::best(&after, options)?.into_layout();
        Ok(found.map(|evaluated| Point::new(&after, evaluated)))
    };
    numbers.par_iter().map(solve).collect()
}
