//! Costs as whole numbers: what the programs, their oracles and the checker compute with.
//!
//! Durations are whole multiples of a quantum of at most 3e-6 of a layer's time, memory whole KiB
//! rounded up (capacities down), so that what fits in integers fits in truth. Each
//! coefficient is rounded once; everything after is exact integer arithmetic.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use formulations::staged::{Kind, RecomputeMode, Stage as StageUnits, Units, Weights};

use crate::cluster::MemoryError;
use crate::cost_model::pipeline::{FILL_STEPS, head_as_layer};
use crate::cost_model::seen_to_fit::memory_error;
use crate::cost_model::step_time::recompute_of_all;
use crate::cost_model::{Costs, LayerCosts, LayerMemory, flops, memory};
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{Combination, Layout, Recompute, Schedule, Stage};
use crate::quantity::{Bytes, Seconds};
use crate::rules::{self, Rule};

/// 1 PiB in KiB.
pub const UNLIMITED: i64 = 1 << 40;

/// The unit of durations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantum {
    /// Unit of the time of a stage.
    stage: Seconds,
}

/// Units of the objective in one unit of stage time: the schedule's bubble multiplier is a whole
/// number of these.
const STEPS: i64 = FILL_STEPS as i64;

/// Stages of a pipeline with which the finest unit leaves room for sums of all layers on one stage.
const USUAL_STAGES: f64 = 20.0;

/// Bytes of the unit of memory.
const KIB: f64 = 1024.0;

impl Quantum {
    /// The unit for a space whose best layouts take about `step_time` and give each layer
    /// `layer_time` in a pass of one chunk: the power of ten below 3e-6 of the latter, so that
    /// rounding a layer errs by less than 1.5e-6; but no less than 2e-11 of a step, so that
    /// objectives stay below 2^44. Pipelines of more than some twenty stages take a coarser one: the program
    /// also forms the sum of a step whose layers are all on one stage, which has to be a number.
    #[must_use]
    pub fn for_times(step_time: Seconds, layer_time: Seconds, most_stages: u32) -> Self {
        let longer = (f64::from(most_stages) / USUAL_STAGES).max(1.0);
        let finest = step_time * 1e-12 * STEPS as f64 * longer;
        let wanted = (layer_time * 3e-6).max(finest);
        let exponent = wanted.value().log10().floor();
        Self {
            stage: Seconds::new(10_f64.powi(exponent as i32)),
        }
    }

    /// Nearest whole number of units.
    fn round(self, duration: Seconds) -> i64 {
        (duration / self.stage).round() as i64
    }

    /// The step time that `units` of the objective stand for.
    #[must_use]
    pub fn step_time(self, units: i64) -> Seconds {
        self.stage * (units as f64 / STEPS as f64)
    }

    /// A step time in units of the objective.
    #[must_use]
    pub fn units(self, step_time: Seconds) -> f64 {
        step_time / self.stage * STEPS as f64
    }

    /// What the solver sees: times and the objective in milliseconds, memory in MiB.
    #[must_use]
    pub fn solver_units(self) -> Units {
        let milliseconds = self.stage.value() * 1e3;
        Units {
            time: milliseconds,
            memory: 1.0 / 1024.0,
            objective: milliseconds / STEPS as f64,
        }
    }

    /// The most units of the objective that take no longer than `step_time`.
    #[must_use]
    pub fn units_within(self, step_time: Seconds) -> i64 {
        self.units(step_time).floor() as i64
    }

    /// Utilisation in parts per billion of a step of `units`.
    #[must_use]
    pub fn parts_per_billion(self, job: &Job, units: i64) -> i64 {
        (flops::utilisation(job, self.step_time(units)).value() * 1e9).round() as i64
    }
}

/// The capacity that the accepted risk leaves a combination, in KiB; more than any stage needs where
/// memory is no rule.
#[must_use]
pub fn capacity(instance: &Instance, combination: &Combination) -> i64 {
    if rules::relaxed(instance).contains(Rule::MemoryCapacity) {
        return UNLIMITED;
    }
    capacity_at_risk(&instance.job, combination, instance.max_oom_risk)
}

