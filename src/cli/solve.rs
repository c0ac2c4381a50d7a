//! `parlayout solve`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
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
    /// Also write the program with named rows and columns, as CPLEX LP (.lp) or MPS (.mps):
    /// `layout-choice`, whose rows are the rules, or with `--formulation staged` that one.
    #[arg(long, value_name = "FILE")]
    write_model: Option<PathBuf>,
}

/// How to search; shared by the commands that solve.
#[derive(Debug, Args)]
#[command(next_help_heading = "The search")]
pub(crate) struct SearchArguments {
    /// The program to solve (staged unless named).
    #[arg(long, value_name = "NAME")]
    formulation: Option<FormulationChoice>,
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
                None | Some(FormulationChoice::Staged) => Formulation::Staged,
                Some(FormulationChoice::LayoutChoice) => Formulation::LayoutChoice,
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
        write_model(path, arguments, &instance)?;
    }
    let outcome = planner::plan(&instance, &options)?;
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

/// Writes the program of the formulation that was named, or `layout choice`, which shows every rule
/// as a row.
fn write_model(path: &Path, arguments: &SolveArguments, instance: &Instance) -> Result<()> {
    let options = arguments.search.options();
    let staged = matches!(
        arguments.search.formulation,
        Some(FormulationChoice::Staged)
    );
    let (model, scope) = if staged {
        planner::staged::written_program(instance, &options)?
    } else {
        planner::layout_choice::written_program(instance, &options)
    };
    let title = format!("{}: {scope}", instance.name.replace(['\n', '\r'], " "));
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    let text = match extension.as_deref() {
        Some("lp") => format!("\\ {title}\n{model}"),
        Some("mps") => format!("* {title}\n{}", model.to_mps()),
        _ => bail!("`{}` ends neither in .lp nor in .mps", path.display()),
    };
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}
