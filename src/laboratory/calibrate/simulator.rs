//! Observations predicted again and again with other parameters.

use rayon::prelude::*;

use super::observation::Observation;
use super::priors::Prior;
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::job::Job;
use crate::quantity::{Bytes, Seconds};

/// Observations that one thread predicts at least: fewer are not worth a second.
const AT_ONCE: usize = 256;

/// Observations with one job each, whose parameters are changed in place.
pub(super) struct Simulator<'a> {
    observations: Vec<&'a Observation>,
    jobs: Vec<Job>,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(
        observations: impl Iterator<Item = &'a Observation>,
        cluster: &Cluster,
        framework: &Framework,
    ) -> Self {
        let observations: Vec<&Observation> = observations.collect();
        let jobs = observations
            .iter()
            .map(|observation| observation.job(cluster, framework))
            .collect();
        Self { observations, jobs }
    }

    pub(super) fn observations(&self) -> &[&'a Observation] {
        &self.observations
    }

    /// Sets the parameters to `sigmas` prior standard deviations from their medians. What a row
    /// states for itself stays.
    pub(super) fn set(&mut self, priors: &[Prior], sigmas: &[f64]) {
        let pairs = self.jobs.par_iter_mut().zip(&self.observations);
        pairs.with_min_len(AT_ONCE).for_each(|(job, observation)| {
            for (prior, &sigmas) in priors.iter().zip(sigmas) {
                let value = prior.value(sigmas);
                prior
                    .parameter
                    .set(&mut job.cluster, &mut job.framework, value);
            }
            observation
                .stated
                .apply(&mut job.cluster, &mut job.framework);
        });
    }

    pub(super) fn times(&self) -> Vec<Seconds> {
        self.each(Observation::predicted_time)
    }

    /// Peaks of the measured and of the fullest stage.
    pub(super) fn peaks(&self) -> Vec<(Bytes, Bytes)> {
        self.each(Observation::predicted_peaks)
    }

    /// What is predicted of each observation, in their order.
    fn each<T: Send>(&self, predict: impl Fn(&Observation, &Job) -> T + Sync) -> Vec<T> {
        self.observations
            .par_iter()
            .zip(&self.jobs)
            .with_min_len(AT_ONCE)
            .map(|(observation, job)| predict(observation, job))
            .collect()
    }

    /// The priors whose parameters move some prediction: `values` lists what is predicted. One
    /// prior standard deviation must move one prediction by more than a ten-thousandth.
    pub(super) fn visible(
        &mut self,
        priors: &[Prior],
        values: impl Fn(&Self) -> Vec<f64>,
    ) -> Vec<Prior> {
        const VISIBLE: f64 = 1e-4;
        let zeros = vec![0.0; priors.len()];
        self.set(priors, &zeros);
        let before = values(self);
        let mut kept = Vec::new();
        for (index, prior) in priors.iter().enumerate() {
            let moved = [1.0, -1.0].into_iter().any(|direction| {
                let mut sigmas = zeros.clone();
                sigmas[index] = direction;
                self.set(priors, &sigmas);
                let after = values(self);
                let mut pairs = before.iter().zip(&after);
                pairs.any(|(before, after)| (after / before).ln().abs() > VISIBLE)
            });
            if moved {
                kept.push(*prior);
            }
        }
        self.set(priors, &zeros);
        kept
    }
}
