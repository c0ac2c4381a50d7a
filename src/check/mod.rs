//! Checks what is about to be launched: whether the framework runs it, whether it fits, how fast it is.
//!
//! A launch file is read into facts; with the network, the machine and the workload that they and the
//! user state they are an instance and a layout, which rules and cost model judge. What is not known is asked
//! for by name, and only what depends on it is left out.

mod document;
mod findings;
mod job;
mod lints;
mod repair;
mod sarif;

use std::path::Path;
use std::time::Duration;

pub use document::{
    CheckDocument, Edit, Finding, Level, OptimumDocument, RepairDocument, Unknown, Verdict,
};

use crate::export::{self, Target};
use crate::instance::{InputError, Instance, Overrides};
use crate::launch::{self, Facts, Launch, LaunchError, Stated};
use crate::layout::Layout;
use crate::plan::Evaluated;
use crate::planner::{self, Deadline, PlanError, PlanOptions};
use crate::report::document::PredictionDocument;
use crate::report::layout_text;
use crate::rules::Rule;

/// What is known beside the file, and how long to search.
#[derive(Debug, Default)]
pub struct Request {
    /// Values of the command line, as for an instance.
    pub overrides: Overrides,
    /// The network that the command line names.
    pub model: Option<String>,
    /// Whether the command line names a machine.
    pub names_cluster: bool,
    /// Facts and variables that the command line states.
    pub stated: Stated,
    /// Longest time for the search of the best layout and of a repair.
    pub time_limit: Duration,
}

/// Why there is nothing to check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file cannot be read.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The job is none.
    #[error(transparent)]
    Instance(#[from] InputError),
    /// The search failed.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Checks a launch file.
///
/// # Errors
///
/// If the file cannot be read, or what it and the user say is no job.
pub fn check(path: &Path, request: &Request) -> Result<CheckDocument, CheckError> {
    let deadline = Deadline::after(Some(request.time_limit));
    let launch = read(path, request)?;
    let target = Target::parse(launch.framework).expect("every framework that is read is a target");
    let facts = &launch.facts;
    let known = job::Known::new(facts, request);
    if let Some(gpus) = job::beyond_any_cluster(facts) {
        let mut document = CheckDocument::new(path, target, Vec::new());
        document.findings = vec![findings::beyond_any_cluster(facts, gpus)];
        return Ok(document.judged());
    }
    let asked = job::instance(facts, target, request)?;
    let there = export::on(target, &asked, 0).unwrap_or_else(|| asked.clone());
    let mut document = CheckDocument::new(path, target, known.asked_for(facts));
    document.findings = findings::of_framework(facts);
    let layout = match launch::layout(facts, &there) {
        Ok(layout) => layout,
        Err(cause) => {
            let is_said = document.findings.iter().any(|it| it.level == Level::Error);
            if !is_said {
                document.findings.push(findings::no_layout(facts, cause));
            }
            return Ok(document.judged());
        }
    };
    document
        .findings
        .extend(findings::of_rules(facts, &there, &layout, &known, target));
    document
        .findings
        .extend(lints::all(facts, &there, &layout, &known, target));
    document.findings.sort_by_key(|it| (it.level, it.line));
    if known.is_layout() {
        document.layout = Some(layout_text::line(&layout));
    }
    let cut = Rule::LayersCoverStages.as_str();
    let is_whole = !document
        .findings
        .iter()
        .any(|it| it.level == Level::Error && it.rule == cut);
    if known.is_all() && is_whole {
        predict(&mut document, facts, path, &there, layout, deadline)?;
    }
    Ok(document.judged())
}

/// What the file says, with the network that it names where the catalog has it.
fn read(path: &Path, request: &Request) -> Result<Launch, CheckError> {
    let mut stated = request.stated.clone();
    if let Some(name) = &request.model {
        let network = crate::instance::read_model(name)?;
        stated.facts = job::network(&network).or(stated.facts);
    }
    let mut launch = launch::read(path, &stated)?;
    let named = launch
        .facts
        .text("model")
        .filter(|_| launch.facts.text("hidden").is_none());
    if let Some(network) = named.and_then(job::named_network) {
        stated.facts = stated.facts.or(job::network(&network));
        launch = launch::read(path, &stated)?;
    }
    launch.facts = launch::completed(launch.facts);
    Ok(launch)
}

/// Adds what the layout needs and how fast it is, the distance to the best one, and a repair.
fn predict(
    document: &mut CheckDocument,
    facts: &Facts,
    path: &Path,
    there: &Instance,
    layout: Layout,
    deadline: Deadline,
) -> Result<(), CheckError> {
    let own = planner::evaluate(there, layout);
    let is_broken = document.findings.iter().any(|it| it.level == Level::Error);
    let outgrows = |it: &Finding| it.rule.starts_with(Rule::MemoryCapacity.as_str());
    let is_legal = !document
        .findings
        .iter()
        .any(|it| it.level == Level::Error && !outgrows(it));
    if is_legal {
        document.prediction = Some(PredictionDocument::new(&own.prediction));
    }
    if is_broken {
        let repaired = repair::nearest(there, &own.layout, deadline)?;
        document.repair =
            repaired.map(|better| repair::document(facts, path, &own.layout, &better));
    }
    let options = PlanOptions {
        alternatives: 0,
        deadline,
        ..PlanOptions::default()
    };
    let best = planner::best(there, &options)?;
    let is_proven = best.is_proven();
    let best = best.into_layout();
    document.optimum = best.map(|best| optimum(&best, is_legal.then_some(&own), is_proven));
    Ok(())
}

fn optimum(best: &Evaluated, own: Option<&Evaluated>, is_proven: bool) -> OptimumDocument {
    let seconds = best.prediction.step_time.value();
    let own = own.map(|own| own.prediction.step_time.value());
    OptimumDocument::new(best, own.map(|own| own / seconds - 1.0), is_proven)
}
