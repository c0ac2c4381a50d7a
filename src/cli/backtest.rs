//! `parlayout backtest`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use parlayout::backtest::findings::{self, Finding};
use parlayout::backtest::{self, Backtest, Belief, Case, DrawOptions, Skipped};
use parlayout::calibrate::Residuals;
use parlayout::instance;
use parlayout::report::Colour;
use parlayout::report::backtest::{self as report, Answer, BacktestReport, By, TransferReport};
use parlayout::runs::{self, RunSetups, RunsFile, Skip};

use super::instance_arguments::quoted;
use super::{SOLVED, print, style};

#[derive(Debug, Args)]
pub(crate) struct BacktestArguments {
    /// Files of measured runs (data/README.md names the columns).
    #[arg(required = true, value_name = "RUNS.csv")]
    runs: Vec<PathBuf>,
    /// Cluster of every run: a preset of `parlayout catalog`, or the path of a cluster file; by
    /// default the one that the run's source used, or that its GPU has.
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Framework of every run: a preset of `parlayout catalog`; by default what the run states or
    /// its source used.
    #[arg(long, value_name = "FRAMEWORK")]
    framework: Option<String>,
    /// Largest accepted probability of running out of memory, at which layouts are picked; several
    /// with commas between.
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.05"
    )]
    max_oom_risk: Vec<f64>,
    /// Which runs share a row: those of a group (a sweep) or of a source; by default of a group
    /// where all come from one source.
    #[arg(long, value_name = "WHAT")]
    by: Option<ByArgument>,
    /// Predict every group by a fit to the other groups of its source.
    #[arg(long, conflicts_with = "calibrate_on")]
    leave_one_out: bool,
    /// Calibrate on this many random runs of each source and score the others.
    #[arg(long, value_name = "N")]
    calibrate_on: Option<NonZeroUsize>,
    /// Random draws of `--calibrate-on`.
    #[arg(
        long,
        value_name = "N",
        default_value = "20",
        requires = "calibrate_on"
    )]
    draws: NonZeroUsize,
    /// Start of the random numbers of `--calibrate-on`.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "calibrate_on")]
    seed: u64,
    /// What is believed before a fit: by default `before-fit` for `--leave-one-out`, `shipped` for
    /// `--calibrate-on`.
    #[arg(long, value_name = "WHICH")]
    priors: Option<PriorsArgument>,
    /// Format of the result.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: BacktestFormat,
    /// Write a page with a plot of predicted against measured runs to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ByArgument {
    /// A row a group.
    Group,
    /// A row a source.
    Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PriorsArgument {
    /// The catalog's figures.
    Shipped,
    /// What was believed before the paper's runs were seen.
    BeforeFit,
    /// One wide profile for every framework, on the data-sheet cluster.
    Generic,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BacktestFormat {
    /// Tables for people.
    Table,
    /// JSON, documented in docs/json.md.
    Json,
    /// Comma-separated values, one row a group, source or all.
    Csv,
    /// Tables for Markdown, below the command.
    Markdown,
}

impl BacktestArguments {
    /// The command as typed, but for where its output goes.
    fn typed(&self) -> String {
        let mut words = vec!["parlayout backtest".to_owned()];
        words.extend(self.runs.iter().map(|path| quoted(&path.to_string_lossy())));
        for (flag, value) in [
            ("--cluster", &self.cluster),
            ("--framework", &self.framework),
        ] {
            if let Some(value) = value {
                words.push(format!("{flag} {}", quoted(value)));
            }
        }
        if self.max_oom_risk != [DEFAULT_RISK] {
            let risks: Vec<String> = self.max_oom_risk.iter().map(f64::to_string).collect();
            words.push(format!("--max-oom-risk {}", risks.join(",")));
        }
        if let Some(by) = self.by.and_then(|by| by.to_possible_value()) {
            words.push(format!("--by {}", by.get_name()));
        }
        words.extend(self.typed_fit());
        words.push("--format markdown".to_owned());
        words.join(" ")
    }
}

impl BacktestArguments {
    /// The arguments of fits as typed.
    fn typed_fit(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.leave_one_out {
            words.push("--leave-one-out".to_owned());
        }
        if let Some(runs) = self.calibrate_on {
            words.push(format!(
                "--calibrate-on {runs} --draws {} --seed {}",
                self.draws, self.seed
            ));
        }
        if let Some(priors) = self.priors.and_then(|priors| priors.to_possible_value()) {
            words.push(format!("--priors {}", priors.get_name()));
        }
        words
    }
}

/// Accepted probability of running out of memory unless another is given.
const DEFAULT_RISK: f64 = 0.05;

pub(crate) fn run(arguments: &BacktestArguments, colour: Colour) -> Result<u8> {
    for &risk in &arguments.max_oom_risk {
        if !(risk > 0.0 && risk < 1.0) {
            bail!(
                "`--max-oom-risk {risk}` is not between 0 and 1\nhint: it is a probability, such as 0.05"
            );
        }
    }
    let files = arguments
        .runs
        .iter()
        .map(|path| runs::read(path))
        .collect::<Result<Vec<RunsFile>, _>>()?;
    let cluster = arguments.cluster.as_deref().map(instance::read_machine);
    let mut setups = RunSetups::new(cluster.transpose()?, arguments.framework.as_deref())?;
    if arguments.priors == Some(PriorsArgument::Generic) {
        setups = setups.from_data_sheets();
    }
    let (cases, skipped) = backtest::cases(&files, |run| setups.model(run));
    if let Some(runs) = arguments.calibrate_on {
        draw(arguments, &cases, &setups, runs, colour)?;
    } else if arguments.leave_one_out {
        leave_one_out(arguments, &cases, &skipped, &setups, colour)?;
    } else {
        let scored = Scored::new(cases, &arguments.max_oom_risk)?;
        let report = scored.report(AS_SHIPPED.to_owned(), &skipped, arguments.by);
        let answer = Answer {
            reports: vec![report],
            ..Answer::default()
        };
        show(arguments, &answer, colour)?;
    }
    Ok(SOLVED)
}

const AS_SHIPPED: &str = "Predictions by the shipped figures. Those of hagemann-2023, \
    nanotron-ultrascale, vTrain-single, llm-foundry, InternEvo, ZeroBubble-ICLR24 and \
    VocabularyParallelism were fitted to these very runs: in sample. Other sources: zero-shot.";

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
        basis: String,
        skipped: &'b Skipped,
        by: Option<ByArgument>,
    ) -> BacktestReport<'b> {
        BacktestReport {
            basis,
            by: rows(by, self.backtest.sources.len()),
            cases: &self.cases,
            backtest: &self.backtest,
            findings: &self.findings,
            skipped,
        }
    }
}

