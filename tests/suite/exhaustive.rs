//! The program's optimum equals what enumeration finds, on every instance and on random ones.

use parlayout::axis::{Axis, AxisSet, FlaggedCombination};
use parlayout::cost_model::memory::admissible_peak;
use parlayout::cost_model::{self, Costs};
use parlayout::framework::{Framework, FusedRmsNorm, Partition, TensorParallelReach};
use parlayout::instance::Instance;
use parlayout::layout::{
    Checkpointing, Layout, RmsNormKernel, Schedule, SequenceParallel, Sharding, Stage,
};
use parlayout::plan::{Evaluated, Formulation, Outcome};
use parlayout::planner::Deadline;
use parlayout::planner::cost_table::CostTable;
use parlayout::planner::screening::screen;
use parlayout::planner::staged::{Excluding, encode};
use parlayout::planner::{self, PlanOptions, Pruning};
use proptest::prelude::*;

use crate::support::{instances, random_instance};

fn options(pruning: Pruning) -> PlanOptions {
    PlanOptions {
        formulation: Formulation::LayoutChoice,
        pruning,
        ..PlanOptions::default()
    }
}

fn plan(instance: &Instance, pruning: Pruning) -> Outcome {
    planner::plan(instance, &options(pruning)).expect("the planner answers")
}

/// The best layout by brute force over the space: no bounds, no whole numbers, no program.
fn brute_force(instance: &Instance) -> Option<Evaluated> {
    let mut best: Option<Evaluated> = None;
    let mut codes = [0; Axis::COUNT];
    visit(instance, 0, &mut codes, &mut best);
    best
}

fn visit(
    instance: &Instance,
    depth: usize,
    codes: &mut [u32; Axis::COUNT],
    best: &mut Option<Evaluated>,
) {
    let Some(&axis) = Axis::ALL.get(depth) else {
        let Some(layout) = layout(instance, &FlaggedCombination::from_codes(codes)) else {
            return;
        };
        if !is_legal(instance, &FlaggedCombination::from_codes(codes), &layout) {
            return;
        }
        let costs = Costs::new(&instance.job, &layout.combination);
        let prediction = cost_model::evaluate(&instance.job, &costs, &layout.stages);
        if best
            .as_ref()
            .is_none_or(|best| prediction.mfu > best.prediction.mfu)
        {
            *best = Some(Evaluated { layout, prediction });
        }
        return;
    };
    for &code in instance.space.values(axis) {
        codes[axis as usize] = code;
        visit(instance, depth + 1, codes, best);
    }
}

fn layout(instance: &Instance, candidate: &FlaggedCombination) -> Option<Layout> {
    let job = &instance.job;
    let stages = candidate.combination.pipeline_parallel;
    if stages > job.transformer.layers
        || candidate.combination.gpus() != u64::from(job.cluster.gpus)
    {
        return None;
    }
    let (layers, chunks) = (job.transformer.layers, candidate.combination.virtual_stages);
    let even =
        |layers: u32| (0..stages).map(move |s| layers / stages + u32::from(s < layers % stages));
    let counted = layers + 2;
    let cut: Vec<u32> = if chunks == 1 {
        cost_model::pipeline::even_partition(job.framework.partition, &job.transformer, stages)?
    } else if layers % (stages * chunks) != 0 && counted % (stages * chunks) == 0 {
        let ends = |s: u32| u32::from(s == 0) + u32::from(s + 1 == stages);
        (0..)
            .zip(even(counted))
            .map(|(s, count)| count - ends(s))
            .collect()
    } else {
        even(layers).collect()
    };
    let mode = candidate.checkpointing.recompute();
    let stages = cut.into_iter().map(|layers| {
        let mut stage = Stage {
            layers,
            recomputed: [0; 4],
        };
        if let Some(mode) = mode {
            stage.recomputed[mode as usize] = layers;
        }
        stage
    });
    Some(Layout {
        combination: candidate.combination,
        stages: stages.collect(),
    })
}

