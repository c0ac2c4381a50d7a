//! Whether the stated interval of a step time holds as many runs as it says.

use schemars::JsonSchema;
use serde::Serialize;

use super::case::Case;
use crate::catalog::Evidence;
use crate::laboratory::by_name;
use crate::laboratory::statistics::mean;

/// Runs with the same stated interval of their step time, which should hold 80 % of them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// What is known of runs like these.
    pub evidence: Evidence,
    /// Half of the interval: predicted over measured time less 1, a share.
    pub half_width: f64,
    /// Runs with a representative speed.
    pub runs: usize,
    /// Sources of them.
    pub sources: usize,
    /// Share of them within the interval; every source with the same weight.
    pub within: f64,
    /// Half of the interval that would have held 80 % of them; every source with the same weight.
    pub held: f64,
}

impl Interval {
    /// The intervals of the cases, by evidence and width, the widest last.
    pub(super) fn of(cases: &[Case]) -> Vec<Self> {
        let timed: Vec<&Case> = cases.iter().filter(|case| case.timed().is_some()).collect();
        let named = by_name(&timed, |case| (case.trust.evidence, percents(case)));
        let mut intervals: Vec<Self> = named
            .into_iter()
            .filter_map(|((evidence, percents), cases)| {
                let cases: Vec<&Case> = cases.into_iter().copied().collect();
                Some(Self {
                    evidence,
                    half_width: f64::from(percents) / 100.0,
                    runs: cases.len(),
                    sources: by_name(&cases, |case| &case.run.source).len(),
                    within: share_within_by_source(&cases)?,
                    held: held(&cases)?.exp_m1(),
                })
            })
            .collect();
        intervals.sort_by(|one, two| one.half_width.total_cmp(&two.half_width));
        intervals
    }
}

/// Half of the stated interval in whole percents.
fn percents(case: &Case) -> u32 {
    (case.trust.half_width().exp_m1() * 100.0).round() as u32
}

/// Share of the runs with a representative speed whose stated 80 % interval holds it.
pub(super) fn share_within(cases: &[&Case]) -> Option<f64> {
    mean(cases.iter().filter_map(|case| {
        let is_within = error(case)? <= case.trust.half_width();
        Some(f64::from(u8::from(is_within)))
    }))
}

/// Amount of the logarithm of predicted over measured step time.
fn error(case: &Case) -> Option<f64> {
    Some((1.0 + case.time_error()?).ln().abs())
}

/// The amount that 80 % of the runs stay below; every source with the same weight.
fn held(cases: &[&Case]) -> Option<f64> {
    let mut weighted: Vec<(f64, f64)> = Vec::new();
    let sources = by_name(cases, |case| &case.run.source);
    for (_, cases) in &sources {
        let weight = 1.0 / (cases.len() * sources.len()) as f64;
        weighted.extend(cases.iter().filter_map(|case| Some((error(case)?, weight))));
    }
    weighted.sort_by(|one, two| one.0.total_cmp(&two.0));
    let mut sum = 0.0;
    weighted.into_iter().find_map(|(error, weight)| {
        sum += weight;
        (sum >= 0.8 - 1e-9).then_some(error)
    })
}

fn share_within_by_source(cases: &[&Case]) -> Option<f64> {
    let sources = by_name(cases, |case| &case.run.source);
    mean(sources.iter().filter_map(|(_, cases)| {
        let cases: Vec<&Case> = cases.iter().map(|case| **case).collect();
        share_within(&cases)
    }))
}
