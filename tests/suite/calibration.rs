//! Calibration against the measured runs that the project ships.
//!
//! The runs are optional (`data/README.md`): without them the tests that need them pass.

use std::collections::BTreeMap;

use parlayout::calibrate::{self, FitOptions, Observation, Priors, Residuals};
use parlayout::runs::{self, Run, RunSetups, Status};

use crate::support::project;

/// The runs of a file of `data/`; none where it is missing.
fn runs_of(file: &str) -> Vec<Run> {
    let path = project("data").join(file);
    if !path.exists() {
        return Vec::new();
    }
    runs::read(&path)
        .expect("the shipped runs are readable")
        .runs
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    (sorted[half] + sorted[(sorted.len() - 1) / 2]) / 2.0
}

/// Mean and median error (%) of the MFU of each sweep, predicted from the others and what was believed
/// before any was seen.
fn leave_one_sweep_out(options: &FitOptions) -> Option<(f64, f64)> {
    let runs: Vec<Run> = runs_of("hagemann-2023.csv")
        .into_iter()
        .filter(|run| run.status == Status::Ok)
        .collect();
    let first = runs.first()?;
    let setups = RunSetups::new(None, None).expect("no framework is named");
    let cluster = setups.cluster(first).expect("the cluster is known");
    let framework = setups.framework(first).expect("the framework is known");
    let mut sweeps: BTreeMap<&str, Vec<(&Run, Observation)>> = BTreeMap::new();
    for run in &runs {
        let observation = Observation::new(run, &cluster, &framework).expect("it is modelled");
        sweeps
            .entry(&run.group)
            .or_default()
            .push((run, observation));
    }
    let mut errors = Vec::new();
    for (held_out, rows) in &sweeps {
        let others: Vec<&Observation> = sweeps
            .iter()
            .filter(|(sweep, _)| *sweep != held_out)
            .flat_map(|(_, rows)| rows.iter().map(|(_, observation)| observation))
            .collect();
        let fitted = calibrate::fit(
            &others,
            &cluster,
            &framework,
            &Priors::before_fit(),
            options,
        );
        for (run, _) in rows {
            let modelled = runs::model(run, &fitted.cluster, &fitted.framework).expect("modelled");
            let measured = run.mfu.expect("the sweeps state it");
            errors.push(100.0 * (modelled.prediction.mfu.value() / measured - 1.0).abs());
        }
    }
    Some((mean(&errors), median(&errors)))
}

#[test]
fn sweeps_are_predicted_from_the_others() {
    let options = FitOptions {
        time_scale: 0.015,
        ..FitOptions::default()
    };
    let Some(physics) = leave_one_sweep_out(&options) else {
        return;
    };
    let learned = leave_one_sweep_out(&FitOptions {
        residuals: Residuals::Learned,
        ..options
    });
    let learned = learned.expect("the runs are there");
    insta::with_settings!({
        snapshot_path => "../../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("calibration_leave_one_sweep_out", format!(
            "MFU error over the paper's sweeps, each predicted from the others:\n\
             formulas alone      mean {:.2} %, median {:.2} %\n\
             residuals learned   mean {:.2} %, median {:.2} %\n",
            physics.0, physics.1, learned.0, learned.1,
        ));
    });
}
