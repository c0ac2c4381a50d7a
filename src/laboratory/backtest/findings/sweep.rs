//! The runs of one group, asked for the best measured and the best predicted among some.

use super::LLAMA_13B;
use crate::laboratory::backtest::case::Case;
use crate::laboratory::by_name;
use crate::layout::{AttentionKernel, Checkpointing, Combination, RmsNormKernel, SequenceParallel};

/// A network, by what tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) layers: u32,
    pub(super) hidden: u64,
}

/// The runs of one group.
#[derive(Debug)]
pub(super) struct Sweep<'a> {
    /// Its runs.
    pub(super) cases: Vec<&'a Case<'a>>,
}

/// A run with the utilisation by which it is the best.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) mfu: f64,
}

impl<'a> Sweep<'a> {
    /// The groups of one source.
    pub(super) fn all(cases: &[&'a Case<'a>]) -> Vec<Self> {
        by_name(cases, |case| &case.group)
            .into_iter()
            .map(|(_, members)| Self {
                cases: members.into_iter().copied().collect(),
            })
            .collect()
    }

    /// Whether the sweep trains this network at this sequence length.
    pub(super) fn is(&self, shape: Shape, sequence_length: u64) -> bool {
        self.trains(shape) && self.sequence_length() == sequence_length
    }

    /// Whether the sweep trains this network.
    pub(super) fn trains(&self, shape: Shape) -> bool {
        let network = &self.cases[0].modelled.job.transformer;
        network.layers == shape.layers && network.hidden == shape.hidden
    }

    /// Tokens of a sequence.
    pub(super) fn sequence_length(&self) -> u64 {
        self.cases[0].modelled.job.workload.sequence_length
    }

    /// Whether runs with and without the fused `RMSNorm` trained, beside `FlashAttention` 2.
    pub(super) fn varies_rmsnorm_kernel(&self) -> bool {
        let flash2 = || self.trained().filter(|case| flash2(case));
        flash2().any(fused_rmsnorm) && !flash2().all(fused_rmsnorm)
    }

    /// Whether runs with and without sequence parallelism trained.
    pub(super) fn varies_sequence_parallel(&self) -> bool {
        self.trained().any(sequence_parallel) && !self.trained().all(sequence_parallel)
    }

    /// The runs that have a speed.
    pub(super) fn trained(&self) -> impl Iterator<Item = &'a Case<'a>> {
        let cases = self.cases.iter().copied();
        cases.filter(|case| case.timed().is_some())
    }

    /// Whether the sweep is the one that most findings are of: 13B at 2k, with and without the kernel.
    pub(super) fn is_subject(&self) -> bool {
        self.is(LLAMA_13B, 2048) && self.varies_rmsnorm_kernel()
    }
}

/// Which of the two a finding looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Measured,
    Predicted,
}

impl Side {
    /// Utilisation of a run.
    pub(super) fn mfu(self, case: &Case) -> Option<f64> {
        match self {
            Self::Measured => case.timed(),
            Self::Predicted => Some(case.predicted_mfu()),
        }
    }

    /// Whether a run fitted, or is said to.
    pub(super) fn fits(self, case: &Case) -> bool {
        match self {
            Self::Measured => !case.ran_out_of_memory(),
            Self::Predicted => case.modelled.prediction.oom_probability < 0.5,
        }
    }

    /// The first of the fastest runs of some that fit.
    pub(super) fn best<'a>(
        self,
        sweep: &Sweep<'a>,
        some: impl Fn(&Case) -> bool,
    ) -> Option<Best<'a>> {
        let chosen = sweep
            .cases
            .iter()
            .filter(|case| some(case) && self.fits(case));
        let found = chosen.filter_map(|&case| {
            let mfu = self.mfu(case)?;
            Some(Best { case, mfu })
        });
        found.reduce(|best, it| if it.mfu > best.mfu { it } else { best })
    }

    /// How many of some runs fitted, or are said to.
    pub(super) fn fitting(self, runs: &[&Case], some: impl Fn(&Case) -> bool) -> usize {
        let chosen = runs.iter().filter(|case| some(case));
        chosen.filter(|case| self.fits(case)).count()
    }
}

pub(super) fn cell<'a>(case: &'a Case) -> &'a Combination {
    &case.modelled.layout.combination
}

pub(super) fn checkpointed(case: &Case) -> bool {
    case.modelled.layout.checkpointing() != Checkpointing::None
}

pub(super) fn fused_rmsnorm(case: &Case) -> bool {
    cell(case).rmsnorm_kernel == RmsNormKernel::Fused
}

pub(super) fn flash2(case: &Case) -> bool {
    cell(case).attention_kernel == AttentionKernel::Flash2
}

pub(super) fn sequence_parallel(case: &Case) -> bool {
    cell(case).sequence_parallel == SequenceParallel::On
}

/// A share as percent or points with one decimal.
pub(super) fn points(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A difference in points with its sign; no negative zero.
pub(super) fn signed_points(share: f64) -> String {
    let rounded = (share * 1000.0).round() / 10.0 + 0.0;
    format!("{rounded:+.1}")
}

/// Texts one after the other.
pub(super) fn listed(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}
