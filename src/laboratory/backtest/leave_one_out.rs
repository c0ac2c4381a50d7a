//! Every group predicted by what the other groups teach.

use rayon::prelude::*;

use super::case::Case;
use super::settings::Setting;
use crate::laboratory::by_name;
use crate::laboratory::calibrate::{self, FitOptions, Observation, Residuals};
use crate::laboratory::runs::{Setup, Skip, model};

/// Error of a step time beyond which a run pulls only linearly. Many runs are fitted here, so
/// that an outlier is none for its number.
const TIME_SCALE: f64 = 0.015;
/// Error of a step time that one prior standard deviation outweighs, for the same reason.
const PRIOR_WEIGHT: f64 = 0.02;

/// The cases of the settings, each predicted by a fit to the other groups of its setting, from
/// what was believed before. Settings of a single group have nothing to learn from and are left
/// out.
///
/// # Errors
///
/// If a run cannot be modelled.
pub fn leave_one_out<'a>(
    settings: &[Setting<'a>],
    residuals: Residuals,
) -> Result<Vec<Case<'a>>, Skip> {
    let options = FitOptions {
        time_scale: TIME_SCALE,
        time_prior_weight: PRIOR_WEIGHT,
        residuals,
        ..FitOptions::default()
    };
    let mut tasks = Vec::new();
    for setting in settings {
        let groups = by_name(&setting.cases, |case| case.group.as_str());
        if groups.len() > 1 {
            tasks.extend(groups.into_iter().map(|group| (setting, group)));
        }
    }
    let predicted = tasks.par_iter().map(|(setting, (group, cases))| {
        let pairs = setting.cases.iter().zip(&setting.observations);
        let others = pairs.filter(|(case, _)| case.group != *group);
        let others: Vec<&Observation> = others.map(|(_, observation)| observation).collect();
        let fitted = calibrate::fit(&others, &setting.priors, &options);
        again(cases.iter().copied().copied(), &fitted.setup)
    });
    let predicted: Vec<Vec<Case>> = predicted.collect::<Result<_, Skip>>()?;
    Ok(predicted.into_iter().flatten().collect())
}

/// The cases, predicted with other figures.
pub(super) fn again<'a: 'b, 'b>(
    cases: impl IntoIterator<Item = &'b Case<'a>>,
    setup: &Setup,
) -> Result<Vec<Case<'a>>, Skip> {
    let cases = cases.into_iter();
    let again = cases.map(|case| {
        Ok(Case {
            modelled: model(case.run, setup)?,
            ..case.clone()
        })
    });
    again.collect()
}
