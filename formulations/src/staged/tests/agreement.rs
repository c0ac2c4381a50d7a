//! Enumeration, dynamic program, program and bounds agree.

use proptest::prelude::*;

use crate::deadline::Deadline;

use super::super::bounds::{Scratch, balance_bound, bottleneck_bound};
use super::super::recompute::{least_recompute, memory};
use super::enumeration::{all_counts, group_oracle, oracle};
use super::random::{Size, data, data_with_rows, large_data};
use super::*;
use crate::solve::{Outcome, SolverOptions};

const ONE_MODE: Size = Size {
    layers: 6,
    stages: 4,
    modes: 1,
    groups: 4,
    kinds: 1,
};

const MANY_MODES: Size = Size {
    layers: 4,
    stages: 3,
    modes: 3,
    groups: 2,
    kinds: 1,
};

const KINDS: Size = Size {
    layers: 5,
    stages: 3,
    modes: 2,
    groups: 3,
    kinds: 3,
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
    super::solve(data, &SolverOptions::default(), Pruning::ByBounds).unwrap()
}

/// The program gives the canonical plan, over all groups together and over each alone.
fn check(data: &Data) -> Result<(), TestCaseError> {
    let report = solve(data);
    let expected = oracle(data);
    prop_assert_eq!(report.outcome.solution(), expected.as_ref());
    if expected.is_none() {
        let infeasible = matches!(report.outcome, Outcome::Infeasible { .. });
        prop_assert!(infeasible, "{:?}", report.outcome);
    }
    let one_by_one = super::solve(data, &SolverOptions::default(), Pruning::None).unwrap();
    prop_assert_eq!(one_by_one.outcome.solution(), expected.as_ref());
    Ok(())
}

/// The dynamic program, and for layers of one kind the bounds and the shortage, of each group by itself.
fn check_groups(data: &Data) -> Result<(), TestCaseError> {
    let (layers, count) = (&data.layers, data.layers.count());
    for (index, group) in data.groups.iter().enumerate() {
        let best = group_oracle(data, index);
        prop_assert_eq!(&optimum(group, index, layers), &best);
        if let Some(best) = &best {
            let within = |limit| optimum_within(group, index, layers, limit, Deadline::NEVER);
            prop_assert_eq!(within(best.objective), Ok(Some(best.clone())));
            prop_assert_eq!(within(best.objective - 1), Ok(None));
        }
        if group.kinds.len() > 1 {
            continue;
        }
        prop_assert_eq!(fits(group, count), best.is_some());
        prop_assert_eq!(shortage(group, count).is_none(), best.is_some());
        let bound = bottleneck_bound(group, count, &mut Scratch::default());
        prop_assert_eq!(bound.is_some(), best.is_some());
        let Some(best) = best else {
            if let Some(Shortage::Memory { amount, .. }) = shortage(group, count) {
                let with = |capacity| Group {
                    capacity,
                    ..group.clone()
                };
                let enough = with(group.capacity + amount);
                prop_assert_eq!(shortage(&enough, count), None);
                prop_assert!(shortage(&with(enough.capacity - 1), count).is_some());
            }
            continue;
        };
        prop_assert!(bound.is_some_and(|bound| bound <= best.objective));
        prop_assert!(balance_bound(group, count) <= best.objective);
        if let Some(near_even) = near_even(group, count)
            && group.partition == Partition::Free
        {
            prop_assert!(best.objective <= near_even);
        }
    }
    Ok(())
}

/// The least recomputation against all counts.
fn check_recompute(data: &Data) -> Result<(), TestCaseError> {
    for group in data
        .groups
        .iter()
        .filter(|group| group.recompute == RecomputeRule::Free)
    {
        for (stage, end) in group
            .stages
            .iter()
            .flat_map(|stage| (0..=data.layers.count()).map(move |end| (stage, end)))
        {
            let layers = data.layers.between(0, end as usize);
            let all = all_counts(group, &layers).into_iter().filter_map(|counts| {
                let memory = memory(group, stage, &layers, &counts);
                let pairs = group.modes.iter().zip(counts);
                let time: i64 = pairs.map(|(mode, count)| mode.extra_time * count).sum();
                (memory <= group.capacity).then_some((time, memory, counts))
            });
            let found = least_recompute(group, stage, &layers);
            let found = found.map(|found| (found.extra_time, found.memory, found.counts));
            prop_assert_eq!(found, all.min());
        }
    }
    Ok(())
}

/// The best plans of the groups, or of classes of them, in order.
fn check_top(data: &Data, count: usize, classes: usize) -> Result<(), TestCaseError> {
    let rank = |plan: &Plan| (plan.objective, data.groups[plan.group].rank, plan.group);
    let mut all: Vec<Plan> = (0..data.groups.len())
        .filter_map(|index| group_oracle(data, index))
        .collect();
    all.sort_by_key(rank);
    let mut seen = Vec::new();
    all.retain(|plan| {
        let new = !seen.contains(&(plan.group % classes));
        seen.push(plan.group % classes);
        new
    });
    all.truncate(count);
    let wanted = Wanted {
        classes: count,
        slack: 0,
    };
    let outcome = top(
        data,
        wanted,
        |group| group % classes,
        &SolverOptions::default(),
    )
    .unwrap();
    let mut found = outcome.solution().cloned().unwrap_or_default();
    let mut seen = Vec::new();
    found.retain(|plan| {
        let new = !seen.contains(&(plan.group % classes));
        seen.push(plan.group % classes);
        new
    });
    found.truncate(count);
    prop_assert_eq!(found, all);
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
        check_groups(&data)?;
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
        check_groups(&data)?;
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
    #![proptest_config(config(300))]

    #[test]
    fn several_kinds_agree_with_enumeration(data in data(KINDS)) {
        check(&data)?;
        check_groups(&data)?;
        check_recompute(&data)?;
    }

    #[test]
    fn several_kinds_agree_under_side_rows(data in data_with_rows(Size { modes: 1, ..KINDS })) {
        check(&data)?;
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn the_program_agrees_with_the_dynamic_program(data in large_data()) {
        let report = solve(&data);
        let groups = data.groups.iter().enumerate();
        let plans = groups.filter_map(|(index, group)| optimum(group, index, &data.layers));
        let best = plans.min_by_key(|plan| (plan.objective, plan.group));
        prop_assert_eq!(report.outcome.solution(), best.as_ref());
    }
}
