//! Means, medians and rank correlation of plain numbers.

/// Arithmetic mean; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Middle value, or the mean of the two middle ones; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Pairs below which a rank correlation says nothing.
const FEWEST_PAIRS: usize = 3;

/// Spearman's rank correlation: Pearson's correlation of the ranks, equal values sharing the mean
/// of theirs. `None` below three pairs or where one side is constant.
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < FEWEST_PAIRS {
        return None;
    }
    let left = ranks(pairs.iter().map(|pair| pair.0));
    let right = ranks(pairs.iter().map(|pair| pair.1));
    // The mean rank is the same with and without ties.
    let centre = f64::midpoint(1.0, pairs.len() as f64);
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let terms = a.iter().zip(b);
        terms.map(|(a, b)| (a - centre) * (b - centre)).sum()
    };
    let spread = (product(&left, &left) * product(&right, &right)).sqrt();
    (spread > 0.0).then(|| product(&left, &right) / spread)
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let first = order.partition_point(|&it| values[it] < values[equal[0]]);
        let shared = first as f64 + f64::midpoint(1.0, equal.len() as f64);
        for &index in equal {
            ranks[index] = shared;
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_medians() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(median(&[6.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[6.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!((mean(&[]), median(&[])), (None, None));
    }

    #[test]
    fn rank_correlation_sees_order_alone() {
        let check = |left: &[f64], right: &[f64], expected: Option<f64>| {
            let pairs: Vec<(f64, f64)> = left.iter().copied().zip(right.iter().copied()).collect();
            match (spearman(&pairs), expected) {
                (Some(found), Some(expected)) => {
                    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
                }
                (found, expected) => assert_eq!(found, expected),
            }
        };
        check(&[1.0, 2.0, 3.0], &[10.0, 11.0, 99.0], Some(1.0));
        check(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0], Some(-1.0));
        // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: by hand 4.5 / sqrt(4.5 * 5).
        check(
            &[1.0, 2.0, 2.0, 3.0],
            &[1.0, 2.0, 3.0, 4.0],
            Some(4.5 / 22.5_f64.sqrt()),
        );
        check(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0], None);
        check(&[1.0, 2.0], &[1.0, 2.0], None);
    }
}