/// The most that the accepted risk leaves any combination.
#[must_use]
pub fn largest_capacity(instance: &Instance) -> i64 {
    if rules::relaxed(instance).contains(Rule::MemoryCapacity) {
        return UNLIMITED;
    }
    let cluster = &instance.job.cluster;
    let mut error = cluster.calibration.memory;
    error.shift += cluster.seen_to_fit.values().fold(0.0, |a, &b| b.max(a));
    within(&instance.job, error, instance.max_oom_risk)
}

/// The capacity that the risk `risk` of running out of memory leaves a combination, in KiB.
#[must_use]
pub fn capacity_at_risk(job: &Job, combination: &Combination, risk: f64) -> i64 {
    within(job, memory_error(job, combination), risk)
}

fn within(job: &Job, error: MemoryError, risk: f64) -> i64 {
    let limit = memory::admissible_peak(job.cluster.accelerator.usable_memory, error, risk);
    (limit.value() / KIB).floor() as i64
}

/// The coefficients of one combination in whole numbers.
///
/// Time of a stage for a chunk: `T_s = n t + sum_m k_m r_m + e_s`; objective
/// `max_weight max_s T_s + sum_weight sum_s T_s + delta_weight max_s (n d + dx_s)`.
/// Memory: `n P + f_s ((n - k) A + sum_m k_m C_m) + max W_m + m_s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinationUnits {
    /// Weights of the slowest stage (`20 M v - 20 beta v`), of the sum over stages (`20 beta v`) and of the
    /// largest stage's reduction.
    pub weights: Weights,
    /// Objective whatever the stages: host time of a step.
    pub constant: i64,
    /// A layer: its time in one chunk pass, `t`; reduction and optimizer time, `d`; state, `P`; activations
    /// in one chunk in flight, `A`.
    pub layer: Kind,
    /// The ways to recompute a layer in the order of [`Recompute::ALL`]: extra time `r`, kept activations
    /// `C`, workspace `W`.
    pub modes: [RecomputeMode; Recompute::COUNT],
    /// One entry a pipeline stage, without bounds of its layers: time of head and transfers for a
    /// micro-batch, over `v`; exposed reduction and optimizer time of embedding and head; memory that does
    /// not depend on the layers; chunks in flight. Combinations that agree in all of them may share them.
    pub stages: Arc<[StageUnits]>,
    /// What the first stage, which counts leading layers of another kind as that, needs more where each
    /// mode recomputes all layers; `None` where all are of one kind.
    pub leading: Option<Leading>,
}

/// Leading layers of another kind than the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leading {
    /// How many.
    pub layers: i64,
    /// Further time and memory of the first stage where the mode recomputes all layers, in the order of
    /// [`Recompute::ALL`].
    pub recomputed: [Shift; Recompute::COUNT],
}

/// A difference of time and memory of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    /// Of its time.
    pub time: i64,
    /// Of its memory.
    pub memory: i64,
}

impl Shift {
    /// Nothing.
    pub const NONE: Self = Self { time: 0, memory: 0 };
}

impl Leading {
    /// The least that any way to recompute adds to time and to memory.
    #[must_use]
    pub fn least(self) -> Shift {
        self.recomputed
            .iter()
            .fold(Shift::NONE, |least, shift| Shift {
                time: least.time.min(shift.time),
                memory: least.memory.min(shift.memory),
            })
    }
}

/// Stages of combinations, each list once: combinations that differ in kernels alone have the same.
#[derive(Debug, Default)]
pub struct StageLists {
    known: HashMap<StageKey, Arc<[StageUnits]>, FixedState>,
}

/// What the stages of a combination follow from: the first, a middle and the last, and the schedule.
type StageKey = ([StageUnits; 3], u32, u32, Schedule, u64);

impl StageLists {
    /// The stages of a combination.
    fn stages(&mut self, costs: &Costs, unit: impl Fn(u32) -> StageUnits) -> Arc<[StageUnits]> {
        let combination = &costs.combination;
        let count = combination.pipeline_parallel;
        // Embedding and head are on the ends or on all stages: those in the middle are alike but for
        // what is in flight, which follows from the rest of the key.
        let samples = [0, 1.min(count - 1), count - 1].map(&unit);
        let key = (
            samples,
            count,
            combination.virtual_stages,
            combination.schedule,
            costs.micro_batches,
        );
        let known = self.known.entry(key);
        known
            .or_insert_with(|| (0..count).map(unit).collect())
            .clone()
    }
}

