//! Scores the cost model and the solver's choice against measured runs.
//!
//! Runs that trained or ran out of memory are compared with what the cost model says of them: by
//! group (a sweep: one network, cluster, sequence length and batch), by source and in total. The
//! figures are described in `docs/backtest.md`.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

mod case;
mod draws;
pub mod findings;
mod held_out;
mod intervals;
mod leave_one_out;
mod leave_out;
mod mechanisms;
mod pick;
pub mod random;
mod reliability;
mod scores;
mod settings;
mod summary;

pub use case::{Case, cases};
pub use draws::{DrawOptions, Transfer, transfers};
pub use held_out::HeldOut;
pub use intervals::Interval;
pub use leave_one_out::leave_one_out;
pub use leave_out::{LeaveOut, leave_out, timed_sources};
pub use mechanisms::MechanismScores;
pub use pick::{Contender, Pick, contenders, pick};
pub use reliability::{Reliability, ReliabilityBin};
pub use scores::{Errors, Picks, Scores, Verdicts};
pub use settings::{Belief, Setting, settings};
pub use summary::OfSources;

use crate::laboratory::by_name;
use crate::laboratory::runs::{Assumed, assumed};

use scores::Group;

/// A part of the runs with its scores.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scope {
    /// Where the runs come from.
    pub source: String,
    /// Name of the group; `None` where the scope is a whole source.
    pub group: Option<String>,
    /// Its scores.
    #[serde(flatten)]
    pub scores: Scores,
}

/// What a backtest found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Backtest {
    /// Accepted risks of running out of memory at which layouts were picked.
    #[serde(skip)]
    pub risks: Vec<f64>,
    /// Clusters and frameworks that the runs of each source were predicted with.
    pub assumed: Vec<Assumed>,
    /// Scores of each group.
    pub groups: Vec<Scope>,
    /// Scores of each source.
    pub sources: Vec<Scope>,
    /// Scores of all runs together.
    pub total: Scores,
    /// Means and medians of the sources' scores; null where there is one source.
    pub of_sources: Option<OfSources>,
    /// Scores of the runs that lean on each mechanism.
    pub mechanisms: Vec<MechanismScores>,
    /// Stated intervals of step times, and how many runs they hold.
    pub intervals: Vec<Interval>,
    /// Said and true risk of running out of memory, by source that has such runs, then of all.
    pub reliability: Vec<Reliability>,
}

/// Scores the cases, picking layouts at each of the accepted risks of running out of memory.
#[must_use]
pub fn score(cases: &[Case], risks: &[f64]) -> Backtest {
    let named = by_name(cases, |case| (&case.run.source, &case.group));
    let groups = named.par_iter().map(|(_, cases)| {
        let contenders = contenders(cases);
        let picks = risks.iter().map(|&risk| pick(&contenders, risk, pick::TOP));
        Group {
            cases: cases.clone(),
            picks: picks.collect(),
        }
    });
    let groups: Vec<Group> = groups.collect();
    let scope = |source: &str, group: Option<&str>, parts: &[&Group]| Scope {
        source: source.to_owned(),
        group: group.map(str::to_owned),
        scores: Scores::of(parts, risks),
    };
    let sources = by_name(&groups, |group| &group.cases[0].run.source);
    let all: Vec<&Group> = groups.iter().collect();
    let sources: Vec<Scope> = sources
        .iter()
        .map(|(source, parts)| scope(source, None, parts))
        .collect();
    Backtest {
        of_sources: OfSources::new(&sources),
        mechanisms: MechanismScores::of(cases),
        intervals: Interval::of(cases),
        risks: risks.to_vec(),
        assumed: assumed(cases.iter().map(|case| (case.run, &case.modelled))),
        groups: named
            .iter()
            .zip(&groups)
            .map(|(((source, group), _), part)| scope(source, Some(group), &[part]))
            .collect(),
        sources,
        total: Scores::of(&all, risks),
        reliability: reliability(cases),
    }
}

/// Tables of the sources that have runs out of memory, then of all runs.
fn reliability(cases: &[Case]) -> Vec<Reliability> {
    let sources = by_name(cases, |case| &case.run.source);
    let mut tables: Vec<Reliability> = sources
        .iter()
        .filter(|(_, cases)| cases.iter().any(|case| case.ran_out_of_memory()))
        .map(|(source, cases)| Reliability::of(source, cases))
        .collect();
    if tables.len() > 1 {
        let all: Vec<&Case> = cases.iter().collect();
        tables.push(Reliability::of("all", &all));
    }
    tables
}
