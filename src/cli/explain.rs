//! `parlayout explain`.

use anyhow::Result;
use clap::Args;
use parlayout::explain::why_not::{self, Verdict};
use parlayout::explain::{self, Explanation};
use parlayout::instance::Instance;
use parlayout::layout_argument;
use parlayout::report::{Colour, explanation, json};

use super::instance_arguments::InstanceArguments;
use super::{Format, INFEASIBLE, SOLVED, print, style};

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    instance: InstanceArguments,
    /// Say what speaks against these values, such as `tensor_parallel=8,micro_batch=2`: where the
    /// time or memory goes compared with the best layout, or why no layout has them.
    #[arg(long, value_name = "KEY=VALUE,…")]
    why_not: Option<String>,
    /// Format of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &ExplainArguments, colour: Colour) -> Result<u8> {
    let instance = arguments.instance.load()?;
    let reread = |further: &[String]| arguments.instance.load_with(further).ok();
    let style = style(colour, arguments.instance.typed());
    if let Some(asked) = &arguments.why_not {
        let asked = layout_argument::parse_assignment(asked).map_err(anyhow::Error::msg)?;
        let answer = why_not::why_not(&instance, &asked, &reread)?;
        let text = match arguments.format {
            Format::Table => explanation::why_not(&instance, &answer, &style),
            Format::Json => json::why_not(&instance, &answer),
        };
        print(&text)?;
        return Ok(match answer.verdict {
            Verdict::Chosen(_) | Verdict::Compared(_) => SOLVED,
            Verdict::Impossible(_) | Verdict::NothingPossible(_) => INFEASIBLE,
        });
    }
    let explained = explain::explain(&instance, &reread)?;
    print(&text(arguments, &instance, &explained, &style))?;
    Ok(match explained {
        Explanation::Feasible(_) => SOLVED,
        Explanation::Infeasible(_) => INFEASIBLE,
    })
}

fn text(
    arguments: &ExplainArguments,
    instance: &Instance,
    explained: &Explanation,
    style: &parlayout::report::Style,
) -> String {
    match arguments.format {
        Format::Table => explanation::explanation(instance, explained, style),
        Format::Json => json::explanation(instance, explained),
    }
}
