//! Findings on which layout is fastest.

use super::sweep::{
    Best, Side, Sweep, cell, checkpointed, flash2, fused_rmsnorm, listed, points,
    sequence_parallel, signed_points,
};
use super::{Finding, LLAMA_13B};
use crate::cost_model::components::TimeComponent;
use crate::laboratory::backtest::case::Case;
use crate::laboratory::statistics::mean;
use crate::layout::Combination;

/// (a)
pub(super) fn best_13b(sweeps: &[Sweep]) -> Option<Finding> {
    let sweep = sweeps.iter().find(|sweep| sweep.is_subject())?;
    let as_claimed = |best: &Best| {
        let cell = cell(best.case);
        let alone = cell.tensor_parallel == 1 && cell.pipeline_parallel == 1;
        alone && cell.micro_batch == 1 && flash2(best.case) && fused_rmsnorm(best.case)
    };
    Finding::compared(
        'a',
        "13B at 2k is fastest with TP 1, PP 1, micro-batch 1, FlashAttention 2 and the RMSNorm \
         kernel (70.5 % MFU); reproduced if the layout is",
        |side| side.best(sweep, |_| true),
        |_, best| described(best),
        |measured, predicted| as_claimed(measured) && as_claimed(predicted),
    )
}

fn described(best: &Best) -> String {
    let cell = cell(best.case);
    let noted = |holds: bool, note: &'static str| if holds { note } else { "" };
    format!(
        "TP {} PP {} micro-batch {}{}{}, {} %",
        cell.tensor_parallel,
        cell.pipeline_parallel,
        cell.micro_batch,
        noted(fused_rmsnorm(best.case), " kernel"),
        noted(checkpointed(best.case), " checkpointed"),
        points(best.mfu)
    )
}

/// Points by which a predicted gain may differ from the measured one.
const GAIN_TOLERANCE: f64 = 0.05;

/// (b)
pub(super) fn kernel_gain(sweeps: &[Sweep]) -> Option<Finding> {
    let with = |case: &Case| flash2(case) && fused_rmsnorm(case);
    let without = |case: &Case| flash2(case) && !fused_rmsnorm(case);
    let gains = sweeps
        .iter()
        .filter(|sweep| sweep.varies_rmsnorm_kernel())
        .filter(|sweep| sweep.is(LLAMA_13B, 2048) || sweep.sequence_length() == 8192)
        .filter_map(|sweep| gain(sweep, with, without));
    let gains: Vec<[f64; 2]> = gains.collect();
    gains.first()?;
    Finding::compared(
        'b',
        "the RMSNorm kernel gains about 15 points on 13B at 2k and about 10 at 8k; reproduced if \
         every gain is, to 5 points",
        |side| Some(gains.iter().map(move |gain| gain[side as usize])),
        |_, gains| listed(gains.clone().map(signed_points)),
        |measured, predicted| {
            let mut pairs = measured.clone().zip(predicted.clone());
            pairs.all(|(measured, predicted)| (measured - predicted).abs() <= GAIN_TOLERANCE)
        },
    )
}

/// Measured and predicted gain of the best of some layouts over the best of others.
fn gain(
    sweep: &Sweep,
    with: impl Fn(&Case) -> bool,
    without: impl Fn(&Case) -> bool,
) -> Option<[f64; 2]> {
    let gain = |side: Side| Some(side.best(sweep, &with)?.mfu - side.best(sweep, &without)?.mfu);
    Some([gain(Side::Measured)?, gain(Side::Predicted)?])
}

/// (d)
pub(super) fn no_checkpointing_is_best(sweeps: &[Sweep]) -> Option<Finding> {
    let pairs = timed_pairs(sweeps, |plain, other| {
        !checkpointed(plain) && checkpointed(other) && cell(plain) == cell(other)
    });
    Finding::compared(
        'd',
        "no checkpointing is best wherever it fits",
        |side| {
            let best = best_in(sweeps, side, |case| !checkpointed(case));
            Some((share_of_faster(&pairs, side)?, best))
        },
        |_, (share, best)| {
            format!(
                "faster in {:.0} % of {} pairs, best in {best} of {} sweeps",
                share * 100.0,
                pairs.len(),
                sweeps.len()
            )
        },
        |measured, predicted| predicted.0 >= 0.95 && predicted.1 == measured.1,
    )
}

/// Sweeps whose best run is such.
fn best_in(sweeps: &[Sweep], side: Side, such: impl Fn(&Case) -> bool) -> usize {
    let best = sweeps.iter().filter_map(|sweep| side.best(sweep, |_| true));
    best.filter(|best| such(best.case)).count()
}

