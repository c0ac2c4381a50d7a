//! The order in which a pipeline stage runs its passes, as data.

use crate::choice::choice;
use crate::layout::Schedule;

choice!(
    /// What a stage does with a micro-batch at a time.
    PassKind {
        /// The forward pass.
        Forward = "forward",
        /// The forward pass again, of checkpointed layers, before their backward pass.
        Recompute = "recompute",
        /// The backward pass; of zero-bubble schedules the part that the stage before waits for.
        Backward = "backward",
        /// The gradients of the weights, where the schedule puts them off.
        WeightGradients = "weight-gradients",
    }
);

/// A pass of one micro-batch through one model chunk of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// What is done.
    pub kind: PassKind,
    /// The micro-batch, from 0.
    pub micro_batch: u32,
    /// The model chunk of the stage, from 0; 0 where nothing is interleaved.
    pub chunk: u32,
}

/// A pipeline, apart from what its passes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pipeline {
    /// The order of passes.
    pub schedule: Schedule,
    /// Stages, `pp`.
    pub stages: u32,
    /// Model chunks of a stage, `v`.
    pub chunks: u32,
    /// Micro-batches, `M`.
    pub micro_batches: u32,
}

impl Pipeline {
    /// Whether gradients of weights are passes of their own.
    #[must_use]
    pub const fn puts_off_weights(&self) -> bool {
        matches!(
            self.schedule,
            Schedule::ZeroBubble1p | Schedule::ZeroBubble2p
        )
    }

    /// The passes of a stage in their order, recomputation within the backward ones.
    ///
    /// A stage begins with `w` forward passes, then one forward and one backward take turns, and the
    /// other backward passes end the step: `w = pp - s - 1`, interleaved `2 (pp - s - 1) + (v - 1) pp`
    /// (Narayanan et al., arXiv 2104.04473, section 2.2), all of them where all forward passes come
    /// first. A zero-bubble schedule puts off gradients of weights by `s` passes within the memory of
    /// 1F1B, and by `2 s` after `2 (pp - s - 1)` forward passes within twice that (Qi et al., arXiv
    /// 2401.10241, figures 2 and 3, by hand).
    #[must_use]
    pub fn passes(&self, stage: u32) -> Vec<Pass> {
        let forward = self.forward();
        let pass = |kind: PassKind, (micro_batch, chunk): (u32, u32)| Pass {
            kind,
            micro_batch,
            chunk,
        };
        let backward = |at: usize| {
            let (micro_batch, chunk) = forward[at];
            (micro_batch, self.chunks - 1 - chunk)
        };
        let all = forward.len();
        let first = self.first_forward(stage).min(all);
        let put_off = self.put_off(stage).min(all);
        let mut passes = Vec::with_capacity(3 * all);
        let first_ones = forward[..first].iter();
        passes.extend(first_ones.map(|&at| pass(PassKind::Forward, at)));
        for turn in 0..all {
            let next = forward.get(first + turn);
            passes.extend(next.map(|&at| pass(PassKind::Forward, at)));
            passes.push(pass(PassKind::Backward, backward(turn)));
            if self.puts_off_weights() && turn >= put_off {
                passes.push(pass(PassKind::WeightGradients, backward(turn - put_off)));
            }
        }
        if self.puts_off_weights() {
            let last = all - put_off..all;
            passes.extend(last.map(|at| pass(PassKind::WeightGradients, backward(at))));
        }
        passes
    }

    /// Micro-batch and chunk of the forward passes in order: as many micro-batches as there are stages
    /// run through one chunk after the other. Backward passes run from the last chunk on.
    fn forward(&self) -> Vec<(u32, u32)> {
        let group = match self.chunks {
            1 => self.micro_batches.max(1),
            _ => self.stages,
        };
        let mut passes = Vec::with_capacity((self.micro_batches * self.chunks) as usize);
        for first in (0..self.micro_batches).step_by(group as usize) {
            let last = (first + group).min(self.micro_batches);
            for chunk in 0..self.chunks {
                passes.extend((first..last).map(|micro_batch| (micro_batch, chunk)));
            }
        }
        passes
    }

    /// Forward passes of a stage before they and backward ones take turns.
    fn first_forward(&self, stage: u32) -> usize {
        let behind = self.stages - stage - 1;
        let first = match self.schedule {
            Schedule::AllForwardAllBackward => return usize::MAX,
            Schedule::ZeroBubble2p => 2 * behind,
            Schedule::OneForwardOneBackward | Schedule::ZeroBubble1p if self.chunks == 1 => behind,
            Schedule::OneForwardOneBackward | Schedule::ZeroBubble1p => {
                2 * behind + (self.chunks - 1) * self.stages
            }
        };
        first as usize
    }

    /// Backward passes of a stage whose gradients of weights wait.
    const fn put_off(&self, stage: u32) -> usize {
        match self.schedule {
            Schedule::ZeroBubble1p => stage as usize,
            Schedule::ZeroBubble2p => 2 * stage as usize,
            Schedule::OneForwardOneBackward | Schedule::AllForwardAllBackward => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The passes of a stage as `F0 B0`, chunks as letters behind.
    fn shown(pipeline: &Pipeline, stage: u32) -> String {
        let letter = |pass: &Pass| {
            let kind = match pass.kind {
                PassKind::Forward => 'F',
                PassKind::Recompute => 'R',
                PassKind::Backward => 'B',
                PassKind::WeightGradients => 'W',
            };
            let chunk = ["", "b", "c"][pass.chunk as usize];
            format!("{kind}{}{chunk}", pass.micro_batch)
        };
        let passes = pipeline.passes(stage);
        passes.iter().map(letter).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stages_run_their_passes_in_the_order_of_the_schedule() {
        let check = |schedule, (stages, chunks, micro_batches), stage, expected: &str| {
            let pipeline = Pipeline {
                schedule,
                stages,
                chunks,
                micro_batches,
            };
            assert_eq!(shown(&pipeline, stage), expected, "{pipeline:?} {stage}");
        };
        let usual = Schedule::OneForwardOneBackward;
        check(usual, (2, 1, 3), 0, "F0 F1 B0 F2 B1 B2");
        check(usual, (2, 1, 3), 1, "F0 B0 F1 B1 F2 B2");
        check(usual, (2, 2, 2), 1, "F0 F1 F0b B0b F1b B1b B0 B1");
        let all = Schedule::AllForwardAllBackward;
        check(all, (2, 1, 2), 0, "F0 F1 B0 B1");
        let zero = Schedule::ZeroBubble1p;
        check(zero, (2, 1, 3), 0, "F0 F1 B0 W0 F2 B1 W1 B2 W2");
        check(zero, (2, 1, 3), 1, "F0 B0 F1 B1 W0 F2 B2 W1 W2");
        let twice = Schedule::ZeroBubble2p;
        check(twice, (2, 1, 3), 0, "F0 F1 F2 B0 W0 B1 W1 B2 W2");
    }
}
