//! A small shop, known by hand, and random instances against the oracle.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

fn axis(name: &str, values: &[&str]) -> Axis {
    Axis {
        name: name.into(),
        values: values.iter().map(ToString::to_string).collect(),
    }
}

fn rule(name: &str, left: LeftSide, sense: Sense, right: i64) -> Rule {
    Rule {
        name: name.into(),
        left,
        sense,
        right,
    }
}

fn term(axis: usize, value: usize, coefficient: i64) -> AxisTerm {
    AxisTerm {
        axis,
        value,
        coefficient,
    }
}

/// Two widths, two depths and a coating. The most profitable item (5) is too heavy by one unit in two
/// hundred million, the next (7) is coated though deep; of the two that share the third place the
/// first (3) wins.
fn workshop() -> Data {
    let profits = [300, 310, 320, 500, 400, 900, 500, 800];
    let items = (0..8)
        .map(|index| Item {
            choice: vec![index / 4, index / 2 % 2, index % 2],
            profit: profits[index],
        })
        .collect();
    let weights = vec![10, 20, 30, 200_000_000, 50, 200_000_001, 199_999_999, 1];
    Data {
        axes: vec![
            axis("width", &["1", "2"]),
            axis("depth", &["shallow", "deep"]),
            axis("coating", &["none", "lacquer"]),
        ],
        items,
        rules: vec![
            rule(
                "weight_capacity(0)",
                LeftSide::OverItems(weights),
                Sense::AtMost,
                200_000_000,
            ),
            rule(
                "wide_and_deep_excludes_lacquer",
                LeftSide::OverAxes(vec![term(0, 1, 1), term(1, 1, 1), term(2, 1, 1)]),
                Sense::AtMost,
                2,
            ),
        ],
    }
}

fn solve(data: &Data) -> Outcome<Solution> {
    super::solve(data, &SolverOptions::default()).unwrap()
}

#[test]
fn workshop_by_hand() {
    let expected = Solution {
        item: 3,
        profit: 500,
        bound: 500,
    };
    let outcome = solve(&workshop());
    assert!(matches!(outcome, Outcome::Optimal { .. }));
    assert_eq!(outcome.solution(), Some(&expected));
    assert_eq!(oracle(&workshop()), Some(expected));
}

#[test]
fn workshop_as_text() {
    insta::with_settings!({ snapshot_path => "../../../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("formulations__layout_choice.lp", build(&workshop()).to_string());
    });
}

#[test]
fn violations_come_with_amounts() {
    let violations = |item| violated_rules(&workshop(), item);
    assert_eq!(violations(0), []);
    assert_eq!(violations(5), [Violation { rule: 0, excess: 1 }]);
    assert_eq!(violations(7), [Violation { rule: 1, excess: 1 }]);
}

#[test]
fn infeasible_when_the_rules_clash() {
    let mut data = workshop();
    data.rules.push(rule(
        "only_heavy",
        LeftSide::OverItems(vec![0, 0, 0, 0, 0, 1, 0, 1]),
        Sense::AtLeast,
        1,
    ));
    assert!(matches!(solve(&data), Outcome::Infeasible { .. }));
    assert_eq!(oracle(&data), None);
}

#[test]
fn nothing_to_select_is_infeasible() {
    let data = Data::default();
    assert!(matches!(solve(&data), Outcome::Infeasible { .. }));
    assert_eq!(oracle(&data), None);
}

#[test]
fn data_that_contradicts_itself_is_refused() {
    let check = |change: fn(&mut Data), text: &str| {
        let mut data = workshop();
        change(&mut data);
        let error = super::solve(&data, &SolverOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), text);
    };
    check(
        |data| data.items[2].choice[1] = 2,
        "`item 2` does not fit the data: a value that its axis does not have",
    );
    check(
        |data| _ = data.items[4].choice.pop(),
        "`item 4` does not fit the data: not one value for each axis",
    );
    check(
        |data| data.rules[0].left = LeftSide::OverItems(vec![1]),
        "`weight_capacity(0)` does not fit the data: not one coefficient for each item, or a term on no \
         axis value",
    );
}

#[test]
fn a_difference_of_one_part_per_billion_is_seen() {
    let profits = [
        700_000_000,
        700_000_001,
        699_999_999,
        700_000_001,
        700_000_000,
    ];
    let data = Data {
        items: (profits.iter())
            .map(|&profit| Item {
                choice: vec![],
                profit,
            })
            .collect(),
        ..Data::default()
    };
    assert_eq!(solve(&data).solution().unwrap().item, 1);
}

fn sense() -> impl Strategy<Value = Sense> {
    prop_oneof![
        Just(Sense::AtMost),
        Just(Sense::Equal),
        Just(Sense::AtLeast)
    ]
}

/// Items with few profits (so that ties are common) or with profits that differ by one part in a
/// billion, and rules whose right sides are attained.
fn instance() -> impl Strategy<Value = Data> {
    let shape = (
        1_usize..40,
        1_usize..4,
        prop_oneof![Just(1), Just(40_000_000)],
    );
    shape.prop_flat_map(|(count, axes, scale)| {
        let items = prop::collection::vec(
            (
                prop::collection::vec(0_usize..3, axes),
                0_i64..8,
                any::<bool>(),
            ),
            count,
        );
        let over_items = prop::collection::vec(
            (prop::collection::vec(0_i64..5, count), sense(), 0_i64..5),
            0..3,
        );
        let over_axes = prop::collection::vec(
            (
                prop::collection::vec((0..axes, 0_usize..3, -2_i64..4), 1..4),
                sense(),
                0_i64..4,
            ),
            0..2,
        );
        (items, over_items, over_axes).prop_map(move |(items, over_items, over_axes)| {
            let items = (items.into_iter())
                .map(|(choice, profit, bump)| Item {
                    choice,
                    profit: 900_000_000 + profit * scale + i64::from(bump),
                })
                .collect();
            let over_items = over_items.into_iter().map(|(coefficients, sense, right)| {
                let scaled = coefficients.iter().map(|a| 200_000_000 + a).collect();
                rule(
                    "capacity",
                    LeftSide::OverItems(scaled),
                    sense,
                    200_000_000 + right,
                )
            });
            let over_axes = over_axes.into_iter().map(|(terms, sense, right)| {
                let terms = terms.iter().map(|&(a, v, c)| term(a, v, c)).collect();
                rule("excludes", LeftSide::OverAxes(terms), sense, right)
            });
            Data {
                axes: (0..axes)
                    .map(|a| axis(&format!("axis{a}"), &["0", "1", "2"]))
                    .collect(),
                items,
                rules: over_items.chain(over_axes).collect(),
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(20_231_109), ..ProptestConfig::default() })]

    #[test]
    fn the_program_agrees_with_enumeration(data in instance()) {
        let outcome = solve(&data);
        prop_assert_eq!(outcome.solution().copied(), oracle(&data));
        if oracle(&data).is_none() {
            let infeasible = matches!(outcome, Outcome::Infeasible { .. });
            prop_assert!(infeasible);
        }
    }
}
