//! `parlayout export`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use parlayout::export::{self, ExportError, Exported, Target};
use parlayout::files::{self, Content};
use parlayout::instance::Instance;
use parlayout::launch::dialect::Release;
use parlayout::layout::Layout;
use parlayout::plan::{Evaluated, Outcome};
use parlayout::{planner, verify};

use super::instance_arguments::InstanceArguments;
use super::solve::{SearchArguments, exit_code};
use super::{SOLVED, complain, print};

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    instance: InstanceArguments,
    /// The framework, with its release after `@` where that is not the usual one: megatron-lm,
    /// megatron-bridge, torchtitan, nanotron, deepspeed, megatron-deepspeed, gpt-neox, accelerate,
    /// axolotl, llama-factory, ms-swift or maxtext.
    #[arg(long, value_name = "FRAMEWORK[@RELEASE]", value_parser = Target::of_release)]
    to: (Target, &'static Release),
    /// Write a script for Slurm that starts the job on its nodes.
    #[arg(long)]
    script: bool,
    /// Write this layout instead of the solved one (as in `evaluate --layout`).
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<String>,
    #[command(flatten)]
    search: SearchArguments,
}

pub(crate) fn run(arguments: &ExportArguments) -> Result<u8> {
    let path = arguments.instance.instance.as_deref();
    if let Some(path) = path.filter(|path| path.extension().is_some_and(|it| it == "json")) {
        return saved(arguments, path);
    }
    let instance = arguments.instance.load()?;
    for warning in &instance.warnings {
        complain(&format!("warning: {warning}"));
    }
    if let Some(text) = &arguments.layout {
        let layout =
            parlayout::layout_argument::parse(text, &instance).map_err(anyhow::Error::msg)?;
        if let Some(violation) = parlayout::rules::violations(&instance, &layout).first() {
            bail!(
                "the layout breaks `{}`: {}",
                violation.rule,
                violation.message
            );
        }
        return given(arguments, &instance, &layout);
    }
    let outcome = planner::plan(&instance, &arguments.search.options())?;
    let code = exit_code(&outcome);
    let Some(plan) = outcome.plan() else {
        complain(&no_layout(&instance, &outcome));
        return Ok(code);
    };
    match write(arguments, &instance, &plan.choice.layout, &[]) {
        Ok(exported) => show(arguments, &exported).map(|()| code),
        Err(refused) => restricted(arguments, &instance, &plan.choice, &refused),
    }
}

fn no_layout(instance: &Instance, outcome: &Outcome) -> String {
    format!(
        "error: there is no layout to export: `{}` is {}\nhint: `parlayout solve` says why",
        instance.name,
        outcome.status()
    )
}

fn write(
    arguments: &ExportArguments,
    instance: &Instance,
    layout: &Layout,
    notes: &[String],
) -> Result<Exported, ExportError> {
    let (target, release) = arguments.to;
    export::write(target, release, instance, layout, notes)
}

fn show(arguments: &ExportArguments, exported: &Exported) -> Result<()> {
    if arguments.script {
        return print(&exported.script());
    }
    if exported.has_no_comments() {
        for comment in &exported.comments {
            complain(&format!("note: {comment}"));
        }
    }
    print(&exported.file())
}

/// A saved answer, whose layout is not another's to change.
fn saved(arguments: &ExportArguments, path: &Path) -> Result<u8> {
    if !arguments.instance.job.typed().is_empty() || arguments.layout.is_some() {
        bail!("an answer has its job and layout: give no other, or name the instance file");
    }
    let text = files::read_text(path, Content::Answer)?;
    let context = || format!("cannot read `{}`", path.display());
    let (instance, layout) = verify::saved_layout(&text).with_context(context)?;
    given(arguments, &instance, &layout)
}

/// A layout that is given: what cannot be said is an error.
fn given(arguments: &ExportArguments, instance: &Instance, layout: &Layout) -> Result<u8> {
    let exported = write(arguments, instance, layout, &[]).map_err(|error| {
        let name = arguments.to.0;
        anyhow::anyhow!(
            "{error}\nhint: `parlayout export INSTANCE --to {name}` plans under the framework's rules"
        )
    })?;
    show(arguments, &exported)?;
    Ok(SOLVED)
}

/// Plans again under the framework's rules, and says what that costs.
fn restricted(
    arguments: &ExportArguments,
    instance: &Instance,
    fastest: &Evaluated,
    refused: &ExportError,
) -> Result<u8> {
    let (target, _) = arguments.to;
    let title = target.dialect().title;
    let mut last = None;
    for strictness in 0.. {
        let Some(there) = export::on(target, instance, strictness) else {
            break;
        };
        let outcome = planner::plan(&there, &arguments.search.options())?;
        let Some(plan) = outcome.plan() else {
            last = Some((there, outcome));
            continue;
        };
        // Under the instance's own framework: it says what memory and speed are.
        let here = planner::evaluate(instance, plan.choice.layout.clone());
        let note = cost(title, fastest, &here, refused);
        if let Ok(exported) = write(
            arguments,
            instance,
            &here.layout,
            std::slice::from_ref(&note),
        ) {
            complain(&format!("note: {note}"));
            show(arguments, &exported)?;
            return Ok(exit_code(&outcome));
        }
    }
    match last {
        Some((there, outcome)) => {
            complain(&no_layout(&there, &outcome));
            Ok(exit_code(&outcome))
        }
        None => Err(refused.clone().into()),
    }
}

/// What a framework's rules cost.
fn cost(title: &str, fastest: &Evaluated, here: &Evaluated, refused: &ExportError) -> String {
    let [best, own] = [fastest, here].map(|it| &it.prediction);
    let slower = (own.step_time / best.step_time - 1.0) * 100.0;
    let reason = refused.reasons.first().map_or("", String::as_str);
    format!(
        "{title} cannot run the fastest layout ({reason}): planned again under its rules, a step takes \
         {:.3} s instead of {:.3} s, {slower:.1} % more; MFU {:.1} % instead of {:.1} %.",
        own.step_time.value(),
        best.step_time.value(),
        own.mfu.value() * 100.0,
        best.mfu.value() * 100.0,
    )
}
