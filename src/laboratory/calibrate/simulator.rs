//! Observations predicted again and again with other parameters.

use rayon::prelude::*;

use super::observation::Observation;
use super::priors::Prior;
use crate::figures::Seen;
use crate::job::Job;
use crate::laboratory::runs::Setup;

/// Observations that one thread predicts at least: fewer are not worth a second.
const AT_ONCE: usize = 256;

/// Observations with one job each, whose parameters are changed in place.
pub(super) struct Simulator<'a> {
    observations: Vec<&'a Observation>,
    jobs: Vec<Job>,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(observations: impl Iterator<Item = &'a Observation>, setup: &Setup) -> Self {
        let observations: Vec<&Observation> = observations.collect();
        let jobs = observations.iter().map(|run| run.job(setup)).collect();
        Self { observations, jobs }
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

    /// The observations with what is predicted of them: see [`Observation::predicted`].
    pub(super) fn predicted(&self, seen: Seen) -> Vec<(&'a Observation, [f64; 2])> {
        self.observations
            .par_iter()
            .zip(&self.jobs)
            .with_min_len(AT_ONCE)
            .map(|(observation, job)| (*observation, observation.predicted(seen, job)))
            .collect()
    }

    /// The priors whose parameters move some prediction. One prior standard deviation must move one
    /// prediction by more than a ten-thousandth.
    pub(super) fn visible(&mut self, priors: &[Prior], seen: Seen) -> Vec<Prior> {
        const VISIBLE: f64 = 1e-4;
        let zeros = vec![0.0; priors.len()];
        let mut values = |sigmas: &[f64]| -> Vec<f64> {
            self.set(priors, sigmas);
            let predicted = self.predicted(seen).into_iter();
            predicted.flat_map(|(_, values)| values).collect()
        };
        let before = values(&zeros);
        let mut moves = |index: usize| {
            [1.0, -1.0].into_iter().any(|direction| {
                let mut sigmas = zeros.clone();
                sigmas[index] = direction;
                let after = values(&sigmas);
                let mut pairs = before.iter().zip(&after);
                pairs.any(|(before, after)| (after / before).ln().abs() > VISIBLE)
            })
        };
        let kept = (0..priors.len()).filter(|&index| moves(index));
        let kept = kept.map(|index| priors[index]).collect();
        self.set(priors, &zeros);
        kept
    }
}
