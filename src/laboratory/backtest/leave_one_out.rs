//! Every group predicted by what the other groups teach.

use rayon::prelude::*;

use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::laboratory::calibrate::{self, FitOptions, Fitted, Observation, Residuals};
use crate::laboratory::runs::{Skip, model};

use super::by_name;
use super::case::Case;
use super::settings::Setting;

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
            tasks.extend(groups.into_iter().map(|(group, cases)| {
                let cases: Vec<&Case> = cases.into_iter().copied().collect();
                (setting, group, cases)
            }));
        }
    }
    let predicted: Vec<Vec<Case>> = tasks
        .par_iter()
        .map(|(setting, group, cases)| {
            let fitted = without(setting, group, &options);
            cases
                .iter()
                .map(|case| again(case, &fitted.cluster, &fitted.framework))
                .collect()
        })
        .collect::<Result<_, Skip>>()?;
    Ok(predicted.into_iter().flatten().collect())
}

/// The fit to all groups of the setting but one.
fn without(setting: &Setting, group: &str, options: &FitOptions) -> Fitted {
    let pairs = setting.cases.iter().zip(&setting.observations);
    let others: Vec<&Observation> = pairs
        .filter(|(case, _)| case.group != group)
        .map(|(_, observation)| observation)
        .collect();
    let (cluster, framework) = (&setting.cluster, &setting.framework);
    calibrate::fit(&others, cluster, framework, &setting.priors, options)
}

/// The case, predicted with other figures.
pub(super) fn again<'a>(
    case: &Case<'a>,
    cluster: &Cluster,
    framework: &Framework,
) -> Result<Case<'a>, Skip> {
    Ok(Case {
        modelled: model(case.run, cluster, framework)?,
        ..case.clone()
    })
}
