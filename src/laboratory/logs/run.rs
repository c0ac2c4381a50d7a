//! From a log and what is known of its job to a row of runs.

use super::log::{Log, Peak};
use super::missing::missing;
use super::note;
use crate::laboratory::runs::Run;
use crate::launch::{self, Facts};

/// Why a log, which is named first, gives no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// This must be known and is not, which these files and arguments may say.
    #[error("`{0}` does not say {1}\nhint: give {2}")]
    Missing(String, String, String),
    /// It says nothing that a calibration could use.
    #[error(
        "`{0}` states no step time, no peak, and no end without memory\nhint: lines of \
         Megatron-LM, torchtitan and nanotron and PyTorch's out-of-memory message are known"
    )]
    Silent(String),
    /// The log says another number of GPUs than the user.
    #[error(
        "`{log}` is of {logged} GPUs, `--gpus` says {stated}\nhint: leave `--gpus` away, or read the \
         log by itself"
    )]
    Gpus {
        /// The log.
        log: String,
        /// The log's number of GPUs.
        logged: u64,
        /// The user's.
        stated: u64,
    },
    /// The job is such as no row of runs can say, for this reason.
    #[error("`{0}`: {1}\nhint: leave this run out")]
    Refused(String, String),
}

/// For the hint of what is missing.
const LAUNCH: &str =
    "`--launch` (the script with the flags, torchtitan's .toml, nanotron's .yaml), or ";

/// The run that a log tells of, with a note about what was read. What the user `stated` comes first,
/// then what the log itself says, then the file that was `launched`.
///
/// # Errors
///
/// If the log tells neither a step time nor a peak nor an end without memory, or if neither it nor
/// `facts` say enough of the job.
pub fn run(
    name: &str,
    log: &Log,
    stated: Facts,
    launched: Facts,
) -> Result<(Run, String), LogError> {
    let logged = log.all_facts();
    let gpus = [&stated, &logged].map(|facts| facts.number("gpus"));
    let name = name.to_owned();
    if let [Some(stated), Some(logged)] = gpus
        && stated != logged
    {
        return Err(LogError::Gpus {
            log: name,
            logged,
            stated,
        });
    }
    let launch = if launched == Facts::default() {
        LAUNCH
    } else {
        ""
    };
    let overruled = note::differences(&stated, &logged, "the log");
    let known = stated.or(logged);
    let launch_overruled = note::differences(&known, &launched, "the launch file");
    let facts = launch::completed(known.or(launched));
    if let Some(reason) = facts.text("refused") {
        return Err(LogError::Refused(name, reason.to_owned()));
    }
    if log.steps.is_empty() && log.peaks.is_empty() && log.out_of_memory.is_none() {
        return Err(LogError::Silent(name));
    }
    if let Some((whats, flags)) = missing(&facts) {
        return Err(LogError::Missing(name, whats, format!("{launch}{flags}")));
    }
    let one = |column| facts.number(column).unwrap_or(1).max(1);
    let (gpus, stages) = (one("gpus"), one("pipeline_parallel"));
    let tokens = one("global_batch").saturating_mul(one("seq_len")) as f64 / gpus as f64;
    let steady = log.steady_step(Some(tokens));
    let peak = log.largest_peak().map(|peak| placed(peak, gpus, stages));
    let mut parts = note::measured(log, steady, peak);
    parts.push(format!("read as {}", note::layout(&facts)));
    parts.extend(overruled.into_iter().chain(launch_overruled));
    let note = format!("{name}: {}", parts.join("; "));
    let status = match log.out_of_memory {
        Some(_) => "oom",
        None => "ok",
    };
    let facts = facts
        .with("run", Some(name))
        .with("framework", log.framework)
        .with("status", Some(status))
        .with("step_time_s", steady.map(|steady| steady.step_time.value()))
        .with("peak_memory_gib", peak.map(|peak| peak.memory.gib()))
        .with("peak_stage", peak.and_then(|peak| peak.stage));
    Ok((Run::new(|column| facts.text(column)), note))
}

/// The peak with its stage. Ranks count tensor-parallel ranks first, pipeline stages last, in every
/// framework here.
fn placed(peak: Peak, gpus: u64, stages: u64) -> Peak {
    let ranks_a_stage = (gpus / stages).max(1);
    let stage = |rank: u32| (u64::from(rank) / ranks_a_stage).min(stages - 1) as u32;
    Peak {
        stage: peak.stage.or(peak.rank.map(stage)),
        ..peak
    }
}
