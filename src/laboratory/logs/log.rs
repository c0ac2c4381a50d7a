//! What a log says, whatever framework wrote it.

use super::{lines, scan};
use crate::laboratory::statistics::median;
use crate::launch::Facts;

use crate::launch::frameworks::megatron_lm;
use crate::launch::settings::{Settings, Unstated};
use crate::quantity::{Bytes, Seconds};

/// What a log says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Log {
    /// The catalog's name of the framework that wrote it, where its lines are recognised.
    pub(super) framework: Option<&'static str>,
    /// Logged iterations.
    pub(super) steps: Vec<StepSpeed>,
    /// Peak memory of each rank that logged it.
    pub peaks: Vec<Peak>,
    /// Total memory of the GPU that ran out of it: the run failed.
    pub out_of_memory: Option<Option<Bytes>>,
    /// Memory of a GPU, where the log states it.
    pub(super) gpu_memory: Option<Bytes>,
    /// What the log says of the job.
    pub facts: Facts,
    /// Arguments of Megatron-LM by name, where the log dumps them.
    pub(super) arguments: Settings,
}

/// How a log states speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StepSpeed {
    /// Duration of a step.
    Duration(Seconds),
    /// Tokens a second and GPU.
    TokensPerSecond(f64),
}

/// Peak memory of one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Global rank, where the log states it.
    pub rank: Option<u32>,
    /// Pipeline stage, where the log states it.
    pub stage: Option<u32>,
    /// The peak.
    pub memory: Bytes,
}

/// The step time once a run has warmed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyStep {
    /// Median of the counted iterations.
    pub step_time: Seconds,
    /// Logged iterations.
    pub logged: usize,
    /// Those of them that were left out as warm-up.
    pub left_out: usize,
}

/// Reads the text of a log.
#[must_use]
pub fn read(text: &str) -> Log {
    let mut log = Log::default();
    let plain = scan::plain(text);
    for line in plain.lines() {
        lines::read_line(line, &mut log);
    }
    log
}

/// Share of the logged iterations that count as warm-up: compilation, caches, clocks.
const WARM_UP: f64 = 0.2;
/// Most iterations that count as warm-up.
const LONGEST_WARM_UP: usize = 10;

impl Log {
    /// What the log says of the job, dumped arguments included.
    #[must_use]
    pub fn all_facts(&self) -> Facts {
        if self.arguments.values.is_empty() {
            return self.facts.clone();
        }
        let dumped = megatron_lm::dumped(&Settings {
            unstated: Unstated::Unknown,
            ..self.arguments.clone()
        });
        self.facts.clone().or(dumped)
    }

    /// Memory of a GPU of the run, where the log states it.
    #[must_use]
    pub fn gpu_memory(&self) -> Option<Bytes> {
        self.gpu_memory.or(self.out_of_memory.flatten())
    }

    /// Notes a number of the job that a line states, unless one before it did.
    pub(super) fn note_number(&mut self, column: &'static str, number: Option<f64>) {
        self.facts.note(column, number.map(|number| number as u64));
    }

    /// Notes the peak of a rank; the largest stays.
    pub(super) fn note_peak(&mut self, rank: Option<f64>, stage: Option<f64>, bytes: f64) {
        let peak = Peak {
            rank: rank.map(|rank| rank as u32),
            stage: stage.map(|stage| stage as u32),
            memory: Bytes::new(bytes),
        };
        let same = |known: &&mut Peak| (known.rank, known.stage) == (peak.rank, peak.stage);
        match self.peaks.iter_mut().find(same) {
            Some(known) => known.memory = known.memory.max(peak.memory),
            None => self.peaks.push(peak),
        }
    }

    /// The largest peak of any rank.
    #[must_use]
    pub fn largest_peak(&self) -> Option<Peak> {
        let by_memory =
            |one: &&Peak, other: &&Peak| one.memory.value().total_cmp(&other.memory.value());
        // Of equal peaks the first is meant, which `max_by` would not give.
        self.peaks.iter().rev().max_by(by_memory).copied()
    }

    /// The median step time without the first fifth of the iterations (at least one, at most ten):
    /// `None` where no other is logged. `tokens` of a step and GPU turn a throughput into a duration.
    #[must_use]
    pub fn steady_step(&self, tokens: Option<f64>) -> Option<SteadyStep> {
        let duration = |speed: &StepSpeed| match *speed {
            StepSpeed::Duration(duration) => Some(duration.value()),
            StepSpeed::TokensPerSecond(rate) => Some(tokens? / rate),
        };
        let all = self.steps.iter().filter_map(duration);
        let all: Vec<f64> = all
            .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
            .collect();
        let warm_up = ((all.len() as f64 * WARM_UP).ceil() as usize).min(LONGEST_WARM_UP);
        let step_time = median(all.get(warm_up..)?)?;
        Some(SteadyStep {
            step_time: Seconds::new(step_time),
            logged: all.len(),
            left_out: warm_up,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(seconds: &[f64]) -> Log {
        let step = |&duration: &f64| StepSpeed::Duration(Seconds::new(duration));
        Log {
            steps: seconds.iter().map(step).collect(),
            ..Log::default()
        }
    }

    #[test]
    fn warm_up_is_left_out() {
        let check = |seconds: &[f64], expected: f64, left_out: usize| {
            let steady = log(seconds).steady_step(None).expect("there are steps");
            assert!((steady.step_time.value() - expected).abs() < 1e-12);
            assert_eq!(steady.left_out, left_out);
        };
        assert_eq!(log(&[30.0]).steady_step(None), None);
        check(&[30.0, 2.0], 2.0, 1);
        check(&[30.0, 2.0, 2.2, 2.1, 9.0], 2.15, 1);
        check(
            &[30.0, 20.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0],
            2.0,
            2,
        );
        assert_eq!(log(&[]).steady_step(None), None);
    }

    #[test]
    fn throughput_needs_the_tokens_of_a_step() {
        let log = Log {
            steps: vec![
                StepSpeed::TokensPerSecond(10.0),
                StepSpeed::TokensPerSecond(1000.0),
            ],
            ..Log::default()
        };
        assert_eq!(log.steady_step(None), None);
        let steady = log.steady_step(Some(8000.0)).expect("the tokens are known");
        assert_eq!(steady.step_time, Seconds::new(8.0));
    }

    #[test]
    fn the_first_of_equal_peaks_counts() {
        let mut log = Log::default();
        for (rank, bytes) in [(4.0, 10.0), (0.0, 30.0), (2.0, 30.0), (4.0, 29.0)] {
            log.note_peak(Some(rank), None, bytes);
        }
        assert_eq!(log.peaks.len(), 3);
        assert_eq!(log.largest_peak().and_then(|peak| peak.rank), Some(0));
    }
}
