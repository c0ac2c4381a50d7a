//! `parlayout batch`.

mod results;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use parlayout::files;
use parlayout::instance::{self, Instance};
use parlayout::planner;
use parlayout::report::Colour;
use parlayout::report::batch::{self as report, BatchRow, BatchStatus};
use rayon::prelude::*;
use results::{Results, Unreadable};

use super::instance_arguments::JobArguments;
use super::progress::bar;
use super::solve::SearchArguments;
use super::{BAD_INPUT, INFEASIBLE, SOLVED, STOPPED, complain, print, style};

#[derive(Debug, Args)]
pub(crate) struct BatchArguments {
    /// Instance files, folders (their *.toml) and glob patterns.
    #[arg(required = true, value_name = "PATHS")]
    paths: Vec<String>,
    /// Format of the result.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: BatchFormat,
    /// Write rows (JSON lines, or CSV if the name ends in .csv) to this file as they are known,
    /// and skip instances that it already answers.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Instances solved side by side; all cores by default.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten)]
    job: JobArguments,
    #[command(flatten)]
    search: SearchArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BatchFormat {
    /// One table for people.
    Table,
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
}

pub(crate) fn run(arguments: &BatchArguments, colour: Colour) -> Result<u8> {
    let paths = expand(&arguments.paths)?;
    for path in &paths {
        files::note_input(path);
    }
    let results = arguments.output.as_deref().map(Results::open).transpose()?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads(arguments.jobs, paths.len()))
        .build()
        .context("cannot start the solver threads")?;
    let progress = bar(Some(paths.len()), "solved, {eta} left");
    let rows: Result<Vec<BatchRow>> = pool.install(|| {
        let solved = paths.par_iter().map(|path| {
            let row = row(path, arguments, results.as_ref());
            progress.inc(1);
            row
        });
        solved.collect()
    });
    progress.finish_and_clear();
    let rows = rows?;
    let unreadable = results.map(|it| it.finish(&rows)).transpose()?;
    print(&match arguments.format {
        BatchFormat::Table => report::table(&rows, &style(colour, String::new())),
        BatchFormat::Jsonl => report::json_lines(&rows),
        BatchFormat::Csv => report::csv(&rows),
    })?;
    let failed = rows
        .iter()
        .filter(|row| row.status() == BatchStatus::Error)
        .count();
    if failed > 0 {
        complain(&format!(
            "{failed} of {} instances could not be solved; see their rows",
            rows.len()
        ));
    }
    Ok(match unreadable {
        Some(Unreadable::Some) => BAD_INPUT,
        None | Some(Unreadable::None) => exit_code(&rows),
    })
}

/// Instances solved side by side: no more than there are, nor than cores.
fn threads(jobs: Option<usize>, instances: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    jobs.filter(|&jobs| jobs > 0)
        .unwrap_or(cores)
        .min(cores)
        .min(instances)
}

/// The worst of the rows: bad input before infeasible before stopped.
fn exit_code(rows: &[BatchRow]) -> u8 {
    let any = |wanted: &[BatchStatus]| rows.iter().any(|row| wanted.contains(&row.status()));
    if any(&[BatchStatus::Error]) {
        BAD_INPUT
    } else if any(&[BatchStatus::Infeasible]) {
        INFEASIBLE
    } else if any(&[BatchStatus::Feasible, BatchStatus::Unknown]) {
        STOPPED
    } else {
        SOLVED
    }
}

/// The row of an instance: that of an earlier batch for the same input, else it is solved.
fn row(path: &Path, arguments: &BatchArguments, results: Option<&Results>) -> Result<BatchRow> {
    let name = name(path);
    let row = match instance::read(path, &arguments.job.overrides()) {
        Err(error) => failed(&name, &error),
        Ok(instance) => {
            let digest = digest(&instance, &arguments.search);
            if let Some(row) = results.and_then(|results| results.earlier(&name, &digest)) {
                return Ok(row);
            }
            match planner::plan(&instance, &arguments.search.options()) {
                Ok(outcome) => BatchRow::solved(&name, &digest, &outcome),
                Err(error) => failed(&name, &error),
            }
        }
    };
    if let Some(results) = results {
        results.append(&row)?;
    }
    Ok(row)
}

fn failed(name: &str, error: &impl ToString) -> BatchRow {
    let error = error.to_string();
    BatchRow::failed(name, &format!("{:016x}", fnv(error.as_bytes())), &error)
}

/// Files named by paths, folders and patterns, each once, in order. A path that does not exist is
/// kept: its row says so.
fn expand(arguments: &[String]) -> Result<Vec<PathBuf>> {
    let mut files = BTreeSet::new();
    for argument in arguments {
        let path = Path::new(argument);
        if path.is_dir() {
            let entries =
                std::fs::read_dir(path).with_context(|| format!("cannot read `{argument}`"))?;
            let before = files.len();
            for entry in entries {
                let file = entry
                    .with_context(|| format!("cannot read `{argument}`"))?
                    .path();
                if file
                    .extension()
                    .is_some_and(|extension| extension == "toml")
                    && file.is_file()
                {
                    files.insert(file);
                }
            }
            if files.len() == before {
                complain(&format!(
                    "warning: `{argument}` has no further *.toml files"
                ));
            }
        } else if !path.exists() && argument.contains(['*', '?', '[']) {
            let matches = glob::glob(argument)
                .with_context(|| format!("`{argument}` is not a glob pattern"))?;
            let before = files.len();
            for file in matches {
                files.insert(file.with_context(|| format!("cannot read a match of `{argument}`"))?);
            }
            if files.len() == before {
                bail!("no file matches `{argument}`");
            }
        } else {
            files.insert(path.to_owned());
        }
    }
    if files.is_empty() {
        bail!("there is no instance to solve");
    }
    Ok(files.into_iter().collect())
}

/// What an answer depends on, as 64-bit FNV-1a in hexadecimal: every figure of the job, whatever file or
/// preset it comes from, how it is searched, and the program.
fn digest(instance: &Instance, search: &SearchArguments) -> String {
    let resolved = serde_json::Value::Object(instance::resolved(instance));
    let job = format!("{resolved} {search:?} {:016x}", *PROGRAM);
    format!("{:016x}", fnv(job.as_bytes()))
}

/// The program, with its catalog: another one may answer otherwise, whatever its version says.
static PROGRAM: LazyLock<u64> = LazyLock::new(|| {
    let bytes = std::env::current_exe().and_then(std::fs::read);
    fnv(&bytes.unwrap_or_else(|_| env!("CARGO_PKG_VERSION").into()))
});

fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What the row calls a file: its path; one that is not text with its other bytes spelt out, so that no two
/// files have one name.
#[expect(
    clippy::unnecessary_debug_formatting,
    reason = "the escapes keep names apart"
)]
fn name(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.starts_with('"') => text.to_owned(),
        _ => format!("{:?}", path.as_os_str()),
    }
}