impl CombinationUnits {
    /// Rounds the coefficients of a combination.
    #[must_use]
    pub fn new(costs: &Costs, quantum: Quantum) -> Self {
        Self::sharing(costs, quantum, &mut StageLists::default())
    }

    /// The same, sharing stages with the combinations before.
    #[must_use]
    pub fn sharing(costs: &Costs, quantum: Quantum, lists: &mut StageLists) -> Self {
        let v = f64::from(costs.combination.virtual_stages);
        let chunks = costs.micro_batches as i64 * i64::from(costs.combination.virtual_stages);
        let in_flight = |index: u32| costs.chunks_in_flight(index).min(MOST_CHUNKS) as i64;
        // What is cut off here is far above any capacity, or above the step time of any good layout.
        let most_time = MOST / STEPS / chunks.clamp(1, MOST_CHUNKS as i64);
        let most_delta = MOST / STEPS;
        let most_memory = MOST / in_flight(0).max(1);
        let time = |duration: Seconds| quantum.round(duration / v).min(most_time);
        let delta = |duration: Seconds| quantum.round(duration).min(most_delta);
        let share = |amount: Bytes| up(amount / v).min(most_memory);
        let layer = costs.layer();
        let (state, of_experts) = (costs.state.total(), costs.expert_state.total());
        let state =
            |parameters: f64, experts: f64| Bytes::new(parameters * state + experts * of_experts);
        let reduction = |parameters: f64, experts: f64| {
            let [traffic, optimizer] = costs.of_parameters(parameters, experts);
            delta(traffic + optimizer)
        };
        let sum_weight = (costs.fill_share * v * FILL_STEPS).round() as i64;
        let stage = |index: u32| {
            let extra = costs.extra(index);
            let (parameters, experts) = (extra.parameters, extra.expert_parameters);
            let (mut extra_time, mut kept) = (time(extra.time()), Bytes::ZERO);
            if let Some((count, other)) = costs.others(index) {
                extra_time += count as i64 * (time(other.time.total()) - time(layer.time.total()));
                let each = other.memory.activations - layer.memory.activations;
                kept = each * (count * costs.in_flight_of_leading() as f64);
            }
            let beside = costs.beside_layers(&extra).total() + kept;
            StageUnits {
                extra_time,
                extra_delta: reduction(parameters, experts),
                fixed_memory: up(state(parameters, experts) + beside),
                in_flight: in_flight(index),
                lower_layers: 0,
                upper_layers: 0,
            }
        };
        let memory = &layer.memory;
        let widest = |mode: usize| {
            let kinds = costs.kinds.iter().map(|kind| kind.memory.workspace[mode]);
            kinds.fold(Bytes::ZERO, Bytes::max)
        };
        let mode = |mode: usize| RecomputeMode {
            kind: 0,
            // Recomputing is never free: rounding to nothing would make it a tie.
            extra_time: time(layer.recompute[mode]).max(1),
            activation: share(memory.kept[mode]),
            workspace: up(widest(mode)),
        };
        let leading = costs.others(0).map(|(count, other)| {
            let recomputed = |mode: usize| {
                let again = |layer: &LayerCosts| time(layer.recompute[mode]).max(1);
                let dropped = |memory: &LayerMemory| memory.kept[mode] - memory.activations;
                let kept = dropped(&other.memory) - dropped(&layer.memory);
                Shift {
                    time: count as i64 * (again(other) - again(layer)),
                    memory: up(kept * (count * costs.in_flight_of_leading() as f64)),
                }
            };
            Leading {
                layers: count as i64,
                recomputed: std::array::from_fn(recomputed),
            }
        });
        Self {
            weights: Weights {
                slowest: STEPS * chunks - sum_weight,
                total: sum_weight,
                delta: STEPS,
            },
            constant: STEPS * delta(costs.step_overhead),
            layer: Kind {
                time: time(layer.time.total()),
                delta: reduction(layer.parameters, layer.expert_parameters),
                memory: up(state(layer.parameters, layer.expert_parameters)),
                activation: share(memory.activations),
            },
            modes: std::array::from_fn(mode),
            stages: lists.stages(costs, stage),
            leading,
        }
    }

