//! Figures of merit, each under its names in CSV, in narrow and in wide tables.

use crate::laboratory::backtest::{Errors, HeldOut, Picks, Scores};

/// Names of a figure in CSV, in a narrow and in a wide table, empty where it has none, and how tables
/// show it. The name `/` in a wide table puts it into the cell before.
type Names = (&'static str, &'static str, &'static str, fn(f64) -> String);

/// Figures of merit of `T`.
pub(super) struct Metrics<T: 'static> {
    names: &'static [Names],
    values: fn(&T) -> Vec<Option<f64>>,
}

/// Out-of-memory verdicts.
pub(super) const VERDICTS: Metrics<Scores> = Metrics {
    names: &[
        ("verdict_runs", "runs", "verdicts", count),
        ("verdicts_right", "", "", count),
        ("", "right %", "right %", percent),
        (
            "false_fits",
            "false fits",
            "false fits / OOMs / none",
            count,
        ),
        ("false_ooms", "false OOMs", "/", count),
        ("no_verdict", "no verdict", "/", count),
    ],
    values: |scores| {
        let it = &scores.verdicts;
        let counts = [it.runs, it.right, it.false_fits, it.false_ooms, it.none];
        let [runs, right, fits, ooms, none] = counts.map(|count| Some(count as f64));
        vec![runs, right, it.share(), fits, ooms, none]
    },
};

/// Predicted utilisation.
pub(super) const UTILISATION: Metrics<Scores> = Metrics {
    names: &[
        ("mfu_runs", "runs", "timed", count),
        ("mfu_error_mean", "mean", "MFU error %, mean", percent),
        ("mfu_error_median", "median", "median", percent),
        ("mfu_bias", "bias", "bias", signed_percent),
        (
            "rank_correlation_in_group",
            "rank in group",
            "rank in group",
            share,
        ),
        ("rank_correlation", "rank", "rank", share),
    ],
    values: |scores| {
        let mut values = errors(scores.mfu);
        values.extend([scores.rank_in_group, scores.rank]);
        values
    },
};

/// Predicted step time.
pub(super) const TIME: Metrics<Scores> = Metrics {
    names: &[
        ("time_runs", "runs", "timed", count),
        ("time_error_mean", "mean", "time error %, mean", percent),
        ("time_error_median", "median", "median", percent),
        ("time_bias", "bias", "bias", signed_percent),
        ("time_spread", "spread", "spread", percent),
        (
            "within_interval",
            "in 80 %",
            "in 80 % interval, %",
            one_decimal,
        ),
        ("", "rank in group", "rank in group", share),
    ],
    values: |scores| {
        let mut values = errors(scores.time);
        values.extend([
            scores.time.map(|it| it.spread),
            scores.within_interval,
            scores.rank_in_group,
        ]);
        values
    },
};

/// Predicted peak memory.
pub(super) const PEAKS: Metrics<Scores> = Metrics {
    names: &[
        ("peak_runs", "runs", "", count),
        ("peak_error_mean", "mean", "", percent),
        (
            "peak_error_median",
            "median",
            "peak error %, median",
            percent,
        ),
        ("", "bias", "", signed_percent),
    ],
    values: |scores| errors(scores.peak),
};

fn errors(errors: Option<Errors>) -> Vec<Option<f64>> {
    let values = errors.map(|it| [it.runs as f64, it.mean, it.median, it.bias]);
    values.map_or(vec![None; 4], |values| values.map(Some).to_vec())
}

/// The solver's choice and what it is compared with.
pub(super) const PICKS: Metrics<Picks> = Metrics {
    names: &[
        ("max_oom_risk", "", "", share),
        ("pick_groups", "groups", "", count),
        ("pick", "solver", "pick at risk {risk}", share),
        ("pick_top_three", "top 3", "top 3", share),
        ("rule_of_thumb", "thumb", "thumb", share),
        ("random", "random", "random", share),
        ("pick_ran_out_of_memory", "OOM", "OOM / none fits", count),
        ("pick_nothing_fits", "none", "/", count),
    ],
    values: |it| {
        let [groups, out, none] =
            [it.groups, it.ran_out_of_memory, it.nothing_fits].map(|count| count as f64);
        let shares = [it.solver, it.top_three, it.rule_of_thumb, it.random];
        let values = [&[it.max_oom_risk, groups][..], &shares, &[out, none]].concat();
        values.into_iter().map(Some).collect()
    },
};

/// What calibration on a few runs makes of the others.
pub(super) const HELD_OUT: Metrics<HeldOut> = Metrics {
    names: &[
        ("", "median error of MFU, %", "", percent),
        ("", "rank correlation of MFU", "", share),
        ("", "pick", "", share),
        ("", "median error of peak memory, %", "", percent),
        ("", "out-of-memory verdicts right, %", "", one_decimal),
    ],
    values: |it| vec![it.mfu_error, it.rank, it.pick, it.peak_error, it.verdicts],
};

impl<T> Metrics<T> {
    /// The figures with their names; none has a value of nothing.
    fn figures(&self, of: Option<&T>) -> impl Iterator<Item = (&Names, Option<f64>)> {
        let none = || vec![None; self.names.len()];
        self.names.iter().zip(of.map_or_else(none, self.values))
    }

    /// Columns and values for CSV.
    pub(super) fn csv(&self, of: Option<&T>) -> (Vec<&'static str>, Vec<Option<f64>>) {
        let figures = self.figures(of).map(|(names, value)| (names.0, value));
        figures.filter(|(name, _)| !name.is_empty()).unzip()
    }

    /// Titles and cells of a narrow table.
    pub(super) fn narrow(&self, of: Option<&T>) -> (Vec<&'static str>, Vec<String>) {
        let figures = self.figures(of).filter(|(names, _)| !names.1.is_empty());
        figures
            .map(|(names, value)| (names.1, cell(names, value)))
            .unzip()
    }

    /// Titles and cells of a wide table.
    pub(super) fn wide(&self, of: Option<&T>) -> (Vec<&'static str>, Vec<String>) {
        let (mut titles, mut cells) = (Vec::new(), Vec::<String>::new());
        for (names, value) in self.figures(of).filter(|(names, _)| !names.2.is_empty()) {
            let cell = cell(names, value);
            match cells.last_mut().filter(|_| names.2 == "/") {
                Some(before) if value.is_some() => *before = format!("{before} / {cell}"),
                Some(_) => {}
                None => {
                    titles.push(names.2);
                    cells.push(cell);
                }
            }
        }
        (titles, cells)
    }
}

fn cell((.., show): &Names, value: Option<f64>) -> String {
    value.map_or_else(missing, show)
}

/// What does not apply.
pub(super) fn missing() -> String {
    "-".to_owned()
}

fn count(number: f64) -> String {
    format!("{number:.0}")
}

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// With its sign, and no negative zero.
fn signed_percent(share: f64) -> String {
    let rounded = (share * 1e4).round() / 100.0 + 0.0;
    format!("{rounded:+.2}")
}

pub(super) fn one_decimal(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn share(share: f64) -> String {
    format!("{share:.3}")
}
