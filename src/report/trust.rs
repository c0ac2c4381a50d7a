//! How far to trust a prediction, in words.

use super::number::percent;
use super::style::wrap;
use crate::cluster::{Calibration, CalibrationKind};
use crate::quantity::Mfu;
use crate::workload::Workload;

/// Where the cluster's speeds come from and what range of MFU follows from their error.
pub(crate) fn sentence(calibration: &Calibration, mfu: Mfu) -> String {
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

/// Which arithmetic the stated MFU counts.
pub(crate) fn convention(workload: &Workload) -> String {
    let formula = workload.mfu_convention.formula();
    wrap(&format!("MFU counts {formula}, over the bf16 peak."), 2)
}
