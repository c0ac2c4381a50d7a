//! Small instances whose answers can be seen.

use std::sync::Arc;

use super::enumeration::oracle;
use super::*;
use crate::deadline::Deadline;
use crate::model::Sense;
use crate::solve::{Outcome, SolverOptions};

fn stages(extra_times: &[i64]) -> Arc<[Stage]> {
    let count = extra_times.len() as i64;
    (extra_times.iter().zip(0..))
        .map(|(&extra_time, index)| Stage {
            extra_time,
            extra_delta: 0,
            fixed_memory: 0,
            in_flight: count - index,
            lower_layers: 1,
            upper_layers: 100,
        })
        .collect()
}

/// Heavy ends, ten units of time a layer, room for everything.
fn group(extra_times: &[i64]) -> Group {
    Group {
        values: Vec::new(),
        stages: stages(extra_times),
        weights: Weights {
            slowest: 5,
            total: 1,
            delta: 1,
        },
        constant: 0,
        kinds: vec![Kind {
            time: 10,
            delta: 2,
            memory: 1,
            activation: 10,
        }],
        modes: vec![RecomputeMode {
            kind: 0,
            extra_time: 3,
            activation: 2,
            workspace: 1,
        }],
        recompute: RecomputeRule::Free,
        partition: Partition::Free,
        capacity: 1000,
        rank: 0,
    }
}

fn data(layers: i64, groups: Vec<Group>) -> Data {
    Data {
        layers: Layers::alike(layers),
        groups,
        ..Data::default()
    }
}

fn row(name: &str, layers: &[(StageIndex, i64)], sense: Sense, right: i64) -> SideRow {
    let layers = layers.iter();
    SideRow {
        name: name.into(),
        groups: Vec::new(),
        layers: layers
            .map(|&(stage, coefficient)| StageTerm { stage, coefficient })
            .collect(),
        recomputed: 0,
        sense,
        right,
    }
}

fn solve(data: &Data) -> Report {
    super::solve(data, &SolverOptions::default(), Pruning::ByBounds).unwrap()
}

fn check(data: &Data, layers: &[i64], recomputed: &[i64], objective: i64) {
    let report = solve(data);
    assert!(matches!(report.outcome, Outcome::Optimal { .. }));
    let plan = report.outcome.solution().unwrap();
    let counts: Vec<i64> = plan.recomputed.iter().map(|counts| counts[0]).collect();
    assert_eq!(
        (&plan.layers[..], &counts[..], plan.objective),
        (layers, recomputed, objective)
    );
    assert_eq!(oracle(data).as_ref(), Some(plan));
}

#[test]
fn heavy_ends_get_fewer_layers() {
    // Slowest 40 (the middle), in total 140 + 16, largest delta 8.
    check(
        &data(14, vec![group(&[7, 0, 0, 9])]),
        &[3, 4, 4, 3],
        &[0; 4],
        5 * 40 + 156 + 8,
    );
}

#[test]
fn even_layers_where_nothing_else_matters() {
    check(
        &data(6, vec![group(&[0, 0, 0])]),
        &[2, 2, 2],
        &[0; 3],
        5 * 20 + 60 + 4,
    );
}

#[test]
fn ties_go_to_the_most_even_and_earliest_layers() {
    // Seven layers on three stages: some stage has three, the first if it is as good as another.
    check(
        &data(7, vec![group(&[0, 0, 0])]),
        &[3, 2, 2],
        &[0; 3],
        5 * 30 + 70 + 6,
    );
}

#[test]
fn layers_are_recomputed_where_they_must() {
    // The first stage holds 3 units a layer: 2 + 60 without recomputing, 24 less for a layer with it.
    let mut tight = group(&[0, 0, 0]);
    tight.capacity = 50;
    check(
        &data(6, vec![tight.clone()]),
        &[2, 2, 2],
        &[1, 0, 0],
        5 * 23 + 63 + 4,
    );
    // One unit more than fits with one recomputed layer and the workspace.
    tight.capacity = 38;
    check(
        &data(6, vec![tight]),
        &[2, 2, 2],
        &[2, 1, 0],
        5 * 26 + 69 + 4,
    );
}

#[test]
fn equal_middles() {
    let mut equal = group(&[7, 0, 0, 9]);
    equal.partition = Partition::EqualMiddle;
    check(
        &data(13, vec![equal]),
        &[3, 4, 4, 2],
        &[0; 4],
        5 * 40 + 146 + 8,
    );
}

