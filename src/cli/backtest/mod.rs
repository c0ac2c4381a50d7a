//! `parlayout backtest`.

mod arguments;

use std::num::NonZeroUsize;

use anyhow::{Context, Result, bail};
use parlayout::catalog;
use parlayout::cluster::Cluster;
use parlayout::instance;
use parlayout::laboratory::backtest::findings::{self, Finding};
use parlayout::laboratory::backtest::{self, Backtest, Belief, Case, DrawOptions, Skipped};
use parlayout::laboratory::calibrate::Residuals;
use parlayout::laboratory::report::backtest::{
    self as report, Answer, BacktestReport, TransferReport,
};
use parlayout::laboratory::runs::{RunSetups, RunsFile, Skip};
use parlayout::report::Colour;

pub(crate) use arguments::BacktestArguments;
use arguments::BacktestFormat;

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
    if arguments.belief(Belief::Shipped) == Belief::Generic {
        setups = setups.from_data_sheets();
    }
    let (cases, skipped) = backtest::cases(&files, |run| setups.model(run));
    if let Some(runs) = arguments.calibrate_on {
        draw(arguments, &cases, &setups, runs, colour)?;
    } else if arguments.leave_one_out {
        leave_one_out(arguments, &cases, &skipped, &setups, colour)?;
    } else {
        let in_sample = fitted_sources(&cases);
        let scored = Scored::new(cases, &arguments.max_oom_risk)?;
        let (name, basis) = match given {
            Some(basis) => ("given figures", basis),
            None => ("shipped figures", as_shipped(&in_sample)),
        };
        let report = scored.report(name, basis, in_sample, &skipped, arguments);
        let answer = Answer {
            reports: vec![report],
            ..Answer::default()
        };
        show(arguments, &answer, colour)?;
    }
    Ok(SOLVED)
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

/// Cases with what is said of them.
struct Scored<'a> {
    cases: Vec<Case<'a>>,
    backtest: Backtest,
    findings: Vec<(String, Vec<Finding>)>,
}

impl<'a> Scored<'a> {
    fn new(cases: Vec<Case<'a>>, risks: &[f64]) -> Result<Self> {
        let backtest = backtest::score(&cases, risks)?;
        let findings = findings::findings(&cases);
        Ok(Self {
            cases,
            backtest,
            findings,
        })
    }

    fn report<'b>(
        &'b self,
        name: &'static str,
        basis: String,
        in_sample: Vec<String>,
        skipped: &'b Skipped,
        arguments: &BacktestArguments,
    ) -> BacktestReport<'b> {
        BacktestReport {
            name,
            basis,
            in_sample,
            by: arguments.rows(self.backtest.sources.len()),
            cases: &self.cases,
            backtest: &self.backtest,
            findings: &self.findings,
            skipped,
        }
    }
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

fn leave_one_out(
    arguments: &BacktestArguments,
    cases: &[Case],
    skipped: &Skipped,
    setups: &RunSetups,
    colour: Colour,
) -> Result<()> {
    let belief = arguments.belief(Belief::BeforeFit);
    let settings = backtest::settings(cases, setups, belief).map_err(not_modelled)?;
    let predicted = |residuals| {
        let cases = backtest::leave_one_out(&settings, residuals).map_err(not_modelled)?;
        if cases.is_empty() {
            bail!(
                "no source has two groups\nhint: the column `group` names the runs of one sweep; \
                 the others teach what it is predicted from"
            );
        }
        Scored::new(cases, &arguments.max_oom_risk)
    };
    let physics = predicted(Residuals::Ignored)?;
    let learned = predicted(Residuals::Learned)?;
    let mut skipped = skipped.clone();
    let alone = cases.len() - physics.cases.len();
    if alone > 0 {
        let because = "no other group of its source to learn from".to_owned();
        skipped.push((because, alone));
    }
    let basis = |what: &str| {
        format!(
            "Leave one group out, {what}: every group is predicted by a fit to the other groups of \
             its source, from {}.{}",
            believed(belief),
            if belief == Belief::BeforeFit {
                " Memory is as shipped: in sample."
            } else {
                ""
            }
        )
    };
    let answer = Answer {
        reports: vec![
            physics.report(
                "formulas alone",
                basis("formulas alone"),
                vec![],
                &skipped,
                arguments,
            ),
            learned.report(
                "learned residuals",
                basis("with learned residuals"),
                vec![],
                &skipped,
                arguments,
            ),
        ],
        ..Answer::default()
    };
    show(arguments, &answer, colour)
}

fn draw(
    arguments: &BacktestArguments,
    cases: &[Case],
    setups: &RunSetups,
    runs: NonZeroUsize,
    colour: Colour,
) -> Result<()> {
    let belief = arguments.belief(Belief::Shipped);
    let settings = backtest::settings(cases, setups, belief).map_err(not_modelled)?;
    let options = DrawOptions {
        runs: runs.get(),
        draws: arguments.draws.get(),
        seed: arguments.seed,
        max_oom_risk: arguments.max_oom_risk[0],
    };
    let transfers = backtest::transfers(&settings, &options)?;
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
    let answer = Answer {
        transfers: Some(TransferReport {
            basis: format!(
                "Calibration on {} random runs of each source, GPU and number format, scored on the \
                 others; means of {} draws (seed {}), picks at an accepted OOM risk of {}. Before: \
                 {}{}.",
                options.runs,
                options.draws,
                options.seed,
                options.max_oom_risk,
                believed(belief),
                if in_sample.is_empty() {
                    ""
                } else {
                    ", some of which were fitted to the runs of the sources marked *, those held \
                     out included"
                }
            ),
            in_sample,
            transfers: &transfers,
        }),
        ..Answer::default()
    };
    show(arguments, &answer, colour)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn not_modelled(skip: Skip) -> anyhow::Error {
    anyhow::anyhow!("a run cannot be modelled: {}", skip.0)
}

fn show(arguments: &BacktestArguments, answer: &Answer, colour: Colour) -> Result<()> {
    if let Some(path) = &arguments.html {
        std::fs::write(path, report::page(answer))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let style = style(colour, String::new());
    print(&match arguments.format {
        BacktestFormat::Json => report::json(answer),
        BacktestFormat::Csv => report::csv(answer),
        BacktestFormat::Table => report::text(answer, &style),
        BacktestFormat::Markdown => report::markdown(answer, &arguments.typed()),
    })
}
