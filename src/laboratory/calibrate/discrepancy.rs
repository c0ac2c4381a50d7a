//! Learns what the formulas miss from the residuals of measured runs: see
//! [`cost_model::discrepancy`](crate::cost_model::discrepancy).

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::observation::Observation;
use crate::cluster::{Cluster, DIMENSIONS, Discrepancy};
use crate::framework::Framework;

/// Standard deviation of the residuals before any run is seen.
const AMPLITUDE: f64 = 0.03;
/// Distance over which residuals are alike: one doubling of a degree is 1.
const LENGTH_SCALE: f64 = 1.25;
/// Standard deviation of a run's own residual.
const NOISE: f64 = 0.02;
/// Largest residual that a run may teach: what is further off is something else.
const LARGEST_RESIDUAL: f64 = 0.10;

/// Learns from the runs with a step time what the fitted formulas miss: `w = (K + noise^2 I)^-1 r`,
/// `r = ln(measured / predicted)`, at most 0.1. `None` without such runs.
#[must_use]
pub fn learn(
    observations: &[&Observation],
    cluster: &Cluster,
    framework: &Framework,
) -> Option<Discrepancy> {
    let plain = Cluster {
        discrepancy: None,
        ..cluster.clone()
    };
    let (mut points, mut residuals) = (Vec::new(), Vec::new());
    for observation in observations {
        let Some(measured) = observation.step_time else {
            continue;
        };
        let predicted = observation.predicted_time(&observation.job(&plain, framework));
        let residual = (measured / predicted).ln();
        points.push(observation.features());
        residuals.push(residual.clamp(-LARGEST_RESIDUAL, LARGEST_RESIDUAL));
    }
    let mut learned = Discrepancy {
        points,
        weights: Vec::new(),
        amplitude: AMPLITUDE,
        length_scale: LENGTH_SCALE,
        noise: NOISE,
    };
    let factor = factor(&learned)?;
    let weights = factor.solve(&DVector::from_vec(residuals));
    learned.weights = weights.as_slice().to_vec();
    Some(learned)
}

/// Cholesky factor of `K + noise^2 I`; `None` without points.
fn factor(learned: &Discrepancy) -> Option<Cholesky<f64, Dyn>> {
    let points = &learned.points;
    if points.is_empty() {
        return None;
    }
    let covariance = DMatrix::from_fn(points.len(), points.len(), |row, column| {
        let noise = if row == column {
            learned.noise.powi(2)
        } else {
            0.0
        };
        learned.covariance(&points[row], &points[column]) + noise
    });
    covariance.cholesky()
}

/// Standard deviation of the correction at each place, `sqrt(k(x, x) - k' (K + noise^2 I)^-1 k)`:
/// [`Discrepancy::amplitude`] far from all runs, less near them.
#[must_use]
pub fn standard_deviations(learned: &Discrepancy, at: &[[f64; DIMENSIONS]]) -> Vec<f64> {
    let factor = factor(learned);
    let deviation = |place: &[f64; DIMENSIONS]| {
        let explained = factor.as_ref().map_or(0.0, |factor| {
            let points = learned.points.iter();
            let near = DVector::from_iterator(
                learned.points.len(),
                points.map(|point| learned.covariance(place, point)),
            );
            near.dot(&factor.solve(&near))
        });
        (learned.amplitude.powi(2) - explained).max(0.0).sqrt()
    };
    at.iter().map(deviation).collect()
}
