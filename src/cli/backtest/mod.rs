//! `parlayout backtest`.

mod arguments;
mod pool;

use std::num::NonZeroUsize;

use anyhow::{Result, bail};
use parlayout::catalog;
use parlayout::cluster::Cluster;
use parlayout::files;
use parlayout::instance;
use parlayout::laboratory::backtest::{self, Belief, Case, DrawOptions, LeaveOut};
use parlayout::laboratory::calibrate::Residuals;
use parlayout::laboratory::report::backtest::{Answer, BacktestReport, TransferReport, csv, page};
use parlayout::laboratory::runs::{Networks, RunSetups, RunsFile, Skip, Skipped};
use parlayout::report::{Colour, Document};

pub(crate) use arguments::BacktestArguments;
use arguments::{BacktestFormat, typed};

use super::runs::read;
use super::{SOLVED, print, style};

pub(crate) fn run(arguments: &BacktestArguments, colour: Colour) -> Result<u8> {
    arguments.check()?;
    let files = arguments
        .runs
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<RunsFile>>>()?;
    let machine = arguments.cluster.as_deref().map(instance::read_machine);
    let machine = machine.transpose()?;
    let given = machine.as_ref().map(|machine| as_given(&machine.cluster));
    let mut setups = RunSetups::new(machine, arguments.framework.as_deref())?;
    if arguments.experts {
        setups = setups.of(Networks::Experts);
    }
    let left_out = arguments.left_out();
    let pooled = left_out.filter(|&by| by != LeaveOut::Group);
    if arguments.priors == Some(Belief::Generic) || pooled.is_some() {
        setups = setups.from_data_sheets();
    }
    let (cases, skipped) = backtest::cases(&files, |run| setups.model(run));
    let answer = if let Some(runs) = arguments.calibrate_on {
        Answer::new(vec![], Some(draw(arguments, &cases, &setups, runs)?))
    } else if let Some(by) = pooled {
        let report = pool::leave_out(arguments, &cases, skipped, &setups, by)?;
        Answer::new(vec![report], None)
    } else if left_out.is_some() {
        Answer::new(leave_one_out(arguments, &cases, &skipped, &setups)?, None)
    } else {
        let in_sample = fitted_sources(&cases);
        let (name, basis) = match given {
            Some(basis) => ("given figures", basis),
            None => ("shipped figures", as_shipped(&in_sample)),
        };
        let mut report = report(arguments, name, basis, cases, skipped);
        report.in_sample = in_sample;
        Answer::new(vec![report], None)
    };
    show(arguments, &answer, colour)?;
    Ok(SOLVED)
}

fn report<'a>(
    arguments: &BacktestArguments,
    name: &'static str,
    basis: String,
    cases: Vec<Case<'a>>,
    skipped: Vec<Skipped>,
) -> BacktestReport<'a> {
    let report = BacktestReport::new(name, basis, cases, &arguments.max_oom_risk);
    BacktestReport {
        by: arguments.by.unwrap_or(report.by),
        skipped,
        ..report
    }
}

/// The sources of the cases whose runs figures of the catalog were fitted to.
fn fitted_sources(cases: &[Case]) -> Vec<String> {
    let mut sources: Vec<String> = Vec::new();
    for case in cases {
        let source = &case.run.source;
        if catalog::is_fitted_to(source) && !sources.contains(source) {
            sources.push(source.clone());
        }
    }
    sources
}

/// What predictions by the figures of a given cluster are worth.
fn as_given(cluster: &Cluster) -> String {
    format!(
        "Predictions by the figures of the given cluster {} ({}): in sample for runs that they were \
         fitted to.",
        cluster.name, cluster.calibration.source
    )
}

/// What predictions by the shipped figures are worth.
fn as_shipped(in_sample: &[String]) -> String {
    let worth = if in_sample.is_empty() {
        "none of which was fitted to these runs: zero-shot".to_owned()
    } else {
        format!(
            "some of which were fitted to the runs of {}: scores on those are in sample (*), on \
             others zero-shot",
            in_sample.join(", ")
        )
    };
    format!("Predictions by the shipped figures, {worth}.")
}

