//! Rank correlation.

/// Spearman's rank correlation; `None` with fewer than two values, or where one side is constant.
/// Equal values share their mean rank.
#[must_use]
pub fn spearman(one: &[f64], other: &[f64]) -> Option<f64> {
    let (one, other) = (ranks(one), ranks(other));
    let mean = f64::midpoint(one.len() as f64, 1.0);
    let products = |left: &[f64], right: &[f64]| -> f64 {
        let pairs = left.iter().zip(right);
        pairs.map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let scale = (products(&one, &one) * products(&other, &other)).sqrt();
    (scale > 0.0).then(|| products(&one, &other) / scale)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let value = values[order[start]];
        let equal = order[start..]
            .iter()
            .take_while(|&&index| values[index] <= value);
        let end = start + equal.count().max(1);
        for &index in &order[start..end] {
            ranks[index] = (start + end + 1) as f64 / 2.0;
        }
        start = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_not_values() {
        let check = |one: &[f64], other: &[f64], expected: Option<f64>| {
            assert_eq!(spearman(one, other), expected);
        };
        check(&[1.0, 2.0, 3.0], &[10.0, 1e3, 1e9], Some(1.0));
        check(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0], Some(-1.0));
        check(&[1.0, 1.0, 2.0], &[5.0, 5.0, 6.0], Some(1.0));
        check(&[1.0], &[1.0], None);
        check(&[1.0, 2.0], &[1.0, 1.0], None);
    }
}