/// Every rule, written here once more: shares nothing with `src/rules`, so that it can vouch for it.
/// The values are those that the instance lists, and the layers are by the framework's own cut.
fn is_legal(instance: &Instance, flagged: &FlaggedCombination, layout: &Layout) -> bool {
    let (job, one) = (&instance.job, &flagged.combination);
    let (network, work) = (&job.transformer, &job.workload);
    let [tp, pp, dp, cp, ep, etp, v, b] = [
        one.tensor_parallel,
        one.pipeline_parallel,
        one.data_parallel,
        one.context_parallel,
        one.expert_parallel,
        one.expert_tensor_parallel,
        one.virtual_stages,
        one.micro_batch,
    ]
    .map(u64::from);
    let divides = |divisor: u64, number: u64| number.is_multiple_of(divisor);
    let micro_batches = work.global_batch / (dp * b);
    let is_split = one.sequence_parallel == SequenceParallel::On;
    let is_recomputed = flagged.checkpointing != Checkpointing::None;
    let counts: Vec<u64> = layout
        .stages
        .iter()
        .map(|it| u64::from(it.layers))
        .collect();
    let has_equal_chunks =
        |counts: &[u64]| counts.iter().all(|&it| it == counts[0] && divides(v, it));
    // Embedding and head may count as a layer each.
    let last = counts.len() - 1;
    let mut with_ends = counts.clone();
    with_ends[0] += 1;
    with_ends[last] += 1;
    let rules = [
        tp * pp * dp * cp == u64::from(job.cluster.gpus),
        job.cluster.gpus <= job.cluster.gpus_per_node
            || divides(
                u64::from(job.cluster.gpus_per_node),
                u64::from(job.cluster.gpus),
            ),
        divides(tp, network.heads),
        divides(tp, network.key_value_heads) || divides(network.key_value_heads, tp),
        job.framework.tensor_parallel_reach == TensorParallelReach::Anywhere
            || divides(tp, u64::from(job.cluster.gpus_per_node)),
        divides(dp * b, work.global_batch),
        cp == 1 || divides(2 * cp, work.sequence_length),
        !is_split || tp > 1 && divides(tp * cp, work.sequence_length),
        v == 1 || pp > 1 && one.schedule == Schedule::OneForwardOneBackward,
        v == 1 || micro_batches >= pp && divides(pp, micro_batches),
        v == 1
            || has_equal_chunks(&counts)
            || has_equal_chunks(&with_ends)
            || job.framework.partition == Partition::Free && with_ends.iter().all(|&it| it >= v),
        counts.iter().sum::<u64>() == u64::from(network.layers) && !counts.contains(&0),
        has(&job.framework, flagged),
        match &network.experts {
            None => ep * etp == 1,
            Some(experts) => {
                divides(ep, experts.experts)
                    && divides(etp, experts.expert_width)
                    && divides(ep * etp, tp * dp * cp)
                    && (is_split || tp == 1)
                    && counts[0] >= u64::from(experts.dense_layers) * v
            }
        },
        !is_recomputed
            || one.rmsnorm_kernel == RmsNormKernel::Unfused
            || job.framework.fused_rmsnorm == FusedRmsNorm::AllowsCheckpointing,
    ];
    let mut forbidden = instance.space.forbidden.iter();
    let mut rows = instance.space.constraints.iter();
    rules.into_iter().all(|holds| holds)
        && !forbidden.any(|assignment| assignment.matches(flagged))
        && rows.all(|row| row.holds(row.left(layout, work.global_batch)))
        && fits(instance, layout)
}

/// Whether a framework of the catalog can run the combination; an instance may free its checkpointing.
fn has(framework: &Framework, flagged: &FlaggedCombination) -> bool {
    let one = &flagged.combination;
    let is_sharded = !matches!(one.sharding, Sharding::None | Sharding::OptimizerStates);
    let is_plain = one.virtual_stages == 1
        && !is_sharded
        && (framework
            .axes
            .has(Axis::Checkpointing, Checkpointing::FeedForward as u32)
            || matches!(
                flagged.checkpointing,
                Checkpointing::None | Checkpointing::Full
            ));
    match framework.name.as_str() {
        "unrestricted" => true,
        "megatron-lm" => !is_sharded || one.pipeline_parallel == 1,
        "nanotron" => is_plain,
        "deepspeed" => {
            one.virtual_stages == 1
                && one.context_parallel == 1
                && flagged.checkpointing != Checkpointing::FeedForward
                && (!is_sharded || one.pipeline_parallel == 1)
        }
        "aleph-alpha-scaling" => is_plain && one.context_parallel == 1,
        "fsdp" => {
            let is_full = matches!(one.sharding, Sharding::Parameters | Sharding::Hybrid);
            let is_alone = one.data_parallel * one.context_parallel == 1;
            let is_whole =
                one.sharding == Sharding::None && (is_alone || one.pipeline_parallel == 1);
            let is_first = one.sharding == Sharding::Gradients && one.pipeline_parallel == 1;
            (is_full || is_whole || is_first)
                && matches!(
                    flagged.checkpointing,
                    Checkpointing::None | Checkpointing::Full
                )
        }
        other => panic!("it is not written here what {other} has"),
    }
}