#[test]
fn side_rows_hold() {
    let mut instance = data(14, vec![group(&[7, 0, 0, 9])]);
    let (first, last) = (StageIndex::FromFirst(0), StageIndex::FromLast(0));
    instance.side_rows = vec![row("light_start", &[(first, 1)], Sense::AtMost, 2)];
    check(&instance, &[2, 4, 4, 4], &[0; 4], 5 * 49 + 156 + 8);
    instance.side_rows = vec![row(
        "light_end",
        &[(first, 1), (last, -1)],
        Sense::AtLeast,
        2,
    )];
    check(&instance, &[4, 4, 4, 2], &[0; 4], 5 * 47 + 156 + 8);
    instance.side_rows = vec![row(
        "no_such_stage",
        &[(StageIndex::FromFirst(9), 1)],
        Sense::AtLeast,
        1,
    )];
    assert!(matches!(
        solve(&instance).outcome,
        Outcome::Infeasible { .. }
    ));
}

#[test]
fn rows_limit_recomputed_layers() {
    let mut tight = group(&[0, 0, 0]);
    tight.capacity = 50;
    let mut instance = data(6, vec![tight]);
    instance.side_rows = vec![SideRow {
        recomputed: 1,
        ..row("recomputed", &[], Sense::AtMost, 0)
    }];
    // The first stage keeps one layer and recomputes none.
    check(&instance, &[1, 2, 3], &[0; 3], 5 * 30 + 60 + 6);
}

#[test]
fn the_lower_rank_wins_a_tie() {
    let mut groups = vec![group(&[0, 0, 0]), group(&[0, 0, 0]), group(&[0, 0, 0])];
    for (group, rank) in groups.iter_mut().zip([2, 1, 1]) {
        group.rank = rank;
    }
    let instance = data(6, groups);
    assert_eq!(solve(&instance).outcome.solution().unwrap().group, 1);
    let wanted = Wanted {
        classes: 5,
        slack: 0,
    };
    let best = top(&instance, wanted, |group| group, &SolverOptions::default()).unwrap();
    let groups: Vec<usize> = best
        .solution()
        .unwrap()
        .iter()
        .map(|plan| plan.group)
        .collect();
    assert_eq!(groups, [1, 2, 0]);
}

#[test]
fn shortages_come_with_stage_and_amount() {
    let mut small = group(&[0, 0, 0]);
    small.capacity = 10;
    // One, two and three layers, all recomputed: 1 + 6 + 1, 2 + 8 + 1 and 3 + 6 + 1.
    let expected = Shortage::Memory {
        stage: 1,
        amount: 1,
    };
    assert_eq!(shortage(&small, 6), Some(expected));
    small.capacity = 11;
    assert_eq!(shortage(&small, 6), None);
    Arc::make_mut(&mut small.stages)[1].upper_layers = 0;
    assert_eq!(shortage(&small, 6), Some(Shortage::Layers));
}

#[test]
fn nothing_fits() {
    let mut small = group(&[0, 0, 0]);
    small.capacity = 10;
    let report = solve(&data(6, vec![small]));
    assert!(matches!(report.outcome, Outcome::Infeasible { .. }));
    assert!(matches!(
        solve(&data(6, Vec::new())).outcome,
        Outcome::Infeasible { .. }
    ));
}

#[test]
fn an_end_at_any_step_leaves_an_honest_bound() {
    let groups = vec![
        group(&[7, 0, 0, 9]),
        group(&[8, 0, 0, 8]),
        group(&[3, 0, 9]),
    ];
    let ordered = |(at_most, coupled): (i64, bool)| {
        let mut instance = data(14, groups.clone());
        let term = |from_first: usize| StageTerm {
            stage: StageIndex::FromFirst(from_first),
            coefficient: 1,
        };
        instance.side_rows.push(SideRow {
            name: "ends".into(),
            groups: vec![0; 3],
            layers: vec![term(0), term(1), term(2)],
            recomputed: i64::from(coupled),
            sense: Sense::AtMost,
            right: at_most,
        });
        instance
    };
    let others = [(100, false), (9, false), (9, true)].map(ordered);
    for instance in [data(14, groups.clone())].into_iter().chain(others) {
        let best = solve(&instance).outcome.solution().map(|it| it.objective);
        let mut kinds = [0; 3];
        for most in 0.. {
            let (deadline, looks) = Deadline::after_looks(most);
            let options = SolverOptions {
                deadline,
                ..SolverOptions::default()
            };
            let report = super::solve(&instance, &options, Pruning::ByBounds).unwrap();
            let late = looks.taken().saturating_sub(most);
            // Whoever sees that the time is over does nothing but go home.
            assert!(late <= 40, "{late} looks after the end");
            match report.outcome {
                Outcome::Optimal { solution, .. } => {
                    assert_eq!(Some(solution.objective), best);
                    kinds[0] += 1;
                }
                Outcome::Infeasible { .. } => assert_eq!(best, None),
                Outcome::Feasible {
                    solution,
                    bound,
                    gap,
                    ..
                } => {
                    let best = best.unwrap();
                    assert!(bound <= best as f64 && best <= solution.objective);
                    assert!((solution.objective as f64 - bound - gap).abs() < 1e-9);
                    kinds[1] += 1;
                }
                Outcome::Unknown { bound, .. } => {
                    assert!(best.is_none_or(|best| bound.unwrap() <= best as f64));
                    kinds[2] += 1;
                }
            }
            if late == 0 {
                break;
            }
        }
        assert!(
            best.is_none() || kinds.iter().all(|&count| count > 0),
            "{kinds:?}"
        );
    }
}

