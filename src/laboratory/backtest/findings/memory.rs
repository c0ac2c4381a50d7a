//! Findings on what fits.

use crate::cost_model::Costs;
use crate::framework::FusedRmsNorm;
use crate::laboratory::backtest::case::Case;
use crate::layout::Recompute;
use crate::quantity::{Bytes, Seconds};

use super::sweep::{Sweep, cell, checkpointed, flash2, fused_rmsnorm, listed, said_to_fit};
use super::{Finding, LLAMA_13B, LLAMA_30B, LLAMA_65B, Reproduced};

/// (c)
pub(super) fn kernel_excludes_checkpointing(sweeps: &[Sweep]) -> Finding {
    let cases = || sweeps.iter().flat_map(|sweep| &sweep.cases);
    let both = cases()
        .filter(|case| fused_rmsnorm(case) && checkpointed(case) && case.timed().is_some())
        .count();
    let rule = cases().all(|case| {
        case.modelled.job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing
    });
    Finding {
        letter: 'c',
        claim: "the RMSNorm kernel and checkpointing exclude each other",
        measured: Some(format!("{both} runs with both")),
        predicted: if rule {
            "a rule of the framework"
        } else {
            "no rule"
        }
        .to_owned(),
        reproduced: Reproduced::by((both == 0) == rule),
    }
}

/// (e)
pub(super) fn thirty_billion_at_8k(sweeps: &[Sweep]) -> Option<Finding> {
    let runs: Vec<&Case> = sweeps
        .iter()
        .filter(|sweep| sweep.is(LLAMA_30B, 8192))
        .flat_map(|sweep| sweep.cases.iter().copied())
        .filter(|case| !checkpointed(case))
        .collect();
    let without = fits(&runs, |case| !fused_rmsnorm(case));
    let with = fits(&runs, fused_rmsnorm);
    let heads = runs.first()?.modelled.job.transformer.heads;
    let eight = if heads.is_multiple_of(8) {
        "allow"
    } else {
        "forbid"
    };
    let text = |without: usize, with: usize| format!("{without} and {with} fit");
    Some(Finding {
        letter: 'e',
        claim: "30B at 8k needs checkpointing without the RMSNorm kernel and does not with it \
                (runs without checkpointing, without and with the kernel); 52 heads forbid TP 8",
        measured: Some(format!(
            "of {} and {} runs {}",
            without.runs,
            with.runs,
            text(without.measured, with.measured)
        )),
        predicted: format!(
            "{}; {heads} heads {eight} TP 8",
            text(without.predicted, with.predicted)
        ),
        reproduced: Reproduced::by(
            (without.measured, without.predicted) == (0, 0)
                && with.measured > 0
                && with.predicted > 0
                && eight == "forbid",
        ),
    })
}

/// (g)
pub(super) fn sixty_five_billion(sweeps: &[Sweep]) -> Option<Finding> {
    let runs: Vec<&Case> = sweeps
        .iter()
        .filter(|sweep| sweep.trains(LLAMA_65B))
        .flat_map(|sweep| sweep.cases.iter().copied())
        .filter(|case| !checkpointed(case) && !fused_rmsnorm(case))
        .collect();
    let sizes = micro_batches(&runs);
    let by_size: Vec<(u32, Fits)> = sizes
        .into_iter()
        .map(|size| (size, fits(&runs, |case| cell(case).micro_batch == size)))
        .collect();
    by_size.first()?;
    let text = |count: fn(&Fits) -> usize| {
        let counts = by_size.iter().map(|(_, fits)| count(fits).to_string());
        counts.collect::<Vec<_>>().join(" / ")
    };
    let sizes = by_size.iter().map(|(size, _)| size.to_string());
    let only_one = |count: fn(&Fits) -> usize| {
        by_size
            .iter()
            .all(|(size, fits)| (count(fits) > 0) == (*size == 1))
    };
    Some(Finding {
        letter: 'g',
        claim: "65B without the RMSNorm kernel runs without checkpointing at micro-batch 1 alone",
        measured: Some(format!(
            "{} fit at {}",
            text(|fits| fits.measured),
            sizes.collect::<Vec<_>>().join(" / ")
        )),
        predicted: format!("{} fit", text(|fits| fits.predicted)),
        reproduced: Reproduced::by(only_one(|fits| fits.measured) && only_one(|it| it.predicted)),
    })
}

fn micro_batches(runs: &[&Case]) -> Vec<u32> {
    let mut sizes: Vec<u32> = runs.iter().map(|case| cell(case).micro_batch).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// How many of some runs fitted and were said to fit.
struct Fits {
    runs: usize,
    measured: usize,
    predicted: usize,
}

fn fits(runs: &[&Case], some: impl Fn(&Case) -> bool) -> Fits {
    let chosen: Vec<&&Case> = runs.iter().filter(|case| some(case)).collect();
    let count = |fits: &dyn Fn(&Case) -> bool| chosen.iter().filter(|case| fits(case)).count();
    Fits {
        runs: chosen.len(),
        measured: count(&|case| !case.ran_out_of_memory()),
        predicted: count(&said_to_fit),
    }
}

/// (k), on the fastest run of 13B at 2k with FlashAttention 2 and neither kernel nor checkpointing.
pub(super) fn feed_forward_recompute(sweeps: &[Sweep]) -> Option<Finding> {
    let sweep = sweeps
        .iter()
        .find(|sweep| sweep.is(LLAMA_13B, 2048) && sweep.varies_rmsnorm_kernel())?;
    let plain = |case: &Case| flash2(case) && !fused_rmsnorm(case) && !checkpointed(case);
    let case = sweep.best_measured(plain)?.case;
    let costs = Costs::new(&case.modelled.job, cell(case));
    let time =
        |mode: Recompute| costs.layer().time.total() + costs.layer().recompute[mode as usize];
    let kept = |mode: Recompute| costs.layer().memory.kept[mode as usize];
    let times = [
        costs.layer().time.total(),
        time(Recompute::FeedForward),
        time(Recompute::Full),
    ];
    let memory = [
        costs.layer().memory.activations,
        kept(Recompute::FeedForward),
        kept(Recompute::Full),
    ];
    let between = times.is_sorted_by(|a, b| a < b) && memory.is_sorted_by(|a, b| a > b);
    let milliseconds = |time: &Seconds| format!("{:.1}", time.value() * 1e3);
    let megabytes = |amount: &Bytes| format!("{:.0}", amount.value() / 1e6);
    Some(Finding {
        letter: 'k',
        claim: "recomputing the feed-forward block alone lies between nothing and the whole layer",
        measured: None,
        predicted: format!(
            "layer {} ms; kept {} MB (none, feed-forward, full)",
            listed(times.iter().map(milliseconds)),
            listed(memory.iter().map(megabytes))
        ),
        reproduced: if between {
            Reproduced::PredictedOnly
        } else {
            Reproduced::No
        },
    })
}
