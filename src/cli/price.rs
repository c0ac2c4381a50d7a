//! `parlayout price`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use parlayout::instance::Instance;
use parlayout::planner::{Best, PlanOptions};
use parlayout::price::{self, FrontKind};
use parlayout::report::{Colour, Style, json, pareto, price as report};

use super::instance_arguments::InstanceArguments;
use super::solve::SearchArguments;
use super::{INFEASIBLE, SOLVED, STOPPED, print, style};

#[derive(Debug, Args)]
pub(crate) struct PriceArguments {
    #[command(flatten)]
    instance: InstanceArguments,
    #[command(flatten)]
    search: SearchArguments,
    /// Solve a Pareto front instead of single changes.
    #[arg(long, value_name = "FRONT")]
    pareto: Option<FrontChoice>,
    /// Also draw the front, as SVG.
    #[arg(long, value_name = "FILE", requires = "pareto")]
    svg: Option<PathBuf>,
    /// Format of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: PriceFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FrontChoice {
    /// Memory of a GPU against model FLOP utilisation.
    MemoryMfu,
    /// Number of GPUs against step time.
    GpusTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PriceFormat {
    /// A table for people.
    Table,
    /// JSON, documented in docs/json.md.
    Json,
    /// Comma-separated values with a header.
    Csv,
}

pub(crate) fn run(arguments: &PriceArguments, colour: Colour) -> Result<u8> {
    let instance = arguments.instance.load()?;
    let options = arguments.search.options();
    let style = style(colour, arguments.instance.typed());
    if let Some(choice) = arguments.pareto {
        return front(arguments, choice, &instance, &options, &style);
    }
    let prices = price::price(&instance, &options)?;
    print(&match arguments.format {
        PriceFormat::Table => report::table(&instance, &prices, &style),
        PriceFormat::Json => json::price(&instance, &prices),
        PriceFormat::Csv => report::csv(&instance, &prices),
    })?;
    Ok(match prices.today {
        Best::Infeasible => INFEASIBLE,
        Best::Optimal(_) if prices.offers.iter().all(|offer| offer.best.is_settled()) => SOLVED,
        _ => STOPPED,
    })
}

fn front(
    arguments: &PriceArguments,
    choice: FrontChoice,
    instance: &Instance,
    options: &PlanOptions,
    style: &Style,
) -> Result<u8> {
    let kind = match choice {
        FrontChoice::MemoryMfu => FrontKind::MemoryMfu,
        FrontChoice::GpusTime => FrontKind::GpusTime,
    };
    let found = price::front(instance, kind, options)?;
    if let Some(path) = &arguments.svg {
        write_svg(path, &pareto::svg(instance, &found))?;
    }
    print(&match arguments.format {
        PriceFormat::Table => pareto::table(instance, &found, style),
        PriceFormat::Json => json::pareto(instance, &found),
        PriceFormat::Csv => pareto::csv(&found),
    })?;
    Ok(if found.points.is_empty() {
        INFEASIBLE
    } else {
        SOLVED
    })
}

fn write_svg(path: &Path, text: &str) -> Result<()> {
    if path
        .extension()
        .is_none_or(|extension| !extension.eq_ignore_ascii_case("svg"))
    {
        bail!("`{}` does not end in .svg", path.display());
    }
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}
