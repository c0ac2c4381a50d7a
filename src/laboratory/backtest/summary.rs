//! Statistics of the scores of several sources, each with the same weight.

use schemars::JsonSchema;
use serde::Serialize;

use super::Scope;
use super::scores::{Errors, Picks, Scores, Verdicts};
use crate::laboratory::statistics::{mean, median};

/// Statistics over sources, each with the same weight.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OfSources {
    /// Means of the sources' scores.
    pub mean: Scores,
    /// Their medians.
    pub median: Scores,
}

impl OfSources {
    pub(super) fn new(sources: &[Scope]) -> Option<Self> {
        let all: Vec<&Scores> = sources.iter().map(|scope| &scope.scores).collect();
        (all.len() > 1).then(|| Self {
            mean: Scores::summary(&all, |values| mean(values.iter().copied())),
            median: Scores::summary(&all, median),
        })
    }
}

impl Scores {
    /// A statistic of every score that there is, of several sources with the same weight; counts are sums.
    pub(super) fn summary(all: &[&Self], statistic: fn(&[f64]) -> Option<f64>) -> Self {
        let of = |score: &dyn Fn(&Self) -> Option<f64>| {
            let found: Vec<f64> = all.iter().filter_map(|scores| score(scores)).collect();
            statistic(&found)
        };
        let errors = |errors: fn(&Self) -> Option<Errors>| {
            Some(Errors {
                runs: all
                    .iter()
                    .filter_map(|it| errors(it))
                    .map(|it| it.runs)
                    .sum(),
                mean: of(&|it| Some(errors(it)?.mean))?,
                median: of(&|it| Some(errors(it)?.median))?,
                bias: of(&|it| Some(errors(it)?.bias))?,
                spread: of(&|it| Some(errors(it)?.spread))?,
            })
        };
        let risks = all.first().map_or(0, |scores| scores.picks.len());
        let picks = |index: usize| {
            let found = || all.iter().filter_map(move |it| it.picks[index]);
            let share = |share: fn(&Picks) -> f64| of(&|it| it.picks[index].as_ref().map(share));
            Some(Picks {
                max_oom_risk: found().next()?.max_oom_risk,
                groups: found().map(|it| it.groups).sum(),
                solver: share(|it| it.solver)?,
                top_three: share(|it| it.top_three)?,
                rule_of_thumb: share(|it| it.rule_of_thumb)?,
                random: share(|it| it.random)?,
                ran_out_of_memory: found().map(|it| it.ran_out_of_memory).sum(),
                nothing_fits: found().map(|it| it.nothing_fits).sum(),
            })
        };
        let mut verdicts = Verdicts::default();
        for scores in all {
            verdicts.add(scores.verdicts);
        }
        Self {
            verdicts,
            mfu: errors(|it| it.mfu),
            time: errors(|it| it.time),
            within_interval: of(&|it| it.within_interval),
            rank_in_group: of(&|it| it.rank_in_group),
            rank: of(&|it| it.rank),
            peak: errors(|it| it.peak),
            picks: (0..risks).map(picks).collect(),
        }
    }
}
