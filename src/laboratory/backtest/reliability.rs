//! Whether what is said to run out of memory with probability `p` does so in a share `p` of cases.

use schemars::JsonSchema;
use serde::Serialize;

use super::case::Case;
use crate::laboratory::statistics::mean;

/// Said probabilities after which the bins are named. Each prediction belongs to the nearest.
pub(super) const BINS: [f64; 5] = [0.0, 0.05, 0.5, 0.95, 1.0];

/// Said and true shares of runs out of memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reliability {
    /// Where the runs come from, or `all`.
    pub source: String,
    /// Mean squared distance of said probability and outcome (Brier, *Monthly Weather Review* 78,
    /// 1950); 0 is perfect, 0.25 is always saying one half.
    pub brier: Option<f64>,
    /// For what is said to be about 0, 5, 50, 95 and 100 %.
    pub bins: [ReliabilityBin; BINS.len()],
}

/// The runs whose said probability is nearest to that of this bin, among all bins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ReliabilityBin {
    /// Name of the bin.
    pub nominal: f64,
    /// Runs.
    pub runs: usize,
    /// Mean of what was said.
    pub said: Option<f64>,
    /// Share that ran out of memory.
    pub was: Option<f64>,
}

impl Reliability {
    /// The table of the cases.
    #[must_use]
    pub fn of(source: &str, cases: &[&Case]) -> Self {
        let forecasts: Vec<(f64, f64)> = cases
            .iter()
            .filter_map(|case| {
                let outcome = f64::from(u8::from(case.ran_out_of_memory()));
                Some((case.oom_probability()?, outcome))
            })
            .collect();
        let squares = forecasts.iter().map(|(said, was)| (said - was).powi(2));
        Self {
            source: source.to_owned(),
            brier: mean(squares),
            bins: std::array::from_fn(|index| bin(index, &forecasts)),
        }
    }
}

fn bin(index: usize, forecasts: &[(f64, f64)]) -> ReliabilityBin {
    let members = || forecasts.iter().filter(|(said, _)| nearest(*said) == index);
    ReliabilityBin {
        nominal: BINS[index],
        runs: members().count(),
        said: mean(members().map(|(said, _)| *said)),
        was: mean(members().map(|(_, was)| *was)),
    }
}

/// The bin of a said probability: the nearest, of two equally near the lower.
fn nearest(said: f64) -> usize {
    let borders = BINS.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
    borders.filter(|&border| said > border).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probability_has_its_bin() {
        let check = |said: f64, expected: usize| assert_eq!(nearest(said), expected, "{said}");
        check(0.0, 0);
        check(0.024, 0);
        check(0.026, 1);
        check(0.27, 1);
        check(0.28, 2);
        check(0.72, 2);
        check(0.73, 3);
        check(0.98, 4);
    }

    #[test]
    fn a_bin_counts_what_came_true() {
        let found = bin(1, &[(0.04, 0.0), (0.06, 1.0), (0.5, 1.0)]);
        assert_eq!((found.runs, found.was), (2, Some(0.5)));
        assert!((found.said.expect("two runs") - 0.05).abs() < 1e-12);
    }
}