/// Whether the risk of running out of memory is accepted on every stage.
fn fits(instance: &Instance, layout: &Layout) -> bool {
    let job = &instance.job;
    let costs = Costs::new(job, &layout.combination);
    let memory = cost_model::evaluate(job, &costs, &layout.stages).memory;
    let error = job.cluster.calibration.memory;
    let limit = admissible_peak(memory.capacity, error, instance.max_oom_risk);
    memory.stages.iter().all(|stage| stage.peak() <= limit)
}

/// Rounding to whole quanta may exchange layouts that differ by less than this.
const ROUNDING: f64 = 1e-5;

pub(crate) fn agrees_with_brute_force(instance: &Instance) {
    let found = plan(instance, Pruning::ByBounds);
    match (found.plan(), brute_force(instance)) {
        (None, None) => assert_eq!(found.status().as_str(), "infeasible", "{}", instance.name),
        (Some(plan), Some(best)) => {
            let (found, best) = (plan.choice.prediction.mfu, best.prediction.mfu);
            let distance = (found / best - 1.0).abs();
            assert!(distance < ROUNDING, "{}: {found:?} {best:?}", instance.name);
        }
        (found, best) => panic!("{}: {found:?} but brute force {best:?}", instance.name),
    }
}

/// One program over what bounds leave, and one for each combination, give the same layout, bound and neighbours.
fn agree_to_the_last_digit(instance: &Instance) {
    let (pruned, whole) = (
        plan(instance, Pruning::ByBounds),
        plan(instance, Pruning::None),
    );
    match (pruned.plan(), whole.plan()) {
        (None, None) => {
            assert_eq!(pruned.status().as_str(), "infeasible", "{}", instance.name);
            assert_eq!(whole.status().as_str(), "infeasible", "{}", instance.name);
        }
        (Some(pruned), Some(whole)) => {
            let name = &instance.name;
            assert_eq!(pruned.choice, whole.choice, "{name}");
            assert_eq!(pruned.alternatives, whole.alternatives, "{name}");
            assert_eq!(pruned.safer, whole.safer, "{name}");
            assert_eq!(pruned.proof.bound_mfu, whole.proof.bound_mfu, "{name}");
        }
        answers => panic!("{}: {answers:?}", instance.name),
    }
}

/// Spaces that the program carries whole and brute force walks in a moment.
fn is_small(instance: &Instance) -> bool {
    instance.space.combinations() <= 4_000
}

#[test]
fn instances_agree_with_brute_force() {
    let small: Vec<Instance> = instances().filter(is_small).collect();
    assert!(small.len() >= 10, "the paper's instances are small");
    small.iter().for_each(agrees_with_brute_force);
}

#[test]
fn instances_agree_to_the_last_digit() {
    instances()
        .filter(is_small)
        .for_each(|instance| agree_to_the_last_digit(&instance));
}

#[test]
fn rules_have_a_coefficient_on_what_they_exclude() {
    for instance in instances().filter(is_small) {
        let table = CostTable::new(&instance, Formulation::Staged);
        let never = Deadline::NEVER;
        let mut screening = screen(&table, 1, AxisSet::EMPTY, Pruning::ByBounds, never);
        let data = encode(&table, &mut screening, Excluding::Shown, never).data;
        let broken = table.entries.iter().filter(|it| !it.broken.is_empty());
        let mut excluded = data.excluded.iter();
        for entry in broken {
            let excluded = excluded.next().expect("every combination is a column");
            assert!(!excluded.broken.is_empty(), "{}: {entry:?}", instance.name);
            assert!(excluded.broken.iter().all(|&(_, amount)| amount > 0));
        }
    }
}

proptest! {
    #![proptest_config(crate::support::cases(48))]

    #[test]
    fn random_instances_agree(instance in random_instance()) {
        agrees_with_brute_force(&instance);
        agree_to_the_last_digit(&instance);
    }
}
