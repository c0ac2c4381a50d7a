//! How far to trust a prediction, in words.

use super::number::percent;
use super::style::wrap;
use crate::cluster::{Calibration, CalibrationKind};
use crate::cost_model::discrepancy;
use crate::job::Job;
use crate::laboratory::calibrate::discrepancy::standard_deviations;
use crate::layout::Layout;
use crate::quantity::Mfu;

/// Where the speeds come from, what range of MFU follows from their error, what was learned beyond
/// the formulas, and which arithmetic the stated MFU counts.
pub(crate) fn notes(job: &Job, layout: &Layout, mfu: Mfu) -> String {
    let mut notes = vec![format!(
        "Trust: {}.",
        sentence(&job.cluster.calibration, mfu)
    )];
    notes.extend(learned(job, layout));
    notes.push(format!(
        "MFU counts {}, over the bf16 peak.",
        job.workload.mfu_convention.formula()
    ));
    let notes = notes.iter().map(|note| wrap(note, 2));
    notes.collect::<Vec<_>>().join("\n")
}

/// Where the cluster's speeds come from and what range of MFU follows from their error.
fn sentence(calibration: &Calibration, mfu: Mfu) -> String {
    let error = calibration.time_error;
    let source = &calibration.source;
    let origin = match calibration.kind {
        CalibrationKind::Measured => "calibrated cluster",
        CalibrationKind::DataSheet => "cluster not calibrated",
    };
    let (low, high) = (mfu / (1.0 + error), mfu / (1.0 - error).max(0.5));
    format!(
        "{origin} ({source}); a predicted step time is typically off by {}: expect {low} to \
         {high} MFU",
        percent(error)
    )
}

/// How the runs of similar layouts correct the step time; `None` where nothing was learned of them.
fn learned(job: &Job, layout: &Layout) -> Option<String> {
    let learned = job.cluster.discrepancy.as_ref()?;
    let at = discrepancy::features_of(job, layout);
    let deviation = standard_deviations(learned, &[at])[0];
    Some(format!(
        "Runs of similar layouts correct the step time by {:+.1} %, give or take {:.1} % (one standard \
         deviation; {:.1} % where no run is similar).",
        learned.logarithm(&at).exp_m1() * 100.0,
        deviation * 100.0,
        learned.amplitude * 100.0,
    ))
}
