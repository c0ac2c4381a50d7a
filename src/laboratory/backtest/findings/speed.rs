//! Findings on which layout is fastest.

use crate::cost_model::components::TimeComponent;
use crate::laboratory::backtest::case::Case;
use crate::laboratory::statistics::mean;
use crate::layout::Combination;

use super::sweep::{
    Best, Sweep, cell, checkpointed, flash2, fused_rmsnorm, listed, points, said_to_fit,
    sequence_parallel, signed_points,
};
use super::{Finding, LLAMA_13B, Reproduced};

/// (a)
pub(super) fn best_13b(sweeps: &[Sweep]) -> Option<Finding> {
    let sweep = sweeps
        .iter()
        .find(|sweep| sweep.is(LLAMA_13B, 2048) && sweep.varies_rmsnorm_kernel())?;
    let measured = sweep.best_measured(|_| true)?;
    let predicted = sweep.best_predicted(|_| true)?;
    let as_claimed = |case: &Case| {
        let cell = cell(case);
        let alone = cell.tensor_parallel == 1 && cell.pipeline_parallel == 1;
        alone && cell.micro_batch == 1 && flash2(case) && fused_rmsnorm(case)
    };
    Some(Finding {
        letter: 'a',
        claim: "13B at 2k is fastest with TP 1, PP 1, micro-batch 1, FlashAttention 2 and the \
                RMSNorm kernel (70.5 % MFU); reproduced if the layout is",
        measured: Some(described(&measured)),
        predicted: described(&predicted),
        reproduced: Reproduced::by(as_claimed(measured.case) && as_claimed(predicted.case)),
    })
}

fn described(best: &Best) -> String {
    let cell = cell(best.case);
    format!(
        "TP {} PP {} micro-batch {}{}{}, {} %",
        cell.tensor_parallel,
        cell.pipeline_parallel,
        cell.micro_batch,
        if fused_rmsnorm(best.case) {
            " kernel"
        } else {
            ""
        },
        if checkpointed(best.case) {
            " checkpointed"
        } else {
            ""
        },
        points(best.mfu)
    )
}

/// Points by which a predicted gain may differ from the measured one.
const GAIN_TOLERANCE: f64 = 0.05;

/// (b)
pub(super) fn kernel_gain(sweeps: &[Sweep]) -> Option<Finding> {
    let with = |case: &Case| flash2(case) && fused_rmsnorm(case);
    let without = |case: &Case| flash2(case) && !fused_rmsnorm(case);
    let gains: Vec<(f64, f64)> = sweeps
        .iter()
        .filter(|sweep| sweep.varies_rmsnorm_kernel())
        .filter(|sweep| sweep.is(LLAMA_13B, 2048) || sweep.sequence_length() == 8192)
        .filter_map(|sweep| {
            let measured = sweep.best_measured(with)?.mfu - sweep.best_measured(without)?.mfu;
            let predicted = sweep.best_predicted(with)?.mfu - sweep.best_predicted(without)?.mfu;
            Some((measured, predicted))
        })
        .collect();
    if gains.is_empty() {
        return None;
    }
    Some(Finding {
        letter: 'b',
        claim: "the RMSNorm kernel gains about 15 points on 13B at 2k and about 10 at 8k; \
                reproduced if every gain is, to 5 points",
        measured: Some(listed(gains.iter().map(|gain| signed_points(gain.0)))),
        predicted: listed(gains.iter().map(|gain| signed_points(gain.1))),
        reproduced: Reproduced::by(gains.iter().all(|(a, b)| (a - b).abs() <= GAIN_TOLERANCE)),
    })
}

