//! One fit to the runs of many sources: what generations of GPUs, networks and frameworks have in common,
//! and what each has of its own.
//!
//! A figure of an owner (a generation's kernel, a framework's speed) is
//! `median exp(sigma (y_common + y_own) / sqrt 2)`: of an owner that no run is known of, the common part
//! remains. Figures of networks have no owner. Medians, standard deviations and bounds are in
//! `catalog/priors.toml`: no figure starts from what runs taught the catalog.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::least_squares::{self, soft};
use super::observation::Observation;
use super::priors::{Belonging, Prior, shared};
use crate::catalog;
use crate::job::Job;
use crate::laboratory::runs::Setup;

/// Logarithm of predicted over measured time beyond which a run pulls only linearly.
const SCALE: f64 = 0.1;
/// Error of a step time, of all runs of a source, that one prior standard deviation outweighs: a source
/// counts as one run, since what its runs miss is mostly what they have in common.
const PRIOR_WEIGHT: f64 = 0.1;

/// Relative change of the sum of squares that is left to gain.
const TOLERANCE: f64 = 1e-4;

/// The unknowns of a pooled fit: a figure's key, and the owner of its own part (empty: the common part).
#[derive(Debug, Default)]
pub struct Pool {
    unknowns: BTreeMap<(&'static str, String), usize>,
}

/// A figure of one run with its unknowns.
#[derive(Debug, Clone, Copy)]
struct Lever {
    prior: Prior,
    unknowns: Unknowns,
}

/// The unknowns of a figure.
#[derive(Debug, Clone, Copy)]
enum Unknowns {
    /// One, of all.
    One(usize),
    /// The level of the source.
    Level(usize),
    /// The common part, and the owner's.
    Two([usize; 2]),
}

impl Lever {
    fn value(&self, at: &[f64]) -> f64 {
        self.prior.value(match self.unknowns {
            Unknowns::One(unknown) | Unknowns::Level(unknown) => at[unknown],
            Unknowns::Two([common, own]) => {
                (at[common] + at[own]) * std::f64::consts::FRAC_1_SQRT_2
            }
        })
    }

    fn unknowns(&self) -> impl Iterator<Item = usize> {
        let [one, two] = match self.unknowns {
            Unknowns::One(unknown) | Unknowns::Level(unknown) => [Some(unknown), None],
            Unknowns::Two([common, own]) => [Some(common), Some(own)],
        };
        one.into_iter().chain(two)
    }
}

/// The figures that step times of runs on a cluster under a framework teach, with their unknowns.
#[derive(Debug, Clone)]
pub struct Levers(Vec<Lever>);

impl Levers {
    /// Gives the figures the values at a point, as for a source of which no run is known.
    pub fn apply(&self, at: &[f64], setup: &mut Setup) {
        for lever in &self.0 {
            let value = match lever.unknowns {
                Unknowns::Level(_) => lever.prior.value(0.0),
                _ => lever.value(at),
            };
            setup.set(lever.prior.parameter, value);
        }
    }
}

impl Pool {
    /// The shared figures of a source's cluster and framework.
    pub fn levers(&mut self, setup: &Setup, source: &str) -> Levers {
        let generation = catalog::generation(&setup.cluster.accelerator.name);
        let levers = shared(setup).into_iter().map(|(prior, belonging)| {
            let key = prior.parameter.key;
            let mut two = |owner| Unknowns::Two([self.unknown(key, ""), self.unknown(key, owner)]);
            let unknowns = match belonging {
                Belonging::Nobody => Unknowns::One(self.unknown(key, "")),
                Belonging::Source => Unknowns::Level(self.unknown(key, source)),
                Belonging::Generation => two(generation),
                Belonging::Framework => two(&setup.framework.name),
            };
            Lever { prior, unknowns }
        });
        Levers(levers.collect())
    }

    fn unknown(&mut self, key: &'static str, owner: &str) -> usize {
        let next = self.unknowns.len();
        *self.unknowns.entry((key, owner.to_owned())).or_insert(next)
    }

    /// Where each unknown lies before any run is seen.
    #[must_use]
    pub fn start(&self) -> Vec<f64> {
        vec![0.0; self.unknowns.len()]
    }

