//! `parlayout backtest --leave-out source|framework|gpu`.

use std::io::IsTerminal as _;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parlayout::laboratory::backtest::{self, Case, LeaveOut};
use parlayout::laboratory::report::backtest::{BacktestReport, By, ErrorsOf};
use parlayout::laboratory::runs::{RunSetups, Skipped};

use super::{BacktestArguments, not_modelled, report};

/// The report on runs that are predicted by what others teach.
pub(super) fn leave_out<'a>(
    arguments: &BacktestArguments,
    cases: &[Case<'a>],
    mut skipped: Vec<Skipped>,
    setups: &RunSetups,
    by: LeaveOut,
) -> Result<BacktestReport<'a>> {
    let timed = backtest::timed_sources(cases);
    if cases.len() > timed.len() {
        skipped.push(Skipped {
            because: "its source has fewer than four step times".to_owned(),
            runs: cases.len() - timed.len(),
        });
    }
    let bar = progress();
    let predicted = backtest::leave_out(&timed, setups, by, |fits| {
        bar.set_length(fits as u64);
        bar.inc(1);
    });
    bar.finish_and_clear();
    let predicted = predicted.map_err(not_modelled)?;
    if predicted.is_empty() {
        bail!(
            "no source has four runs with a representative step time\nhint: columns `step_time_s` and \
             `source`; one of several is predicted by what the others teach"
        );
    }
    let name = match by {
        LeaveOut::Source => "leave one source out",
        LeaveOut::Framework => "leave one framework out",
        LeaveOut::Gpu => "leave one generation of GPUs out",
        LeaveOut::Group => "leave one group out",
    };
    let basis = format!(
        "{}: each is predicted by one fit to the runs of all others, every source with the same weight, from \
         priors that no run has taught, on the data-sheet cluster of its GPU with the network that its source \
         states. Memory is as shipped.",
        name.replace("leave one", "Leave one"),
    );
    let report = report(arguments, name, basis, predicted, skipped);
    Ok(BacktestReport {
        by: arguments.by.unwrap_or(By::Source),
        errors: ErrorsOf::StepTime,
        ..report
    })
}

/// Fits done, on a terminal.
fn progress() -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} fits, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
