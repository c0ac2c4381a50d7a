//! `parlayout backtest`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use parlayout::backtest::{self, findings};
use parlayout::instance;
use parlayout::report::backtest::{self as report, BacktestReport, By};
use parlayout::report::{Colour, shell_word};
use parlayout::runs::{self, RunSetups, RunsFile};

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
        words.extend(
            self.runs
                .iter()
                .map(|path| shell_word(&path.to_string_lossy())),
        );
        for (flag, value) in [
            ("--cluster", &self.cluster),
            ("--framework", &self.framework),
        ] {
            if let Some(value) = value {
                words.push(format!("{flag} {}", shell_word(value)));
            }
        }
        if self.max_oom_risk != [DEFAULT_RISK] {
            let risks: Vec<String> = self.max_oom_risk.iter().map(f64::to_string).collect();
            words.push(format!("--max-oom-risk {}", risks.join(",")));
        }
        if let Some(by) = self.by.and_then(|by| by.to_possible_value()) {
            words.push(format!("--by {}", by.get_name()));
        }
        words.push("--format markdown".to_owned());
        words.join(" ")
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
    let setups = RunSetups::new(cluster.transpose()?, arguments.framework.as_deref())?;
    let (cases, skipped) = backtest::cases(&files, |run| setups.model(run));
    let scored = backtest::score(&cases, &arguments.max_oom_risk)?;
    let findings = findings::findings(&cases);
    let report = BacktestReport {
        basis: "Predictions as shipped.".to_owned(),
        by: by(arguments.by, scored.sources.len()),
        cases: &cases,
        backtest: &scored,
        findings: &findings,
        skipped: &skipped,
    };
    show(arguments, &[report], colour)?;
    Ok(SOLVED)
}

fn by(argument: Option<ByArgument>, sources: usize) -> By {
    match argument {
        Some(ByArgument::Group) => By::Group,
        Some(ByArgument::Source) => By::Source,
        None if sources == 1 => By::Group,
        None => By::Source,
    }
}

fn show(arguments: &BacktestArguments, reports: &[BacktestReport], colour: Colour) -> Result<()> {
    if let Some(path) = &arguments.html {
        std::fs::write(path, report::page(reports))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let style = style(colour, String::new());
    print(&match arguments.format {
        BacktestFormat::Json => report::json(reports),
        BacktestFormat::Csv => report::csv(reports),
        BacktestFormat::Table => joined(reports.iter().map(|it| report::text(it, &style))),
        BacktestFormat::Markdown => report::markdown(reports, &arguments.typed()),
    })
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}
