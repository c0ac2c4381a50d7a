//! A triangle and a star, known by hand, and random instances against the oracle.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

fn check(weights: &[i64], sets: &[&[usize]], elements: &[usize]) {
    let data = Data {
        weights: weights.to_vec(),
        sets: sets.iter().map(|set| set.to_vec()).collect(),
    };
    let expected = Solution {
        elements: elements.to_vec(),
        weight: elements.iter().map(|&element| weights[element]).sum(),
    };
    let outcome = solve(&data, &SolverOptions::default()).unwrap();
    assert!(matches!(outcome, Outcome::Optimal { .. }));
    assert_eq!(outcome.solution(), Some(&expected));
    assert_eq!(oracle(&data), Some(expected));
}

#[test]
fn by_hand() {
    check(&[], &[], &[]);
    check(&[1, 1], &[], &[]);
    check(&[1, 1, 1], &[&[0, 1], &[1, 2], &[2, 0]], &[0, 1]);
    check(&[1, 1, 1, 1], &[&[3, 0], &[3, 1], &[2, 3, 3]], &[3]);
    check(&[1, 1, 1, 9], &[&[3, 0], &[3, 1], &[2, 3]], &[0, 1, 2]);
    // Of equal weight the fewest elements, then the first.
    check(&[1, 1, 2, 2], &[&[0, 2, 3], &[1, 2, 3]], &[2]);
}

#[test]
fn an_empty_set_cannot_be_hit() {
    let data = Data {
        weights: vec![1],
        sets: vec![vec![0], vec![]],
    };
    let outcome = solve(&data, &SolverOptions::default()).unwrap();
    assert!(matches!(outcome, Outcome::Infeasible { .. }));
    assert_eq!(oracle(&data), None);
}

#[test]
fn triangle_as_text() {
    let data = Data {
        weights: vec![1, 2, 1],
        sets: vec![vec![0, 1], vec![1, 2], vec![2, 0]],
    };
    insta::with_settings!({ snapshot_path => "../../../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("formulations__hitting_set.lp", build(&data).to_string());
    });
}

#[test]
fn masks_that_contain_another_are_dropped() {
    assert_eq!(
        minimal_masks(&[0b111, 0b110, 0b1000, 0b110, 0b1011]),
        [0b1000, 0b110]
    );
    assert_eq!(minimal_masks(&[]), [0; 0]);
    assert_eq!(minimal_masks(&[5, 0, 1]), [0]);
    assert_eq!(elements_of(1 << 63 | 0b101), [0, 2, 63]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(20_231_109), ..ProptestConfig::default() })]

    #[test]
    fn the_program_agrees_with_branching(
        weights in prop::collection::vec(1_i64..4, 8),
        sets in prop::collection::vec(prop::collection::vec(0_usize..8, 1..4), 0..8),
    ) {
        let data = Data { weights, sets };
        let outcome = solve(&data, &SolverOptions::default()).unwrap();
        prop_assert_eq!(outcome.solution().cloned(), oracle(&data));
    }

    #[test]
    fn minimal_masks_hit_alike(masks in prop::collection::vec(1_u64..256, 0..20)) {
        let minimal = minimal_masks(&masks);
        for taken in 0_u64..256 {
            let hits = |masks: &[u64]| masks.iter().all(|mask| mask & taken != 0);
            prop_assert_eq!(hits(&masks), hits(&minimal));
        }
    }
}
