//! `parlayout explain`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use parlayout::explain::{self, Explanation, TimeLimits};
use parlayout::layout_argument;
use parlayout::planner::{Deadline, PlanError};
use parlayout::report::Colour;
use parlayout::report::document::ExplanationDocument;

use super::instance_arguments::InstanceArguments;
use super::solve::seconds;
use super::{Format, INFEASIBLE, SOLVED, STOPPED, complain, print, style};

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    instance: InstanceArguments,
    /// Say what speaks against these values, such as `tensor_parallel=8,micro_batch=2`: where the
    /// time or memory goes compared with the best layout, or why no layout has them.
    #[arg(long, value_name = "KEY=VALUE,…")]
    why_not: Option<String>,
    /// Longest time for the whole answer, in seconds: unless named, 60, and of these 10 for repairs or
    /// for dropping limits. Repairs that were not found in time are left out, and the answer says so.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Format of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// Longest time unless one is named.
const WHOLE: Duration = Duration::from_mins(1);
/// Longest time for repairs, or for dropping limits, unless one is named.
const VARIATIONS: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &ExplainArguments, colour: Colour) -> Result<u8> {
    let limits = match arguments.time_limit {
        Some(limit) => TimeLimits {
            whole: Deadline::after(Some(limit)),
            variations: None,
        },
        None => TimeLimits {
            whole: Deadline::after(Some(WHOLE)),
            variations: Some(VARIATIONS),
        },
    };
    match answer(arguments, colour, &limits) {
        Err(error) if matches!(error.downcast_ref(), Some(PlanError::TimeOver(_))) => {
            complain(
                "unknown: the time limit ended the search before the best layout, or why there is \
                 none, was known\nhint: a longer `--time-limit`, or fewer values in `[search]`",
            );
            Ok(STOPPED)
        }
        other => other,
    }
}

fn answer(arguments: &ExplainArguments, colour: Colour, limits: &TimeLimits) -> Result<u8> {
    let instance = arguments.instance.load()?;
    let reread = |further: &[String]| arguments.instance.load_with(further).ok();
    let asked = arguments.why_not.as_deref();
    let asked = asked.map(layout_argument::parse_assignment).transpose();
    let asked = asked.map_err(anyhow::Error::msg)?;
    let explained = explain::explain(&instance, asked.as_ref(), &reread, limits)?;
    let document = ExplanationDocument::new(&instance, asked.as_ref(), &explained);
    let style = style(colour, arguments.instance.typed());
    print(&arguments.format.of(&document, &style))?;
    Ok(match explained {
        Explanation::Infeasible(_) | Explanation::Impossible(_) => INFEASIBLE,
        _ => SOLVED,
    })
}
