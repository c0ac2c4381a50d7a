//! A triangle and a star, known by hand, and random instances against an oracle.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

/// The same by branching on the elements of the first set that is not hit; shares nothing with the
/// program.
fn oracle(sets: &[u128]) -> Option<u128> {
    fn branch(sets: &[u128], taken: u128, best: &mut Option<u128>) {
        let key = |taken: u128| (taken.count_ones(), !taken.reverse_bits());
        if best.is_some_and(|best| taken.count_ones() > best.count_ones()) {
            return;
        }
        let Some(open) = sets.iter().find(|&&set| set & taken == 0) else {
            if best.is_none_or(|best| key(taken) < key(best)) {
                *best = Some(taken);
            }
            return;
        };
        for element in (0..64).filter(|element| open >> element & 1 == 1) {
            branch(sets, taken | 1 << element, best);
        }
    }
    let mut best = None;
    branch(sets, 0, &mut best);
    best
}

fn check(sets: &[u128], expected: Option<u128>) {
    let data = Data {
        sets: sets.to_vec(),
    };
    assert_eq!(solve(&data).unwrap(), expected);
    assert_eq!(oracle(sets), expected);
}

#[test]
fn by_hand() {
    check(&[], Some(0));
    check(&[0b011, 0b110, 0b101], Some(0b011));
    check(&[0b1001, 0b1010, 0b1100], Some(0b1000));
    check(&[1 << 63 | 1, 1 << 63 | 2], Some(1 << 63));
    // Of equally many elements the first.
    check(&[0b1100, 0b0110, 0b0001], Some(0b0101));
}

#[test]
fn an_empty_set_cannot_be_hit() {
    check(&[1, 0], None);
}

#[test]
fn triangle_as_text() {
    let data = Data {
        sets: vec![0b011, 0b110, 0b101],
    };
    insta::with_settings!({ snapshot_path => "../../../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("formulations__hitting_set.lp", build(&data).to_string());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(20_231_109), ..ProptestConfig::default() })]

    #[test]
    fn the_program_agrees_with_branching(sets in prop::collection::vec(1_u128..256, 0..8)) {
        prop_assert_eq!(solve(&Data { sets: sets.clone() }).unwrap(), oracle(&sets));
    }
}
