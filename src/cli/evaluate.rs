//! `parlayout evaluate`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use parlayout::report::document::EvaluationDocument;
use parlayout::report::{Answer, Colour, Document};
use parlayout::{layout_argument, planner, rules};

use super::instance_arguments::InstanceArguments;
use super::{INFEASIBLE, SOLVED, print, runs, style};

#[derive(Debug, Args)]
pub(crate) struct EvaluateArguments {
    #[command(flatten)]
    instance: InstanceArguments,
    /// The layout: axes as in `[search]`, layers of each stage optional, for example
    /// `tensor_parallel=2,pipeline_parallel=4,micro_batch=1,layers=9+10x2+11`.
    #[arg(long, value_name = "KEY=VALUE,…")]
    layout: Option<String>,
    /// Predict every row of a file of measured runs (data/README.md names its columns).
    #[arg(long, value_name = "RUNS.csv", conflicts_with_all = ["layout", "instance"])]
    runs: Option<PathBuf>,
    /// Format of the answer; `csv` goes with `--runs`.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: EvaluateFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvaluateFormat {
    /// A table for people.
    Table,
    /// JSON, documented in docs/json.md.
    Json,
    /// The rows of `--runs` with the predictions appended.
    Csv,
}

pub(crate) fn run(arguments: &EvaluateArguments, colour: Colour) -> Result<u8> {
    if let Some(path) = &arguments.runs {
        return runs::run(path, &arguments.instance.job, arguments.format);
    }
    let instance = arguments.instance.load()?;
    let Some(text) = &arguments.layout else {
        bail!(
            "no layout is given: add `--layout tensor_parallel=2,pipeline_parallel=2`, or `--runs RUNS.csv`"
        );
    };
    let layout = layout_argument::parse(text, &instance).map_err(anyhow::Error::msg)?;
    let violations = rules::violations(&instance, &layout);
    let evaluated = planner::evaluate(&instance, layout);
    let document = EvaluationDocument::new(&instance, &evaluated, &violations);
    let text = match arguments.format {
        EvaluateFormat::Table => document.text(&style(colour, arguments.instance.typed())),
        EvaluateFormat::Json => document.json(),
        EvaluateFormat::Csv => bail!("`--format csv` goes with `--runs`"),
    };
    print(&text)?;
    Ok(if violations.is_empty() {
        SOLVED
    } else {
        INFEASIBLE
    })
}
