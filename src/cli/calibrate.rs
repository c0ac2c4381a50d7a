//! `parlayout calibrate`.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use parlayout::catalog::{self, Machine};
use parlayout::count::counted;
use parlayout::files;
use parlayout::framework::Framework;
use parlayout::instance;
use parlayout::laboratory::calibrate::{
    self, Adoption, FitOptions, Observation, Priors, Residuals,
};
use parlayout::laboratory::report::{CalibrationDocument, Subject, calibration};
use parlayout::laboratory::runs::{Networks, Run, RunSetups, RunsError, Setup, template};
use parlayout::report::{Colour, Document};

use super::logs::LogArguments;
use super::runs::read;
use super::{Format, SOLVED, print, style};

#[derive(Debug, Args)]
pub(crate) struct CalibrateArguments {
    /// Measured runs, one row a run (data/README.md names the columns).
    #[arg(value_name = "RUNS.csv", required_unless_present_any = ["logs", "template"])]
    runs: Vec<PathBuf>,
    /// The cluster that is nearest to yours: a preset of `parlayout catalog`, or a cluster file. Its
    /// figures are the starting point, from which runs move them.
    #[arg(long, value_name = "CLUSTER", required_unless_present = "template")]
    cluster: Option<String>,
    /// The framework of the runs; default: what the rows, else the cluster say.
    #[arg(long, value_name = "FRAMEWORK")]
    framework: Option<String>,
    /// The cluster file to write, for `--cluster` of every command.
    #[arg(short, long, value_name = "MINE.toml")]
    output: Option<PathBuf>,
    /// Learn also what the formulas miss near the given runs, and store it in the file.
    #[arg(long)]
    learn_residuals: bool,
    /// Take the fit over even where it does not predict held-out runs better.
    #[arg(long)]
    always: bool,
    /// Print a file of runs to fill in: the columns, and an example to replace.
    #[arg(long, exclusive = true)]
    template: bool,
    /// Format of the report.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    #[command(flatten)]
    logs: LogArguments,
}

/// Whether a file is a table of runs by its name.
fn is_table(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("csv"))
}

impl CalibrateArguments {
    /// Files of runs that stand after a flag that takes several files.
    fn sort_files(&mut self) {
        for files in [&mut self.logs.logs, &mut self.logs.launch] {
            self.runs
                .extend(files.extract_if(.., |path| is_table(path)));
        }
    }
}

pub(crate) fn run(mut arguments: CalibrateArguments, colour: Colour) -> Result<u8> {
    arguments.sort_files();
    calibrate_with(&arguments, colour)
}

fn calibrate_with(arguments: &CalibrateArguments, colour: Colour) -> Result<u8> {
    if arguments.template {
        print(&template())?;
        return Ok(SOLVED);
    }
    let machine = instance::read_machine(arguments.cluster.as_deref().unwrap_or_default())?;
    let (rows, notes) = rows(arguments, &machine)?;
    let written = arguments.output.as_deref();
    written.map(files::may_write).transpose()?;
    let setup = Setup {
        framework: framework(arguments, &machine, &rows)?,
        cluster: machine.cluster,
    };
    let (observations, skipped) = calibrate::observe(&rows, &setup);
    if observations.is_empty() {
        let first = skipped.first().map_or(String::new(), |row| {
            format!("; the first, {}: {}", row.place, row.reason)
        });
        let none = match rows.len() {
            1 => "the one run cannot be used".to_owned(),
            all => format!("none of {} can be used", counted(all, "run")),
        };
        bail!("{none}{first}");
    }
    let options = FitOptions {
        residuals: if arguments.learn_residuals {
            Residuals::Learned
        } else {
            Residuals::Ignored
        },
        ..FitOptions::default()
    };
    let adoption = if arguments.always {
        Adoption::Always
    } else {
        Adoption::Tested
    };
    let source = source(arguments, observations.len());
    let observations: Vec<&Observation> = observations.iter().collect();
    let calibrated = calibrate::calibrate(
        &observations,
        &Priors::shipped(&setup),
        &options,
        adoption,
        &source,
    );
    if let Some(path) = written {
        let text = catalog::cluster_file(&calibrated.setup.cluster, &calibrated.setup.framework);
        files::write(path, &text)?;
    }
    let output = written.map(|path| path.display().to_string());
    let subject = Subject {
        cluster: &setup.cluster.name,
        framework: &setup.framework.name,
        source: &source,
        output: output.as_deref(),
        logs: &notes,
        skipped: &skipped,
    };
    let text = match arguments.format {
        Format::Table => calibration(&subject, &calibrated, &style(colour, String::new())),
        Format::Json => CalibrationDocument::new(&subject, &calibrated).json(),
    };
    print(&text)?;
    Ok(SOLVED)
}

/// The runs of all files and logs, and what was read from each log.
fn rows(arguments: &CalibrateArguments, machine: &Machine) -> Result<(Vec<Run>, Vec<String>)> {
    let mut rows = Vec::new();
    for path in &arguments.runs {
        let file = read(path).map_err(|error| no_table(error, &arguments.runs))?;
        rows.extend(file.runs);
    }
    let mut notes = Vec::new();
    for (mut run, note) in arguments.logs.runs(&machine.cluster)? {
        if arguments.framework.is_some() {
            // Who names the framework knows better than the log, which only shows a family.
            run.framework.clear();
        }
        rows.push(run);
        notes.push(note);
    }
    Ok((rows, notes))
}

/// The error of a file that is no table of runs; of a log or script with the flags to give it with.
fn no_table(error: anyhow::Error, files: &[PathBuf]) -> anyhow::Error {
    let is_right = match error.downcast_ref() {
        Some(RunsError::Csv(path, _) | RunsError::Columns(path, _) | RunsError::Empty(path)) => {
            is_table(path)
        }
        _ => true,
    };
    if is_right {
        return error;
    }
    let others = files.iter().filter(|path| !is_table(path)).map(|path| {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let flag = match &*ending {
            "sh" | "sbatch" | "slurm" | "bash" | "toml" | "yaml" | "yml" => "--launch",
            _ => "--from-log",
        };
        format!("{flag} {}", path.display())
    });
    let others: Vec<String> = others.collect();
    anyhow!(
        "{error}\nhint: a training log is given with `--from-log`, the script or configuration that \
         launched it with `--launch`: `{}`",
        others.join(" ")
    )
}

/// The framework of the runs: as given, else that of the rows, which must agree.
fn framework(arguments: &CalibrateArguments, machine: &Machine, rows: &[Run]) -> Result<Framework> {
    if let Some(name) = &arguments.framework {
        return Ok(machine.framework(Some(name))?);
    }
    let setups = RunSetups::new(Some(machine.clone()), None)?.of(Networks::Any);
    let mut known = rows.iter().filter(|row| row.fault.is_none());
    let Some(first) = known.next() else {
        return Ok(machine.framework(None)?);
    };
    let first = setups.framework_name(first);
    for row in known {
        let own = setups.framework_name(row);
        if own != first {
            bail!(
                "{} ran under `{own}`, rows before it under `{first}`\nhint: calibrate one \
                 framework at a time, `--framework {first}`",
                row.place()
            );
        }
    }
    Ok(machine.framework(Some(first))?)
}

/// The runs in words.
fn source(arguments: &CalibrateArguments, count: usize) -> String {
    let files = arguments.runs.iter().chain(&arguments.logs.logs);
    let names: Vec<String> = files
        .map(|path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    format!("{} of {}", counted(count, "run"), names.join(", "))
}
