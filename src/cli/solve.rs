//! `parlayout solve`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use formulations::layout_choice;
use parlayout::certificate;
use parlayout::instance::Instance;
use parlayout::plan::{Formulation, Outcome};
use parlayout::planner::{self, PlanOptions, Pruning};
use parlayout::report::{Colour, json, table};

use super::instance_arguments::InstanceArguments;
use super::{Format, INFEASIBLE, SOLVED, STOPPED, print, style};

#[derive(Debug, Args)]
pub(crate) struct SolveArguments {
    #[command(flatten)]
    instance: InstanceArguments,
    #[command(flatten)]
    search: SearchArguments,
    /// Format of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Also write the program with named rows and columns, as CPLEX LP (.lp) or MPS (.mps).
    #[arg(long, value_name = "FILE")]
    write_model: Option<PathBuf>,
    /// Also write what proves the answer (docs/certificate.md), for `parlayout verify`.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

/// How to search; shared by the commands that solve.
#[derive(Debug, Args)]
#[command(next_help_heading = "The search")]
pub(crate) struct SearchArguments {
    /// The program to solve.
    #[arg(long, value_name = "NAME", default_value = "staged")]
    formulation: FormulationChoice,
    /// Give every combination to the solver, also those that a bound excludes.
    #[arg(long)]
    no_prune: bool,
    /// Longest time for the solver, in seconds; then the best known plan and its gap are printed.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormulationChoice {
    /// The combination, the layers of every stage and how many are checkpointed, together.
    Staged,
    /// One-hot axes, the framework's own cut into stages, one checkpointing flag.
    LayoutChoice,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(number)
        .map_err(|_| format!("`{text}` is not a possible number of seconds"))
}

impl SearchArguments {
    /// The options of the planner.
    pub(crate) fn options(&self) -> PlanOptions {
        PlanOptions {
            formulation: match self.formulation {
                FormulationChoice::Staged => Formulation::Staged,
                FormulationChoice::LayoutChoice => Formulation::LayoutChoice,
            },
            pruning: if self.no_prune {
                Pruning::None
            } else {
                Pruning::ByBounds
            },
            time_limit: self.time_limit,
            ..PlanOptions::default()
        }
    }
}

/// Exit code of an outcome.
pub(crate) const fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Optimal(_) => SOLVED,
        Outcome::Infeasible(_) => INFEASIBLE,
        Outcome::Feasible(_) | Outcome::Unknown(_) => STOPPED,
    }
}

pub(crate) fn run(arguments: &SolveArguments, colour: Colour) -> Result<u8> {
    let instance = arguments.instance.load()?;
    let options = arguments.search.options();
    if let Some(path) = &arguments.write_model {
        write_model(path, &instance, &options)?;
    }
    let outcome = planner::plan(&instance, &options)?;
    if let Some(path) = &arguments.certificate {
        let certificate = certificate::certify(&instance, &outcome)?;
        write(path, &certificate.to_text())?;
    }
    let text = match arguments.format {
        Format::Table => table::solution(
            &instance,
            &outcome,
            &style(colour, arguments.instance.typed()),
        ),
        Format::Json => json::solution(&instance, &outcome),
    };
    print(&text)?;
    Ok(exit_code(&outcome))
}

fn write_model(path: &Path, instance: &Instance, options: &PlanOptions) -> Result<()> {
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    let (data, applied_before) = planner::layout_choice::written_program(instance, options);
    let model = layout_choice::build(&data);
    let items = data.items.len();
    let scope = if applied_before.is_empty() {
        format!("all {items} combinations of the space")
    } else {
        format!("the {items} combinations that no bound excludes, of a large space")
    };
    let text = match extension.as_deref() {
        Some("lp") => format!(
            "\\ {}: {scope}\n{model}",
            instance.name.replace(['\n', '\r'], " ")
        ),
        Some("mps") => {
            format!(
                "* {}: {scope}\n{}",
                instance.name.replace(['\n', '\r'], " "),
                model.to_mps()
            )
        }
        _ => bail!("`{}` ends neither in .lp nor in .mps", path.display()),
    };
    write(path, &text)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}
