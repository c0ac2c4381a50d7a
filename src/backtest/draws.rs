//! Calibration on a few random runs of a setting, scored on the rest.

use rayon::prelude::*;

use crate::calibrate::{self, Adoption, FitOptions, Observation, Speeds, Verdict};
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::planner::PlanError;
use crate::runs::Skip;

use super::by_name;
use super::case::Case;
use super::leave_one_out::again;
use super::pick::{Pick, contenders, pick};
use super::random::Random;
use super::scores::{Errors, Verdicts, rank};
use super::settings::Setting;
use super::statistics::mean;

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

/// Why draws could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// A run cannot be modelled.
    #[error("a run cannot be modelled: {0}")]
    Skip(String),
    /// The solver failed.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl From<Skip> for DrawError {
    fn from(skip: Skip) -> Self {
        Self::Skip(skip.0)
    }
}

/// Scores of the runs that were not drawn; means over draws.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HeldOut {
    /// Median error of predicted utilisation.
    pub mfu_error: Option<f64>,
    /// Rank correlation of predicted and measured utilisation.
    pub rank: Option<f64>,
    /// The solver's pick.
    pub pick: Option<f64>,
    /// Median error of predicted peak memory.
    pub peak_error: Option<f64>,
    /// Share of out-of-memory verdicts that is right.
    pub verdicts: Option<f64>,
}

/// What calibration makes of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Name of the setting.
    pub setting: String,
    /// Where its runs come from.
    pub source: String,
    /// Its runs with a representative speed, among which runs are drawn.
    pub timed: usize,
    /// Before any run is seen.
    pub zero_shot: HeldOut,
    /// After calibration.
    pub calibrated: HeldOut,
    /// After calibration where it is accepted, otherwise before.
    pub accepted: HeldOut,
    /// Draws.
    pub draws: usize,
    /// Draws whose fitted speeds are accepted.
    pub accepted_draws: usize,
    /// Other draws whose level of speeds is accepted, which changes no ranking.
    pub level_draws: usize,
    /// Draws with accepted fitted speeds after which the rank correlation of the rest is lower than before.
    pub rank_worse: usize,
}

/// Runs that must remain besides the drawn ones.
const FEWEST_LEFT: usize = 3;

/// Draws, calibrates and scores in every setting that has runs enough.
///
/// # Errors
///
/// If a run cannot be modelled or the solver fails.
pub fn transfers(settings: &[Setting], options: &DrawOptions) -> Result<Vec<Transfer>, DrawError> {
    settings
        .iter()
        .filter_map(|setting| transfer(setting, options).transpose())
        .collect()
}

fn transfer(setting: &Setting, options: &DrawOptions) -> Result<Option<Transfer>, DrawError> {
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
    let before = believed(setting);
    let draws: Vec<Draw> = evidence
        .par_iter()
        .map(|drawn| Draw::score(setting, &before, drawn, options.max_oom_risk))
        .collect::<Result<_, _>>()?;
    Ok(Some(summary(setting, timed.len(), &draws)))
}

/// What runs are predicted with.
type Figures = (Cluster, Framework);

/// Cluster and framework before any run is seen: the medians of the priors.
fn believed(setting: &Setting) -> Figures {
    let (cluster, framework) = (&setting.cluster, &setting.framework);
    let options = FitOptions::default();
    let fitted = calibrate::fit(&[], cluster, framework, &setting.priors, &options);
    (fitted.cluster, fitted.framework)
}

/// A calibration on drawn runs.
struct Calibration {
    always: Figures,
    tested: Figures,
    speeds: Speeds,
    memory: Option<Verdict>,
}

impl Calibration {
    fn new(setting: &Setting, before: &Figures, drawn: &[usize]) -> Self {
        let evidence: Vec<&Observation> =
            drawn.iter().map(|&it| &setting.observations[it]).collect();
        let mut calibrated = calibrate::calibrate_from(
            &setting.priors,
            &evidence,
            &before.0,
            &before.1,
            &FitOptions::default(),
            Adoption::Tested,
            &setting.name,
        );
        let tested = (calibrated.cluster.clone(), calibrated.framework.clone());
        let (speeds, memory) = (calibrated.speeds, calibrated.memory_verdict);
        calibrated.adopt(Adoption::Always, &setting.name);
        Self {
            always: (calibrated.cluster, calibrated.framework),
            tested,
            speeds,
            memory,
        }
    }
}

