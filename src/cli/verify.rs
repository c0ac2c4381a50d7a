//! `parlayout verify`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use parlayout::files::{self, Content};
use parlayout::planner::Deadline;
use parlayout::report::Colour;
use parlayout::verify::{self, Options, VerdictStatus};

use super::progress::bar;
use super::solve::seconds;
use super::{Format, REJECTED, SOLVED, STOPPED, print, style};

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The answer, as `parlayout solve --format json` prints it.
    #[arg(value_name = "ANSWER.json")]
    answer: PathBuf,
    /// Format of the verdict.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Longest time for the search, in seconds; then rules and figures are checked, but not
    /// whether the layout is best.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
}

pub(crate) fn run(arguments: &VerifyArguments, colour: Colour) -> Result<u8> {
    let path = &arguments.answer;
    let context = || format!("cannot read `{}`", path.display());
    let text = files::read_text(path, Content::Answer)?;
    let bar = bar(None, "combinations searched");
    let options = Options {
        deadline: Deadline::after(arguments.time_limit),
        progress: &|done, all| {
            bar.set_length(all);
            bar.set_position(done);
        },
    };
    let verdict = verify::verify(&text, &options).with_context(context);
    bar.finish_and_clear();
    let document = verdict?;
    let style = style(colour, String::new());
    print(&arguments.format.of(&document, &style))?;
    Ok(match document.verdict {
        VerdictStatus::Unfinished => STOPPED,
        VerdictStatus::Accepted => SOLVED,
        VerdictStatus::Rejected => REJECTED,
    })
}