/// (f)
pub(super) fn least_micro_batch(sweeps: &[Sweep]) -> Option<Finding> {
    let long = sweeps
        .iter()
        .filter(|sweep| sweep.sequence_length() == 8192);
    let long = long.flat_map(|sweep| sweep.cases.iter().copied());
    let long: Vec<&Case> = long.filter(|case| cell(case).micro_batch > 2).collect();
    Finding::compared(
        'f',
        "micro-batch 1 is best in every sweep, and above 2 nothing fits at 8k",
        |side| {
            let best = best_in(sweeps, side, |case| cell(case).micro_batch == 1);
            Some((best, side.fitting(&long, |_| true)))
        },
        |_, (best, fit)| {
            format!(
                "best in {best} of {} sweeps; {fit} of {} above 2 at 8k fit",
                sweeps.len(),
                long.len()
            )
        },
        |measured, predicted| measured == predicted,
    )
}

/// Share of pairs in which one side must be faster to be called so.
const MOST: f64 = 0.75;

/// (h)
pub(super) fn pipeline_beats_tensor(sweeps: &[Sweep]) -> Option<Finding> {
    let pairs = timed_pairs(sweeps, |deep, wide| {
        let swapped = Combination {
            tensor_parallel: cell(wide).pipeline_parallel,
            pipeline_parallel: cell(wide).tensor_parallel,
            ..*cell(wide)
        };
        cell(deep).pipeline_parallel > cell(deep).tensor_parallel
            && *cell(deep) == swapped
            && checkpointed(deep) == checkpointed(wide)
    });
    Finding::compared(
        'h',
        "pipeline beats tensor parallelism at equal degree; reproduced if in three quarters of the \
         pairs",
        |side| share_of_faster(&pairs, side),
        |_, share| format!("{:.0} % of {} pairs", share * 100.0, pairs.len()),
        |measured, predicted| measured.min(*predicted) >= MOST,
    )
}

/// Points from which sequence parallelism is said to gain.
const A_GAIN: f64 = 0.02;

/// (i)
pub(super) fn sequence_parallel_gain(sweeps: &[Sweep]) -> Option<Finding> {
    let varied = sweeps
        .iter()
        .filter(|sweep| sweep.varies_sequence_parallel());
    let gains = varied.filter_map(|sweep| {
        let gain = gain(sweep, sequence_parallel, |case| !sequence_parallel(case))?;
        let model = &sweep.cases[0].run.model;
        Some((format!("{model} {}", sweep.sequence_length()), gain))
    });
    let gains: Vec<(String, [f64; 2])> = gains.collect();
    gains.first()?;
    Finding::compared(
        'i',
        "sequence parallelism gains at 65B, or at 30B with 8k (2 to 6 points), nothing at 13B; \
         reproduced if it gains 2 points in the same sweeps",
        |side| Some(gains.iter().map(move |(_, gain)| gain[side as usize])),
        |_, gain| {
            let named = gains.iter().zip(gain.clone());
            listed(named.map(|((name, _), gain)| format!("{name}: {}", signed_points(gain))))
        },
        |measured, predicted| {
            let mut pairs = measured.clone().zip(predicted.clone());
            pairs.all(|(measured, predicted)| (measured >= A_GAIN) == (predicted >= A_GAIN))
        },
    )
}

/// (j)
pub(super) fn bubble_grows(sweeps: &[Sweep]) -> Finding {
    let share_at = |micro_batch: u32| {
        let piped = sweeps.iter().flat_map(|sweep| &sweep.cases).filter(|case| {
            let cell = cell(case);
            cell.pipeline_parallel > 1 && cell.micro_batch == micro_batch && case.timed().is_some()
        });
        let shares = piped.map(|case| {
            let prediction = &case.modelled.prediction;
            prediction.time[TimeComponent::Bubble] / prediction.step_time
        });
        mean(shares)
    };
    let shares: Vec<f64> = [1, 2, 4].into_iter().map_while(share_at).collect();
    Finding::predicted(
        'j',
        "larger micro-batches lengthen the bubble (its mean share of the step at 1, 2, 4 \
         sequences, over the runs that trained with a pipeline)",
        format!("{} %", listed(shares.iter().map(|&share| points(share)))),
        shares.len() > 1 && shares.is_sorted_by(|a, b| a < b),
    )
}

/// Pairs of runs of one sweep that have a speed and for which `related` holds.
fn timed_pairs<'a>(
    sweeps: &[Sweep<'a>],
    related: impl Fn(&Case, &Case) -> bool,
) -> Vec<(&'a Case<'a>, &'a Case<'a>)> {
    let mut pairs = Vec::new();
    for sweep in sweeps {
        for first in sweep.trained() {
            let others = sweep.trained().filter(|other| related(first, other));
            pairs.extend(others.map(|other| (first, other)));
        }
    }
    pairs
}

/// Share of the pairs in which the first is faster.
fn share_of_faster(pairs: &[(&Case, &Case)], side: Side) -> Option<f64> {
    let outcomes = pairs.iter().map(|(first, second)| {
        let is_faster = side.mfu(first) > side.mfu(second);
        f64::from(u8::from(is_faster))
    });
    mean(outcomes)
}
