//! A lower bound of the extra time that recomputation takes in a group.

use super::bounds::Scratch;
use super::data::RecomputeRule;
use super::relaxation::Relaxation;

/// Least extra time over all distributions, layers and recomputed layers in fractions, rounded down.
pub(super) fn least_total_extra(
    relaxation: &Relaxation<'_>,
    layers: i64,
    scratch: &mut Scratch,
) -> i64 {
    let group = relaxation.group;
    match group.recompute {
        RecomputeRule::None => 0,
        RecomputeRule::AllLayers { mode } => layers * group.modes[mode].extra_time,
        RecomputeRule::Uniform { .. } => {
            let most: i64 = scratch.upper.iter().sum();
            let stages = group.stages.iter().zip(&scratch.upper);
            let forced = stages.map(|(stage, upper)| {
                let least = stage.lower_layers.max(layers - (most - upper));
                relaxation.extra_time(stage, least)
            });
            forced.sum()
        }
        RecomputeRule::Free => fractional_extra(relaxation, layers, scratch),
    }
}

/// `min sum_s rho_s (n_s - n0_s)+` over `sum_s n_s = L`, where stage `s` holds `n0_s` layers without
/// recomputing and every further one costs at least `rho_s`.
fn fractional_extra(relaxation: &Relaxation<'_>, layers: i64, scratch: &mut Scratch) -> i64 {
    let group = relaxation.group;
    let mut left = layers as f64;
    scratch.rates.clear();
    for (stage, &upper) in group.stages.iter().zip(&scratch.upper) {
        let kept = (group.layer().memory + stage.in_flight * group.layer().activation) as f64;
        let room = (group.capacity - stage.fixed_memory) as f64;
        let free = if kept > 0.0 {
            (room / kept).min(upper as f64)
        } else {
            upper as f64
        };
        left -= free;
        let rate = relaxation.extra_rate(stage);
        scratch.rates.push((rate, upper as f64 - free));
    }
    if left <= 0.0 {
        return 0;
    }
    scratch.rates.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut extra = 0.0;
    for &(rate, width) in &scratch.rates {
        let taken = left.min(width);
        if taken > 0.0 {
            extra += taken * rate;
            left -= taken;
        }
    }
    // Far more than the error of the doubles, far less than matters.
    if extra.is_finite() {
        ((extra * (1.0 - 1e-9)).floor() as i64 - 1).max(0)
    } else {
        0
    }
}
