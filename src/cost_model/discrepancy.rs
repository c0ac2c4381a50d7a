//! What measured runs say beyond the formulas: a Gaussian process on the residuals of the step
//! time (Kennedy and O'Hagan, *Bayesian calibration of computer models*, 2001).
//!
//! It is statistics, not a mechanism: near the runs that it was learned from it moves predicted
//! times, far from all of them it is nothing.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use crate::cluster::{DIMENSIONS, Discrepancy};
use crate::job::Job;
use crate::layout::{
    AttentionKernel, Checkpointing, Combination, Layout, RmsNormKernel, SequenceParallel,
};

/// Where a cell lies among others: `[3 log2 h, log2 s, log2 pp, log2 tp, log2 b, log2(M) / 2,
/// log2(G) / 2, recomputed, kernel / 2, attention, 0.3 sp]`, attention = 0 flash 2 and later, 1 flash 1, 2 none.
#[must_use]
pub fn features(job: &Job, cell: &Combination, checkpointing: Checkpointing) -> [f64; DIMENSIONS] {
    let flag = |set: bool| f64::from(u8::from(set));
    let micro_batches = cell.micro_batches(job.workload.global_batch).max(1);
    let attention = match cell.attention_kernel {
        AttentionKernel::Flash2 | AttentionKernel::Flash3 | AttentionKernel::Cudnn => 0.0,
        AttentionKernel::Flash1 => 1.0,
        AttentionKernel::MegatronFused | AttentionKernel::Torch => 2.0,
    };
    [
        3.0 * (job.transformer.hidden as f64).log2(),
        (job.workload.sequence_length as f64).log2(),
        f64::from(cell.pipeline_parallel).log2(),
        f64::from(cell.tensor_parallel).log2(),
        f64::from(cell.micro_batch).log2(),
        0.5 * (micro_batches as f64).log2(),
        0.5 * f64::from(job.cluster.gpus).log2(),
        flag(checkpointing == Checkpointing::Full),
        0.5 * flag(cell.rmsnorm_kernel == RmsNormKernel::Fused),
        attention,
        0.3 * flag(cell.sequence_parallel == SequenceParallel::On),
    ]
}

/// Where a layout lies: as recomputed where every layer of every stage is.
#[must_use]
pub fn features_of(job: &Job, layout: &Layout) -> [f64; DIMENSIONS] {
    let mut stages = layout.stages.iter();
    let checkpointing = if stages.all(|stage| stage.recomputed[0] == stage.layers) {
        Checkpointing::Full
    } else {
        Checkpointing::None
    };
    features(job, &layout.combination, checkpointing)
}

impl Discrepancy {
    /// Covariance of two cells: `amplitude^2 exp(-|x - y|^2 / (2 length^2))`.
    #[must_use]
    pub fn covariance(&self, one: &[f64; DIMENSIONS], other: &[f64; DIMENSIONS]) -> f64 {
        let squares = one.iter().zip(other).map(|(x, y)| (x - y).powi(2));
        let distance: f64 = squares.sum::<f64>() / self.length_scale.powi(2);
        self.amplitude.powi(2) * (-0.5 * distance).exp()
    }

    /// Logarithm of (measured / predicted step time) that the runs near a cell suggest,
    /// `g(x) = sum_j k(x, x_j) w_j`; 0 far from all of them.
    #[must_use]
    pub fn logarithm(&self, at: &[f64; DIMENSIONS]) -> f64 {
        self.points
            .iter()
            .zip(&self.weights)
            .map(|(point, weight)| self.covariance(at, point) * weight)
            .sum()
    }

    /// Cholesky factor of `K + noise^2 I`; `None` without points.
    pub(crate) fn factor(&self) -> Option<Cholesky<f64, Dyn>> {
        let points = &self.points;
        if points.is_empty() {
            return None;
        }
        let covariance = DMatrix::from_fn(points.len(), points.len(), |row, column| {
            let noise = if row == column {
                self.noise.powi(2)
            } else {
                0.0
            };
            self.covariance(&points[row], &points[column]) + noise
        });
        covariance.cholesky()
    }

    /// Standard deviation of the correction at each place, `sqrt(k(x, x) - k' (K + noise^2 I)^-1 k)`:
    /// its amplitude far from all runs, less near them.
    #[must_use]
    pub fn standard_deviations(&self, at: &[[f64; DIMENSIONS]]) -> Vec<f64> {
        let factor = self.factor();
        let deviation = |place: &[f64; DIMENSIONS]| {
            let explained = factor.as_ref().map_or(0.0, |factor| {
                let points = self.points.iter();
                let near = DVector::from_iterator(
                    self.points.len(),
                    points.map(|point| self.covariance(place, point)),
                );
                near.dot(&factor.solve(&near))
            });
            (self.amplitude.powi(2) - explained).max(0.0).sqrt()
        };
        at.iter().map(deviation).collect()
    }
}
