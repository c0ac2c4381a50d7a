//! Time and memory of one layout: the coefficients of its combination, added up over its stages.

use crate::job::Job;
use crate::layout::Stage;
use crate::quantity::{Bytes, Seconds};
use crate::workload::FlopConvention;

use super::components::{MemoryComponent, StageMemory, StepTime, TimeComponent};
use super::memory::StateBytes;
use super::prediction::{ExpertUse, MemoryUse, Prediction};
use super::rank::Rank;
use super::seen_to_fit::memory_error;
use super::{Costs, LayerMemory, StageExtra, flops, memory, pipeline};

/// Predicts time and memory of the layout with these stages.
///
/// `T = (M - beta) max T_s + beta sum T_s + (d + o) max P_s + t_step`, where stage `s` works `T_s` a
/// micro-batch, `beta` is the share of a pipeline fill that the schedule pays (1 for 1F1B), `P_s`
/// are its parameters, and `d`, `o` the exposed traffic and optimizer time a parameter,
/// `t_step` the host time of a step.
///
/// # Panics
///
/// If `stages` is empty.
#[must_use]
pub fn evaluate(job: &Job, costs: &Costs, stages: &[Stage]) -> Prediction {
    let memory = memory_use(job, costs, stages);
    let (time, slowest_stage) = step_time(costs, stages);
    let step_time = time.total();
    let error = memory_error(job, &costs.combination);
    let tokens = job.workload.tokens() as f64 / f64::from(job.cluster.gpus);
    let mfu = flops::utilisation(job, step_time);
    Prediction {
        mfu,
        mfu_paper: flops::utilisation_by(FlopConvention::Paper, job, step_time),
        mfu_causal: flops::utilisation_by(FlopConvention::Causal, job, step_time),
        throughput_per_gpu: job.cluster.accelerator.peak_bf16 * mfu.value(),
        step_time,
        tokens_per_second_per_gpu: tokens / step_time.value(),
        oom_probability: memory::oom_probability(memory.peak(), memory.capacity, error),
        memory,
        slowest_stage,
        time,
        experts: experts(job, costs, stages, step_time),
    }
}

/// How experts are used by a layout that takes `step_time`.
fn experts(job: &Job, costs: &Costs, stages: &[Stage], step_time: Seconds) -> Option<ExpertUse> {
    let share = Rank::new(job, &costs.combination).experts?;
    let load_imbalance = job.workload.load_imbalance;
    let imbalance = if load_imbalance > 1.0 {
        let mut balanced = job.clone();
        balanced.workload.load_imbalance = 1.0;
        let balanced = Costs::exact(&balanced, &costs.combination);
        step_time - duration(&balanced, stages)
    } else {
        Seconds::ZERO
    };
    Some(ExpertUse {
        per_gpu: share.local,
        tokens_each: share.rows_each(),
        load_imbalance,
        imbalance,
    })
}

/// Step time of the layout with these stages, as [`evaluate`] predicts it.
///
/// # Panics
///
/// If `stages` is empty.
#[must_use]
pub fn duration(costs: &Costs, stages: &[Stage]) -> Seconds {
    step_time(costs, stages).0.total()
}

/// Memory of each stage, as [`evaluate`] predicts it.
#[must_use]
pub fn memory_use(job: &Job, costs: &Costs, stages: &[Stage]) -> MemoryUse {
    let head = pipeline::head_as_layer(&costs.combination, stages);
    let last = stages.len() - 1;
    let stage = |(index, stage): (u32, &Stage)| {
        let mut memory = stage_memory(costs, index, stage);
        if index as usize == last {
            memory[MemoryComponent::Activations] += kept(costs, &head) * costs.in_flight(index);
        }
        memory
    };
    MemoryUse {
        capacity: job.cluster.accelerator.usable_memory,
        stages: (0..).zip(stages).map(stage).collect(),
    }
}

/// `(n - k) A + k C`: what the layers of a stage keep of a micro-batch.
fn kept(costs: &Costs, stage: &Stage) -> Bytes {
    let layer = &costs.layer().memory;
    let plain = layer.activations * f64::from(stage.layers - stage.checkpointed_layers());
    let recomputed = layer.kept.iter().zip(&stage.recomputed);
    recomputed.fold(plain, |sum, (&each, &count)| sum + each * f64::from(count))
}

/// The mode by which all layers of a stage are recomputed, and so the leading ones of another kind too; where
/// only some are, those are not among them.
pub(crate) fn recompute_of_all(stage: &Stage) -> Option<usize> {
    let modes = stage.recomputed.iter();
    let mut all = modes
        .enumerate()
        .filter(|&(_, &count)| count == stage.layers);
    all.next().map(|(mode, _)| mode)
}

/// What leading layers of another kind keep beyond other layers, all that are in flight.
fn kept_by_leading(costs: &Costs, index: u32, stage: &Stage) -> Option<Bytes> {
    let (count, other) = costs.others(index)?;
    let of = |memory: &LayerMemory| match recompute_of_all(stage) {
        Some(mode) => memory.kept[mode],
        None => memory.activations,
    };
    let each = of(&other.memory) - of(&costs.layer().memory);
    Some(each * (count * costs.in_flight_of_leading() as f64))
}