/// (d)
pub(super) fn no_checkpointing_is_best(sweeps: &[Sweep]) -> Option<Finding> {
    let mut pairs: Vec<(&Case, &Case)> = Vec::new();
    for sweep in sweeps {
        pairs.extend(timed_pairs(sweep, |plain, other| {
            !checkpointed(plain) && checkpointed(other) && cell(plain) == cell(other)
        }));
    }
    let (measured, predicted) = first_is_faster(&pairs)?;
    let plain = |best: Option<Best>| best.is_some_and(|best| !checkpointed(best.case));
    let measured_best = sweeps
        .iter()
        .filter(|sweep| plain(sweep.best_measured(|_| true)));
    let predicted_best = sweeps
        .iter()
        .filter(|sweep| plain(sweep.best_predicted(|_| true)));
    let (in_measured, in_predicted) = (measured_best.count(), predicted_best.count());
    let text = |share: f64, best: usize| {
        format!(
            "faster in {:.0} % of {} pairs, best in {best} of {} sweeps",
            share * 100.0,
            pairs.len(),
            sweeps.len()
        )
    };
    Some(Finding {
        letter: 'd',
        claim: "no checkpointing is best wherever it fits",
        measured: Some(text(measured, in_measured)),
        predicted: text(predicted, in_predicted),
        reproduced: Reproduced::by(predicted >= 0.95 && in_predicted == in_measured),
    })
}

/// (f)
pub(super) fn least_micro_batch(sweeps: &[Sweep]) -> Finding {
    let one = |best: Option<Best>| best.is_some_and(|best| cell(best.case).micro_batch == 1);
    let count = |best: &dyn Fn(&Sweep) -> bool| sweeps.iter().filter(|it| best(it)).count();
    let measured = count(&|sweep| one(sweep.best_measured(|_| true)));
    let predicted = count(&|sweep| one(sweep.best_predicted(|_| true)));
    let long: Vec<&Case> = sweeps
        .iter()
        .filter(|sweep| sweep.sequence_length() == 8192)
        .flat_map(|sweep| sweep.cases.iter().copied())
        .filter(|case| cell(case).micro_batch > 2)
        .collect();
    let ran = long.iter().filter(|case| !case.ran_out_of_memory()).count();
    let said = long.iter().filter(|case| said_to_fit(case)).count();
    let text = |best: usize, fit: usize| {
        format!(
            "best in {best} of {} sweeps; {fit} of {} above 2 at 8k fit",
            sweeps.len(),
            long.len()
        )
    };
    Finding {
        letter: 'f',
        claim: "micro-batch 1 is best in every sweep, and above 2 nothing fits at 8k",
        measured: Some(text(measured, ran)),
        predicted: text(predicted, said),
        reproduced: Reproduced::by((measured, ran) == (predicted, said)),
    }
}

/// Share of pairs in which one side must be faster to be called so.
const MOST: f64 = 0.75;

/// (h)
pub(super) fn pipeline_beats_tensor(sweeps: &[Sweep]) -> Option<Finding> {
    let mut pairs: Vec<(&Case, &Case)> = Vec::new();
    for sweep in sweeps {
        pairs.extend(timed_pairs(sweep, |deep, wide| {
            let swapped = Combination {
                tensor_parallel: cell(wide).pipeline_parallel,
                pipeline_parallel: cell(wide).tensor_parallel,
                ..*cell(wide)
            };
            cell(deep).pipeline_parallel > cell(deep).tensor_parallel
                && *cell(deep) == swapped
                && checkpointed(deep) == checkpointed(wide)
        }));
    }
    let (measured, predicted) = first_is_faster(&pairs)?;
    let text = |share: f64| format!("{:.0} % of {} pairs", share * 100.0, pairs.len());
    Some(Finding {
        letter: 'h',
        claim: "pipeline beats tensor parallelism at equal degree; reproduced if in three \
                quarters of the pairs",
        measured: Some(text(measured)),
        predicted: text(predicted),
        reproduced: Reproduced::by(measured >= MOST && predicted >= MOST),
    })
}

/// Points from which sequence parallelism is said to gain.
const A_GAIN: f64 = 0.02;

