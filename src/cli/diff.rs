//! `parlayout diff`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use parlayout::files::{self, Content};
use parlayout::instance::{self, Instance};
use parlayout::plan::{Evaluated, Outcome, Status};
use parlayout::planner::{self, Deadline, PlanOptions};
use parlayout::report::Colour;
use parlayout::report::document::{ComparisonDocument, SideDocument};
use parlayout::{layout_argument, rules};

use super::instance_arguments::JobArguments;
use super::solve::{exit_code, seconds};
use super::{Format, INFEASIBLE, SOLVED, complain, print, style};

#[derive(Debug, Args)]
#[command(override_usage = "\
parlayout diff <A> <B> [OPTIONS]
       parlayout diff [INSTANCE] --layout <LAYOUT> [OPTIONS]
       parlayout diff [INSTANCE] --layout <LAYOUT> --layout <LAYOUT> [OPTIONS]")]
pub(crate) struct DiffArguments {
    /// Each an instance file, whose best layout is meant, or a JSON document of `solve` or
    /// `evaluate`. Without a file, the flags below describe the job.
    #[arg(num_args = 0..=2, value_name = "A [B]")]
    files: Vec<PathBuf>,
    /// A layout of the instance, as in `evaluate`: given once, it is compared with the best
    /// layout; given twice, the two are compared.
    #[arg(long, value_name = "KEY=VALUE,…")]
    layout: Vec<String>,
    #[command(flatten)]
    job: JobArguments,
    /// Longest time to search for the best layout of each instance, in seconds (60 unless named); then
    /// the best known is compared, and a note says so.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    time_limit: Duration,
    /// Format of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &DiffArguments, colour: Colour) -> Result<u8> {
    let (left, right) = match sides(arguments) {
        Err(error) if error.is::<NoLayout>() => {
            complain(&format!("error: {error}"));
            return Ok(error.downcast::<NoLayout>()?.code);
        }
        sides => sides?,
    };
    let is_legal = left.violations.is_empty() && right.violations.is_empty();
    let document = ComparisonDocument::new(left, right);
    let style = style(colour, String::new());
    print(&arguments.format.of(&document, &style))?;
    Ok(if is_legal { SOLVED } else { INFEASIBLE })
}

/// An instance that has no layout to compare.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{instance}` is {status} and has no layout to compare\nhint: `parlayout explain` says why"
)]
struct NoLayout {
    instance: String,
    status: Status,
    code: u8,
}

fn sides(arguments: &DiffArguments) -> Result<(SideDocument, SideDocument)> {
    let layouts = arguments.layout.as_slice();
    match (arguments.files.as_slice(), layouts) {
        ([one, other], []) => Ok((side(Some(one), arguments)?, side(Some(other), arguments)?)),
        ([] | [_], [_] | [_, _]) => {
            let file = arguments.files.first().map(PathBuf::as_path);
            let one = match layouts {
                [one, _] => given(file, one, arguments)?,
                _ => side(file, arguments)?,
            };
            let last = layouts.last().expect("there is one or two");
            Ok((one, given(file, last, arguments)?))
        }
        _ => bail!(
            "two layouts are compared: give two files, or one job (a file, or flags such as `--model`) with \
             `--layout` once or twice"
        ),
    }
}

fn is_document(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// The layout of a document, or the best of an instance.
fn side(path: Option<&Path>, arguments: &DiffArguments) -> Result<SideDocument> {
    if let Some(path) = path.filter(|path| is_document(path)) {
        let flags = arguments.job.typed();
        if !flags.is_empty() {
            bail!(
                "`{}` is an answer, which `{flags}` does not change\nhint: give an instance in its place, or \
                 solve with these flags first",
                path.display()
            );
        }
        let text = files::read_text(path, Content::Answer)?;
        return SideDocument::read(&text)
            .with_context(|| format!("cannot compare `{}`", path.display()));
    }
    let instance = read(path, arguments)?;
    let options = PlanOptions {
        alternatives: 0,
        deadline: Deadline::after(Some(arguments.time_limit)),
        ..PlanOptions::default()
    };
    let outcome = planner::plan(&instance, &options)?;
    let Some(plan) = outcome.plan() else {
        return Err(NoLayout {
            instance: instance.name.clone(),
            status: outcome.status(),
            code: exit_code(&outcome),
        }
        .into());
    };
    if let Outcome::Feasible(_) = outcome {
        complain(&format!(
            "note: the time limit ended the search for `{}`: its layout is the best known",
            instance.name
        ));
    }
    Ok(checked(&instance, &plan.choice))
}

/// A layout that the user typed, whether or not it obeys every rule.
fn given(path: Option<&Path>, layout: &str, arguments: &DiffArguments) -> Result<SideDocument> {
    if let Some(path) = path.filter(|path| is_document(path)) {
        bail!(
            "`--layout` goes with an instance, and `{}` is a document",
            path.display()
        );
    }
    let instance = read(path, arguments)?;
    let layout = layout_argument::parse(layout, &instance).map_err(anyhow::Error::msg)?;
    let evaluated = planner::evaluate(&instance, layout);
    Ok(checked(&instance, &evaluated))
}

/// The instance of a file, or of the flags alone.
fn read(path: Option<&Path>, arguments: &DiffArguments) -> Result<Instance> {
    let flags = arguments.job.overrides();
    Ok(match path {
        Some(path) => instance::read(path, &flags)?,
        None => instance::from_flags(&flags)?,
    })
}

/// The layout with the rules that it breaks.
fn checked(instance: &Instance, evaluated: &Evaluated) -> SideDocument {
    let violations = rules::violations(instance, &evaluated.layout);
    SideDocument::new(instance, evaluated, violations)
}
