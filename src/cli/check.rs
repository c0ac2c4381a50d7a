//! `parlayout check`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use parlayout::axis::Axis;
use parlayout::check::{self, Request, Verdict};
use parlayout::launch::{Facts, Stated};
use parlayout::report::{Answer, Colour, Document};

use super::instance_arguments::JobArguments;
use super::solve::seconds;
use super::{INFEASIBLE, SOLVED, print, style};

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// What is to be launched: a script, or a configuration file (TOML, YAML, JSON, Python) of a framework
    /// that `export` writes for. It is never run.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format of the findings.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: CheckFormat,
    /// Longest time for the search of the best layout and of a repair, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    time_limit: Duration,
    #[command(flatten)]
    job: JobArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// For people.
    Table,
    /// JSON, documented in docs/json.md.
    Json,
    /// SARIF 2.1.0, for code hosts and editors.
    Sarif,
}

pub(crate) fn run(arguments: &CheckArguments, colour: Colour) -> Result<u8> {
    let request = request(arguments);
    let document = check::check(&arguments.file, &request)?;
    let text = match arguments.format {
        CheckFormat::Table => document.text(&style(colour, arguments.job.typed())),
        CheckFormat::Json => document.json(),
        CheckFormat::Sarif => document.sarif(),
    };
    print(&text)?;
    Ok(match document.verdict {
        Verdict::Fine => SOLVED,
        Verdict::Broken | Verdict::DoesNotFit => INFEASIBLE,
    })
}

/// What the arguments state: an axis, a key of an instance, or else a variable of the script.
fn request(arguments: &CheckArguments) -> Request {
    let job = &arguments.job;
    let mut stated = Stated::default();
    let mut facts = Facts::default();
    let mut keys = Vec::new();
    for (assignment, name, value) in job.sets() {
        let axis = Axis::parse(name).filter(|axis| axis.parse_value(value).is_some());
        if let Some(axis) = axis {
            facts = facts.with(axis.as_str(), Some(value));
        } else if ["vocabulary", "model.vocabulary"].contains(&name) {
            facts = facts.with("vocab", Some(value));
        } else if name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        {
            stated.variables.insert(name.to_owned(), value.to_owned());
        } else {
            keys.push(assignment);
        }
    }
    for (column, flag) in [
        ("gpus", "gpus"),
        ("gpus_per_node", "gpus-per-node"),
        ("seq_len", "sequence-length"),
        ("global_batch", "global-batch"),
        ("precision", "precision"),
    ] {
        facts = facts.with(column, job.flag(flag));
    }
    stated.facts = facts;
    Request {
        overrides: job.overrides_with(&keys),
        model: job.flag("model").map(str::to_owned),
        names_cluster: job.cluster().is_some(),
        stated,
        time_limit: arguments.time_limit,
    }
}