/// (i)
pub(super) fn sequence_parallel_gain(sweeps: &[Sweep]) -> Option<Finding> {
    let on = |case: &Case| sequence_parallel(case);
    let off = |case: &Case| !sequence_parallel(case);
    let gains: Vec<(f64, f64, String)> = sweeps
        .iter()
        .filter(|sweep| sweep.varies_sequence_parallel())
        .filter_map(|sweep| {
            let measured = sweep.best_measured(on)?.mfu - sweep.best_measured(off)?.mfu;
            let predicted = sweep.best_predicted(on)?.mfu - sweep.best_predicted(off)?.mfu;
            let case = sweep.cases[0];
            let name = format!("{} {}", case.run.model, sweep.sequence_length());
            Some((measured, predicted, name))
        })
        .collect();
    if gains.is_empty() {
        return None;
    }
    let text = |name: &str, gain: f64| format!("{name}: {}", signed_points(gain));
    let agree = gains
        .iter()
        .all(|(measured, predicted, _)| (*measured >= A_GAIN) == (*predicted >= A_GAIN));
    Some(Finding {
        letter: 'i',
        claim: "sequence parallelism gains at 65B, or at 30B with 8k (2 to 6 points), nothing at \
                13B; reproduced if it gains 2 points in the same sweeps",
        measured: Some(listed(gains.iter().map(|it| text(&it.2, it.0)))),
        predicted: listed(gains.iter().map(|it| text(&it.2, it.1))),
        reproduced: Reproduced::by(agree),
    })
}

/// (j)
pub(super) fn bubble_grows(sweeps: &[Sweep]) -> Finding {
    let share_at = |micro_batch: u32| {
        let shares: Vec<f64> = sweeps
            .iter()
            .flat_map(|sweep| &sweep.cases)
            .filter(|case| case.timed().is_some() && cell(case).pipeline_parallel > 1)
            .filter(|case| cell(case).micro_batch == micro_batch)
            .map(|case| {
                let prediction = &case.modelled.prediction;
                prediction.time[TimeComponent::Bubble] / prediction.step_time
            })
            .collect();
        mean(&shares)
    };
    let shares: Vec<f64> = [1, 2, 4].into_iter().map_while(share_at).collect();
    let grows = shares.len() > 1 && shares.is_sorted_by(|a, b| a < b);
    Finding {
        letter: 'j',
        claim: "larger micro-batches lengthen the bubble (its mean share of the step at 1, 2, 4 \
                sequences, over the runs that trained with a pipeline)",
        measured: None,
        predicted: format!("{} %", listed(shares.iter().map(|&share| points(share)))),
        reproduced: if grows {
            Reproduced::PredictedOnly
        } else {
            Reproduced::No
        },
    }
}

/// Pairs of distinct runs of a sweep that have a speed and for which `related` holds.
fn timed_pairs<'a>(
    sweep: &Sweep<'a>,
    related: impl Fn(&Case, &Case) -> bool,
) -> Vec<(&'a Case<'a>, &'a Case<'a>)> {
    let timed: Vec<&Case> = sweep
        .cases
        .iter()
        .copied()
        .filter(|case| case.timed().is_some())
        .collect();
    let mut pairs = Vec::new();
    for &first in &timed {
        let others = timed.iter().copied().filter(|other| related(first, other));
        pairs.extend(others.map(|other| (first, other)));
    }
    pairs
}

/// Shares of the pairs in which the first is faster: measured and predicted.
fn first_is_faster(pairs: &[(&Case, &Case)]) -> Option<(f64, f64)> {
    let share = |faster: &dyn Fn(&Case, &Case) -> bool| {
        let outcomes: Vec<f64> = pairs
            .iter()
            .map(|(first, second)| f64::from(u8::from(faster(first, second))))
            .collect();
        mean(&outcomes)
    };
    Some((
        share(&|first, second| first.timed() > second.timed())?,
        share(&|first, second| first.predicted_mfu() > second.predicted_mfu())?,
    ))
}
