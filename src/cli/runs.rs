//! `parlayout evaluate --runs`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use parlayout::instance;
use parlayout::laboratory::runs::{self, Run, RunSetups, RunsFile, Skip, Skipped, fits};

use super::evaluate::EvaluateFormat;
use super::instance_arguments::JobArguments;
use super::{BAD_INPUT, SOLVED, complain, print};

/// Columns that are appended to each row.
const PREDICTED: [&str; 6] = [
    "predicted_fits",
    "predicted_peak_memory_gib",
    "predicted_step_time_s",
    "predicted_mfu",
    "oom_probability",
    "skipped",
];

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
    let setups = RunSetups::new(machine, job.framework())?;
    let predicted = |run| setups.model(run);
    let rows: Vec<[String; 6]> = file
        .runs
        .iter()
        .map(|run| match predicted(run) {
            Ok(modelled) => {
                let prediction = &modelled.prediction;
                [
                    fits(prediction.oom_probability).to_owned(),
                    format!("{:.3}", prediction.memory.peak().gib()),
                    format!("{:.6}", prediction.step_time.value()),
                    format!("{:.6}", prediction.mfu.value()),
                    format!("{:.4}", prediction.oom_probability),
                    String::new(),
                ]
            }
            Err(skip) => {
                let empty = String::new;
                [empty(), empty(), empty(), empty(), empty(), skip.0]
            }
        })
        .collect();
    let text = match format {
        EvaluateFormat::Csv => csv_text(&file, &rows)?,
        EvaluateFormat::Json => json_text(&file, &rows)?,
        EvaluateFormat::Table => table_text(&rows)?,
    };
    print(&text)?;
    Ok(complain_of_faults(&file.runs))
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

fn csv_text(file: &runs::RunsFile, rows: &[[String; 6]]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(file.header.iter().chain(PREDICTED))?;
    for (run, row) in file.runs.iter().zip(rows) {
        writer.write_record(run.raw.iter().chain(row.iter().map(String::as_str)))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// One JSON object a line: the row's fields and the predictions, all as written in CSV.
fn json_text(file: &runs::RunsFile, rows: &[[String; 6]]) -> Result<String> {
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

/// A summary: how many rows were modelled, and why others were not.
fn table_text(rows: &[[String; 6]]) -> Result<String> {
    let skips = rows.iter().filter(|row| !row[5].is_empty());
    let reasons = Skipped::by_reason(skips.map(|row| Skip(row[5].clone())));
    let skipped: usize = reasons.iter().map(|reason| reason.runs).sum();
    let (all, modelled) = (rows.len(), rows.len() - skipped);
    let mut text = format!("{all} rows, {modelled} modelled, {skipped} skipped\n");
    for Skipped { because, runs } in reasons {
        writeln!(text, "{runs:>6}  {because}")?;
    }
    text.push_str("\nhint: `--format csv` prints every row with its prediction\n");
    Ok(text)
}