fn belief(argument: Option<PriorsArgument>, otherwise: Belief) -> Belief {
    match argument {
        None => otherwise,
        Some(PriorsArgument::Shipped) => Belief::Shipped,
        Some(PriorsArgument::BeforeFit) => Belief::BeforeFit,
        Some(PriorsArgument::Generic) => Belief::Generic,
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
    let belief = belief(arguments.priors, Belief::BeforeFit);
    let settings = backtest::settings(cases, setups, belief).map_err(not_modelled)?;
    let predicted = |residuals| {
        let cases = backtest::leave_one_out(&settings, residuals).map_err(not_modelled)?;
        Scored::new(cases, &arguments.max_oom_risk)
    };
    let physics = predicted(Residuals::Ignored)?;
    let learned = predicted(Residuals::Learned)?;
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
            physics.report(basis("formulas alone"), skipped, arguments.by),
            learned.report(basis("with learned residuals"), skipped, arguments.by),
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
    let belief = belief(arguments.priors, Belief::Shipped);
    let settings = backtest::settings(cases, setups, belief).map_err(not_modelled)?;
    let options = DrawOptions {
        runs: runs.get(),
        draws: arguments.draws.get(),
        seed: arguments.seed,
        max_oom_risk: arguments.max_oom_risk[0],
    };
    let transfers = backtest::transfers(&settings, &options)?;
    let answer = Answer {
        transfers: Some(TransferReport {
            basis: format!(
                "Calibration on {} random runs of each source, GPU and number format, scored on the \
                 others; means of {} draws (seed {}), picks at an accepted OOM risk of {}. Before: \
                 {}.",
                options.runs,
                options.draws,
                options.seed,
                options.max_oom_risk,
                believed(belief)
            ),
            transfers: &transfers,
        }),
        ..Answer::default()
    };
    show(arguments, &answer, colour)
}

fn not_modelled(skip: Skip) -> anyhow::Error {
    anyhow::anyhow!("a run cannot be modelled: {}", skip.0)
}

fn rows(argument: Option<ByArgument>, sources: usize) -> By {
    match argument {
        Some(ByArgument::Group) => By::Group,
        Some(ByArgument::Source) => By::Source,
        None if sources == 1 => By::Group,
        None => By::Source,
    }
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
