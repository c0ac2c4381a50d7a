//! Calibration on a few random runs of a setting, scored on the rest.

use schemars::JsonSchema;
use serde::Serialize;

use rayon::prelude::*;

use crate::laboratory::calibrate::{self, Adoption, FitOptions, Observation, Priors, Speeds};
use crate::laboratory::runs::{Setup, Skip};

use super::case::Case;
use super::held_out::{HeldOut, means, predicted};
use super::random::Random;
use super::scores::Sample;
use super::settings::Setting;
use crate::laboratory::by_name;

/// How runs are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawOptions {
    /// Runs to calibrate on.
    pub runs: usize,
    /// Draws.
    pub draws: usize,
    /// Start of the random numbers.
    pub seed: u64,
    /// Largest accepted probability of running out of memory, at which layouts are picked.
    pub max_oom_risk: f64,
}

/// What calibration makes of one setting, or of a source with several settings, each calibrated for
/// itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Transfer {
    /// Name of the setting; of the source, for all its settings together.
    pub setting: String,
    /// Where its runs come from.
    #[serde(skip)]
    pub source: String,
    /// Its runs with a representative speed, among which runs are drawn.
    pub timed: usize,
    /// Draws, those of all settings together.
    pub draws: usize,
    /// Draws whose fitted speeds are accepted.
    pub accepted_draws: usize,
    /// Other draws whose level of speeds is accepted, which changes no ranking.
    pub level_draws: usize,
    /// Draws with accepted fitted speeds after which the rank correlation of the rest is lower than before.
    pub rank_worse: usize,
    /// Before any run is seen.
    pub zero_shot: HeldOut,
    /// After calibration.
    pub calibrated: HeldOut,
    /// After calibration where it is accepted, otherwise before.
    pub accepted: HeldOut,
}

/// Runs that must remain besides the drawn ones.
const FEWEST_LEFT: usize = 3;

/// Draws, calibrates and scores in every setting that has runs enough; sources with several such
/// settings also as a whole, before them.
///
/// # Errors
///
/// If a run cannot be modelled.
pub fn transfers(settings: &[Setting], options: &DrawOptions) -> Result<Vec<Transfer>, Skip> {
    let drawn: Vec<Drawn> = settings
        .iter()
        .filter_map(|setting| drawn(setting, options).transpose())
        .collect::<Result<_, _>>()?;
    let mut transfers = Vec::new();
    for (source, parts) in by_name(&drawn, |drawn| drawn.source) {
        if parts.len() > 1 {
            transfers.push(summary(source, &together(source, &parts)));
        }
        transfers.extend(parts.iter().map(|part| summary(part.name, part)));
    }
    Ok(transfers)
}

/// All draws of a setting.
struct Drawn<'a> {
    name: &'a str,
    source: &'a str,
    timed: usize,
    draws: Vec<Draw>,
}

fn drawn<'a>(setting: &'a Setting, options: &DrawOptions) -> Result<Option<Drawn<'a>>, Skip> {
    let observations = setting.observations.iter().enumerate();
    let timed: Vec<usize> = observations
        .filter(|(_, observation)| observation.step_time.is_some())
        .map(|(index, _)| index)
        .collect();
    if timed.len() < options.runs + FEWEST_LEFT {
        return Ok(None);
    }
    let mut random = Random::new(options.seed);
    let evidence: Vec<Vec<usize>> = (0..options.draws)
        .map(|_| {
            let positions = random.draw(options.runs, timed.len());
            positions.into_iter().map(|index| timed[index]).collect()
        })
        .collect();
    // Before any run is seen: the medians of the priors.
    let before = calibrate::fit(&[], &setting.priors, &FitOptions::default()).setup;
    let draws = evidence
        .par_iter()
        .map(|drawn| Draw::new(setting, &before, drawn, options.max_oom_risk))
        .collect::<Result<_, _>>()?;
    Ok(Some(Drawn {
        name: &setting.name,
        source: &setting.cases[0].run.source,
        timed: timed.len(),
        draws,
    }))
}

/// The settings of a source as one: the first draw of each, then the second, and so on.
fn together<'a>(source: &'a str, parts: &[&Drawn<'a>]) -> Drawn<'a> {
    let draws = (0..parts[0].draws.len()).map(|index| {
        let mut whole = Draw::default();
        for part in parts {
            whole.extend(&part.draws[index]);
        }
        whole
    });
    Drawn {
        name: source,
        source,
        timed: parts.iter().map(|part| part.timed).sum(),
        draws: draws.collect(),
    }
}

/// What one draw predicts of the runs that it left.
#[derive(Debug, Default)]
struct Draw {
    /// Before, after, and after where that is accepted.
    samples: [Sample; 3],
    /// The speeds that each calibration adopts.
    speeds: Vec<Speeds>,
}

impl Draw {
    fn new(
        setting: &Setting,
        before: &Setup,
        drawn: &[usize],
        max_oom_risk: f64,
    ) -> Result<Self, Skip> {
        let evidence: Vec<&Observation> =
            drawn.iter().map(|&it| &setting.observations[it]).collect();
        let priors = Priors {
            setup: before.clone(),
            ..setting.priors.clone()
        };
        let options = FitOptions::default();
        let (tested, name) = (Adoption::Tested, &setting.name);
        let tested = calibrate::calibrate(&evidence, &priors, &options, tested, name);
        let mut always = tested.clone();
        always.adopt(&evidence, Adoption::Always, name);
        let rest = setting.cases.iter().enumerate();
        let rest = rest.filter(|(index, _)| !drawn.contains(index));
        let rest: Vec<&Case> = rest.map(|(_, case)| *case).collect();
        let predicted = |setup: &Setup| predicted(&rest, setup, max_oom_risk);
        let (zero_shot, calibrated) = (predicted(before)?, predicted(&always.setup)?);
        let accepted = predicted(&tested.setup)?;
        Ok(Self {
            samples: [zero_shot, calibrated, accepted],
            speeds: vec![tested.speeds],
        })
    }

    fn extend(&mut self, other: &Self) {
        for (sample, other) in self.samples.iter_mut().zip(&other.samples) {
            sample.extend(other);
        }
        self.speeds.extend_from_slice(&other.speeds);
    }

    /// Whether accepted figures rank the runs worse than before. Levels differ between the settings
    /// of a source.
    fn ranks_worse(&self) -> bool {
        let moved = self.speeds.contains(&Speeds::Fitted) || self.speeds.len() > 1;
        moved && self.samples[2].rank() < self.samples[0].rank()
    }
}

fn summary(name: &str, drawn: &Drawn) -> Transfer {
    let draws = &drawn.draws;
    let means = |index: usize| means(draws.iter().map(|draw| &draw.samples[index]));
    let speeds: Vec<Speeds> = draws.iter().flat_map(|draw| draw.speeds.clone()).collect();
    let adopted = |kind: Speeds| speeds.iter().filter(|&&speeds| speeds == kind).count();
    Transfer {
        setting: name.to_owned(),
        source: drawn.source.to_owned(),
        timed: drawn.timed,
        zero_shot: means(0),
        calibrated: means(1),
        accepted: means(2),
        draws: speeds.len(),
        accepted_draws: adopted(Speeds::Fitted),
        level_draws: adopted(Speeds::Level),
        rank_worse: draws.iter().filter(|draw| draw.ranks_worse()).count(),
    }
}
