//! A measured run beside what the cost model says of it.

use std::collections::{BTreeMap, HashMap};

use crate::catalog::{self, TimeTrust};
use crate::cost_model::components::StageMemory;
use crate::cost_model::flops;
use crate::job::Job;
use crate::laboratory::runs::{Modelled, Run, RunsFile, Skip, Skipped, Status};
use crate::laboratory::statistics::median;
use crate::quantity::Seconds;

/// A run that ended by training or by running out of memory, with its prediction.
#[derive(Debug, Clone)]
pub struct Case<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its group: the file's, or else what its job is.
    pub group: String,
    /// What the cost model says of it.
    pub modelled: Modelled,
    /// Median measured utilisation of the runs that are alike in every column of job and layout;
    /// `None` where none of them has a representative speed.
    pub measured_mfu: Option<f64>,
    /// How far to trust the predicted step time.
    pub trust: TimeTrust,
    /// Number of the layout: the same for runs that are alike.
    pub layout_number: usize,
}

impl Case<'_> {
    /// Predicted utilisation by the paper's convention.
    #[must_use]
    pub const fn predicted_mfu(&self) -> f64 {
        self.modelled.prediction.mfu.value()
    }

    /// The run's measured utilisation, or the median of runs alike, where its speed is
    /// representative.
    #[must_use]
    pub fn timed(&self) -> Option<f64> {
        own_mfu(self.run, &self.modelled.job).and(self.measured_mfu)
    }

    /// Predicted over measured utilisation, less 1; where the speed is representative.
    #[must_use]
    pub fn mfu_error(&self) -> Option<f64> {
        Some(self.predicted_mfu() / self.timed()? - 1.0)
    }

    /// Predicted over measured step time, less 1; where the speed is representative.
    #[must_use]
    pub fn time_error(&self) -> Option<f64> {
        Some(self.timed()? / self.predicted_mfu() - 1.0)
    }

    /// Predicted over measured peak memory, less 1; where the run trained and logged it.
    #[must_use]
    pub fn peak_error(&self) -> Option<f64> {
        let measured = self.run.peak_memory.filter(|&gib| gib > 0.0)?;
        let memory = &self.modelled.prediction.memory;
        let stage = self.modelled.measured_stage(self.run);
        let stage = stage.and_then(|stage| memory.stages.get(stage as usize));
        let counted = self.modelled.job.framework.memory.logged_memory;
        let logged = |stage: &StageMemory| stage.logged(counted);
        let predicted = stage.map_or_else(|| memory.logged(counted), logged);
        (self.run.status == Status::Ok).then_some(predicted.gib() / measured - 1.0)
    }

    /// Predicted probability of running out of memory; `None` where the run does not state what
    /// decides it.
    #[must_use]
    pub const fn oom_probability(&self) -> Option<f64> {
        self.modelled.oom_probability()
    }

    /// Whether the run ran out of memory.
    #[must_use]
    pub fn ran_out_of_memory(&self) -> bool {
        self.run.status == Status::OutOfMemory
    }
}

/// The run's own utilisation, where its speed is representative: computed from its step time; the stated
/// one where there is none.
fn own_mfu(run: &Run, job: &Job) -> Option<f64> {
    if run.status != Status::Ok || !run.timing_usable {
        return None;
    }
    let from_time = run
        .step_time
        .filter(|&time| time > 0.0)
        .map(|time| flops::utilisation(job, Seconds::new(time)).value());
    from_time.or(run.mfu.filter(|&mfu| mfu > 0.0))
}

/// The runs of the files that trained or ran out of memory, each with what `predict` says of it,
/// and the reasons why others were left out, most frequent first.
pub fn cases(
    files: &[RunsFile],
    predict: impl Fn(&Run) -> Result<Modelled, Skip>,
) -> (Vec<Case<'_>>, Vec<Skipped>) {
    let mut numbers: HashMap<(usize, Vec<&str>), usize> = HashMap::new();
    let mut cases = Vec::new();
    let mut skips = Vec::new();
    for (position, file) in files.iter().enumerate() {
        for run in file.runs.iter().filter(|run| run.status != Status::Other) {
            let modelled = match predict(run) {
                Ok(modelled) if run.status != Status::Unstated => modelled,
                other => {
                    let unknown = Skip("no status stated".to_owned());
                    skips.push(other.err().unwrap_or(unknown));
                    continue;
                }
            };
            let key = (position, layout_fields(file, run));
            let next = numbers.len();
            cases.push(Case {
                run,
                group: group(run),
                trust: trust(&modelled),
                modelled,
                measured_mfu: None,
                layout_number: *numbers.entry(key).or_insert(next),
            });
        }
    }
    part_groups(&mut cases);
    take_medians(&mut cases, numbers.len());
    (cases, Skipped::by_reason(skips))
}

/// The file's group of the run, or else its network, GPUs, sequence length and batch.
fn group(run: &Run) -> String {
    if !run.group.is_empty() {
        return run.group.clone();
    }
    let [length, batch] = [run.sequence_length, run.global_batch].map(Option::unwrap_or_default);
    let gpus = run.gpus.unwrap_or_default();
    format!("{} {gpus}x{} s{length} gb{batch}", run.model, run.gpu)
}

/// Columns that hold a name or an outcome of a run, not its job or layout.
const OTHER_COLUMNS: [&str; 12] = [
    "run",
    "status",
    "step_time_s",
    "peak_memory_gib",
    "peak_stage",
    "mfu",
    "timing_usable",
    "static_memory_gib",
    "derived",
    "grade",
    "internode_allreduce_gb_s",
    "intranode_allreduce_gb_s",
];

/// What runs that are alike have in common.
fn layout_fields<'a>(file: &RunsFile, run: &'a Run) -> Vec<&'a str> {
    let fields = file.header.iter().zip(&run.raw);
    let fields = fields.filter(|(name, _)| !OTHER_COLUMNS.contains(name));
    fields.map(|(_, field)| field).collect()
}

/// How far to trust a step time by what the catalog knows of runs like it.
fn trust(modelled: &Modelled) -> TimeTrust {
    let (job, layout) = (&modelled.job, &modelled.layout);
    catalog::time_trust(&job.cluster, &job.framework)
        .leaning_on(&catalog::scarcely_measured(&layout.combination))
}

/// Releases, number formats, tasks and the routing of experts move a job more than layouts do: runs are
/// compared within one. Groups with several are parted, and named by what differs.
fn part_groups(cases: &mut [Case]) {
    let parts = |run: &'_ Run| {
        [&run.software, &run.precision, &run.task, &run.load_balance].map(Clone::clone)
    };
    let mut seen: BTreeMap<(String, String), Vec<[String; 4]>> = BTreeMap::new();
    for case in &*cases {
        let key = (case.run.source.clone(), case.group.clone());
        let known = seen.entry(key).or_default();
        let own = parts(case.run);
        if !known.contains(&own) {
            known.push(own);
        }
    }
    for case in cases {
        let known = &seen[&(case.run.source.clone(), case.group.clone())];
        for (index, own) in parts(case.run).into_iter().enumerate() {
            if known.iter().any(|other| other[index] != own) {
                let own = if own.is_empty() { "unstated" } else { &own };
                case.group = format!("{}, {own}", case.group);
            }
        }
    }
}

/// Gives every case the median utilisation of its layout.
fn take_medians(cases: &mut [Case], layouts: usize) {
    let mut measured = vec![Vec::new(); layouts];
    for case in &*cases {
        measured[case.layout_number].extend(own_mfu(case.run, &case.modelled.job));
    }
    for case in cases {
        case.measured_mfu = median(&measured[case.layout_number]);
    }
}
