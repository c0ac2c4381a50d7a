//! `parlayout solve`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use formulations::solve::{self, Statistics};
use parlayout::axis::{Axis, AxisSet};
use parlayout::files;
use parlayout::instance::Instance;
use parlayout::plan::{Formulation, Outcome};
use parlayout::planner::objective;
use parlayout::planner::{self, Deadline, PlanOptions, Pruning};
use parlayout::report::Colour;
use parlayout::report::document::SolutionDocument;

use super::goal::GoalArguments;
use super::instance_arguments::InstanceArguments;
use super::{Format, INFEASIBLE, SOLVED, STOPPED, complain, print, style};

#[derive(Debug, Args)]
pub(crate) struct SolveArguments {
    /// Layouts to list: the best and the next best, each another combination.
    #[arg(long, value_name = "K", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=100))]
    top: u16,
    /// Axes of which each listed layout differs from every other in one, such as
    /// `tensor_parallel,micro_batch`.
    #[arg(long, value_name = "AXES", value_parser = axes)]
    diverse: Option<AxisSet>,
    /// Format of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Also write the program that was solved, with named rows and columns, as CPLEX LP (.lp) or MPS (.mps).
    #[arg(long, value_name = "FILE")]
    write_model: Option<PathBuf>,
    /// Also say on standard error how long the search took and how much of that was the solver's.
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    instance: InstanceArguments,
    #[command(flatten)]
    search: SearchArguments,
    #[command(flatten)]
    goal: GoalArguments,
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
    /// Longest time for the answer (in `batch` for that of each file), in seconds; then the best known
    /// plan and its gap are printed, and what was cut short.
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

/// Names of axes, separated by commas.
fn axes(text: &str) -> Result<AxisSet, String> {
    let names = || Axis::ALL.map(Axis::as_str).join(", ");
    let mut chosen = AxisSet::EMPTY;
    for name in text.split(',') {
        let axis = Axis::parse(name.trim())
            .ok_or_else(|| format!("`{name}` is no axis: there are {}", names()))?;
        chosen = chosen.with(axis);
    }
    Ok(chosen)
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
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
            deadline: Deadline::after(self.time_limit),
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
    let start = Instant::now();
    let code = answer(arguments, colour)?;
    if arguments.verbose {
        complain(&effort(start.elapsed(), solve::total()));
    }
    Ok(code)
}

/// How long all took, and the share of the solver. Numbers of GPUs are solved side by side, so the
/// solver's time may be more than passed.
fn effort(all: Duration, solver: Statistics) -> String {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    format!(
        "note: {:.1} ms in all; HiGHS took {:.1} ms on all threads, in {} runs with {} simplex iterations",
        milliseconds(all),
        milliseconds(solver.time),
        solver.runs,
        solver.iterations
    )
}

fn answer(arguments: &SolveArguments, colour: Colour) -> Result<u8> {
    let instance = arguments.instance.load()?;
    let options = options(arguments)?;
    if let Some(path) = &arguments.write_model {
        write_model(path, &options, &instance)?;
    }
    let style = style(colour, arguments.instance.typed());
    if let Some(goal) = arguments.goal.goal(&instance)? {
        let answer = objective::plan_for(&instance, &goal, &options)?;
        let document =
            SolutionDocument::for_goal(&instance, &goal, &answer).diverse(options.diverse);
        print(&arguments.format.of(&document, &style))?;
        return Ok(exit_code(&answer.outcome));
    }
    let outcome = planner::plan(&instance, &options)?;
    let document = SolutionDocument::new(&instance, &outcome).diverse(options.diverse);
    print(&arguments.format.of(&document, &style))?;
    Ok(exit_code(&outcome))
}

fn options(arguments: &SolveArguments) -> Result<PlanOptions> {
    let options = PlanOptions {
        alternatives: usize::from(arguments.top) - 1,
        diverse: arguments.diverse.unwrap_or_default(),
        ..arguments.search.options()
    };
    if options.diverse.contains(Axis::Checkpointing) && options.formulation == Formulation::Staged {
        bail!(
            "`checkpointing` is no axis of the program `staged`, which decides it stage by \
             stage\nhint: add `--formulation layout-choice`, or name other axes"
        );
    }
    Ok(options)
}

/// Writes the program whose solution is the answer.
fn write_model(path: &Path, options: &PlanOptions, instance: &Instance) -> Result<()> {
    // The program is solved once for the file and once for the answer.
    let options = PlanOptions {
        alternatives: 0,
        diverse: AxisSet::EMPTY,
        deadline: options.deadline.part(2),
        ..*options
    };
    let (model, scope) = planner::staged::written_program(instance, &options)?;
    let Some(model) = model else {
        bail!("the time limit came before any program was built");
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
    Ok(files::write(path, &text)?)
}
