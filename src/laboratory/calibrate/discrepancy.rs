//! Learns what the formulas miss from the residuals of measured runs: see
//! [`cost_model::discrepancy`](crate::cost_model::discrepancy).

use nalgebra::DVector;

use super::observation::Observation;
use crate::cluster::Discrepancy;
use crate::laboratory::runs::Setup;

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
pub fn learn(observations: &[&Observation], setup: &Setup) -> Option<Discrepancy> {
    let mut plain = setup.clone();
    plain.cluster.discrepancy = None;
    let (mut points, mut residuals) = (Vec::new(), Vec::new());
    for observation in observations {
        let Some(measured) = observation.step_time else {
            continue;
        };
        let predicted = observation.predicted_time(&observation.job(&plain));
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
    let factor = learned.factor()?;
    let weights = factor.solve(&DVector::from_vec(residuals));
    learned.weights = weights.as_slice().to_vec();
    Some(learned)
}
