//! Every source, framework or generation of GPUs predicted by what the others teach.

use rayon::prelude::*;

use super::case::Case;
use crate::catalog::{self, Evidence};
use crate::choice::choice;
use crate::cost_model::flops;
use crate::laboratory::by_name;
use crate::laboratory::calibrate::{Levers, Observation, Pool, PooledRun};
use crate::laboratory::runs::{RunSetups, Setup, Skip, model};
use crate::quantity::Seconds;

choice!(
    /// What is left out of a fit, and then predicted by it.
    LeaveOut {
        /// Every source of runs.
        Source = "source",
        /// Every framework.
        Framework = "framework",
        /// Every generation of GPUs.
        Gpu = "gpu",
        /// Every group of a source, by a fit to its others.
        Group = "group",
    }
);

/// Timed runs below which a source is neither fitted to nor predicted.
const FEWEST_TIMED: usize = 4;
/// Layouts of a source that a fit sees at most, spread evenly: it weighs as much as any other.
const MOST_LAYOUTS: usize = 120;

/// The cases of sources with enough runs that state a representative step time.
#[must_use]
pub fn timed_sources<'a>(cases: &[Case<'a>]) -> Vec<Case<'a>> {
    let sources = by_name(cases, |case| &case.run.source);
    let enough =
        |cases: &[&Case]| cases.iter().filter(|case| is_timed(case)).count() >= FEWEST_TIMED;
    let kept = sources.into_iter().filter(|(_, cases)| enough(cases));
    kept.flat_map(|(_, cases)| cases.into_iter().cloned())
        .collect()
}

fn is_timed(case: &Case) -> bool {
    case.run.step_time.is_some_and(|time| time > 0.0) && case.timed().is_some()
}

/// A case with the figures that its step time depends on.
struct Member<'c, 'a> {
    case: &'c Case<'a>,
    setup: Setup,
    levers: Levers,
}

impl Member<'_, '_> {
    fn generation(&self) -> &str {
        catalog::generation(&self.setup.cluster.accelerator.name)
    }

    /// What it is left out with.
    fn key(&self, by: LeaveOut) -> &str {
        match by {
            LeaveOut::Source => &self.case.run.source,
            LeaveOut::Framework => &self.setup.framework.name,
            LeaveOut::Gpu => self.generation(),
            LeaveOut::Group => &self.case.group,
        }
    }

    /// What the runs of `others` say of runs like this one.
    fn evidence(&self, others: &[&Self]) -> Evidence {
        let of_gpu = || {
            others
                .iter()
                .filter(|other| other.generation() == self.generation())
        };
        if of_gpu().any(|other| other.setup.framework.name == self.setup.framework.name) {
            Evidence::SameGpuAndFramework
        } else if of_gpu().next().is_some() {
            Evidence::SameGpu
        } else {
            Evidence::Nothing
        }
    }
}

/// The cases, each predicted by a fit to those with another source, framework or generation: of the
/// shared figures, from their priors, with equal weight for every source. `done` is called after each fit
/// with the number of all.
///
/// # Errors
///
/// If a run cannot be modelled.
pub fn leave_out<'a>(
    cases: &[Case<'a>],
    setups: &RunSetups,
    by: LeaveOut,
    done: impl Fn(usize) + Sync,
) -> Result<Vec<Case<'a>>, Skip> {
    let mut pool = Pool::default();
    let members = cases.iter().map(|case| {
        let setup = setups.setup(case.run)?;
        Ok(Member {
            case,
            levers: pool.levers(&setup, &case.run.source),
            setup,
        })
    });
    let members: Vec<Member> = members.collect::<Result<_, Skip>>()?;
    let taught = taught(&members)?;
    let parts = by_name(&members, |member| member.key(by));
    let predicted = parts.par_iter().map(|(key, left_out)| {
        let others: Vec<&(&Member, PooledRun)> = taught
            .iter()
            .filter(|(member, _)| member.key(by) != *key)
            .collect();
        let known: Vec<&Member> = others.iter().map(|(member, _)| *member).collect();
        let runs: Vec<&PooledRun> = others.iter().map(|(_, run)| run).collect();
        let at = pool.fit(&runs);
        done(parts.len());
        let again = left_out.iter().map(|member| predict(member, &at, &known));
        again.collect::<Result<Vec<Case>, Skip>>()
    });
    let predicted: Vec<Vec<Case>> = predicted.collect::<Result<_, Skip>>()?;
    Ok(predicted.into_iter().flatten().collect())
}

fn predict<'a>(
    member: &Member<'_, 'a>,
    at: &[f64],
    known: &[&Member<'_, 'a>],
) -> Result<Case<'a>, Skip> {
    let mut setup = member.setup.clone();
    member.levers.apply(at, &mut setup);
    let modelled = model(member.case.run, &setup)?;
    let combination = &modelled.layout.combination;
    let trust = catalog::usual_trust(member.evidence(known))
        .leaning_on(&catalog::scarcely_measured(combination));
    Ok(Case {
        modelled,
        trust,
        ..member.case.clone()
    })
}

/// What a fit sees of the members: one run a layout with a representative speed.
fn taught<'m, 'c, 'a>(
    members: &'m [Member<'c, 'a>],
) -> Result<Vec<(&'m Member<'c, 'a>, PooledRun)>, Skip> {
    let timed: Vec<&Member> = members
        .iter()
        .filter(|member| is_timed(member.case))
        .collect();
    let mut chosen: Vec<(&Member, usize)> = Vec::new();
    for (_, of_source) in by_name(&timed, |member| &member.case.run.source) {
        let layouts = by_name(&of_source, |member| member.case.layout_number);
        let count = layouts.len().min(MOST_LAYOUTS);
        let spread = (0..count).map(|index| *layouts[index * layouts.len() / count].1[0]);
        chosen.extend(spread.map(|member| (*member, count)));
    }
    let runs = chosen.into_par_iter().map(|(member, count)| {
        let observation = Observation::new(member.case.run, &member.setup)?;
        let job = &observation.modelled.job;
        let one = flops::utilisation(job, Seconds::new(1.0)).value();
        let measured = one / member.case.timed().unwrap_or(f64::NAN);
        Ok((
            member,
            PooledRun::new(observation, &member.setup, &member.levers, measured, count),
        ))
    });
    runs.collect()
}
