//! Enumeration, dynamic program, program and bounds agree.

use proptest::prelude::*;

use super::super::bounds::{Scratch, balance_bound, bottleneck_bound, fits};
use super::super::oracle::cell_oracle;
use super::super::recompute::{least_recompute, memory};
use super::random::{Size, data, data_with_rows, large_data};
use super::*;
use crate::solve::{Outcome, SolverOptions};

const ONE_MODE: Size = Size {
    layers: 6,
    stages: 4,
    modes: 1,
    cells: 4,
};

const MANY_MODES: Size = Size {
    layers: 4,
    stages: 3,
    modes: 3,
    cells: 2,
};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20_231_109),
        ..ProptestConfig::default()
    }
}

fn solve(data: &Data) -> Report {
    super::solve(data, &SolverOptions::default()).unwrap()
}

/// The program gives the canonical plan, and every bound holds.
fn check(data: &Data) -> Result<(), TestCaseError> {
    let report = solve(data);
    let expected = oracle(data);
    prop_assert_eq!(report.outcome.solution(), expected.as_ref());
    if expected.is_none() {
        let infeasible = matches!(report.outcome, Outcome::Infeasible { .. });
        prop_assert!(infeasible, "{:?}", report.outcome);
    }
    for (index, bound) in report.cells.iter().enumerate() {
        let best = cell_oracle(data, index).map(|plan| plan.objective);
        match *bound {
            CellBound::Infeasible | CellBound::Excluded { .. } => prop_assert_eq!(best, None),
            CellBound::Survivor { lower_bound } => {
                prop_assert!(best.is_none_or(|best| lower_bound <= best));
            }
            CellBound::Pruned { lower_bound } => {
                let objective = expected.as_ref().map(|plan| plan.objective);
                prop_assert!(best.is_none_or(|best| lower_bound <= best));
                prop_assert!(objective.is_some_and(|objective| objective < lower_bound));
            }
        }
    }
    let counts = report.counts;
    prop_assert_eq!(
        counts.infeasible + counts.excluded + counts.pruned + counts.programmed,
        data.cells.len()
    );
    Ok(())
}

/// The dynamic program, the bounds and the shortage of each cell by themselves.
fn check_cells(data: &Data) -> Result<(), TestCaseError> {
    for (index, cell) in data.cells.iter().enumerate() {
        let best = cell_oracle(data, index);
        prop_assert_eq!(&cell_optimum(cell, index, data.layers), &best);
        prop_assert_eq!(
            fits(cell, data.layers, &mut Scratch::default()),
            best.is_some()
        );
        prop_assert_eq!(shortage(cell, data.layers).is_none(), best.is_some());
        let bound = bottleneck_bound(cell, data.layers);
        prop_assert_eq!(bound.is_some(), best.is_some());
        let Some(best) = best else {
            if let Some(Shortage::Memory { amount, .. }) = shortage(cell, data.layers) {
                let with = |capacity| Cell {
                    capacity,
                    ..cell.clone()
                };
                let enough = with(cell.capacity + amount);
                prop_assert_eq!(shortage(&enough, data.layers), None);
                prop_assert!(shortage(&with(enough.capacity - 1), data.layers).is_some());
            }
            continue;
        };
        let within = |limit| cell_optimum_within(cell, index, data.layers, limit);
        prop_assert_eq!(within(best.objective), Some(best.clone()));
        prop_assert_eq!(within(best.objective - 1), None);
        prop_assert!(bound.is_some_and(|bound| bound <= best.objective));
        prop_assert!(balance_bound(cell, data.layers) <= best.objective);
        if let Some(near_even) = near_even(cell, data.layers)
            && cell.partition == Partition::Free
        {
            prop_assert!(best.objective <= near_even);
        }
    }
    Ok(())
}

/// The elimination of recomputation against all counts.
fn check_recompute(data: &Data) -> Result<(), TestCaseError> {
    for cell in data
        .cells
        .iter()
        .filter(|cell| cell.recompute == RecomputeRule::Free)
    {
        for (stage, layers) in cell
            .stages
            .iter()
            .flat_map(|stage| (0..=data.layers).map(move |layers| (stage, layers)))
        {
            let modes = cell.modes.len();
            let all = counts_up_to(modes, layers)
                .into_iter()
                .filter_map(|counts| {
                    let memory = memory(cell, stage, layers, &counts);
                    let pairs = cell.modes.iter().zip(counts);
                    let time: i64 = pairs.map(|(mode, count)| mode.extra_time * count).sum();
                    (memory <= cell.capacity).then_some((time, memory, counts))
                });
            let found = least_recompute(cell, stage, layers);
            let found = found.map(|found| (found.extra_time, found.memory, found.counts));
            prop_assert_eq!(found, all.min());
        }
    }
    Ok(())
}

fn counts_up_to(modes: usize, layers: i64) -> Vec<Counts> {
    let limit = |mode: usize| if mode < modes { layers } else { 0 };
    let mut all = Vec::new();
    for first in 0..=limit(0) {
        for second in 0..=limit(1) {
            for third in 0..=limit(2) {
                if first + second + third <= layers {
                    all.push([first, second, third]);
                }
            }
        }
    }
    all
}

/// The best plans of the cells, or of classes of them, in order.
fn check_top(data: &Data, count: usize, classes: usize) -> Result<(), TestCaseError> {
    let rank = |plan: &Plan| (plan.objective, data.cells[plan.cell].rank, plan.cell);
    let mut all: Vec<Plan> = (0..data.cells.len())
        .filter_map(|index| cell_oracle(data, index))
        .collect();
    all.sort_by_key(rank);
    let mut seen = Vec::new();
    all.retain(|plan| {
        let new = !seen.contains(&(plan.cell % classes));
        seen.push(plan.cell % classes);
        new
    });
    all.truncate(count);
    let outcome = top(
        data,
        count,
        |cell| cell % classes,
        &SolverOptions::default(),
    )
    .unwrap();
    prop_assert_eq!(outcome.solution().cloned().unwrap_or_default(), all);
    Ok(())
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn the_program_agrees_with_enumeration(data in data(ONE_MODE)) {
        check(&data)?;
    }

    #[test]
    fn cells_agree_with_enumeration(data in data(ONE_MODE)) {
        check_cells(&data)?;
    }

    #[test]
    fn the_best_of_several_cells(data in data(ONE_MODE), count in 1_usize..4, classes in 1_usize..5) {
        check_top(&data, count, classes)?;
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn the_program_agrees_with_many_modes(data in data(MANY_MODES)) {
        check(&data)?;
        check_cells(&data)?;
        check_recompute(&data)?;
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn the_program_agrees_under_side_rows(data in data_with_rows(ONE_MODE)) {
        check(&data)?;
    }

    #[test]
    fn the_best_of_several_cells_under_side_rows(data in data_with_rows(ONE_MODE), count in 1_usize..4) {
        check_top(&data, count, usize::MAX)?;
    }

    #[test]
    fn the_program_agrees_under_side_rows_with_many_modes(data in data_with_rows(MANY_MODES)) {
        check(&data)?;
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn the_program_agrees_with_the_dynamic_program(data in large_data()) {
        let report = solve(&data);
        let cells = data.cells.iter().enumerate();
        let plans = cells.filter_map(|(index, cell)| cell_optimum(cell, index, data.layers));
        let best = plans.min_by_key(|plan| (plan.objective, plan.cell));
        prop_assert_eq!(report.outcome.solution(), best.as_ref());
    }
}
