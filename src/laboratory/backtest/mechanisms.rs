//! Scores by the mechanism that a run leans on.

use schemars::JsonSchema;
use serde::Serialize;

use super::case::Case;
use super::scores::{Group, Scores};
use crate::laboratory::by_name;
use crate::laboratory::statistics::mean;
use crate::layout::{Combination, Schedule};
use crate::workload::Precision;

/// Tokens of a long sequence.
const LONG: u64 = 16_384;

/// A mechanism: its name, and whether a run leans on it.
type Mechanism = (&'static str, fn(&Case) -> bool);

const MECHANISMS: [Mechanism; 10] = [
    ("tensor parallelism within the NVLink domain", |case| {
        tensor_parallel(case) == Some(true)
    }),
    ("tensor parallelism across domains", |case| {
        tensor_parallel(case) == Some(false)
    }),
    ("pipeline, 1F1B", |case| {
        pipeline(case, |cell| {
            cell.schedule == Schedule::OneForwardOneBackward && cell.virtual_stages == 1
        })
    }),
    ("pipeline, interleaved", |case| {
        pipeline(case, |cell| cell.virtual_stages > 1)
    }),
    ("pipeline, zero bubble", |case| {
        pipeline(case, |cell| {
            matches!(
                cell.schedule,
                Schedule::ZeroBubble1p | Schedule::ZeroBubble2p
            )
        })
    }),
    ("data parallelism alone", |case| {
        let cell = cell(case);
        let others = [
            cell.tensor_parallel,
            cell.pipeline_parallel,
            cell.context_parallel,
        ];
        others == [1; 3] && cell.data_parallel > 1 && !cell.sharding.state().weights.splits()
    }),
    ("full sharding", |case| {
        cell(case).sharding.state().weights.splits()
    }),
    ("context parallelism", |case| {
        cell(case).context_parallel > 1
    }),
    ("sequences of 16k tokens and more", |case| {
        case.modelled.job.workload.sequence_length >= LONG
    }),
    ("fp8", |case| {
        case.modelled.job.workload.precision == Precision::Fp8
    }),
];

fn cell<'a>(case: &'a Case) -> &'a Combination {
    &case.modelled.layout.combination
}

/// Whether tensor parallelism stays within a domain, if there is any.
fn tensor_parallel(case: &Case) -> Option<bool> {
    let ranks = cell(case).tensor_parallel;
    (ranks > 1).then(|| case.modelled.job.cluster.is_within_domain(ranks))
}

fn pipeline(case: &Case, is: impl Fn(&Combination) -> bool) -> bool {
    cell(case).pipeline_parallel > 1 && is(cell(case))
}

/// Scores of the runs that lean on a mechanism.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MechanismScores {
    /// The mechanism.
    pub mechanism: &'static str,
    /// Sources of such runs.
    pub sources: usize,
    /// Their scores: means of sources.
    #[serde(flatten)]
    pub scores: Scores,
}

impl MechanismScores {
    /// Those that the cases lean on.
    pub(super) fn of(cases: &[Case]) -> Vec<Self> {
        let found = MECHANISMS.iter().filter_map(|&(mechanism, leans)| {
            let cases: Vec<&Case> = cases
                .iter()
                .filter(|case| leans(case) && case.timed().is_some())
                .collect();
            let sources = by_name(&cases, |case| &case.run.source);
            let scores: Vec<Scores> = sources.iter().map(|(_, cases)| of_source(cases)).collect();
            (!scores.is_empty()).then(|| Self {
                mechanism,
                sources: scores.len(),
                scores: Scores::summary(&scores.iter().collect::<Vec<_>>(), |values| {
                    mean(values.iter().copied())
                }),
            })
        });
        found.collect()
    }
}

fn of_source(cases: &[&&Case]) -> Scores {
    let cases: Vec<&Case> = cases.iter().map(|case| **case).collect();
    let groups = by_name(&cases, |case| case.group.as_str());
    let groups: Vec<Group> = groups
        .into_iter()
        .map(|(_, cases)| Group {
            cases: cases.into_iter().copied().collect(),
            picks: Vec::new(),
        })
        .collect();
    Scores::of(&groups.iter().collect::<Vec<_>>(), &[])
}
