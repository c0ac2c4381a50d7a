//! Means, medians and rank correlation of plain numbers.

/// Arithmetic mean; `None` of nothing.
#[must_use]
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Middle value, or the mean of the two middle ones; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(f64::midpoint(sorted[(sorted.len() - 1) / 2], upper))
}

/// Spearman's rank correlation of the two sides; `None` with fewer than two pairs, or where one side
/// is constant. Equal values share their mean rank.
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (one, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (one, other) = (ranks(&one), ranks(&other));
    let mean = f64::midpoint(one.len() as f64, 1.0);
    let products = |left: &[f64], right: &[f64]| -> f64 {
        let pairs = left.iter().zip(right);
        pairs.map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let scale = (products(&one, &one) * products(&other, &other)).sqrt();
    (scale > 0.0).then(|| products(&one, &other) / scale)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let up_to = sorted.partition_point(|other| other <= value);
        (below + up_to + 1) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_medians() {
        assert_eq!(mean([1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(median(&[6.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[6.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!((mean([]), median(&[])), (None, None));
    }

    #[test]
    fn rank_correlation_sees_order_alone() {
        let check = |pairs: &[(f64, f64)], expected: Option<f64>| {
            assert_eq!(spearman(pairs), expected);
        };
        check(&[(1.0, 10.0), (2.0, 1e3), (3.0, 1e9)], Some(1.0));
        check(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], Some(-1.0));
        check(&[(1.0, 5.0), (1.0, 5.0), (2.0, 6.0)], Some(1.0));
        check(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)], None);
        check(&[(1.0, 1.0)], None);
    }
}
