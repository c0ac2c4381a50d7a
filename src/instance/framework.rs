//! `[framework]`: from preset and overrides to a checked [`Framework`].

use super::document::Origin;
use super::error::Problems;
use super::file::FrameworkSection;
use super::reader::{Field, Number, Value};
use crate::catalog;
use crate::framework::Framework;

/// The framework of an instance that names none.
pub(crate) const DEFAULT: &str = "megatron-lm";

/// The framework that the section describes.
pub(crate) fn resolve(
    section: &FrameworkSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Framework> {
    let preset = section.preset.or_default(DEFAULT.to_owned())?;
    let base = match catalog::framework_section(&preset) {
        Ok(base) => base.clone(),
        Err(unknown) => {
            let at = section.preset.origin().or(origin);
            problems.add_anywhere(at, unknown.text(), unknown.hint());
            return None;
        }
    };
    complete(&section.clone().over(&base), &preset, origin, problems)
}

/// The framework of a section that has every key.
pub(crate) fn complete(
    section: &FrameworkSection,
    name: &str,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Framework> {
    let share = |field: &Field<Number>, key: &str, least: f64, most: f64, p: &mut Problems| {
        field.check(
            |number| (least..=most).contains(&number.0),
            p,
            |number| {
                format!(
                    "`framework.{key}` is between {least} and {most}, not `{}`",
                    number.0
                )
            },
            "",
        );
    };
    share(
        &section.gradient_bytes,
        "gradient_bytes",
        1.0,
        16.0,
        problems,
    );
    share(
        &section.activation_factor,
        "activation_factor",
        0.01,
        100.0,
        problems,
    );
    share(&section.launch_norm, "launch_norm", 1.0, 64.0, problems);
    share(&section.bubble_factor, "bubble_factor", 0.0, 10.0, problems);
    share(
        &section.data_parallel_overlap,
        "data_parallel_overlap",
        0.0,
        1.0,
        problems,
    );
    macro_rules! take {
        ($key:ident) => {
            section.$key.required(
                concat!("framework.", stringify!($key)),
                origin,
                "every framework of the catalog has it: give a `preset`",
                problems,
            )
        };
    }
    let (partition, checkpointing, fused) =
        (take!(partition), take!(checkpointing), take!(fused_rmsnorm));
    let (gradient_bytes, logits) = (take!(gradient_bytes), take!(logits));
    let (logit_bytes, gathered) = (take!(logit_bytes), take!(logit_bytes_gathered));
    let (activation_factor, fixed) = (take!(activation_factor), take!(fixed_memory));
    let (communicator, launch_norm) = (take!(communicator_memory), take!(launch_norm));
    let (bubble_factor, overlap) = (take!(bubble_factor), take!(data_parallel_overlap));
    Some(Framework {
        name: section.name.or_default(name.to_owned())?,
        partition: partition?.0,
        checkpoint_rule: checkpointing?.0,
        fused_rmsnorm: fused?.0,
        gradient_bytes: gradient_bytes?.0,
        logits: logits?.0,
        logit_bytes: logit_bytes?.0,
        logit_bytes_gathered: gathered?.0,
        activation_factor: activation_factor?.0,
        fixed_memory: fixed?.0,
        communicator_memory: communicator?.0,
        launch_norm: launch_norm?.0,
        bubble_factor: bubble_factor?.0,
        data_parallel_overlap: overlap?.0,
        source: section.source.or_default(String::new())?,
    })
}
