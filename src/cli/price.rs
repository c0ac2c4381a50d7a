//! `parlayout price`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use parlayout::files;
use parlayout::instance::Instance;
use parlayout::planner::{Best, PlanOptions, Progress};
use parlayout::price::{self, FrontKind, MORE_GPUS, Sought};
use parlayout::report::document::{ParetoDocument, PriceDocument};
use parlayout::report::{Answer, Colour, Document, Style};

use super::goal;
use super::instance_arguments::InstanceArguments;
use super::progress::bar;
use super::solve::SearchArguments;
use super::{INFEASIBLE, SOLVED, STOPPED, print, style};

#[derive(Debug, Args)]
pub(crate) struct PriceArguments {
    /// Solve a Pareto front instead of single changes.
    #[arg(long, value_name = "FRONT")]
    pareto: Option<FrontChoice>,
    /// Also draw the front, as SVG.
    #[arg(long, value_name = "FILE", requires = "pareto")]
    svg: Option<PathBuf>,
    /// Fewest GPUs of `--pareto gpus-time`; 1 unless named.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    gpus_from: Option<u32>,
    /// Most GPUs of `--pareto gpus-time`; twice the instance's unless named.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    gpus_to: Option<u32>,
    /// Format of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: PriceFormat,
    #[command(flatten)]
    instance: InstanceArguments,
    #[command(flatten)]
    search: SearchArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FrontChoice {
    /// Memory per GPU against model FLOP utilisation.
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
    let has_range = arguments.gpus_from.is_some() || arguments.gpus_to.is_some();
    if has_range && arguments.pareto != Some(FrontChoice::GpusTime) {
        bail!(
            "`--gpus-from` and `--gpus-to` need an open number of GPUs\nhint: add `--pareto gpus-time`"
        );
    }
    let options = arguments.search.options();
    let style = style(colour, arguments.instance.typed());
    if let Some(choice) = arguments.pareto {
        return front(arguments, choice, &instance, &options, &style);
    }
    let prices = solving("changes", |progress| {
        price::price(&instance, &options, progress)
    })?;
    let document = PriceDocument::new(&instance, &prices);
    print(&match arguments.format {
        PriceFormat::Table => document.text(&style),
        PriceFormat::Json => document.json(),
        PriceFormat::Csv => document.csv(),
    })?;
    Ok(match prices.today {
        Best::Infeasible => INFEASIBLE,
        Best::Optimal(_) if prices.offers.iter().all(|offer| offer.best.is_proven()) => SOLVED,
        _ => STOPPED,
    })
}

/// Shows how many of what are solved.
fn solving<T>(what: &str, solve: impl FnOnce(&Progress) -> T) -> T {
    let bar = bar(Some(0), &format!("{what} solved"));
    let solved = solve(&|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    solved
}

fn front(
    arguments: &PriceArguments,
    choice: FrontChoice,
    instance: &Instance,
    options: &PlanOptions,
    style: &Style,
) -> Result<u8> {
    let sought = match choice {
        FrontChoice::MemoryMfu => Sought::Memory,
        FrontChoice::GpusTime => {
            let most = instance.job.cluster.gpus.saturating_mul(MORE_GPUS);
            let (from, to) = (arguments.gpus_from, arguments.gpus_to);
            Sought::Gpus(goal::counts(instance, from, to, most)?)
        }
    };
    let found = solving(
        match sought.kind() {
            FrontKind::MemoryMfu => "ranges of memory",
            FrontKind::GpusTime => "numbers of GPUs",
        },
        |progress| price::front(instance, &sought, options, progress),
    )?;
    let document = ParetoDocument::new(instance, &found);
    if let Some(path) = &arguments.svg {
        write_svg(path, &document.svg())?;
    }
    print(&match arguments.format {
        PriceFormat::Table => document.text(style),
        PriceFormat::Json => document.json(),
        PriceFormat::Csv => document.csv(),
    })?;
    Ok(match (found.unproven, found.points.len()) {
        (0, 0) => INFEASIBLE,
        (0, _) => SOLVED,
        _ => STOPPED,
    })
}

fn write_svg(path: &Path, text: &str) -> Result<()> {
    if path
        .extension()
        .is_none_or(|extension| !extension.eq_ignore_ascii_case("svg"))
    {
        bail!("`{}` does not end in .svg", path.display());
    }
    Ok(files::write(path, text)?)
}
