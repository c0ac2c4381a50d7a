//! From a log and what is known of its job to a row of runs.

use super::facts::Facts;
use super::log::{Log, Peak, SteadyStep};
use super::missing::{self, Missing};
use super::note;
use crate::laboratory::runs::{Run, Status};

/// Why a log gives no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Something must be known and is not.
    #[error(
        "`{log}` does not say {}\nhint: give {launch}{}",
        whats(missing),
        flags(missing)
    )]
    Missing {
        /// The log.
        log: String,
        /// What is missing.
        missing: Vec<Missing>,
        /// The file that may say it, for the hint; empty where one was given.
        launch: &'static str,
    },
    /// It says nothing that a calibration could use.
    #[error(
        "`{log}` states no step time, no peak, and no end without memory\nhint: lines of \
         Megatron-LM, torchtitan and nanotron and PyTorch's out-of-memory message are known"
    )]
    Silent {
        /// The log.
        log: String,
    },
    /// The log says another number of GPUs than the user.
    #[error(
        "`{log}` is of {logged} GPUs, `--gpus` says {stated}\nhint: leave `--gpus` away, or read the \
         log by itself"
    )]
    Gpus {
        /// The log.
        log: String,
        /// The log's number of GPUs.
        logged: u32,
        /// The user's.
        stated: u32,
    },
    /// The job is such as no row of runs can say.
    #[error("`{log}`: {reason}\nhint: leave this run out")]
    Refused {
        /// The log.
        log: String,
        /// What cannot be said.
        reason: String,
    },
}

/// For the hint of what is missing.
const LAUNCH: &str =
    "`--launch` (the script with the flags, torchtitan's .toml, nanotron's .yaml), or ";

fn whats(missing: &[Missing]) -> String {
    let whats: Vec<&str> = missing.iter().map(|one| one.what.as_str()).collect();
    whats.join(", ")
}

fn flags(missing: &[Missing]) -> String {
    let mut flags: Vec<&str> = missing.iter().map(|one| one.flag).collect();
    flags.dedup();
    flags.join(", ")
}

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
    let log_name = || name.to_owned();
    let logged = log.all_facts();
    if let (Some(stated), Some(logged)) = (stated.gpus, logged.gpus)
        && stated != logged
    {
        let log = log_name();
        return Err(LogError::Gpus {
            log,
            logged,
            stated,
        });
    }
    let launch = if launched == Facts::default() {
        LAUNCH
    } else {
        ""
    };
    let mut overruled = note::differences(&stated, &logged, "the log");
    let known = stated.or(logged);
    overruled.extend(note::differences(&known, &launched, "the launch file"));
    let facts = completed(known.or(launched));
    if let Some(reason) = facts.refused.clone() {
        return Err(LogError::Refused {
            log: log_name(),
            reason,
        });
    }
    let gpus = facts.gpus.unwrap_or(1);
    let tokens = facts.global_batch.zip(facts.sequence_length);
    let tokens = tokens.map(|(batch, length)| (batch * length) as f64 / f64::from(gpus));
    let silent = log.steps.is_empty() && log.peaks.is_empty() && log.out_of_memory.is_none();
    if silent {
        return Err(LogError::Silent { log: log_name() });
    }
    let missing = missing::missing(&facts);
    if !missing.is_empty() {
        return Err(LogError::Missing {
            log: log_name(),
            missing,
            launch,
        });
    }
    let steady = log.steady_step(tokens);
    let stages = facts.pipeline_parallel.unwrap_or(1);
    let peak = log.largest_peak().map(|peak| placed(peak, gpus, stages));
    let note = note::note(name, log, (steady, peak), &facts, &overruled);
    let framework = log.kind.map_or("", |kind| kind.framework()).to_owned();
    Ok((row(name, framework, facts, log, steady, peak), note))
}

/// What follows from other facts.
fn completed(mut facts: Facts) -> Facts {
    let one = |degree: Option<u32>| degree.unwrap_or(1);
    let others =
        one(facts.tensor_parallel) * one(facts.pipeline_parallel) * one(facts.context_parallel);
    if facts.gpus.is_none() {
        facts.gpus = match facts.data_parallel {
            Some(replicas) => Some(replicas * others),
            None => facts.gpus_about,
        };
    }
    if facts.data_parallel.is_none() {
        facts.data_parallel = facts.gpus.map(|gpus| (gpus / others).max(1));
    }
    if facts.global_batch.is_none() {
        let replicas = facts.data_parallel.map(u64::from);
        let micro_batch = facts.micro_batch.map(u64::from);
        facts.global_batch = match (facts.accumulation, replicas, micro_batch) {
            (Some(times), Some(replicas), Some(size)) => Some(times * replicas * size),
            _ => None,
        };
    }
    if let (None, Some(chunk), Some(layers), Some(stages)) = (
        facts.virtual_stages,
        facts.chunk_layers.filter(|&chunk| chunk > 0),
        facts.layers,
        facts.pipeline_parallel.filter(|&stages| stages > 0),
    ) {
        facts.virtual_stages = Some((layers / stages / chunk).max(1));
    }
    facts
}

/// The peak with its stage. Ranks count tensor-parallel ranks first, pipeline stages last, in every
/// framework here.
fn placed(peak: Peak, gpus: u32, stages: u32) -> Peak {
    let ranks_a_stage = (gpus / stages).max(1);
    let stage = peak.rank.map(|rank| (rank / ranks_a_stage).min(stages - 1));
    Peak {
        stage: peak.stage.or(stage),
        ..peak
    }
}

fn row(
    name: &str,
    framework: String,
    facts: Facts,
    log: &Log,
    steady: Option<SteadyStep>,
    peak: Option<Peak>,
) -> Run {
    let status = if log.out_of_memory.is_some() {
        Status::OutOfMemory
    } else {
        Status::Ok
    };
    let text = Option::unwrap_or_default;
    Run {
        raw: csv::StringRecord::new(),
        file: String::new(),
        fault: None,
        line: 0,
        source: String::new(),
        group: String::new(),
        run: name.to_owned(),
        framework,
        model: text(facts.model),
        layers: facts.layers,
        hidden: facts.hidden,
        feed_forward_width: facts.feed_forward_width,
        heads: facts.heads,
        key_value_heads: facts.key_value_heads,
        mlp_matrices: facts.mlp_matrices,
        vocabulary: facts.vocabulary,
        experts: facts.experts,
        gpu: String::new(),
        gpus: facts.gpus,
        gpus_per_node: facts.gpus_per_node,
        internode_allreduce: None,
        intranode_allreduce: None,
        sequence_length: facts.sequence_length,
        global_batch: facts.global_batch,
        micro_batch: facts.micro_batch,
        tensor_parallel: facts.tensor_parallel,
        pipeline_parallel: facts.pipeline_parallel,
        context_parallel: facts.context_parallel,
        expert_parallel: facts.expert_parallel,
        virtual_stages: facts.virtual_stages,
        data_parallel: facts.data_parallel,
        schedule: text(facts.schedule),
        sequence_parallel: facts.sequence_parallel,
        checkpointing: text(facts.checkpointing),
        sharding: text(facts.sharding),
        precision: text(facts.precision),
        gradient_bytes: facts.gradient_bytes,
        attention_kernel: text(facts.attention_kernel),
        rmsnorm_kernel: facts.rmsnorm_kernel,
        variant: String::new(),
        status,
        step_time: steady.map(|steady| steady.step_time.value()),
        peak_memory: peak.map(|peak| peak.memory.gib()),
        peak_stage: peak.and_then(|peak| peak.stage),
        mfu: None,
        timing_usable: true,
    }
}
