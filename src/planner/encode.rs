//! From costs to the data of the program `layout choice`.

use formulations::layout_choice::{
    Axis as ProgramAxis, AxisTerm, Data, Item, LeftSide, Rule as Row,
};
use formulations::model::Sense;

use crate::axis::{Axis, FlaggedCombination};
use crate::framework::FusedRmsNorm;
use crate::instance::Instance;
use crate::layout::{Checkpointing, RmsNormKernel, Schedule, SequenceParallel, Sharding};
use crate::rules::Rule;

use super::constraints;
use super::cost_table::CostTable;

/// The program over the entries at `indices`, in that order.
#[must_use]
pub fn data(table: &CostTable, indices: &[usize]) -> Data {
    let instance = table.instance;
    let chosen: Vec<FlaggedCombination> = indices
        .iter()
        .map(|&index| table.entries[index].candidate)
        .collect();
    let costs: Vec<_> = indices
        .iter()
        .map(|&index| table.exact(&table.entries[index]).map(|(_, cost)| cost))
        .collect();
    let position = |axis: Axis, code: u32| {
        let values = instance.space.values(axis);
        values.iter().position(|&value| value == code).unwrap_or(0)
    };
    let items = chosen.iter().zip(&costs).map(|(candidate, cost)| Item {
        choice: Axis::ALL
            .map(|axis| position(axis, candidate.code(axis)))
            .to_vec(),
        profit: cost.as_ref().map_or(0, |cost| cost.profit),
    });
    let mut rules = axis_rows(instance);
    rules.extend(item_rows(instance, &chosen));
    rules.extend(constraints::choice_rows(instance, &chosen));
    let memory: Vec<&[i64]> = costs
        .iter()
        .map(|cost| cost.as_ref().map_or(&[][..], |cost| &cost.memory))
        .collect();
    rules.extend(memory_rows(&memory, table.capacity));
    Data {
        axes: axes(|axis| instance.space.values(axis)),
        items: items.collect(),
        rules,
    }
}

/// The axes of the program, with the values that `values` lists by their codes.
pub(super) fn axes<'a>(values: impl Fn(Axis) -> &'a [u32]) -> Vec<ProgramAxis> {
    let axes = Axis::ALL.map(|axis| ProgramAxis {
        name: axis.as_str().to_owned(),
        values: values(axis).iter().map(|&code| axis.show(code)).collect(),
    });
    axes.to_vec()
}

/// `memory_capacity(s)`: the memory of each item on stage `s` is at most `capacity`.
pub(super) fn memory_rows(memory: &[&[i64]], capacity: i64) -> Vec<Row> {
    let stages = memory.iter().map(|stages| stages.len()).max().unwrap_or(0);
    let on_stage = |stage: usize| {
        let amounts = memory.iter();
        amounts
            .map(|stages| stages.get(stage).copied().unwrap_or(0))
            .collect()
    };
    (0..stages)
        .map(|stage| Row {
            name: format!("{}({stage})", Rule::MemoryCapacity),
            left: LeftSide::OverItems(on_stage(stage)),
            sense: Sense::AtMost,
            right: capacity,
        })
        .collect()
}

/// The term of each value of an axis, by its code; zero coefficients are left out.
fn terms(instance: &Instance, axis: Axis, coefficient: impl Fn(u32) -> i64) -> Vec<AxisTerm> {
    let values = instance.space.values(axis).iter().enumerate();
    values
        .map(|(value, &code)| AxisTerm {
            axis: axis as usize,
            value,
            coefficient: coefficient(code),
        })
        .filter(|term| term.coefficient != 0)
        .collect()
}

fn at_most(rule: Rule, terms: Vec<AxisTerm>, right: i64) -> Row {
    Row {
        name: rule.as_str().to_owned(),
        left: LeftSide::OverAxes(terms),
        sense: Sense::AtMost,
        right,
    }
}

/// Rules that are linear in the one-hot columns of the axes.
fn axis_rows(instance: &Instance) -> Vec<Row> {
    let job = &instance.job;
    let on = |condition: bool| i64::from(condition);
    let heads = |tp: u32| (job.transformer.heads % u64::from(tp)) as i64;
    let groups = job.transformer.key_value_heads;
    let group_remainder = |tp: u32| (groups % u64::from(tp)).min(u64::from(tp) % groups) as i64;
    let node = job.cluster.gpus_per_node;
    // The GPUs of all nodes that a group touches, so that a group within one node has `tp`.
    let touched = |tp: u32| {
        i64::from(if node.is_multiple_of(tp) {
            tp
        } else {
            tp.next_multiple_of(node) + node
        })
    };
    let mut rows = vec![
        at_most(
            Rule::HeadsDivisible,
            terms(instance, Axis::TensorParallel, heads),
            0,
        ),
        at_most(
            Rule::KeyValueHeadsDivisible,
            terms(instance, Axis::TensorParallel, group_remainder),
            0,
        ),
        at_most(
            Rule::TensorParallelWithinNode,
            terms(instance, Axis::TensorParallel, touched),
            i64::from(node),
        ),
        at_most(
            Rule::ExpertsDivisible,
            terms(instance, Axis::ExpertParallel, |ep| i64::from(ep) - 1),
            0,
        ),
    ];
    rows.extend(exclusions(instance));
    for (index, assignment) in instance.space.forbidden.iter().enumerate() {
        let matching = assignment
            .0
            .iter()
            .flat_map(|&(axis, forbidden)| terms(instance, axis, |code| on(code == forbidden)));
        rows.push(Row {
            name: format!("{}({index})", Rule::Forbidden),
            left: LeftSide::OverAxes(matching.collect()),
            sense: Sense::AtMost,
            right: assignment.0.len() as i64 - 1,
        });
    }
    number_repeated(&mut rows);
    // A row without terms holds always and says nothing.
    rows.retain(|row| !matches!(&row.left, LeftSide::OverAxes(terms) if terms.is_empty()));
    rows
}

