//! The arguments of `parlayout backtest`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use parlayout::laboratory::backtest::{Belief, LeaveOut};
use parlayout::laboratory::report::backtest::By;

use parlayout::report::shell_word;

#[derive(Debug, Args)]
pub(crate) struct BacktestArguments {
    /// Files of measured runs (data/README.md names the columns).
    #[arg(required = true, value_name = "RUNS.csv")]
    pub(super) runs: Vec<PathBuf>,
    /// Cluster of every run: a preset of `parlayout catalog`, or the path of a cluster file; by
    /// default the one that the run's source used, or that its GPU has.
    #[arg(long, value_name = "CLUSTER")]
    pub(super) cluster: Option<String>,
    /// Framework of every run: a preset of `parlayout catalog`; by default what the run states or
    /// its source used.
    #[arg(long, value_name = "FRAMEWORK")]
    pub(super) framework: Option<String>,
    /// Largest accepted probability of running out of memory, at which layouts are picked; several
    /// with commas between.
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.05"
    )]
    pub(super) max_oom_risk: Vec<f64>,
    /// Judge the runs of mixtures of experts, and only those; without it, those of dense networks.
    #[arg(long)]
    pub(super) experts: bool,
    /// Which runs share a row: those of a group (a sweep) or of a source; by default of a group
    /// where all come from one source.
    #[arg(long, value_name = "WHAT", value_parser = one_of(By::NAMES, By::parse))]
    pub(super) by: Option<By>,
    /// Predict every source, framework or generation of GPUs by one fit to the runs of all others; or
    /// every group by a fit to the other groups of its source.
    #[arg(long, value_name = "WHAT", value_parser = one_of(LeaveOut::NAMES, LeaveOut::parse), conflicts_with = "calibrate_on")]
    pub(super) leave_out: Option<LeaveOut>,
    /// The same as `--leave-out group`.
    #[arg(long, conflicts_with_all = ["calibrate_on", "leave_out"], hide = true)]
    pub(super) leave_one_out: bool,
    /// Calibrate on this many random runs of each source and score the others.
    #[arg(long, value_name = "N")]
    pub(super) calibrate_on: Option<NonZeroUsize>,
    /// Random draws of `--calibrate-on`.
    #[arg(
        long,
        value_name = "N",
        default_value = "20",
        requires = "calibrate_on"
    )]
    pub(super) draws: NonZeroUsize,
    /// Start of the random numbers of `--calibrate-on`.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "calibrate_on")]
    pub(super) seed: u64,
    /// What is believed before a fit: the catalog's figures (`shipped`, the default for
    /// `--calibrate-on`), what was believed before the paper's runs were seen (`before-fit`, the
    /// default for `--leave-out group`), or one wide profile for every framework on the data-sheet
    /// cluster (`generic`).
    #[arg(long, value_name = "WHICH", value_parser = one_of(Belief::NAMES, Belief::parse))]
    pub(super) priors: Option<Belief>,
    /// Format of the result.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(super) format: BacktestFormat,
    /// Write a page with a plot of predicted against measured runs to this file.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

/// Reads a choice by its name.
fn one_of<T: Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).map(move |name| parse(&name).expect("it is one of the names"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BacktestFormat {
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
    /// Refuses risks that are no probabilities, and a format that has no place for the answer.
    pub(super) fn check(&self) -> Result<()> {
        for &risk in &self.max_oom_risk {
            if !(risk > 0.0 && risk < 1.0) {
                bail!(
                    "`--max-oom-risk {risk}` is not between 0 and 1\nhint: it is a probability, such as 0.05"
                );
            }
        }
        if self.calibrate_on.is_some() && self.format == BacktestFormat::Csv {
            bail!("`--format csv` has no rows for `--calibrate-on`\nhint: `--format json` has");
        }
        let fits = self.calibrate_on.is_some() || self.left_out() == Some(LeaveOut::Group);
        if self.priors.is_some() && !fits {
            bail!(
                "`--priors` says where the fit to one source starts, and none is asked for\nhint: add \
                 `--leave-out group` or `--calibrate-on 10`"
            );
        }
        let given = self.cluster.is_some() || self.framework.is_some();
        if given && self.left_out().is_some_and(|by| by != LeaveOut::Group) {
            bail!(
                "`--leave-out` takes the clusters and frameworks of the runs' sources\nhint: omit \
                 `--cluster` and `--framework`"
            );
        }
        Ok(())
    }

    /// What is left out of fits.
    pub(super) fn left_out(&self) -> Option<LeaveOut> {
        self.leave_out
            .or(self.leave_one_out.then_some(LeaveOut::Group))
    }
}

/// The command as typed, but for where its output goes.
pub(super) fn typed() -> String {
    let mut words = vec!["parlayout".to_owned()];
    let mut typed = std::env::args().skip(1);
    while let Some(word) = typed.next() {
        match word.split_once('=').map_or(&*word, |(flag, _)| flag) {
            "--format" | "--html" => {
                if !word.contains('=') {
                    typed.next();
                }
            }
            _ => words.push(shell_word(&word)),
        }
    }
    words.push("--format markdown".to_owned());
    words.join(" ")
}