#[test]
fn the_program_as_text() {
    let mut tight = group(&[7, 0, 9]);
    tight.capacity = 50;
    let mut other = group(&[12, 9]);
    other.modes.clear();
    other.weights.slowest = 2;
    let mut instance = data(6, vec![tight, other]);
    let ends = [(StageIndex::FromFirst(0), -1), (StageIndex::FromLast(0), 1)];
    instance.side_rows = vec![SideRow {
        recomputed: 1,
        ..row("heavy_start", &ends, Sense::AtMost, -1)
    }];
    insta::with_settings!({ snapshot_path => "../../../../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("formulations__staged.lp", solve(&instance).model.unwrap().to_string());
    });
}

#[test]
fn data_that_cannot_be_used_is_refused() {
    let check = |change: fn(&mut Data), text: &str| {
        let mut instance = data(6, vec![group(&[0, 0, 0])]);
        instance.side_rows = vec![row("ends", &[], Sense::AtMost, 1)];
        change(&mut instance);
        let error =
            super::solve(&instance, &SolverOptions::default(), Pruning::ByBounds).unwrap_err();
        assert_eq!(error.to_string(), text);
    };
    check(
        |data| data.groups[0].stages = Arc::new([]),
        "`group 0` cannot be used: no stage",
    );
    check(
        |data| data.groups[0].kinds[0].time = -1,
        "`group 0` cannot be used: a weight or a cost of a layer is negative",
    );
    check(
        |data| data.groups[0].capacity = i64::MAX,
        "`group 0` cannot be used: numbers too large; take coarser units",
    );
    check(
        |data| data.groups[0].recompute = RecomputeRule::AllLayers { mode: 1 },
        "`group 0` cannot be used: its recompute rule names a mode that it does not have",
    );
    check(
        |data| data.side_rows[0].groups = vec![1, 2],
        "`ends` cannot be used: not one coefficient for each group",
    );
    check(
        |data| (data.side_rows[0].recomputed, data.side_rows[0].sense) = (1, Sense::AtLeast),
        "`ends` cannot be used: a row on recomputed layers can only limit them from above, and only where \
         a group has one recompute mode",
    );
}

#[test]
fn a_row_without_a_solution_in_integers_excludes_a_cell() {
    let check = |[first, last]: [i64; 2], recomputed, sense, right, expected| {
        let ends = [
            (StageIndex::FromFirst(0), first),
            (StageIndex::FromLast(0), last),
        ];
        let mut of_all_layers = group(&[5, 0, 5]);
        of_all_layers.recompute = RecomputeRule::AllLayers { mode: 0 };
        let mut data = data(8, vec![of_all_layers]);
        data.side_rows = vec![SideRow {
            recomputed,
            ..row("row", &ends, sense, right)
        }];
        let excluded = matches!(solve(&data).outcome, Outcome::Infeasible { .. });
        assert_eq!(excluded, expected, "{:?}", data.side_rows);
    };
    check([2, 2], 0, Sense::Equal, 7, true);
    check([2, 2], 0, Sense::Equal, 6, false);
    check([2, 2], 1, Sense::Equal, 12, false);
    check([0, 0], 2, Sense::Equal, 3, true);
    check([1000, -1000], 0, Sense::Equal, 999, true);
    // The middle stage has one of the eight layers.
    check([1, 1], 0, Sense::AtLeast, 8, true);
    check([1, 1], 0, Sense::AtLeast, 7, false);
    check([1, 1], 0, Sense::AtMost, 1, true);
    check([1, 1], 0, Sense::AtMost, 2, false);
}
