//! What measured runs say beyond the formulas, in a document.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cluster::Discrepancy;
use crate::cost_model::discrepancy::DIMENSIONS;

use super::job::ABSENT;

/// Its key in the job.
pub(crate) const DISCREPANCY: &str = "cluster.discrepancy";

/// Largest number: beyond it arithmetic loses its meaning.
const LARGEST: f64 = 1e9;
const MOST_POINTS: usize = 100_000;

/// As far as times depend on it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatedDiscrepancy {
    points: Vec<[f64; DIMENSIONS]>,
    weights: Vec<f64>,
    amplitude: f64,
    length_scale: f64,
}

impl StatedDiscrepancy {
    pub(super) fn write(learned: &Discrepancy) -> Value {
        let stated = Self {
            points: learned.points.clone(),
            weights: learned.weights.clone(),
            amplitude: learned.amplitude,
            length_scale: learned.length_scale,
        };
        serde_json::to_value(stated).unwrap_or_default()
    }

    pub(super) fn read(value: &Value) -> Option<Discrepancy> {
        let stated = Self::deserialize(value).ok()?;
        let small = |number: &f64| number.abs() <= LARGEST;
        let sound = stated.points.len() == stated.weights.len()
            && (1..=MOST_POINTS).contains(&stated.points.len())
            && stated
                .points
                .iter()
                .flatten()
                .all(|at| (0.0..=LARGEST).contains(at))
            && stated.weights.iter().all(small)
            && (0.0..=LARGEST).contains(&stated.amplitude)
            && (1e-9..=LARGEST).contains(&stated.length_scale);
        sound.then_some(Discrepancy {
            points: stated.points,
            weights: stated.weights,
            amplitude: stated.amplitude,
            length_scale: stated.length_scale,
            // Of the fit, not of the prediction.
            noise: ABSENT,
        })
    }
}
