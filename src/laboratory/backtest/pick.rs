//! The pick: how good the layout is that the solver chooses among the measured ones of a group.

use crate::laboratory::by_name;
use crate::laboratory::runs::Status;
use crate::laboratory::statistics::{mean, median};
use crate::layout::{AttentionKernel, Checkpointing, RmsNormKernel};
use crate::planner::given_layouts::{self, GivenLayout, MemoryCheck};

use super::case::Case;

/// Best layouts that the solver is asked for.
pub(super) const TOP: usize = 3;

/// A distinct layout of a group that was tried.
#[derive(Debug, Clone, Copy)]
pub struct Contender<'a> {
    /// The first run of that layout.
    pub case: &'a Case<'a>,
    /// Median measured utilisation of its runs; those that ran out of memory count as 0.
    pub measured: f64,
}

/// The layouts of one group that have an outcome: a representative speed or a lack of memory.
/// In the order of the file.
#[must_use]
pub fn contenders<'a>(group: &[&'a Case<'a>]) -> Vec<Contender<'a>> {
    let valued = group.iter().filter_map(|&case| {
        let value = match case.run.status {
            Status::OutOfMemory => 0.0,
            _ => case.timed()?,
        };
        Some((case, value))
    });
    let valued: Vec<(&Case, f64)> = valued.collect();
    let layouts = by_name(&valued, |(case, _)| case.layout_number);
    let contender = |alike: &Vec<&(&'a Case<'a>, f64)>| {
        let values: Vec<f64> = alike.iter().map(|(_, value)| *value).collect();
        Contender {
            case: alike[0].0,
            measured: median(&values).unwrap_or_default(),
        }
    };
    layouts.iter().map(|(_, alike)| contender(alike)).collect()
}

/// What several ways of choosing make of one group: measured utilisation of the choice over the
/// best measured one. 0 where the choice ran out of memory, or where nothing is said to fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pick {
    /// The solver's choice; `None` where no layout is said to fit.
    pub solver: Option<f64>,
    /// The best of the solver's best.
    pub top_three: f64,
    /// The rule of thumb: no checkpointing, best kernels, least micro-batch, least `tp pp`, least
    /// `tp`, among the layouts said to fit; the mean over those that it does not tell apart.
    pub rule_of_thumb: f64,
    /// Any layout said to fit: the expected value.
    pub random: f64,
}

/// Picks among the contenders of one group at the accepted risk of running out of memory, of which nobody
/// knows where a run does not state what decides it; `None` with fewer than two, or where none trained. The solver is asked for its `top` best.
#[must_use]
pub fn pick(contenders: &[Contender], max_oom_risk: f64, top: usize) -> Option<Pick> {
    let best = contenders.iter().map(|it| it.measured).fold(0.0, f64::max);
    if contenders.len() < 2 || best <= 0.0 {
        return None;
    }
    let layouts = contenders.iter().map(|it| GivenLayout {
        job: &it.case.modelled.job,
        layout: &it.case.modelled.layout,
        vocabulary: it.case.modelled.vocabulary,
        step_time: it.case.modelled.prediction.step_time,
        memory: match it.case.modelled.unstated {
            None => MemoryCheck::Checked,
            Some(_) => MemoryCheck::Unknown,
        },
    });
    let chosen = given_layouts::best(&layouts.collect::<Vec<_>>(), max_oom_risk, top);
    let chosen: Vec<f64> = chosen
        .iter()
        .map(|&index| contenders[index].measured / best)
        .collect();
    let fitting = contenders.iter();
    let fitting: Vec<&Contender> = fitting
        .filter(|it| {
            it.case
                .oom_probability()
                .is_none_or(|risk| risk <= max_oom_risk)
        })
        .collect();
    let mean_share = |some: &[&Contender]| {
        let shares = some.iter().map(|it| it.measured / best);
        mean(shares).unwrap_or(0.0)
    };
    Some(Pick {
        solver: chosen.first().copied(),
        top_three: chosen.iter().copied().fold(0.0, f64::max),
        rule_of_thumb: mean_share(&by_rule_of_thumb(&fitting)),
        random: mean_share(&fitting),
    })
}

/// The layouts that the rule of thumb puts first.
fn by_rule_of_thumb<'a>(fitting: &[&'a Contender<'a>]) -> Vec<&'a Contender<'a>> {
    let first = fitting.iter().map(|it| thumb_key(it)).min();
    let firsts = fitting
        .iter()
        .filter(|it| Some(thumb_key(it)) == first)
        .copied();
    firsts.collect()
}

/// Smaller is preferred.
fn thumb_key(contender: &Contender) -> (bool, bool, bool, u32, u32, u32) {
    let layout = &contender.case.modelled.layout;
    let cell = &layout.combination;
    (
        layout.checkpointing() != Checkpointing::None,
        cell.rmsnorm_kernel != RmsNormKernel::Fused,
        cell.attention_kernel != AttentionKernel::Flash2,
        cell.micro_batch,
        cell.tensor_parallel * cell.pipeline_parallel,
        cell.tensor_parallel,
    )
}
