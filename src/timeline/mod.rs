//! When each pipeline stage runs which pass in a step: what pictures and traces of a step show.
//!
//! Passes last what the cost model says of a stage and micro-batch, a third of it forward and two thirds
//! backward as there, and run as soon as their turn comes and what they wait for is there. Transfers
//! between stages are part of the passes.

mod schedule;

use std::ops::Range;

use crate::cost_model::pipeline::chunks_in_order;
use crate::cost_model::{Costs, StageWork, stage_works};
use crate::layout::Layout;
use crate::quantity::Seconds;

pub use schedule::{Pass, PassKind, Pipeline};

/// One step of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Its schedule.
    pub pipeline: Pipeline,
    /// What each stage does, in order.
    pub stages: Vec<Vec<Slice>>,
}

/// A pass, and when it runs, in seconds from the start of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// What is done.
    pub pass: Pass,
    /// When it begins.
    pub start: f64,
    /// When it ends.
    pub end: f64,
}

/// What the passes of a model chunk take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Durations {
    /// Forward.
    pub forward: f64,
    /// Recomputation before the backward pass.
    pub recompute: f64,
    /// Backward, without what is put off.
    pub backward: f64,
    /// Gradients of weights, where they are put off.
    pub weight_gradients: f64,
}

/// Most passes that are laid out.
const MOST_PASSES: u64 = 4_000_000;

impl Timeline {
    /// The step of a layout; `None` where it has too many passes, or its schedule cannot run them.
    #[must_use]
    pub fn of(costs: &Costs, layout: &Layout) -> Option<Self> {
        let combination = &layout.combination;
        let pipeline = Pipeline {
            schedule: combination.schedule,
            stages: combination.pipeline_parallel,
            chunks: combination.virtual_stages,
            micro_batches: u32::try_from(costs.micro_batches).ok()?,
        };
        let layers: Vec<u32> = layout.stages.iter().map(|stage| stage.layers).collect();
        let chunks = chunks_in_order(combination, &layers);
        let works = stage_works(costs, &layout.stages);
        let stages = works.iter().zip(&layers).enumerate();
        let durations = stages.map(|(stage, (work, &layers))| {
            let own = chunks.iter().skip(stage).step_by(works.len());
            durations(&pipeline, work, layers, own.copied())
        });
        Self::run(pipeline, &durations.collect::<Vec<_>>())
    }

    /// Runs the passes, which take so long by stage and chunk.
    #[must_use]
    pub fn run(pipeline: Pipeline, durations: &[Vec<Durations>]) -> Option<Self> {
        let each = u64::from(pipeline.micro_batches) * u64::from(pipeline.chunks);
        if each * u64::from(pipeline.stages) * 3 > MOST_PASSES {
            return None;
        }
        let orders: Vec<Vec<Pass>> = (0..pipeline.stages).map(|it| pipeline.passes(it)).collect();
        let mut done = Done::new(&pipeline);
        let mut stages: Vec<Vec<Slice>> = vec![Vec::new(); orders.len()];
        let (mut next, mut free) = (vec![0; orders.len()], vec![0.0_f64; orders.len()]);
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for (stage, order) in orders.iter().enumerate() {
                while let Some(&pass) = order.get(next[stage])
                    && let Some(ready) = done.ready(&pipeline, stage, pass)
                {
                    let start = free[stage].max(ready);
                    let durations = &durations[stage][pass.chunk as usize];
                    let end = place(&mut stages[stage], pass, durations, start);
                    done.note(&pipeline, stage, pass, end);
                    (free[stage], next[stage], is_moving) = (end, next[stage] + 1, true);
                }
            }
        }
        let is_complete = orders
            .iter()
            .zip(&next)
            .all(|(order, &next)| order.len() == next);
        is_complete.then_some(Self { pipeline, stages })
    }

    /// When the last stage is through, in seconds.
    #[must_use]
    pub fn length(&self) -> f64 {
        let ends = self.stages.iter().filter_map(|stage| stage.last());
        ends.fold(0.0, |length, slice| slice.end.max(length))
    }

    /// The parts of the step to show: all of it, or its start and its end, both equally long, where there
    /// would be more slices than `most`. Each is at most `longest` seconds.
    #[must_use]
    pub fn parts(&self, most: usize, longest: f64) -> Vec<Range<f64>> {
        let length = self.length();
        let all: usize = self.stages.iter().map(Vec::len).sum();
        if all <= most && length <= 2.0 * longest {
            return vec![0.0..length];
        }
        let mut times: Vec<f64> = Vec::with_capacity(all);
        for slice in self.stages.iter().flatten() {
            times.push(slice.start.min(length - slice.end));
        }
        times.sort_by(f64::total_cmp);
        // Slices of the first part begin before its end, those of the last end after its start.
        let within = times.get(most).copied().unwrap_or(length);
        let part = within.min(longest).min(length / 2.0);
        vec![0.0..part, length - part..length]
    }

    /// How long the start of a step is that shows all stages at work: until the first stage works
    /// backward for the first time, and `more` of its micro-batches.
    #[must_use]
    pub fn warm_up(&self, more: f64) -> f64 {
        let first = self.stages.first().map_or(&[][..], Vec::as_slice);
        let backward = first.iter().find(|it| it.pass.kind == PassKind::Backward);
        let busy: f64 = first.iter().map(|it| it.end - it.start).sum();
        let each = busy / f64::from(self.pipeline.micro_batches.max(1));
        backward.map_or(0.0, |it| it.end) + more * each
    }
}

