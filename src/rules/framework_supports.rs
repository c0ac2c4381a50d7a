//! The framework has every value of the layout, and what its ranks split also with a pipeline.

use super::{Case, Definition, MEGATRON_LM, Parts, Remedy};
use crate::axis::{Axis, AxisSet};
use crate::framework::support::{Aspect, ContextExchange};
use crate::instance::Instance;
use crate::layout::Sharding;

const NAME: &str = "framework_supports";

/// The part on what is split with a pipeline, after one part per axis.
const WITH_PIPELINE: usize = Axis::COUNT;

/// How often the rule is stated.
pub(super) const PARTS: usize = WITH_PIPELINE + 1;

pub(super) const RULE: Definition = Definition {
    name: NAME,
    demands: "the framework has every value, and what data parallelism splits also with a pipeline",
    parts: Parts::Several {
        count: |_| PARTS,
        name: |_, part| format!("{NAME}({})", aspect(part).as_str()),
        axes: |_, part| {
            Some(match aspect(part) {
                Aspect::Axis(axis) => AxisSet::EMPTY.with(axis),
                _ => [
                    Axis::PipelineParallel,
                    Axis::DataParallel,
                    Axis::ContextParallel,
                    Axis::Sharding,
                ]
                .into_iter()
                .fold(AxisSet::EMPTY, AxisSet::with),
            })
        },
    },
    amount,
    message,
    demand,
    limits: |instance, _, part| {
        let values = instance.job.framework.axes.of(aspect(part));
        let is_open = values.0.is_none() || part != WITH_PIPELINE;
        (!is_open).then(|| demand(instance, part))
    },
    remedy: Remedy::Supported,
    refused_by: &[MEGATRON_LM],
    source: "`framework.axes`, each with its source in [frameworks.md](frameworks.md)",
    ..Definition::USUAL
};

/// What a part of the rule is about.
#[must_use]
pub fn aspect(part: usize) -> Aspect {
    match Axis::ALL.get(part) {
        Some(&axis) => Aspect::Axis(axis),
        None => Aspect::ShardingWithPipeline,
    }
}

fn amount(case: &Case) -> u64 {
    let (axes, one) = (&case.job().framework.axes, case.combination());
    let lacks = if let Aspect::Axis(axis) = aspect(case.part) {
        !axes.has(axis, case.flagged.code(axis))
    } else {
        // One replica has nobody to split with.
        let is_alone = one.data_parallel * one.context_parallel == 1;
        one.pipeline_parallel > 1
            && !(is_alone && one.sharding == Sharding::None)
            && !axes.sharding_with_pipeline.has(one.sharding as u32)
    };
    u64::from(lacks)
}

fn message(case: &Case) -> String {
    let name = &case.job().framework.name;
    let has = case.job().framework.axes.shown(aspect(case.part));
    match aspect(case.part) {
        Aspect::Axis(axis) => format!(
            "{name} has no `{axis} = {}`: it has {has}{}",
            axis.show(case.flagged.code(axis)),
            remark(case.instance, axis)
        ),
        _ => format!(
            "{name} has no {} with {} pipeline stages: it has {has} with a pipeline",
            case.combination().sharding,
            case.pipeline_parallel()
        ),
    }
}

fn demand(instance: &Instance, part: usize) -> String {
    let framework = &instance.job.framework;
    let (name, has) = (&framework.name, framework.axes.shown(aspect(part)));
    match aspect(part) {
        Aspect::Axis(axis) => format!("{name} has {axis} {has}{}", remark(instance, axis)),
        _ => format!("{name} splits {has} with a pipeline"),
    }
}

/// What a framework has of context parallelism where it is of another kind than what is modelled.
fn remark(instance: &Instance, axis: Axis) -> String {
    let axes = &instance.job.framework.axes;
    let kinds = axes.shown(Aspect::ContextExchange);
    let is_other = axes.context_exchange.has(ContextExchange::AllToAll as u32)
        && !axes.has(Axis::ContextParallel, 2);
    if axis == Axis::ContextParallel && is_other {
        format!(" (its context parallelism, {kinds}, is not modelled)")
    } else {
        String::new()
    }
}
