//! `parlayout verify`.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parlayout::planner::Deadline;
use parlayout::report::Colour;
use parlayout::verify::{self, Options, VerdictStatus};

use super::solve::seconds;
use super::{Format, REJECTED, SOLVED, STOPPED, print, style};

/// Largest answer that is read; a hundred layouts of a long pipeline have a few MB.
const LARGEST: u64 = 32 << 20;

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
    let text = read(path).with_context(context)?;
    let bar = progress();
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

/// The text of a file, whatever it is.
fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        bail!("it is larger than {} MiB", LARGEST >> 20);
    }
    Ok(text)
}

/// Combinations searched, on a terminal.
fn progress() -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} combinations searched") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
