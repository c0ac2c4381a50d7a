//! Arguments that say what is to be best, and what a layout has to reach.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use parlayout::instance::Instance;
use parlayout::planner::objective::{self, Goal, Objective};
use parlayout::quantity::{Mfu, Seconds};

#[derive(Debug, Args)]
#[command(next_help_heading = "The objective")]
pub(crate) struct GoalArguments {
    /// What is to be best. On a fixed number of GPUs the highest MFU is the least step time.
    #[arg(long, value_name = "NAME")]
    objective: Option<ObjectiveChoice>,
    /// Longest time of a step, or of the run with --tokens or --steps: 30s, 45min, 2h, 21d.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Seconds>,
    /// Tokens of the run: 300B, 15T, or digits.
    #[arg(long, value_name = "TOKENS", value_parser = count, conflicts_with = "steps")]
    tokens: Option<u64>,
    /// Optimizer steps of the run.
    #[arg(long, value_name = "STEPS", value_parser = count)]
    steps: Option<u64>,
    /// Least model FLOP utilisation (a share, 0 to 1).
    #[arg(long, value_name = "SHARE", value_parser = share)]
    at_least_mfu: Option<Mfu>,
    /// Fewest GPUs to try for `gpu-hours` and `fewest-gpus`; 1 unless named.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    gpus_from: Option<u32>,
    /// Most GPUs to try for `gpu-hours` and `fewest-gpus`; the instance's unless named.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    gpus_to: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ObjectiveChoice {
    /// The highest model FLOP utilisation on the instance's GPUs.
    Mfu,
    /// The least step time on the instance's GPUs; the same layout.
    StepTime,
    /// The least GPU time, the number of GPUs open.
    GpuHours,
    /// The fewest GPUs with a layout that keeps memory, deadline and utilisation.
    FewestGpus,
}

impl GoalArguments {
    /// What is sought, where it is more than the fastest layout.
    pub(crate) fn goal(&self, instance: &Instance) -> Result<Option<Goal>> {
        let objective = match self.objective {
            None | Some(ObjectiveChoice::Mfu) => Objective::Mfu,
            Some(ObjectiveChoice::StepTime) => Objective::StepTime,
            Some(ObjectiveChoice::GpuHours) => Objective::GpuHours,
            Some(ObjectiveChoice::FewestGpus) => Objective::FewestGpus,
        };
        let range = self.gpus_from.is_some() || self.gpus_to.is_some();
        if range && !objective.is_over_counts() {
            bail!(
                "`--gpus-from` and `--gpus-to` need an open number of GPUs\nhint: add `--objective \
                 gpu-hours` or `--objective fewest-gpus`"
            );
        }
        let gpus = instance.job.cluster.gpus;
        let counts = if objective.is_over_counts() {
            counts(instance, self.gpus_from, self.gpus_to, gpus)?
        } else {
            vec![gpus]
        };
        let steps = self.steps.or_else(|| {
            let tokens = instance.job.workload.tokens();
            self.tokens.map(|all| all.div_ceil(tokens))
        });
        let plain = self.objective.is_none()
            && self.deadline.is_none()
            && self.at_least_mfu.is_none()
            && steps.is_none();
        Ok((!plain).then_some(Goal {
            objective,
            deadline: self.deadline,
            at_least_mfu: self.at_least_mfu,
            steps,
            counts,
        }))
    }
}

/// The numbers of GPUs between the ends that are named, else 1 and `most`.
pub(crate) fn counts(
    instance: &Instance,
    from: Option<u32>,
    to: Option<u32>,
    most: u32,
) -> Result<Vec<u32>> {
    let (from, to) = (from.unwrap_or(1), to.unwrap_or(most));
    if from > to {
        let hint = "lower `--gpus-from` or raise `--gpus-to`";
        bail!("no number of GPUs is at least `{from}` and at most `{to}`\nhint: {hint}");
    }
    Ok(objective::counts(&instance.job.cluster, from, to))
}

/// Units of a deadline, in seconds.
const UNITS: [(&str, f64); 6] = [
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

fn duration(text: &str) -> Result<Seconds, String> {
    let seconds = amount(text, &UNITS).filter(|seconds| *seconds > 0.0 && *seconds < 1e12);
    seconds
        .map(Seconds::new)
        .ok_or_else(|| format!("`{text}` is not a time: write a number and `s`, `min`, `h` or `d`"))
}

/// Multiples of a count.
const MULTIPLES: [(&str, f64); 5] = [("", 1.0), ("K", 1e3), ("M", 1e6), ("B", 1e9), ("T", 1e12)];

fn count(text: &str) -> Result<u64, String> {
    let is_count = |count: &f64| (1.0..=1e18).contains(count) && count.fract() == 0.0;
    let count = amount(text, &MULTIPLES).filter(is_count);
    count.map(|count| count as u64).ok_or_else(|| {
        format!(
            "`{text}` is not a count: write digits, with `K`, `M`, `B` or `T` for thousands to trillions"
        )
    })
}

/// A number times the unit that follows it.
fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = digits.trim().replace(['_', ','], "").parse().ok()?;
    let mut units = units.iter();
    let (_, factor) = units.find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    Some(number * factor)
}

fn share(text: &str) -> Result<Mfu, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(Mfu::new(share)),
        _ => Err(format!(
            "`{text}` is not a share between 0 and 1, such as 0.4"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("30s"), Ok(Seconds::new(30.0)));
        assert_eq!(duration("1.5 h"), Ok(Seconds::new(5400.0)));
        assert_eq!(duration("45min"), Ok(Seconds::new(2700.0)));
        for bad in ["30", "s", "-1s", "0s", "2 fortnights", "nan s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_may_be_short() {
        assert_eq!(count("15T"), Ok(15_000_000_000_000));
        assert_eq!(count("0.3b"), Ok(300_000_000));
        assert_eq!(count("1_000"), Ok(1000));
        for bad in ["", "x", "0", "1.5", "3Q", "-2"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }
}
