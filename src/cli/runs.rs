//! `parlayout evaluate --runs`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use parlayout::instance;
use parlayout::laboratory::runs::{
    self, Assumed, Modelled, Networks, Run, RunSetups, RunsFile, Skip, Skipped, fits,
};

use super::evaluate::EvaluateFormat;
use super::instance_arguments::JobArguments;
use super::{BAD_INPUT, SOLVED, complain, print};

/// Columns that are appended to each row.
const PREDICTED: [&str; 8] = [
    "predicted_fits",
    "predicted_peak_memory_gib",
    "predicted_step_time_s",
    "predicted_mfu",
    "oom_probability",
    "skipped",
    "assumed_cluster",
    "assumed_framework",
];

/// Position of the reason why a row is skipped.
const SKIPPED: usize = 5;

/// What is appended to a row.
type Appended = [String; PREDICTED.len()];

/// Reads a file of runs and warns of columns that may be misspelt.
pub(crate) fn read(path: &Path) -> Result<RunsFile> {
    let file = runs::read(path)?;
    for warning in &file.warnings {
        complain(&format!("warning: `{}`: {warning}", path.display()));
    }
    Ok(file)
}

pub(crate) fn run(path: &Path, job: &JobArguments, format: EvaluateFormat) -> Result<u8> {
    let file = read(path)?;
    let machine = job.cluster().map(instance::read_machine).transpose()?;
    let setups = RunSetups::new(machine, job.framework())?.of(Networks::Any);
    let modelled: Vec<Result<Modelled, Skip>> =
        file.runs.iter().map(|run| setups.model(run)).collect();
    let rows: Vec<Appended> = modelled.iter().map(appended).collect();
    let text = match format {
        EvaluateFormat::Csv => csv_text(&file, &rows)?,
        EvaluateFormat::Json => json_text(&file, &rows)?,
        EvaluateFormat::Table => {
            let pairs = file.runs.iter().zip(&modelled);
            let pairs = pairs.filter_map(|(run, modelled)| Some((run, modelled.as_ref().ok()?)));
            table_text(&rows, &runs::assumed(pairs))?
        }
    };
    print(&text)?;
    Ok(complain_of_faults(&file.runs))
}

fn appended(modelled: &Result<Modelled, Skip>) -> Appended {
    let modelled = match modelled {
        Ok(modelled) => modelled,
        Err(skip) => {
            let mut row = Appended::default();
            row[SKIPPED].clone_from(&skip.0);
            return row;
        }
    };
    let (prediction, job) = (&modelled.prediction, &modelled.job);
    let probability = modelled.oom_probability();
    [
        probability.map_or("unstated", fits).to_owned(),
        format!("{:.3}", prediction.memory.peak().gib()),
        format!("{:.6}", prediction.step_time.value()),
        format!("{:.6}", prediction.mfu.value()),
        probability.map_or_else(String::new, |it| format!("{it:.4}")),
        String::new(),
        job.cluster.name.clone(),
        job.framework.name.clone(),
    ]
}

/// Most faulty rows that are named one by one beside the answer.
const MOST_FAULTS: usize = 20;

/// Names the rows that cannot be read; the exit code.
fn complain_of_faults(runs: &[Run]) -> u8 {
    let fault = |run: &Run| Some(format!("{}: {}", run.place(), run.fault.as_ref()?));
    let faults: Vec<String> = runs.iter().filter_map(fault).collect();
    if faults.is_empty() {
        return SOLVED;
    }
    for fault in faults.iter().take(MOST_FAULTS) {
        complain(fault);
    }
    let more = faults.len().saturating_sub(MOST_FAULTS);
    if more > 0 {
        complain(&format!("and {more} more"));
    }
    let (faulty, all) = (faults.len(), runs.len());
    complain(&format!(
        "{faulty} of {all} rows cannot be read and are skipped"
    ));
    BAD_INPUT
}

fn csv_text(file: &RunsFile, rows: &[Appended]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(file.header.iter().chain(PREDICTED))?;
    for (run, row) in file.runs.iter().zip(rows) {
        writer.write_record(run.raw.iter().chain(row.iter().map(String::as_str)))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// One JSON object a line: the row's fields and the predictions, all as written in CSV.
fn json_text(file: &RunsFile, rows: &[Appended]) -> Result<String> {
    let mut text = String::new();
    for (run, row) in file.runs.iter().zip(rows) {
        let names = file.header.iter().chain(PREDICTED);
        let values = run.raw.iter().chain(row.iter().map(String::as_str));
        let object: serde_json::Map<String, serde_json::Value> = names
            .zip(values)
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        text.push_str(&serde_json::to_string(&object)?);
        text.push('\n');
    }
    Ok(text)
}

/// A summary: how many rows were modelled, why others were not, and on which clusters.
fn table_text(rows: &[Appended], assumed: &[Assumed]) -> Result<String> {
    let skips = rows.iter().filter(|row| !row[SKIPPED].is_empty());
    let reasons = Skipped::by_reason(skips.map(|row| Skip(row[SKIPPED].clone())));
    let skipped: usize = reasons.iter().map(|reason| reason.runs).sum();
    let (all, modelled) = (rows.len(), rows.len() - skipped);
    let mut text = format!("{all} rows, {modelled} modelled, {skipped} skipped\n");
    for Skipped { because, runs } in reasons {
        writeln!(text, "{runs:>6}  {because}")?;
    }
    if !assumed.is_empty() {
        text.push_str("\nrows predicted with a cluster and a framework:\n");
    }
    for it in assumed {
        let source = if it.source.is_empty() {
            "no source"
        } else {
            &it.source
        };
        writeln!(
            text,
            "{:>6}  {source}: {} ({}), {}",
            it.runs, it.cluster, it.figures, it.framework
        )?;
    }
    let unstated = rows.iter().filter(|row| row[0] == "unstated").count();
    if unstated > 0 {
        writeln!(
            text,
            "\n{unstated} rows have no verdict on memory: they do not state checkpointing or virtual stages"
        )?;
    }
    text.push_str("\nhint: `--format csv` prints every row with its prediction\n");
    Ok(text)
}
