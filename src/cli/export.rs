//! `parlayout export`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use parlayout::export;
use parlayout::planner;

use super::instance_arguments::InstanceArguments;
use super::solve::{SearchArguments, exit_code};
use super::{complain, print};

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    instance: InstanceArguments,
    /// The framework whose flags are printed.
    #[arg(long, value_name = "FRAMEWORK")]
    to: Target,
    /// Print the flags of this layout instead of the solved one (as in `evaluate --layout`).
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<String>,
    #[command(flatten)]
    search: SearchArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    /// Megatron-LM's command-line flags.
    MegatronLm,
}

pub(crate) fn run(arguments: &ExportArguments) -> Result<u8> {
    let instance = arguments.instance.load()?;
    let (layout, code) = if let Some(text) = &arguments.layout {
        let layout =
            parlayout::layout_argument::parse(text, &instance).map_err(anyhow::Error::msg)?;
        if let Some(violation) = parlayout::rules::violations(&instance, &layout).first() {
            bail!(
                "the layout breaks `{}`: {}",
                violation.rule,
                violation.message
            );
        }
        (layout, super::SOLVED)
    } else {
        let outcome = planner::plan(&instance, &arguments.search.options())?;
        let code = exit_code(&outcome);
        let Some(plan) = outcome.plan() else {
            complain(&format!(
                "error: there is no layout to export: `{}` is {}\nhint: `parlayout solve` says why",
                instance.name,
                outcome.status()
            ));
            return Ok(code);
        };
        (plan.choice.layout.clone(), code)
    };
    let text = match arguments.to {
        Target::MegatronLm => export::export(export::Target::MegatronLm, &instance, &layout)?,
    };
    for warning in &instance.warnings {
        complain(&format!("warning: {warning}"));
    }
    print(&text)?;
    Ok(code)
}
