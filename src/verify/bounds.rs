//! Lower bounds of the objective of one combination, derived here and stated in `docs/certificate.md`.

use super::budget::{Budget, TooLarge};
use super::problem::{Problem, Way};
use super::tables::{Table, tables};

fn ceil_div(numerator: i64, denominator: i64) -> i64 {
    -(-numerator).div_euclid(denominator)
}

/// The least that the largest of `n_s each + extra_s` can be: at least the mean, at least what the
/// stage with the most layers has, at least what each stage has with its fewest layers.
fn balanced(problem: &Problem, each: i64, extra: impl Fn(usize) -> i64) -> i64 {
    let stages = 0..problem.stages();
    let count = problem.stages() as i64;
    let sum: i64 = stages.clone().map(&extra).sum();
    let mean = ceil_div(problem.layers * each + sum, count);
    let least = stages.clone().map(&extra).min().unwrap_or(0);
    let fullest = ceil_div(problem.layers, count) * each + least;
    let forced = stages.map(|stage| problem.windows[stage].0 * each + extra(stage));
    mean.max(fullest).max(forced.max().unwrap_or(0))
}

/// The least time of the slowest stage without recomputation but what every layer must do.
fn balanced_time(problem: &Problem, recompute: i64) -> i64 {
    balanced(problem, problem.units.layer_time + recompute, |stage| {
        problem.units.stages[stage].extra_time
    })
}

/// The least delta of the largest stage.
fn balanced_delta(problem: &Problem) -> i64 {
    balanced(problem, problem.units.layer_delta, |stage| {
        problem.units.stages[stage].extra_delta
    })
}

/// `balance`: perfect balance, and no recomputation but where the one permitted way prescribes it for
/// every layer (`layout-choice`).
pub(super) fn balance(problem: &Problem, prescribed: Option<usize>) -> i64 {
    let recompute = prescribed.map_or(0, |mode| problem.units.recompute_time[mode]);
    problem.objective(
        balanced_time(problem, recompute),
        problem.work() + problem.layers * recompute,
        balanced_delta(problem),
    )
}

/// `bottleneck`: the least time of the slowest stage, the least sum of the times of all stages and the
/// least delta, each over all distributions that fit with any mixture of the permitted modes.
pub(super) fn bottleneck(problem: &Problem, budget: &Budget) -> Result<i64, TooLarge> {
    let tables = tables(problem, Way::Mix, budget)?;
    let slowest = slowest(problem, &tables);
    let extra = least_extra(problem, &tables, budget)?;
    Ok(problem.objective(slowest, problem.work() + extra, balanced_delta(problem)))
}

/// `min max_s T_s(n_s)`: the least time within which the stages can hold all layers.
pub(super) fn slowest(problem: &Problem, tables: &[Table]) -> i64 {
    let mut times: Vec<i64> = tables
        .iter()
        .flat_map(|table| table.rows.iter().map(|row| row.time))
        .collect();
    times.sort_unstable();
    let first = times.partition_point(|&time| !problem.can_spread(&within(tables, time)));
    times.get(first).copied().unwrap_or(i64::MAX >> 2)
}

/// The most layers of each stage within `time`.
pub(super) fn within(tables: &[Table], time: i64) -> Vec<i64> {
    let most = tables.iter().map(|table| {
        let count = table.rows.partition_point(|row| row.time <= time);
        table.fewest + count as i64 - 1
    });
    most.collect()
}

/// `min sum_s R_s(n_s)`: the least time of recomputing over all distributions.
fn least_extra(problem: &Problem, tables: &[Table], budget: &Budget) -> Result<i64, TooLarge> {
    let free: Vec<i64> = tables
        .iter()
        .map(|table| {
            let count = table.rows.partition_point(|row| row.recomputed.extra == 0);
            table.fewest + count as i64 - 1
        })
        .collect();
    if problem.can_spread(&free) {
        return Ok(0);
    }
    if problem.equal_middle {
        return least_extra_equal(problem, tables, budget);
    }
    // least[l]: of the stages so far, with l layers.
    let width = problem.layers as usize + 1;
    let mut least = vec![i64::MAX; width];
    least[0] = 0;
    for table in tables {
        budget.spend((width * table.rows.len()) as u64)?;
        let mut next = vec![i64::MAX; width];
        for (layers, &so_far) in least.iter().enumerate() {
            if so_far == i64::MAX {
                continue;
            }
            for (more, row) in table.rows.iter().enumerate() {
                let all = layers + table.fewest as usize + more;
                if all >= width {
                    break;
                }
                next[all] = next[all].min(so_far + row.recomputed.extra);
            }
        }
        least = next;
    }
    Ok(least[width - 1])
}

fn least_extra_equal(
    problem: &Problem,
    tables: &[Table],
    budget: &Budget,
) -> Result<i64, TooLarge> {
    let last = problem.stages() - 1;
    let most: Vec<i64> = tables.iter().map(Table::most).collect();
    let extra = |stage: usize, layers: i64| tables[stage].row(layers).recomputed.extra;
    let mut smallest = i64::MAX;
    for middle in problem.middles(&most) {
        let between: i64 = (1..last).map(|stage| extra(stage, middle)).sum();
        let both = problem.layers - middle * (last as i64 - 1);
        let first = problem.windows[0].0.max(both - most[last]);
        let first = first..=most[0].min(both - problem.windows[last].0);
        budget.spend(first.clone().count() as u64 + last as u64)?;
        let ends = first.map(|first| extra(0, first) + extra(last, both - first));
        smallest = ends.fold(smallest, |smallest, ends| smallest.min(ends + between));
    }
    Ok(smallest)
}
