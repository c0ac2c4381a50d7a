//! From what was typed to what is valid: [`InstanceFile`] to [`Instance`].

use super::document::{Origin, Table};
use super::error::{InstanceError, Problems};
use super::file::{InstanceFile, LimitsSection, TrainingSection};
use super::model::at_most;
use super::reader::{Field, Value};
use super::values::OneOf;
use super::{Instance, cluster, framework, model};
use crate::axis::Axis;
use crate::cluster::Accelerator;
use crate::job::Job;
use crate::layout_space::LayoutSpace;
use crate::workload::{FlopConvention, Optimizer, Precision, Workload};

/// Most GPUs of a job.
pub(crate) const MOST_GPUS: u64 = 1_048_576;
/// Longest sequence and largest batch, far beyond any job, so that no count overflows.
const LONGEST_SEQUENCE: u64 = 1 << 27;
const LARGEST_BATCH: u64 = 1 << 20;
/// Accepted probability of running out of memory unless the instance says otherwise.
const DEFAULT_OOM_RISK: f64 = 0.05;

/// The instance that the table describes, or everything that is wrong with it.
pub(crate) fn check(
    name: &str,
    table: &Table,
    mut problems: Problems,
) -> Result<Instance, InstanceError> {
    let file = InstanceFile::from_table(table, "", &mut problems);
    let job = job(&file, &mut problems);
    let max_oom_risk = max_oom_risk(&file.limits, &mut problems);
    let instance = job.zip(max_oom_risk).map(|(job, max_oom_risk)| {
        let search = file.search.or_everything();
        let mut space = LayoutSpace::everything_legal(&job);
        let listed = |wanted| search.values.iter().any(|(axis, _)| *axis == wanted);
        let open = !listed(Axis::Checkpointing);
        for (axis, codes) in search.values {
            space.restrict(axis, codes);
        }
        if open {
            space.open_attention_core();
        }
        space.forbidden = search.forbidden;
        if let Some(list) = file.constraint.value() {
            space.constraints = list.check(&job, &space, &mut problems);
        }
        Instance {
            name: name.to_owned(),
            job,
            space,
            max_oom_risk,
            warnings: Vec::new(),
        }
    });
    let (mut instance, warnings) = problems.none_or(instance)?;
    instance.warnings = warnings;
    Ok(instance)
}

fn job(file: &InstanceFile, problems: &mut Problems) -> Option<Job> {
    let model = section(&file.model, "model", "`--model llama-13b`", problems);
    let cluster = section(
        &file.cluster,
        "cluster",
        "`--cluster dgx-h100-80gb`",
        problems,
    );
    let training = section(
        &file.training,
        "training",
        "`--sequence-length 2048` and `--global-batch 512`",
        problems,
    );
    let framework = match &file.framework {
        Field::Broken => None,
        field => {
            let fitted = cluster
                .and_then(|(section, _)| cluster::over_bases(section, &mut Problems::default()))
                .and_then(|(_, merged)| merged.framework.value().cloned());
            framework::resolve(
                &field.value().cloned().unwrap_or_default(),
                fitted.as_ref(),
                field.origin(),
                problems,
            )
        }
    };
    let transformer = model.and_then(|(section, at)| model::resolve(section, Some(at), problems));
    let cluster = cluster.and_then(|(section, at)| cluster::resolve(section, Some(at), problems));
    let accelerator = cluster.as_ref().map(|cluster| &cluster.accelerator);
    let workload = training.and_then(|(section, at)| workload(section, at, accelerator, problems));
    Some(Job {
        transformer: transformer?,
        cluster: cluster?,
        framework: framework?,
        workload: workload?,
    })
}

/// A section that every instance has.
fn section<'a, T: Value>(
    field: &'a Field<T>,
    name: &str,
    flags: &str,
    problems: &mut Problems,
) -> Option<(&'a T, &'a Origin)> {
    if field.is_absent() {
        let hint = format!("give {flags}, or add the section to a file");
        problems.add_anywhere(None, format!("`[{name}]` is missing"), hint);
    }
    field.value().zip(field.origin())
}

fn workload(
    section: &TrainingSection,
    origin: &Origin,
    accelerator: Option<&Accelerator>,
    problems: &mut Problems,
) -> Option<Workload> {
    let sequence_length = section.sequence_length.required(
        "training.sequence_length",
        Some(origin),
        "give `--sequence-length 4096`, or write `sequence_length = 4096`",
        problems,
    );
    let global_batch = section.global_batch.required(
        "training.global_batch",
        Some(origin),
        "give `--global-batch 512` (sequences a step), or write `global_batch = 512`",
        problems,
    );
    at_most(
        &section.sequence_length,
        "training.sequence_length",
        LONGEST_SEQUENCE,
        problems,
    );
    at_most(
        &section.global_batch,
        "training.global_batch",
        LARGEST_BATCH,
        problems,
    );
    let precision = section.precision.or_default(OneOf(Precision::Bf16))?.0;
    if precision == Precision::Fp8
        && let (Some(accelerator), Some(at)) = (accelerator, section.precision.origin())
    {
        if accelerator.peak_fp8.is_none() {
            let text = format!("`{}` has no fp8 units", accelerator.name);
            problems.add(
                at,
                text,
                "write `precision = \"bf16\"`, or give `cluster.peak_fp8`",
            );
        }
        problems.warn(
            "fp8: matrix products are timed at the fp8 peak with the efficiency of bf16, and the \
             memory of fp8 copies is not counted",
        );
    }
    Some(Workload {
        sequence_length: sequence_length?.0,
        global_batch: global_batch?.0,
        precision,
        optimizer: section.optimizer.or_default(OneOf(Optimizer::Adam))?.0,
        mfu_convention: section
            .mfu_convention
            .or_default(OneOf(FlopConvention::Paper))?
            .0,
    })
}

fn max_oom_risk(limits: &Field<LimitsSection>, problems: &mut Problems) -> Option<f64> {
    let field = match limits {
        Field::Absent => return Some(DEFAULT_OOM_RISK),
        Field::Broken => return None,
        Field::Given(section, _) => &section.max_oom_risk,
    };
    field.check(
        |risk| 0.0 < risk.0 && risk.0 < 1.0,
        problems,
        |risk| {
            format!(
                "`limits.max_oom_risk` is a probability between 0 and 1, not `{}`",
                risk.0
            )
        },
        "0.05 accepts that one layout in twenty runs out of memory; 0 and 1 are excluded",
    );
    match field {
        Field::Absent => Some(DEFAULT_OOM_RISK),
        other => other.value().map(|risk| risk.0),
    }
}