/// The slices of a pass; its end.
fn place(slices: &mut Vec<Slice>, pass: Pass, durations: &Durations, start: f64) -> f64 {
    let mut end = start;
    let mut add = |kind: PassKind, duration: f64| {
        let start = end;
        end += duration;
        if duration > 0.0 {
            let pass = Pass { kind, ..pass };
            slices.push(Slice { pass, start, end });
        }
    };
    match pass.kind {
        PassKind::Backward => {
            add(PassKind::Recompute, durations.recompute);
            add(PassKind::Backward, durations.backward);
        }
        PassKind::WeightGradients => add(pass.kind, durations.weight_gradients),
        PassKind::Forward | PassKind::Recompute => add(pass.kind, durations.forward),
    }
    end
}

/// What the chunks of a stage take: its work by their layers, the output layer with the last one.
fn durations(
    pipeline: &Pipeline,
    work: &StageWork,
    layers: u32,
    chunks: impl Iterator<Item = u32>,
) -> Vec<Durations> {
    let [all, recompute, head] = [work.all, work.recompute, work.head].map(Seconds::value);
    let chunks = (1..).zip(chunks);
    let durations = chunks.map(|(number, own)| {
        let share = f64::from(own) / f64::from(layers.max(1));
        let last = if number == pipeline.chunks { head } else { 0.0 };
        let third = ((all - recompute - head) * share + last) / 3.0;
        let put_off = if pipeline.puts_off_weights() {
            third
        } else {
            0.0
        };
        Durations {
            forward: third,
            recompute: recompute * share,
            backward: 2.0 * third - put_off,
            weight_gradients: put_off,
        }
    });
    durations.collect()
}

/// When passes ended that others wait for, by stage, chunk and micro-batch.
struct Done {
    forward: Vec<f64>,
    backward: Vec<f64>,
}

impl Done {
    fn new(pipeline: &Pipeline) -> Self {
        let all = pipeline.stages * pipeline.chunks * pipeline.micro_batches;
        let [forward, backward] = [(); 2].map(|()| vec![f64::NAN; all as usize]);
        Self { forward, backward }
    }

    fn at(pipeline: &Pipeline, stage: usize, chunk: u32, micro_batch: u32) -> usize {
        let place = chunk as usize * pipeline.stages as usize + stage;
        place * pipeline.micro_batches as usize + micro_batch as usize
    }

    /// When what a pass waits for has ended; `None` where it has not run yet.
    fn ready(&self, pipeline: &Pipeline, stage: usize, pass: Pass) -> Option<f64> {
        let own = Self::at(pipeline, stage, pass.chunk, pass.micro_batch);
        let each = pipeline.micro_batches as usize;
        let ended = match pass.kind {
            PassKind::Forward | PassKind::Recompute => match own.checked_sub(each) {
                None => return Some(0.0),
                Some(before) => self.forward[before],
            },
            PassKind::Backward => match self.backward.get(own + each) {
                None => self.forward[own],
                Some(&behind) => behind,
            },
            PassKind::WeightGradients => self.backward[own],
        };
        (!ended.is_nan()).then_some(ended)
    }

    fn note(&mut self, pipeline: &Pipeline, stage: usize, pass: Pass, end: f64) {
        let own = Self::at(pipeline, stage, pass.chunk, pass.micro_batch);
        match pass.kind {
            PassKind::Forward | PassKind::Recompute => self.forward[own] = end,
            PassKind::Backward => self.backward[own] = end,
            PassKind::WeightGradients => {}
        }
    }
}

#[cfg(test)]
mod tests;
