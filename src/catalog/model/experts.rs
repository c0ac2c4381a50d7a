//! Experts of `[model]`, and the width of dense layers beside them.

use super::{Broken, MOST_LAYERS, MOST_NORMS, WIDEST_ATTENTION, at_most, own, small};
use crate::catalog::sections::ModelSection;
use crate::reading::{Field, Origin, Problems};
use crate::transformer::Experts;

/// Most experts of a layer and the widest one: with them no count overflows.
const MOST_EXPERTS: u64 = 1 << 13;
const WIDEST_EXPERT: u64 = 1 << 17;

/// The experts, if the section has any. Without a number of layers their order
/// is not checked.
pub(super) fn experts(
    section: &ModelSection,
    layers: Option<u64>,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Result<Option<Experts>, Broken> {
    if section.experts.is_absent() {
        return if is_dense(section, problems) {
            Ok(None)
        } else {
            Err(Broken)
        };
    }
    let mut required = |field: &Field<u64>, key: &str, most: u64, example: u64| {
        let path = format!("model.{key}");
        let hint = format!("experts need it: write a number such as `{key} = {example}`");
        field.at_most(most, &path, problems);
        field.required(&path, origin, &hint, problems)
    };
    let count = required(&section.experts, "experts", MOST_EXPERTS, 64);
    let per_token = &section.experts_per_token;
    let used = required(per_token, "experts_per_token", MOST_EXPERTS, 8);
    let width = required(&section.expert_width, "expert_width", WIDEST_EXPERT, 2048);
    if let (Some(count), Some(used)) = (count, used)
        && used > count
    {
        problems.add_anywhere(
            own(&[per_token.origin(), section.experts.origin()]),
            format!("`model.experts_per_token` is {used}, but a layer has {count} experts"),
            "a token goes to some of them",
        );
    }
    let mut or_none = |field, most, path| at_most(field, most, path, problems);
    let shared = or_none(
        &section.shared_expert_width,
        WIDEST_ATTENTION,
        "model.shared_expert_width",
    );
    let dense = or_none(&section.dense_layers, MOST_LAYERS, "model.dense_layers");
    let biases = or_none(&section.router_biases, MOST_NORMS, "model.router_biases");
    let gates = or_none(
        &section.shared_expert_gates,
        MOST_NORMS,
        "model.shared_expert_gates",
    );
    let interval = section.expert_interval.or_default(1).ok_or(Broken)?;
    let dense = dense.ok_or(Broken)?;
    check_order(section, layers, dense, interval, problems)?;
    Ok(Some(Experts {
        experts: count.ok_or(Broken)?,
        experts_per_token: used.ok_or(Broken)?,
        expert_width: width.ok_or(Broken)?,
        shared_expert_width: shared.ok_or(Broken)?,
        dense_layers: small(dense),
        expert_interval: small(interval),
        router_biases: biases.ok_or(Broken)?,
        shared_expert_gates: gates.ok_or(Broken)?,
    }))
}

/// Whether a section without `experts` has none of the other keys; reports one that it has.
fn is_dense(section: &ModelSection, problems: &mut Problems) -> bool {
    let counts = [
        (&section.experts_per_token, "experts_per_token"),
        (&section.expert_width, "expert_width"),
        (&section.expert_interval, "expert_interval"),
    ];
    let or_none = [
        (&section.shared_expert_width, "shared_expert_width"),
        (&section.dense_layers, "dense_layers"),
        (&section.router_biases, "router_biases"),
        (&section.shared_expert_gates, "shared_expert_gates"),
    ];
    let mut alone = (counts.iter().map(|(field, key)| (field.origin(), *key)))
        .chain(or_none.iter().map(|(field, key)| (field.origin(), *key)))
        .filter_map(|(at, key)| Some((at?, key)));
    let Some((at, key)) = alone.next() else {
        return true;
    };
    problems.add_anywhere(
        own(&[Some(at)]),
        format!("`model.{key}` is of a mixture of experts, and `model.experts` is missing"),
        "write the routed experts of a layer, such as `experts = 64`",
    );
    false
}

/// Layers with experts follow the leading dense ones, and the last layer is one of them.
fn check_order(
    section: &ModelSection,
    layers: Option<u64>,
    dense: u64,
    interval: u64,
    problems: &mut Problems,
) -> Result<(), Broken> {
    let layers = layers.ok_or(Broken)?;
    let (leading, every) = (&section.dense_layers, &section.expert_interval);
    if dense >= layers {
        problems.add_anywhere(
            own(&[leading.origin(), section.layers.origin()]),
            format!("`model.dense_layers` is {dense}, which leaves none of the {layers} layers with experts"),
            "give fewer, or describe a dense network without `experts`",
        );
        return Err(Broken);
    }
    if !(layers - dense).is_multiple_of(interval) {
        let rest = layers - dense;
        problems.add_anywhere(
            own(&[every.origin(), leading.origin(), section.layers.origin()]),
            format!("`model.expert_interval` is {interval}, which does not divide the {rest} layers after the leading dense ones"),
            "the last layer has experts: give an interval that divides them",
        );
        return Err(Broken);
    }
    Ok(())
}

/// The width of dense layers: needed where there are any, 0 where not, and then no key of the user's own.
pub(super) fn dense_width(
    section: &ModelSection,
    layers: Option<u64>,
    experts: Option<Experts>,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<u64> {
    let width = &section.feed_forward_width;
    let path = "model.feed_forward_width";
    let has_dense =
        experts.is_none_or(|experts| experts.dense_layers > 0 || experts.expert_interval > 1);
    if has_dense {
        width.at_most(WIDEST_ATTENTION, path, problems);
        let hint = "write a number such as `feed_forward_width = 13824`";
        return width.required(path, origin, hint, problems);
    }
    if let (Some(at), Some(layers)) = (own(&[width.origin()]), layers) {
        problems.add(
            at,
            format!("`{path}` is the width of dense layers, and all {layers} layers have experts"),
            "remove it: `expert_width` is the width of an expert",
        );
    }
    Some(0)
}
