//! Least squares within bounds, by Levenberg and Marquardt's method.

use std::cell::RefCell;

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::storage::Owned;
use nalgebra::{DMatrix, DVector, Dyn};

/// Step of the forward differences, in prior standard deviations.
const STEP: f64 = 1e-5;
/// Relative change of the sum of squares at which nothing is left to gain.
pub(super) const EXACT: f64 = 1e-10;
/// Most evaluations for each unknown.
const PATIENCE: usize = 60;

/// Where the sum of squares is least.
#[derive(Debug, Clone)]
pub(super) struct Minimum {
    /// The unknowns.
    pub(super) at: Vec<f64>,
    /// Derivative of each residual (row) by each unknown (column).
    pub(super) jacobian: DMatrix<f64>,
}

/// Minimises `sum_j z_j(y)^2 + weight^2 sum_i y_i^2` from `y = 0`, until the sum changes relatively by less
/// than `tolerance`. Unknowns count prior standard
/// deviations. `residuals` keeps its parameters within bounds, beyond which only the second sum changes, and
/// so draws the unknown back to the bound.
pub(super) fn minimise(
    unknowns: usize,
    weight: f64,
    tolerance: f64,
    residuals: impl FnMut(&[f64], &mut Vec<f64>),
) -> Minimum {
    let problem = Problem {
        at: DVector::zeros(unknowns),
        weight,
        evaluate: RefCell::new(residuals),
    };
    if unknowns == 0 {
        return Minimum {
            at: Vec::new(),
            jacobian: DMatrix::zeros(0, 0),
        };
    }
    let (problem, _) = LevenbergMarquardt::new()
        .with_patience(PATIENCE)
        .with_tol(tolerance)
        .minimize(problem);
    let jacobian = problem.differences();
    Minimum {
        at: problem.at.as_slice().to_vec(),
        jacobian,
    }
}

struct Problem<F> {
    at: DVector<f64>,
    weight: f64,
    evaluate: RefCell<F>,
}

impl<F: FnMut(&[f64], &mut Vec<f64>)> Problem<F> {
    fn values(&self, at: &DVector<f64>) -> DVector<f64> {
        let mut values = Vec::new();
        (self.evaluate.borrow_mut())(at.as_slice(), &mut values);
        values.extend(at.iter().map(|unknown| self.weight * unknown));
        DVector::from_vec(values)
    }

    fn differences(&self) -> DMatrix<f64> {
        let here = self.values(&self.at);
        let mut jacobian = DMatrix::zeros(here.len(), self.at.len());
        for column in 0..self.at.len() {
            let mut there = self.at.clone();
            there[column] += STEP;
            jacobian.set_column(column, &((self.values(&there) - &here) / STEP));
        }
        jacobian
    }
}

impl<F: FnMut(&[f64], &mut Vec<f64>)> LeastSquaresProblem<f64, Dyn, Dyn> for Problem<F> {
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;
    type ParameterStorage = Owned<f64, Dyn>;

    fn set_params(&mut self, at: &DVector<f64>) {
        self.at.copy_from(at);
    }

    fn params(&self) -> DVector<f64> {
        self.at.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        Some(self.values(&self.at))
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        Some(self.differences())
    }
}

/// The root of the soft-L1 loss, signless: `c sqrt(2 (sqrt(1 + (e/c)^2) - 1))`, near `|e|` for
/// small errors and `sqrt(2 c |e|)` for large ones, so that outliers pull no harder than they must.
#[must_use]
pub(super) fn soft(error: f64, scale: f64) -> f64 {
    let relative = error / scale;
    // The same as above, without the cancellation that makes it vanish at small errors.
    let root = (1.0 + relative * relative).sqrt();
    error * (2.0 / (root + 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_quadratic_then_linear() {
        let scale = 0.03_f64;
        for error in [-0.5_f64, -0.03, 1e-6, 0.03, 2.0] {
            let formula = scale * (2.0 * ((1.0 + (error / scale).powi(2)).sqrt() - 1.0)).sqrt();
            assert!((soft(error, scale).abs() - formula).abs() < 1e-9);
        }
    }

    #[test]
    fn a_line_is_found_and_the_prior_pulls() {
        let data = [(1.0, 2.1), (2.0, 3.9), (3.0, 6.0)];
        let fit = |weight| {
            let minimum = minimise(1, weight, EXACT, |at, values| {
                values.extend(data.iter().map(|(x, y)| at[0] * x - y));
            });
            minimum.at[0]
        };
        assert!((fit(1e-9) - 27.9 / 14.0).abs() < 1e-6);
        assert!((fit(14_f64.sqrt()) - 27.9 / 28.0).abs() < 1e-6);
    }
}
