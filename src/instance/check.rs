//! From what was typed to what is valid: [`InstanceFile`] to [`Instance`].

use super::file::{InstanceFile, LimitsSection, Risk, TrainingSection};
use super::{Instance, model};
use crate::axis::{Axis, any_of};
use crate::catalog::cluster::{self, Unstated};
use crate::catalog::{self, framework};
use crate::cluster::Accelerator;
use crate::framework::Framework;
use crate::framework::support::Aspect;
use crate::job::Job;
use crate::layout_space::LayoutSpace;
use crate::quantity::ElementWidth;
use crate::reading::{Field, InputError, Origin, Problems, Table, Value};
use crate::workload::USUAL_IMBALANCE;
use crate::workload::{FlopConvention, GradientWidth, Optimizer, Precision, Workload};

/// Longest sequence and largest batch, far beyond any job, so that no count overflows.
const LONGEST_SEQUENCE: u64 = 1 << 27;
const LARGEST_BATCH: u64 = 1 << 20;
/// Accepted probability of running out of memory unless the instance says otherwise.
pub(crate) const DEFAULT_OOM_RISK: f64 = 0.05;

/// The instance that the table describes, or everything that is wrong with it.
pub(crate) fn check(
    name: &str,
    table: &Table,
    mut problems: Problems,
) -> Result<Instance, InputError> {
    let file = InstanceFile::of_table(table, "", &mut problems);
    let job = job(&file, &mut problems);
    let max_oom_risk = max_oom_risk(&file.limits);
    let instance = job.zip(max_oom_risk).map(|(job, max_oom_risk)| {
        let search = file.search.or_everything();
        let mut space = LayoutSpace::everything_legal(&job);
        let listed = |wanted| search.values.iter().any(|(axis, ..)| *axis == wanted);
        let open = !listed(Axis::Checkpointing);
        for (axis, codes, origin) in search.values {
            lacking(&job.framework, axis, &codes, &origin, &mut problems);
            space.restrict(axis, codes);
        }
        if open {
            space.open_attention_core(&job.framework.axes);
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

/// Refuses values of an axis of which the framework has none, and says which it does without.
fn lacking(
    framework: &Framework,
    axis: Axis,
    codes: &[u32],
    origin: &Origin,
    problems: &mut Problems,
) {
    let lacks = codes
        .iter()
        .filter(|&&code| !framework.axes.has(axis, code));
    let lacks: Vec<String> = lacks.map(|&code| axis.show(code)).collect();
    if lacks.is_empty() {
        return;
    }
    let (name, shown) = (&framework.name, any_of(&lacks));
    let has = framework.axes.shown(Aspect::Axis(axis));
    if lacks.len() < codes.len() {
        problems.warn(format!(
            "`search.{axis}` lists {shown}, which {name} does not have: it has {has}"
        ));
        return;
    }
    let source = catalog::source_of_axis(name, axis).map(|source| format!(" ({source})"));
    problems.add(
        origin,
        format!("{name} has no `{axis} = {shown}`"),
        format!(
            "{name} has `{axis}` {has}{}; remove the key, or plan for another framework",
            source.unwrap_or_default()
        ),
    );
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
    let transformer = model.and_then(|(section, at)| {
        let transformer = model::resolve(section, Some(at), problems)?;
        model::refuse_what_costs_do_not_cover(&transformer, at, problems);
        Some(transformer)
    });
    let machine = cluster.and_then(|(section, at)| {
        cluster::resolve(section, Unstated::Reported, Some(at), problems)
    });
    let mut framework = match &file.framework {
        Field::Broken => None,
        field => framework::resolve(
            &field.value().cloned().unwrap_or_default(),
            None,
            machine.as_ref().and_then(|machine| machine.fitted.as_ref()),
            field.origin(),
            problems,
        ),
    };
    let cluster = machine.map(|machine| machine.cluster);
    let accelerator = cluster.as_ref().map(|cluster| &cluster.accelerator);
    let width = training.and_then(|(section, _)| section.gradients.value());
    let workload = training.and_then(|(section, at)| workload(section, at, accelerator, problems));
    if let (Some(framework), Some(width)) = (&mut framework, width) {
        let precision = workload.as_ref().map(|workload| workload.precision);
        reduce_in(framework, precision.unwrap_or(Precision::Bf16), *width);
    }
    Some(Job {
        transformer: transformer?,
        cluster: cluster?,
        framework: framework?,
        workload: workload?,
    })
}

/// Gives gradients another width than the framework's own: on the GPU, and where replicas reduce them
/// beside 16-bit weights, which are gathered once, or twice where they are sharded.
fn reduce_in(framework: &mut Framework, precision: Precision, width: GradientWidth) {
    let (bytes, weights) = (width.width().bytes(), ElementWidth::SIXTEEN_BITS.bytes());
    let is_own = (framework.memory.gradients(precision) - bytes).abs() < f64::EPSILON;
    if !is_own {
        framework.memory.set_gradients(bytes);
        framework.speed.reduction_bytes = bytes + weights;
        framework.speed.sharded_bytes = bytes + 2.0 * weights;
    }
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
    let length = &section.sequence_length;
    length.at_most(LONGEST_SEQUENCE, "training.sequence_length", problems);
    let batch = &section.global_batch;
    batch.at_most(LARGEST_BATCH, "training.global_batch", problems);
    let precision = section.precision.or_default(Precision::Bf16)?;
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
        sequence_length: sequence_length?,
        global_batch: global_batch?,
        precision,
        optimizer: section.optimizer.or_default(Optimizer::Adam)?,
        mfu_convention: section.mfu_convention.or_default(FlopConvention::Paper)?,
        load_imbalance: load_imbalance(section, problems)?,
    })
}

/// Most that any rank can have over the mean.
const MOST_IMBALANCE: f64 = 1e3;

fn load_imbalance(section: &TrainingSection, problems: &mut Problems) -> Option<f64> {
    section.load_imbalance.check(
        |imbalance| (1.0..=MOST_IMBALANCE).contains(imbalance),
        problems,
        |imbalance| {
            format!("`training.load_imbalance` is from 1 to {MOST_IMBALANCE}, not `{imbalance}`")
        },
        "write 1 where routing is forced to balance, 1.2 to 1.6 where it is not",
    );
    section.load_imbalance.or_default(USUAL_IMBALANCE)
}

fn max_oom_risk(limits: &Field<LimitsSection>) -> Option<f64> {
    let default = Risk(DEFAULT_OOM_RISK);
    let risk = match limits {
        Field::Absent => Some(default),
        Field::Broken => None,
        Field::Given(section, _) => section.max_oom_risk.or_default(default),
    };
    risk.map(|Risk(share)| share)
}
