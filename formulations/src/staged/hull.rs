//! Lower convex hulls.

/// `y >= slope x - intercept` for every point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Edge {
    pub(super) slope: f64,
    pub(super) intercept: f64,
}

/// The rising edges of the lower hull of points.
pub(super) fn lower_hull(mut points: Vec<(i64, i64)>) -> Vec<Edge> {
    points.sort_unstable();
    points.dedup_by_key(|point| point.0);
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for point in points {
        while let [.., before, last] = hull[..]
            && cross(before, last, point) <= 0
        {
            hull.pop();
        }
        hull.push(point);
    }
    let edges = hull.windows(2).map(|pair| {
        let slope = (pair[1].1 - pair[0].1) as f64 / (pair[1].0 - pair[0].0) as f64;
        Edge {
            slope,
            intercept: slope * pair[0].0 as f64 - pair[0].1 as f64,
        }
    });
    let rising: Vec<Edge> = edges.filter(|edge| edge.slope > 0.0).collect();
    if rising.is_empty() && hull.iter().any(|point| point.1 > 0) {
        // One load alone, or none that costs more than another.
        let least = hull.iter().map(|point| point.1).min().unwrap_or(0);
        return vec![Edge {
            slope: 0.0,
            intercept: -least as f64,
        }];
    }
    rising
}

/// Positive where the way over the three points turns left.
fn cross(a: (i64, i64), b: (i64, i64), c: (i64, i64)) -> i128 {
    let wide = |from: i64, to: i64| i128::from(to) - i128::from(from);
    wide(a.0, b.0) * wide(a.1, c.1) - wide(a.1, b.1) * wide(a.0, c.0)
}