/// What a belief is, in words.
const fn believed(belief: Belief) -> &'static str {
    match belief {
        Belief::Shipped => "the shipped figures",
        Belief::BeforeFit => "what was believed before the paper's runs were seen",
        Belief::Generic => {
            "one generic profile with wide priors on the data-sheet cluster, which knows of each \
             framework documented structure alone"
        }
    }
}

fn leave_one_out<'a>(
    arguments: &BacktestArguments,
    cases: &'a [Case<'a>],
    skipped: &[Skipped],
    setups: &RunSetups,
) -> Result<Vec<BacktestReport<'a>>> {
    let belief = arguments.priors.unwrap_or(Belief::BeforeFit);
    let settings = backtest::settings(cases, setups, belief).map_err(not_modelled)?;
    let ways = [
        (Residuals::Ignored, "formulas alone", "formulas alone"),
        (
            Residuals::Learned,
            "learned residuals",
            "with learned residuals",
        ),
    ];
    let reports = ways.map(|(residuals, name, what)| {
        let predicted = backtest::leave_one_out(&settings, residuals).map_err(not_modelled)?;
        if predicted.is_empty() {
            bail!(
                "no source has two groups\nhint: the column `group` names the runs of one sweep; \
                 the others teach what it is predicted from"
            );
        }
        let mut skipped = skipped.to_vec();
        let runs = cases.len() - predicted.len();
        if runs > 0 {
            let because = "no other group of its source to learn from".to_owned();
            skipped.push(Skipped { because, runs });
        }
        let memory = match belief {
            Belief::BeforeFit => " Memory is as shipped: in sample.",
            Belief::Shipped | Belief::Generic => "",
        };
        let basis = format!(
            "Leave one group out, {what}: every group is predicted by a fit to the other groups of \
             its source, from {}.{memory}",
            believed(belief),
        );
        Ok(report(arguments, name, basis, predicted, skipped))
    });
    reports.into_iter().collect()
}

fn draw(
    arguments: &BacktestArguments,
    cases: &[Case],
    setups: &RunSetups,
    runs: NonZeroUsize,
) -> Result<TransferReport> {
    let belief = arguments.priors.unwrap_or(Belief::Shipped);
    let settings = backtest::settings(cases, setups, belief).map_err(not_modelled)?;
    let options = DrawOptions {
        runs: runs.get(),
        draws: arguments.draws.get(),
        seed: arguments.seed,
        max_oom_risk: arguments.max_oom_risk[0],
    };
    let transfers = backtest::transfers(&settings, &options).map_err(not_modelled)?;
    if transfers.is_empty() {
        bail!(
            "no source has enough runs with a speed for `--calibrate-on {runs}`\nhint: a few must \
             be left to score"
        );
    }
    let in_sample = match belief {
        Belief::Shipped => fitted_sources(cases),
        Belief::BeforeFit | Belief::Generic => Vec::new(),
    };
    let worth = if in_sample.is_empty() {
        ""
    } else {
        ", some of which were fitted to the runs of the sources marked *, those held out included"
    };
    let basis = format!(
        "Calibration on {} random runs of each source, GPU and number format, scored on the \
         others; means of {} draws (seed {}), picks at an accepted OOM risk of {}. Before: {}{worth}.",
        options.runs,
        options.draws,
        options.seed,
        options.max_oom_risk,
        believed(belief),
    );
    Ok(TransferReport {
        basis,
        in_sample,
        transfers,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn not_modelled(skip: Skip) -> anyhow::Error {
    anyhow::anyhow!("a run cannot be modelled: {}", skip.0)
}

fn show(arguments: &BacktestArguments, answer: &Answer, colour: Colour) -> Result<()> {
    if let Some(path) = &arguments.html {
        files::write(path, &page(answer))?;
    }
    let style = style(colour, String::new());
    print(&match arguments.format {
        BacktestFormat::Json => answer.json(),
        BacktestFormat::Csv => csv(answer),
        BacktestFormat::Table => answer.text(&style),
        BacktestFormat::Markdown => answer.markdown(&typed()),
    })
}
