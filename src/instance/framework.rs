//! `[framework]`: from preset and overrides to a checked [`Framework`].

use std::ops::RangeInclusive;

use super::document::Origin;
use super::error::Problems;
use super::file::{FrameworkSection, MemorySection, SpeedSection};
use super::reader::{Field, Value};
use super::values::{Number, Quantity};
use crate::catalog;
use crate::framework::{Framework, MemoryProfile, SpeedProfile};
use crate::quantity::Seconds;

/// The framework of an instance that names none.
pub(crate) const DEFAULT: &str = "megatron-lm";

/// The framework that the section describes. Where it names no other preset, the cluster's framework
/// is meant, with the figures that were `fitted` on the cluster.
pub(crate) fn resolve(
    section: &FrameworkSection,
    fitted: Option<&FrameworkSection>,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Framework> {
    let usual = fitted.and_then(|fitted| fitted.preset.value().cloned());
    let preset = section
        .preset
        .or_default(usual.clone().unwrap_or(DEFAULT.to_owned()))?;
    let base = match catalog::framework_section(&preset) {
        Ok(base) => base.clone(),
        Err(unknown) => {
            let at = section.preset.origin().or(origin);
            problems.add_anywhere(at, unknown.text(), unknown.hint());
            return None;
        }
    };
    let base = match fitted.filter(|_| usual.is_none_or(|usual| usual == preset)) {
        Some(fitted) => fitted.clone().over(&base),
        None => base,
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
    macro_rules! take {
        ($key:ident) => {
            section.$key.required(
                concat!("framework.", stringify!($key)),
                origin,
                ADVICE,
                problems,
            )
        };
    }
    let (partition, checkpointing) = (take!(partition), take!(checkpointing));
    let (fused, attention) = (take!(fused_rmsnorm), take!(usual_attention));
    let (norm, split) = (take!(usual_rmsnorm), take!(usual_sequence_parallel));
    let (memory, speed) = (take!(memory), take!(speed));
    let (memory, speed) = (
        memory_profile(&memory?, origin, problems),
        speed_profile(&speed?, origin, problems),
    );
    Some(Framework {
        name: section.name.or_default(name.to_owned())?,
        partition: partition?.0,
        checkpoint_rule: checkpointing?.0,
        fused_rmsnorm: fused?.0,
        usual_attention: attention?.0,
        usual_rmsnorm: norm?.0,
        usual_sequence_parallel: split?.0,
        memory: memory?,
        speed: speed?,
        source: section.source.or_default(String::new())?,
    })
}

const ADVICE: &str = "every framework of the catalog has it: give a `preset`";

/// A number between two bounds, which every framework states.
fn number(
    field: &Field<Number>,
    key: &str,
    bounds: RangeInclusive<f64>,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<f64> {
    field.check(
        |number| bounds.contains(&number.0),
        problems,
        |number| {
            let (least, most) = (bounds.start(), bounds.end());
            format!(
                "`framework.{key}` is between {least} and {most}, not `{}`",
                number.0
            )
        },
        "see its unit in docs/instance-format.md",
    );
    Some(
        field
            .required(&format!("framework.{key}"), origin, ADVICE, problems)?
            .0,
    )
}

fn memory_profile(
    section: &MemorySection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<MemoryProfile> {
    let mut take = |field: &Field<Number>, key: &str, bounds| {
        number(field, &format!("memory.{key}"), bounds, origin, problems)
    };
    let gradient_bytes = take(&section.gradient_bytes, "gradient_bytes", 1.0..=16.0);
    let logit_bytes = take(&section.logit_bytes, "logit_bytes", 0.0..=100.0);
    let gathered = take(
        &section.logit_bytes_gathered,
        "logit_bytes_gathered",
        0.0..=100.0,
    );
    let hidden_bytes = take(&section.hidden_bytes, "hidden_bytes", 0.0..=100.0);
    let whole = take(&section.gathered_bytes, "gathered_bytes", 0.0..=100.0);
    let attention_bytes = take(&section.attention_bytes, "attention_bytes", 0.0..=100.0);
    let norm_bytes = take(&section.norm_bytes, "norm_bytes", 0.0..=100.0);
    let feed_forward = take(
        &section.feed_forward_bytes,
        "feed_forward_bytes",
        0.0..=100.0,
    );
    let working = take(&section.working_bytes, "working_bytes", 0.0..=1000.0);
    let factor = take(
        &section.activation_factor,
        "activation_factor",
        0.01..=100.0,
    );
    let logits = section
        .logits
        .required("framework.memory.logits", origin, ADVICE, problems);
    let fixed = section
        .fixed
        .required("framework.memory.fixed", origin, ADVICE, problems);
    let communicator =
        section
            .communicator
            .required("framework.memory.communicator", origin, ADVICE, problems);
    let logged =
        section
            .logged_peak
            .required("framework.memory.logged_peak", origin, ADVICE, problems);
    Some(MemoryProfile {
        gradient_bytes: gradient_bytes?,
        logits: logits?.0,
        logit_bytes: logit_bytes?,
        logit_bytes_gathered: gathered?,
        hidden_bytes: hidden_bytes?,
        gathered_bytes: whole?,
        attention_bytes: attention_bytes?,
        norm_bytes: norm_bytes?,
        feed_forward_bytes: feed_forward?,
        working_bytes: working?,
        activation_factor: factor?,
        fixed: fixed?.0,
        communicator: communicator?.0,
        logged_peak: logged?.0,
    })
}

fn speed_profile(
    section: &SpeedSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<SpeedProfile> {
    let optimizer_work =
        section
            .optimizer_work
            .required("framework.speed.optimizer_work", origin, ADVICE, problems);
    macro_rules! numbers {
        ($($key:ident: $bounds:expr,)+) => {
            $(let $key = number(
                &section.$key,
                concat!("speed.", stringify!($key)),
                $bounds,
                origin,
                problems,
            );)+
        };
    }
    macro_rules! durations {
        ($($key:ident,)+) => {
            $(let $key = duration(
                &section.$key,
                concat!("speed.", stringify!($key)),
                origin,
                problems,
            );)+
        };
    }
    numbers! {
        elementwise: 0.0..=100.0,
        rmsnorm_bytes: 0.0..=1e4,
        softmax_bytes_fused: 0.0..=1e4,
        softmax_bytes_torch: 0.0..=1e4,
        logit_bytes: 0.0..=1e4,
        launch_recompute: 0.0..=10.0,
        launch_norm: 1.0..=64.0,
        transfer_exposed: 0.0..=100.0,
        bubble: 0.0..=10.0,
        bubble_zero_1p: 0.0..=10.0,
        bubble_zero_2p: 0.0..=10.0,
        bubble_interleaved: 0.0..=1.0,
        reduction_bytes: 0.0..=100.0,
        sharded_bytes: 0.0..=100.0,
        sharded_norm: 1.0..=64.0,
        measured_intra_node: 0.01..=100.0,
        measured_inter_node: 0.01..=100.0,
        tensor_parallel_across: 0.01..=100.0,
    }
    durations! { launch, launch_unfused, micro_batch_overhead, step_overhead, sharded_latency, }
    Some(SpeedProfile {
        elementwise: elementwise?,
        rmsnorm_bytes: rmsnorm_bytes?,
        softmax_bytes_fused: softmax_bytes_fused?,
        softmax_bytes_torch: softmax_bytes_torch?,
        logit_bytes: logit_bytes?,
        launch: launch?,
        launch_unfused: launch_unfused?,
        launch_recompute: launch_recompute?,
        launch_norm: launch_norm?,
        micro_batch_overhead: micro_batch_overhead?,
        step_overhead: step_overhead?,
        transfer_exposed: transfer_exposed?,
        bubble: bubble?,
        bubble_zero_1p: bubble_zero_1p?,
        bubble_zero_2p: bubble_zero_2p?,
        bubble_interleaved: bubble_interleaved?,
        reduction_bytes: reduction_bytes?,
        optimizer_work: optimizer_work?.0,
        sharded_bytes: sharded_bytes?,
        sharded_latency: sharded_latency?,
        sharded_norm: sharded_norm?,
        measured_intra_node: measured_intra_node?,
        measured_inter_node: measured_inter_node?,
        tensor_parallel_across: tensor_parallel_across?,
    })
}

/// Longest host time that a key takes.
const LONGEST: Seconds = Seconds::new(100.0);

fn duration(
    field: &Field<Quantity<Seconds>>,
    key: &str,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Seconds> {
    field.check(
        |duration| duration.0 <= LONGEST,
        problems,
        |_| format!("`framework.{key}` is longer than 100 s"),
        "check the unit: `us`, `ms` or `s`",
    );
    Some(
        field
            .required(&format!("framework.{key}"), origin, ADVICE, problems)?
            .0,
    )
}
