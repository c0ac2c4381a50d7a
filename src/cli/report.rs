//! `parlayout report`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use parlayout::cost_model::Costs;
use parlayout::explain::degrees::{self, Degrees};
use parlayout::export::{self, Target};
use parlayout::files::{self, Content};
use parlayout::instance::Instance;
use parlayout::launch::dialect::Release;
use parlayout::layout::Layout;
use parlayout::planner::{self, Deadline, PlanOptions};
use parlayout::price;
use parlayout::report::document::{PredictionDocument, PriceDocument, SolutionDocument};
use parlayout::report::page::{Launch, Page};
use parlayout::report::{Document, shell_word, trace};
use parlayout::timeline::Timeline;
use parlayout::verify;

use super::progress::bar;
use super::solve::seconds;
use super::{SOLVED, complain};

const AFTER: &str = "\
Examples:
  parlayout solve my-run.toml --format json > answer.json
  parlayout report answer.json -o answer.html
  parlayout report answer.json --trace step.json       open it at https://ui.perfetto.dev";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct ReportArguments {
    /// The answer, as `parlayout solve --format json` prints it.
    #[arg(value_name = "ANSWER.json")]
    answer: PathBuf,
    /// Write the page here: one HTML file that needs nothing else.
    #[arg(
        long,
        short,
        value_name = "FILE.html",
        required_unless_present = "trace"
    )]
    output: Option<PathBuf>,
    /// Write a trace of one step for Perfetto or Chrome here.
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// The framework whose settings the page shows, as in `export --to`; the one that the answer is for
    /// unless named.
    #[arg(long, value_name = "FRAMEWORK[@RELEASE]", value_parser = Target::of_release)]
    to: Option<(Target, &'static Release)>,
    /// Solve nothing again: leave out other degrees and what changes would buy.
    #[arg(long)]
    quick: bool,
    /// Longest time for what is solved again, in seconds; the page says what that cut short.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    time_limit: Duration,
}

pub(crate) fn run(arguments: &ReportArguments) -> Result<u8> {
    let path = &arguments.answer;
    let context = || format!("cannot read `{}`", path.display());
    let text = files::read_text(path, Content::Answer)?;
    let (instance, layout) = verify::saved(&text).with_context(context)?;
    let answer = SolutionDocument::read(&text).with_context(context)?;
    let timeline = layout.as_ref().and_then(|layout| step(&instance, layout));
    if let Some(layout) = &layout {
        is_of_this_version(&instance, layout, &answer)?;
    }
    if let Some(file) = &arguments.output {
        let page = page(
            arguments,
            &instance,
            layout.as_ref(),
            &answer,
            timeline.clone(),
        )?;
        files::write(file, &page)?;
    }
    if let Some(file) = &arguments.trace {
        write_trace(file, &answer, timeline.as_ref())?;
    }
    Ok(SOLVED)
}

/// The passes of a step.
fn step(instance: &Instance, layout: &Layout) -> Option<Timeline> {
    Timeline::of(&Costs::new(&instance.job, &layout.combination), layout)
}

/// Figures of another version beside recomputed ones would contradict each other.
fn is_of_this_version(
    instance: &Instance,
    layout: &Layout,
    answer: &SolutionDocument,
) -> Result<()> {
    let own = planner::evaluate(instance, layout.clone());
    let own = PredictionDocument::new(&own.prediction);
    if answer.prediction.as_ref() != Some(&own) {
        bail!(
            "the figures of the answer are not those of this version of parlayout\nhint: `parlayout verify` says \
             which; solve the instance again"
        );
    }
    Ok(())
}

fn write_trace(file: &Path, answer: &SolutionDocument, timeline: Option<&Timeline>) -> Result<()> {
    let Some((timeline, prediction)) = timeline.zip(answer.prediction.as_ref()) else {
        bail!("there is no step to trace: the answer has no layout, or one with too many passes");
    };
    let trace = trace::trace(&answer.instance, timeline, prediction);
    Ok(files::write(file, &trace)?)
}

fn page(
    arguments: &ReportArguments,
    instance: &Instance,
    layout: Option<&Layout>,
    answer: &SolutionDocument,
    timeline: Option<Timeline>,
) -> Result<String> {
    let deadline = Deadline::after(Some(arguments.time_limit));
    let (degrees, prices) = if arguments.quick {
        (None, None)
    } else {
        let degrees = layout.map(|_| degrees_of(instance, deadline.part(2)));
        (degrees.transpose()?, Some(prices(instance, deadline)?))
    };
    let page = Page {
        answer,
        cluster: &instance.job.cluster,
        timeline,
        degrees,
        prices,
        launch: layout.and_then(|layout| launch(arguments, instance, layout)),
    };
    Ok(page.html())
}

fn degrees_of(instance: &Instance, deadline: Deadline) -> Result<Degrees> {
    let bar = bar(Some(0), "pairs of degrees solved");
    let found = degrees::degrees(instance, deadline, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(found?)
}

fn prices(instance: &Instance, deadline: Deadline) -> Result<PriceDocument> {
    let options = PlanOptions {
        deadline,
        ..PlanOptions::default()
    };
    let bar = bar(Some(0), "changes solved");
    let found = price::price(instance, &options, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(PriceDocument::new(instance, &found?))
}

/// How to launch the layout by the framework that was named, or that the answer is for.
fn launch(arguments: &ReportArguments, instance: &Instance, layout: &Layout) -> Option<Launch> {
    let framework = instance.job.framework.name.as_str();
    let usual = || {
        let mut targets = Target::ALL.iter().copied();
        let target = targets.find(|target| target.runs(framework))?;
        Some((target, target.dialect().releases.first()?))
    };
    let (target, release) = arguments.to.or_else(usual)?;
    let file = shell_word(&arguments.answer.to_string_lossy());
    let written = export::write(target, release, instance, layout, &[]);
    if let Err(error) = &written {
        complain(&format!("note: {error}"));
    }
    Some(Launch {
        framework: target.dialect().title,
        command: format!("parlayout export {file} --to {target}"),
        settings: written
            .map(|it| it.file())
            .map_err(|error| error.to_string()),
    })
}