/// `n P + f ((n - k) A + k C) + [k > 0] W + m`, by component.
fn stage_memory(costs: &Costs, index: u32, stage: &Stage) -> StageMemory {
    let (extra, layer) = (costs.extra(index), &costs.layer().memory);
    let layers = f64::from(stage.layers);
    let parameters = layers * costs.layer().parameters + extra.parameters;
    let of_experts = layers * costs.layer().expert_parameters + extra.expert_parameters;
    let used = layer.workspace.iter().zip(&stage.recomputed);
    let used = used.filter_map(|(&size, &count)| (count > 0).then_some(size));
    let workspace = used.fold(Bytes::ZERO, Bytes::max);
    let state = |of: fn(&StateBytes) -> f64| {
        let experts = of_experts * of(&costs.expert_state);
        Bytes::new(parameters * of(&costs.state) + experts)
    };
    let mut memory = costs.beside_layers(&extra);
    memory[MemoryComponent::Weights] = state(|state| state.weights);
    memory[MemoryComponent::Gradients] = state(|state| state.gradients);
    memory[MemoryComponent::OptimizerStates] = state(|state| state.optimizer);
    memory[MemoryComponent::Activations] = kept(costs, stage) * costs.in_flight(index);
    if let Some(more) = kept_by_leading(costs, index, stage) {
        memory[MemoryComponent::Activations] += more;
    }
    memory[MemoryComponent::RecomputeWorkspace] = workspace;
    memory
}

#[inline]
fn recompute_time(costs: &Costs, stage: &Stage) -> Seconds {
    let mut time = Seconds::ZERO;
    for (&extra, &count) in costs.layer().recompute.iter().zip(&stage.recomputed) {
        time += extra * f64::from(count);
    }
    time
}

/// Recomputation of leading layers of another kind beyond that of other layers.
fn recompute_of_leading(costs: &Costs, index: u32, stage: &Stage) -> Seconds {
    let Some(((count, other), mode)) = costs.others(index).zip(recompute_of_all(stage)) else {
        return Seconds::ZERO;
    };
    (other.recompute[mode] - costs.layer().recompute[mode]) * count
}

/// What a stage does with a micro-batch, over all its model chunks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageWork {
    /// All of it, `T_s`.
    pub all: Seconds,
    /// Recomputation of checkpointed layers.
    pub recompute: Seconds,
    /// Output layer and loss.
    pub head: Seconds,
}

/// The work of each stage on a micro-batch.
#[must_use]
pub fn stage_works(costs: &Costs, stages: &[Stage]) -> Vec<StageWork> {
    let each = costs.layer().time.total();
    let works = (0..).zip(stages);
    works
        .map(|(index, stage)| stage_work(costs, each, (index, stage), &costs.extra(index)))
        .collect()
}

/// The work of a stage whose layers take `each`, on a micro-batch.
#[inline]
fn stage_work(
    costs: &Costs,
    each: Seconds,
    (index, stage): (u32, &Stage),
    extra: &StageExtra,
) -> StageWork {
    let again = recompute_time(costs, stage);
    let of_leading = recompute_of_leading(costs, index, stage);
    let mut all = each * f64::from(stage.layers) + again + extra.time();
    if let Some((count, other)) = costs.others(index) {
        all += (other.time.total() - each) * count + of_leading;
    }
    StageWork {
        all,
        recompute: again + of_leading,
        head: extra.head,
    }
}

/// The work of all stages is shown as their mean, whose sum over the GPUs is all that they do; what is
/// left of the time of the pipeline is its bubble. With the position of the slowest stage, the first of equals.
fn step_time(costs: &Costs, stages: &[Stage]) -> (StepTime, usize) {
    let layer = costs.layer();
    let each = layer.time.total();
    let (mut longest, mut slowest, mut sum) = (Seconds::ZERO, 0, Seconds::ZERO);
    let mut all_layers = 0.0;
    let mut of_parameters = [Seconds::ZERO; 2];
    let mut recompute = Seconds::ZERO;
    let mut extras = StageExtra::default();
    for (index, stage) in (0..).zip(stages) {
        let (extra, layers) = (costs.extra(index), f64::from(stage.layers));
        let work = stage_work(costs, each, (index, stage), &extra);
        if work.all > longest {
            (longest, slowest) = (work.all, index as usize);
        }
        sum += work.all;
        all_layers += layers;
        recompute += work.recompute;
        extras.head += extra.head;
        extras.transfer += extra.transfer;
        extras.overhead += extra.overhead;
        let own = costs.of_parameters(
            layers * layer.parameters + extra.parameters,
            layers * layer.expert_parameters + extra.expert_parameters,
        );
        if own[0] + own[1] > of_parameters[0] + of_parameters[1] {
            of_parameters = own;
        }
    }
    let (micro_batches, count) = (costs.micro_batches as f64, stages.len() as f64);
    let mean = micro_batches / count;
    let uneven = (longest - sum / count).max(Seconds::ZERO);
    let mut time = layer.time.scaled(mean * all_layers);
    if let Some((count, other)) = costs.others(0) {
        for (component, own) in other.time.components() {
            time[component] += (own - layer.time[component]) * (mean * count);
        }
    }
    time[TimeComponent::Recompute] = recompute * mean;
    time[TimeComponent::Head] = extras.head * mean;
    time[TimeComponent::PipelineTransfer] = extras.transfer * mean;
    time[TimeComponent::Overhead] = extras.overhead * mean + costs.step_overhead;
    time[TimeComponent::Bubble] = uneven * micro_batches + (sum - longest) * costs.fill_share;
    [
        time[TimeComponent::DataParallel],
        time[TimeComponent::Optimizer],
    ] = of_parameters;
    (time, slowest)
}