    /// The unknowns at the maximum of the posterior of the runs.
    #[must_use]
    pub fn fit(&self, runs: &[&PooledRun]) -> Vec<f64> {
        let mut used: Vec<usize> = runs.iter().flat_map(|run| run.unknowns()).collect();
        used.sort_unstable();
        used.dedup();
        let mut residuals = Residuals::new(runs, &used, self.start());
        let minimum = least_squares::minimise(used.len(), PRIOR_WEIGHT, TOLERANCE, |at, values| {
            residuals.at(at, values);
        });
        let mut at = self.start();
        for (&unknown, value) in used.iter().zip(minimum.at) {
            at[unknown] = value;
        }
        at
    }
}

/// A run of a pool.
#[derive(Debug)]
pub struct PooledRun {
    observation: Observation,
    /// The job with all figures at their medians.
    job: Job,
    /// The figures that move its step time.
    levers: Levers,
    measured: f64,
    weight: f64,
}

impl PooledRun {
    /// A run that took `measured` seconds per step, one of `runs` of its source.
    #[must_use]
    pub fn new(
        observation: Observation,
        setup: &Setup,
        levers: &Levers,
        measured: f64,
        runs: usize,
    ) -> Self {
        let mut job = observation.job(setup);
        for lever in &levers.0 {
            set(lever, lever.prior.value(0.0), &mut job);
        }
        let mut run = Self {
            job,
            observation,
            levers: levers.clone(),
            measured,
            weight: (runs as f64).sqrt().recip(),
        };
        run.levers = run.visible();
        run
    }

    fn unknowns(&self) -> impl Iterator<Item = usize> {
        self.levers.0.iter().flat_map(Lever::unknowns)
    }

    /// The levers of which one prior standard deviation moves the step time by more than a ten-thousandth.
    fn visible(&self) -> Levers {
        const VISIBLE: f64 = 1e-4;
        let mut job = self.job.clone();
        let mut time = |lever: &Lever, sigmas: f64| {
            set(lever, lever.prior.value(sigmas), &mut job);
            self.observation
                .stated
                .apply(&mut job.cluster, &mut job.framework);
            self.observation.predicted_time(&job).value()
        };
        let levers = self.levers.0.iter().copied().filter(|lever| {
            let [less, more, before] = [-1.0, 1.0, 0.0].map(|sigmas| time(lever, sigmas));
            [less, more]
                .into_iter()
                .any(|after| (after / before).ln().abs() > VISIBLE)
        });
        Levers(levers.collect())
    }
}

fn set(lever: &Lever, value: f64, job: &mut Job) {
    let parameter = lever.prior.parameter;
    parameter.set(&mut job.cluster, &mut job.framework, value);
}

/// Residuals of runs, of which a change of one unknown recomputes only those that it moves.
struct Residuals<'a> {
    runs: Vec<(&'a PooledRun, Job)>,
    /// The pool's number of each unknown.
    used: &'a [usize],
    /// The runs that each unknown moves.
    moved: Vec<Vec<usize>>,
    /// The unknowns of the pool.
    point: Vec<f64>,
    /// The last point of several changes, and the residuals there.
    base: (Vec<f64>, Vec<f64>),
}

impl<'a> Residuals<'a> {
    fn new(runs: &[&'a PooledRun], used: &'a [usize], start: Vec<f64>) -> Self {
        let mut moved = vec![Vec::new(); used.len()];
        for (index, run) in runs.iter().enumerate() {
            for unknown in run.unknowns() {
                if let Ok(position) = used.binary_search(&unknown) {
                    moved[position].push(index);
                }
            }
        }
        Self {
            runs: runs.iter().map(|&run| (run, run.job.clone())).collect(),
            used,
            moved,
            point: start,
            base: (Vec::new(), Vec::new()),
        }
    }

    fn at(&mut self, at: &[f64], values: &mut Vec<f64>) {
        for (&unknown, &value) in self.used.iter().zip(at) {
            self.point[unknown] = value;
        }
        let changed: Vec<usize> = (0..self.base.0.len())
            .filter(|&it| self.base.0[it].to_bits() != at[it].to_bits())
            .collect();
        if self.base.0.is_empty() || changed.len() > 1 {
            let point = &self.point;
            let all = self.runs.par_iter_mut().with_min_len(256);
            let all = all.map(|(run, job)| residual(run, job, point)).collect();
            self.base = (at.to_vec(), all);
            values.extend_from_slice(&self.base.1);
            return;
        }
        values.extend_from_slice(&self.base.1);
        for &index in changed
            .first()
            .map_or(&[][..], |&unknown| &self.moved[unknown])
        {
            let (run, job) = &mut self.runs[index];
            values[index] = residual(run, job, &self.point);
        }
    }
}

/// The residual of a run whose job is changed in place.
fn residual(run: &PooledRun, job: &mut Job, point: &[f64]) -> f64 {
    for lever in &run.levers.0 {
        set(lever, lever.value(point), job);
    }
    run.observation
        .stated
        .apply(&mut job.cluster, &mut job.framework);
    let predicted = run.observation.predicted_time(job).value();
    run.weight * soft((predicted / run.measured).ln(), SCALE)
}
