//! The command line: definitions and dispatch.

mod backtest;
mod batch;
mod calibrate;
mod catalog;
mod check;
mod diff;
mod evaluate;
mod explain;
mod export;
mod goal;
mod instance_arguments;
mod logs;
mod price;
mod progress;
mod report;
mod runs;
mod solve;
mod verify;

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use parlayout::report::{Answer, Colour, Style};

/// Exit code: solved.
pub(crate) const SOLVED: u8 = 0;
/// Exit code: bad input or usage.
pub(crate) const BAD_INPUT: u8 = 2;
/// Exit code: proven infeasible; in `evaluate`, rules broken.
pub(crate) const INFEASIBLE: u8 = 3;
/// Exit code: stopped at a limit.
pub(crate) const STOPPED: u8 = 4;
/// Exit code: an answer is false.
pub(crate) const REJECTED: u8 = 5;
const ABOUT: &str = "\
Finds the fastest parallel layout for training a large language model, proves it optimal, and \
explains it.

A layout says how a training job uses its GPUs: the tensor, pipeline, context and data parallel \
degrees, the micro-batch, what is checkpointed, sharded and split. parlayout writes the choice as \
a mixed-integer program over a cost model that was fitted to measured runs, solves it with HiGHS, \
and prints the layout, its predicted step time and memory, and the flags of your framework.";

const AFTER: &str = "\
Start here:
  parlayout solve instances/hagemann-13b-2k-64gpu.toml
  parlayout solve --model llama-3.1-70b --cluster dgx-h100-80gb --gpus 64 \\
                  --sequence-length 8192 --global-batch 256
  parlayout catalog                    names of models, clusters and frameworks

Exit codes:
  0  solved; the layout obeys every rule; the answer is true
  2  bad input or usage
  3  proven infeasible; in `evaluate` and `check`, a rule is broken or it does not fit
  4  stopped at a limit; what was printed is the best known
  5  in `verify`, the answer is false
`batch` ends with the worst of its files: 2 before 3 before 4.";

#[derive(Debug, Parser)]
#[command(name = "parlayout", version, about = ABOUT, after_help = AFTER, max_term_width = 100)]
struct Cli {
    /// When to colour output for people.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find the fastest layout of one job, with proof.
    Solve(solve::SolveArguments),
    /// Solve many instance files side by side.
    Batch(batch::BatchArguments),
    /// Price changes of a job by solving it anew: more memory, nodes, network, other kernels.
    Price(price::PriceArguments),
    /// Predict time and memory of one given layout, or of a file of measured runs.
    Evaluate(evaluate::EvaluateArguments),
    /// Say why there is no layout and what would repair that, what limits the best one, or why
    /// not another choice.
    Explain(explain::ExplainArguments),
    /// Check an answer of `solve` by another method: every figure, every rule, the whole space.
    Verify(verify::VerifyArguments),
    /// Check a launch script or configuration file of a framework: legal, fits, how fast, what would be better.
    Check(check::CheckArguments),
    /// Set two layouts side by side, term by term.
    Diff(diff::DiffArguments),
    /// Score predictions and picks against files of measured runs.
    Backtest(backtest::BacktestArguments),
    /// Fit the cost model to your cluster with the runs that you have.
    Calibrate(calibrate::CalibrateArguments),
    /// Write the solved layout as the settings of a training framework.
    Export(export::ExportArguments),
    /// Write a saved answer as a page that explains it, or as a trace of one step.
    Report(report::ReportArguments),
    /// List the presets and where their figures come from.
    Catalog(catalog::CatalogArguments),
    /// Print the completion script of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Format of a single answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Table,
    /// JSON, documented in docs/json.md.
    Json,
}

/// Parses the arguments and runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    let cli = Cli::parse();
    let colour = colour(cli.color);
    let code = match cli.command {
        Command::Solve(arguments) => solve::run(&arguments, colour)?,
        Command::Batch(arguments) => batch::run(&arguments, colour)?,
        Command::Price(arguments) => price::run(&arguments, colour)?,
        Command::Evaluate(arguments) => evaluate::run(&arguments, colour)?,
        Command::Explain(arguments) => explain::run(&arguments, colour)?,
        Command::Verify(arguments) => verify::run(&arguments, colour)?,
        Command::Check(arguments) => check::run(&arguments, colour)?,
        Command::Diff(arguments) => diff::run(&arguments, colour)?,
        Command::Backtest(arguments) => backtest::run(&arguments, colour)?,
        Command::Calibrate(arguments) => calibrate::run(arguments, colour)?,
        Command::Export(arguments) => export::run(&arguments)?,
        Command::Report(arguments) => report::run(&arguments)?,
        Command::Catalog(arguments) => catalog::run(&arguments, colour)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "parlayout", &mut script);
            print(&String::from_utf8_lossy(&script))?;
            SOLVED
        }
    };
    Ok(ExitCode::from(code))
}

fn colour(choice: ColorChoice) -> Colour {
    let wanted = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::io::stdout().is_terminal()
        }
    };
    if wanted {
        Colour::Always
    } else {
        Colour::Never
    }
}

impl Format {
    /// The answer in this format.
    pub(crate) fn of(self, answer: &impl Answer, style: &Style) -> String {
        match self {
            Self::Table => answer.text(style),
            Self::Json => answer.json(),
        }
    }
}

/// How output for people looks, with the arguments that name the instance.
pub(crate) fn style(colour: Colour, instance_arguments: String) -> Style {
    Style {
        colour,
        instance_arguments,
    }
}

/// Writes a result to standard output. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a message to standard error; there is nobody to tell if that fails.
pub(crate) fn complain(text: &str) {
    let mut output = std::io::stderr().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.write_all(b"\n"));
    drop(written);
}