/// Rules that exclude a value of one axis together with a value of another: `u_a + u_b <= 1`.
fn exclusions(instance: &Instance) -> Vec<Row> {
    let job = &instance.job;
    let on = |condition: bool| i64::from(condition);
    let mut rows = Vec::new();
    let pair = |left: Vec<AxisTerm>, right: Vec<AxisTerm>| [left, right].concat();
    let sequence_parallel = SequenceParallel::On as u32;
    rows.push(at_most(
        Rule::SequenceParallelNeedsTensorParallel,
        pair(
            terms(instance, Axis::SequenceParallel, |code| {
                on(code == sequence_parallel)
            }),
            terms(instance, Axis::TensorParallel, |tp| on(tp == 1)),
        ),
        1,
    ));
    rows.push(at_most(
        Rule::ShardingExcludesPipeline,
        pair(
            terms(instance, Axis::Sharding, |code| {
                on(code >= Sharding::Gradients as u32)
            }),
            terms(instance, Axis::PipelineParallel, |pp| on(pp > 1)),
        ),
        1,
    ));
    let interleaved = terms(instance, Axis::VirtualStages, |v| on(v > 1));
    let one_stage = terms(instance, Axis::PipelineParallel, |pp| on(pp == 1));
    let other_schedule = terms(instance, Axis::Schedule, |code| {
        on(code != Schedule::OneForwardOneBackward as u32)
    });
    rows.push(at_most(
        Rule::InterleavingNeedsPipeline,
        pair(interleaved.clone(), one_stage),
        1,
    ));
    rows.push(at_most(
        Rule::InterleavingNeedsPipeline,
        pair(interleaved, other_schedule),
        1,
    ));
    if job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing {
        let (with_kernel, plain) = (RmsNormKernel::Fused as u32, Checkpointing::None as u32);
        rows.push(at_most(
            Rule::RmsNormKernelExcludesCheckpointing,
            pair(
                terms(
                    instance,
                    Axis::RmsNormKernel,
                    |code| on(code == with_kernel),
                ),
                terms(instance, Axis::Checkpointing, |code| on(code != plain)),
            ),
            1,
        ));
    }
    rows
}

/// Appends `(k)` to the second and later rows of one name.
fn number_repeated(rows: &mut [Row]) {
    for index in 1..rows.len() {
        let earlier = rows[..index]
            .iter()
            .filter(|row| row.name == rows[index].name)
            .count();
        if earlier > 0 {
            rows[index].name = format!("{}({earlier})", rows[index].name);
        }
    }
}

/// Rules on products of axes: one coefficient a combination.
fn item_rows(instance: &Instance, chosen: &[FlaggedCombination]) -> Vec<Row> {
    let job = &instance.job;
    let over = |coefficient: &dyn Fn(&FlaggedCombination) -> i64| {
        LeftSide::OverItems(chosen.iter().map(coefficient).collect())
    };
    let amounts = |rule: Rule| over(&|candidate| rule.amount(instance, candidate, 0) as i64);
    let at_most_zero = |rule: Rule, left: LeftSide| Row {
        name: rule.as_str().to_owned(),
        left,
        sense: Sense::AtMost,
        right: 0,
    };
    let mut rows = vec![
        Row {
            name: Rule::GpuCount.as_str().to_owned(),
            left: over(&|candidate| candidate.combination.gpus() as i64),
            sense: Sense::Equal,
            right: i64::from(job.cluster.gpus),
        },
        at_most_zero(
            Rule::GlobalBatchDivisible,
            amounts(Rule::GlobalBatchDivisible),
        ),
        at_most_zero(Rule::SequenceDivisible, amounts(Rule::SequenceDivisible)),
        at_most_zero(Rule::LayersCoverStages, amounts(Rule::LayersCoverStages)),
        at_most_zero(
            Rule::InterleavingMicroBatches,
            amounts(Rule::InterleavingMicroBatches),
        ),
    ];
    rows.retain(|row| {
        row.sense == Sense::Equal
            || row.name == Rule::GlobalBatchDivisible.as_str()
            || matches!(&row.left, LeftSide::OverItems(coefficients) if coefficients.iter().any(|&c| c != 0))
    });
    rows
}
