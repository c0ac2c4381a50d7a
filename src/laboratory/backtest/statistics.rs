//! Means, medians and rank correlation of plain numbers.

use crate::laboratory::calibrate;

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

/// Spearman's rank correlation; `None` below three pairs or where one side is constant.
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < FEWEST_PAIRS {
        return None;
    }
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    calibrate::spearman(&left, &right)
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
        let check = |pairs: &[(f64, f64)], expected: Option<f64>| {
            assert_eq!(spearman(pairs), expected);
        };
        check(&[(1.0, 10.0), (2.0, 11.0), (3.0, 99.0)], Some(1.0));
        check(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], Some(-1.0));
        check(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)], None);
        check(&[(1.0, 1.0), (2.0, 2.0)], None);
    }
}
