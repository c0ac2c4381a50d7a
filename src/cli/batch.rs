//! `parlayout batch`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parlayout::instance;
use parlayout::planner::{self, PlanOptions};
use parlayout::report::Colour;
use parlayout::report::batch::{self as report, BatchRow, BatchStatus};
use rayon::prelude::*;

use super::instance_arguments::JobArguments;
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
    let output = arguments.output.as_deref().map(Output::open).transpose()?;
    let options = arguments.search.options();
    let settings = format!("{} {options:?}", arguments.job.typed());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.jobs.unwrap_or(0))
        .build()
        .context("cannot start the solver threads")?;
    let progress = progress(paths.len());
    let rows: Result<Vec<BatchRow>> = pool.install(|| {
        let solved = paths.par_iter().map(|path| {
            let name = path.to_string_lossy();
            let digest = digest(path, &settings);
            let earlier = output
                .as_ref()
                .and_then(|output| output.earlier(&name, &digest));
            let row = if let Some(row) = earlier {
                row
            } else {
                let row = solve(path, &digest, arguments, &options);
                if let Some(output) = &output {
                    output.append(&row)?;
                }
                row
            };
            progress.inc(1);
            Ok(row)
        });
        solved.collect()
    });
    progress.finish_and_clear();
    let rows = rows?;
    if let Some(output) = output {
        output.finish(&rows)?;
    }
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
    Ok(exit_code(&rows))
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

fn solve(path: &Path, digest: &str, arguments: &BatchArguments, options: &PlanOptions) -> BatchRow {
    let name = path.to_string_lossy();
    match instance::read(path, &arguments.job.overrides()) {
        Err(error) => BatchRow::failed(&name, digest, &error.to_string()),
        Ok(instance) => match planner::plan(&instance, options) {
            Ok(outcome) => BatchRow::solved(&name, digest, &outcome),
            Err(error) => BatchRow::failed(&name, digest, &error.to_string()),
        },
    }
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

/// 64-bit FNV-1a of the file and the settings, in hexadecimal: an answer holds for this input.
fn digest(path: &Path, settings: &str) -> String {
    let content = std::fs::read(path).unwrap_or_default();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in content.iter().chain(settings.as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

fn progress(instances: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(instances as u64), target);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} solved, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A file of rows that grows as instances are solved, so that an interrupted run loses nothing.
struct Output {
    path: PathBuf,
    csv: bool,
    earlier: HashMap<String, BatchRow>,
    file: Mutex<File>,
}

impl Output {
    /// Opens the file and reads the rows that it already holds.
    fn open(path: &Path) -> Result<Self> {
        let context = || format!("cannot write `{}`", path.display());
        if path.exists() && !path.is_file() {
            bail!("`{}` is not a regular file", path.display());
        }
        let csv = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        };
        let rows = if csv {
            report::read_csv(&text)
        } else {
            report::read_json_lines(&text)
        };
        if rows.is_empty() && !text.trim().is_empty() && text != report::CSV_HEADER {
            bail!(
                "`{}` exists and holds no rows of an earlier batch: name another file, or remove it",
                path.display()
            );
        }
        let mut file = File::create(path).with_context(context)?;
        let kept = if csv {
            report::csv(&rows)
        } else {
            report::json_lines(&rows)
        };
        file.write_all(kept.as_bytes()).with_context(context)?;
        let earlier = rows
            .into_iter()
            .map(|row| (row.instance().to_owned(), row))
            .collect();
        Ok(Self {
            path: path.to_owned(),
            csv,
            earlier,
            file: Mutex::new(file),
        })
    }

    /// The earlier answer for the same input, unless it was a failure or stopped at a limit.
    fn earlier(&self, instance: &str, digest: &str) -> Option<BatchRow> {
        let row = self.earlier.get(instance)?;
        let settled = matches!(row.status(), BatchStatus::Optimal | BatchStatus::Infeasible);
        (settled && row.digest() == digest).then(|| row.clone())
    }

    fn append(&self, row: &BatchRow) -> Result<()> {
        let line = if self.csv {
            report::csv_line(row)
        } else {
            report::json_line(row)
        };
        let mut file = self
            .file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .with_context(|| format!("cannot write `{}`", self.path.display()))
    }

    /// Writes all rows in order, in place of those in the order of solving; earlier rows of
    /// instances that this batch does not name stay.
    fn finish(self, rows: &[BatchRow]) -> Result<()> {
        let mut all: BTreeMap<&str, &BatchRow> = self
            .earlier
            .iter()
            .map(|(instance, row)| (instance.as_str(), row))
            .collect();
        all.extend(rows.iter().map(|row| (row.instance(), row)));
        let rows: Vec<BatchRow> = all.into_values().cloned().collect();
        let rows = rows.as_slice();
        let text = if self.csv {
            report::csv(rows)
        } else {
            report::json_lines(rows)
        };
        drop(self.file);
        std::fs::write(&self.path, text)
            .with_context(|| format!("cannot write `{}`", self.path.display()))
    }
}