/// One draw.
struct Draw {
    zero_shot: HeldOut,
    calibrated: HeldOut,
    accepted: HeldOut,
    speeds: Speeds,
}

impl Draw {
    fn score(
        setting: &Setting,
        before: &Figures,
        drawn: &[usize],
        max_oom_risk: f64,
    ) -> Result<Self, DrawError> {
        let calibration = Calibration::new(setting, before, drawn);
        let rest: Vec<&Case> = setting
            .cases
            .iter()
            .enumerate()
            .filter(|(index, _)| !drawn.contains(index))
            .map(|(_, case)| *case)
            .collect();
        let scored = |figures: &Figures| held_out(&rest, figures, max_oom_risk);
        let (zero_shot, calibrated) = (scored(before)?, scored(&calibration.always)?);
        let memory = calibration.memory == Some(Verdict::Accepted);
        Ok(Self {
            zero_shot,
            calibrated,
            accepted: match (calibration.speeds, memory) {
                (Speeds::Shipped, false) => zero_shot,
                (Speeds::Fitted, true) => calibrated,
                _ => scored(&calibration.tested)?,
            },
            speeds: calibration.speeds,
        })
    }
}

fn held_out(rest: &[&Case], figures: &Figures, max_oom_risk: f64) -> Result<HeldOut, DrawError> {
    let cases: Vec<Case> = rest
        .iter()
        .map(|case| again(case, &figures.0, &figures.1))
        .collect::<Result<_, _>>()?;
    let cases: Vec<&Case> = cases.iter().collect();
    let mfu: Vec<f64> = cases.iter().filter_map(|case| case.mfu_error()).collect();
    let peak: Vec<f64> = cases.iter().filter_map(|case| case.peak_error()).collect();
    let median_error = |errors: &[f64]| Errors::of(errors).map(|errors| errors.median);
    let groups = by_name(&cases, |case| case.group.as_str());
    let mut picks: Vec<Pick> = Vec::new();
    for (_, group) in groups {
        let group: Vec<&Case> = group.into_iter().copied().collect();
        picks.extend(pick(&contenders(&group), max_oom_risk, 1)?);
    }
    let shares: Vec<f64> = picks.iter().map(|pick| pick.solver).collect();
    Ok(HeldOut {
        mfu_error: median_error(&mfu),
        rank: rank(&cases),
        pick: mean(&shares),
        peak_error: median_error(&peak),
        verdicts: Verdicts::of(&cases).share(),
    })
}

fn summary(setting: &Setting, timed: usize, draws: &[Draw]) -> Transfer {
    let with = |speeds: Speeds| draws.iter().filter(move |draw| draw.speeds == speeds);
    let worse = |draw: &&Draw| draw.calibrated.rank < draw.zero_shot.rank;
    Transfer {
        setting: setting.name.clone(),
        source: setting.cases[0].run.source.clone(),
        timed,
        zero_shot: means(draws, |draw| draw.zero_shot),
        calibrated: means(draws, |draw| draw.calibrated),
        accepted: means(draws, |draw| draw.accepted),
        draws: draws.len(),
        accepted_draws: with(Speeds::Fitted).count(),
        level_draws: with(Speeds::Level).count(),
        rank_worse: with(Speeds::Fitted).filter(worse).count(),
    }
}

fn means(draws: &[Draw], scores: impl Fn(&Draw) -> HeldOut) -> HeldOut {
    let mean_of = |value: fn(&HeldOut) -> Option<f64>| {
        let values: Vec<f64> = draws
            .iter()
            .filter_map(|draw| value(&scores(draw)))
            .collect();
        mean(&values)
    };
    HeldOut {
        mfu_error: mean_of(|scores| scores.mfu_error),
        rank: mean_of(|scores| scores.rank),
        pick: mean_of(|scores| scores.pick),
        peak_error: mean_of(|scores| scores.peak_error),
        verdicts: mean_of(|scores| scores.verdicts),
    }
}
