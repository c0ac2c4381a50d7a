//! Findings on what fits.

use super::sweep::{Side, Sweep, cell, checkpointed, flash2, fused_rmsnorm, listed};
use super::{Finding, LLAMA_30B, LLAMA_65B};
use crate::cost_model::Costs;
use crate::framework::FusedRmsNorm;
use crate::laboratory::backtest::case::Case;
use crate::layout::Recompute;

/// (c)
pub(super) fn kernel_excludes_checkpointing(sweeps: &[Sweep]) -> Option<Finding> {
    let cases = || sweeps.iter().flat_map(|sweep| &sweep.cases);
    let both = cases()
        .filter(|case| fused_rmsnorm(case) && checkpointed(case) && case.timed().is_some())
        .count();
    let rule = cases().all(|case| {
        case.modelled.job.framework.fused_rmsnorm == FusedRmsNorm::ExcludesCheckpointing
    });
    Finding::compared(
        'c',
        "the RMSNorm kernel and checkpointing exclude each other",
        |side| {
            Some(if side == Side::Measured {
                both == 0
            } else {
                rule
            })
        },
        |side, excluded| match (side, excluded) {
            (Side::Measured, _) => format!("{both} runs with both"),
            (Side::Predicted, true) => "a rule of the framework".to_owned(),
            (Side::Predicted, false) => "no rule".to_owned(),
        },
        |measured, predicted| measured == predicted,
    )
}

/// (e)
pub(super) fn thirty_billion_at_8k(sweeps: &[Sweep]) -> Option<Finding> {
    let sweeps = sweeps.iter().filter(|sweep| sweep.is(LLAMA_30B, 8192));
    let runs = sweeps.flat_map(|sweep| sweep.cases.iter().copied());
    let runs: Vec<&Case> = runs.filter(|case| !checkpointed(case)).collect();
    let with_kernel = runs.iter().filter(|case| fused_rmsnorm(case)).count();
    let without_kernel = runs.len() - with_kernel;
    let heads = runs.first()?.modelled.job.transformer.heads;
    let allowed = heads.is_multiple_of(8);
    let eight = if allowed { "allow" } else { "forbid" };
    Finding::compared(
        'e',
        "30B at 8k needs checkpointing without the RMSNorm kernel and does not with it (runs \
         without checkpointing, without and with the kernel); 52 heads forbid TP 8",
        |side| {
            let without = side.fitting(&runs, |case| !fused_rmsnorm(case));
            Some((without, side.fitting(&runs, fused_rmsnorm)))
        },
        |side, (without, with)| match side {
            Side::Measured => {
                format!("of {without_kernel} and {with_kernel} runs {without} and {with} fit")
            }
            Side::Predicted => {
                format!("{without} and {with} fit; {heads} heads {eight} TP 8")
            }
        },
        |measured, predicted| {
            let as_claimed = |(without, with): &(usize, usize)| *without == 0 && *with > 0;
            as_claimed(measured) && as_claimed(predicted) && !allowed
        },
    )
}

/// (g)
pub(super) fn sixty_five_billion(sweeps: &[Sweep]) -> Option<Finding> {
    let sweeps = sweeps.iter().filter(|sweep| sweep.trains(LLAMA_65B));
    let runs = sweeps.flat_map(|sweep| sweep.cases.iter().copied());
    let runs: Vec<&Case> = runs
        .filter(|case| !checkpointed(case) && !fused_rmsnorm(case))
        .collect();
    let mut sizes: Vec<u32> = runs.iter().map(|case| cell(case).micro_batch).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.first()?;
    let joined = |numbers: &[usize]| {
        let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
        texts.join(" / ")
    };
    let at: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
    let only_one = |fitting: &Vec<usize>| {
        let mut pairs = fitting.iter().zip(&sizes);
        pairs.all(|(&fitting, &size)| (fitting > 0) == (size == 1))
    };
    Finding::compared(
        'g',
        "65B without the RMSNorm kernel runs without checkpointing at micro-batch 1 alone",
        |side| {
            let fitting = |&size: &u32| side.fitting(&runs, |case| cell(case).micro_batch == size);
            Some(sizes.iter().map(fitting).collect::<Vec<_>>())
        },
        |side, fitting| match side {
            Side::Measured => format!("{} fit at {}", joined(fitting), joined(&at)),
            Side::Predicted => format!("{} fit", joined(fitting)),
        },
        |measured, predicted| only_one(measured) && only_one(predicted),
    )
}

/// (k), on the fastest run of 13B at 2k with FlashAttention 2 and neither kernel nor checkpointing.
pub(super) fn feed_forward_recompute(sweeps: &[Sweep]) -> Option<Finding> {
    let sweep = sweeps.iter().find(|sweep| sweep.is_subject())?;
    let plain = |case: &Case| flash2(case) && !fused_rmsnorm(case) && !checkpointed(case);
    let case = Side::Measured.best(sweep, plain)?.case;
    let costs = Costs::new(&case.modelled.job, cell(case));
    let layer = costs.layer();
    let modes = [None, Some(Recompute::FeedForward), Some(Recompute::Full)];
    let time = modes.map(|mode| match mode {
        None => layer.time.total(),
        Some(mode) => layer.time.total() + layer.recompute[mode as usize],
    });
    let memory = modes.map(|mode| match mode {
        None => layer.memory.activations,
        Some(mode) => layer.memory.kept[mode as usize],
    });
    let milliseconds = time.map(|time| format!("{:.1}", time.value() * 1e3));
    let megabytes = memory.map(|amount| format!("{:.0}", amount.value() / 1e6));
    Some(Finding::predicted(
        'k',
        "recomputing the feed-forward block alone lies between nothing and the whole layer",
        format!(
            "layer {} ms; kept {} MB (none, feed-forward, full)",
            listed(milliseconds.into_iter()),
            listed(megabytes.into_iter())
        ),
        time.is_sorted_by(|a, b| a < b) && memory.is_sorted_by(|a, b| a > b),
    ))
}