    /// Step time of the layout with these stages, in units of the objective.
    #[must_use]
    pub fn step_time(&self, stages: &[Stage]) -> i64 {
        let (mut longest, mut sum, mut largest) = (0, 0, 0);
        for (index, (units, stage)) in self.stages.iter().zip(stages).enumerate() {
            let layers = i64::from(stage.layers);
            let recomputed = self.modes.iter().zip(&stage.recomputed);
            let recomputed = recomputed.map(|(mode, &count)| mode.extra_time * i64::from(count));
            let mut time = layers * self.layer.time + recomputed.sum::<i64>() + units.extra_time;
            time += self.shift(index, stage).map_or(0, |shift| shift.time);
            longest = longest.max(time);
            sum += time;
            largest = largest.max(layers * self.layer.delta + units.extra_delta);
        }
        let weights = &self.weights;
        weights.slowest * longest + weights.total * sum + weights.delta * largest + self.constant
    }

    /// What the first stage needs more because all its layers are recomputed, leading ones of another kind
    /// among them.
    fn shift(&self, index: usize, stage: &Stage) -> Option<Shift> {
        let leading = self.leading.filter(|_| index == 0)?;
        let mode = recompute_of_all(stage)?;
        Some(leading.recomputed[mode])
    }

    /// No layout of these choices with a step of up to `limit` units is further than this from the step
    /// time of the cost model: what rounding may add to or take from it.
    #[must_use]
    pub fn rounding(&self, limit: i64, layers: i64) -> i64 {
        // Half a unit for a layer, and up to one for recomputing it.
        const LAYER: f64 = 1.5;
        let (slowest, total) = (self.weights.slowest as f64, self.weights.total as f64);
        let own = limit as f64 / (slowest * self.layer.time as f64).max(1.0) + 1.0;
        let own = own.min(layers as f64);
        // A leading layer is counted as another and the difference.
        let further = 2.0 * self.leading.map_or(0, |it| it.layers) as f64;
        let (own, layers) = (own + further, layers as f64 + further);
        let time = slowest * (own * LAYER + 0.5)
            + total * (layers * LAYER + 0.5 * self.stages.len() as f64);
        let delta = self.weights.delta as f64 * 0.5 * (own + 1.0);
        (time + delta + STEPS as f64).ceil() as i64
    }

    /// Peak memory of the fullest stage of a layout in KiB.
    #[must_use]
    pub fn peak(&self, layout: &Layout) -> i64 {
        let head = head_as_layer(&layout.combination, &layout.stages);
        let last = self.stages.len() - 1;
        let stages = self.stages.iter().zip(&layout.stages).enumerate();
        let peaks = stages.map(|(index, (units, stage))| {
            let mut kept = self.kept(stage);
            if index == last {
                kept += self.kept(&head);
            }
            let used = self.modes.iter().zip(stage.recomputed);
            let used = used.filter_map(|(mode, count)| (count > 0).then_some(mode.workspace));
            i64::from(stage.layers) * self.layer.memory
                + units.in_flight * kept
                + used.max().unwrap_or(0)
                + units.fixed_memory
                + self.shift(index, stage).map_or(0, |shift| shift.memory)
        });
        peaks.max().unwrap_or(0)
    }

    /// What the layers of a stage keep in one chunk in flight, in KiB.
    fn kept(&self, stage: &Stage) -> i64 {
        let plain = i64::from(stage.layers - stage.checkpointed_layers());
        let recomputed = self.modes.iter().zip(stage.recomputed);
        let recomputed = recomputed.map(|(mode, count)| mode.activation * i64::from(count));
        plain * self.layer.activation + recomputed.sum::<i64>()
    }
}

/// Largest amount of a layer or a stage: a thousand layers of it are still a number.
const MOST: i64 = 1 << 50;
/// Most chunks of a step, or in flight, that are counted.
const MOST_CHUNKS: u64 = 1 << 30;

/// Whole KiB, rounded up, at most [`MOST`].
fn up(amount: Bytes) -> i64 {
    ((amount.value() / KIB).ceil() as i64).min(MOST)
}
