//! What a stage can hold and the least time it takes, recomputation in fractions: for bounds.
//!
//! Of several modes the time of saving `x` units of memory is at least `x min_m r_m / (f (A - C_m))`.
//! Which mode attains the minimum does not depend on the stage, so that it is sought once a group.

use super::data::{Group, MAX_MODES, RecomputeMode, RecomputeRule, Stage};

/// A group with what is the same on all of its stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relaxation<'a> {
    pub(super) group: &'a Group,
    /// The mode of the least time for a unit of memory; `None` if no mode saves any.
    cheapest: Option<RecomputeMode>,
    /// The smallest workspace of all modes.
    workspace: i64,
    /// Modes that save memory and of which no other keeps as little with as small a workspace.
    leanest: [RecomputeMode; MAX_MODES],
    leanest_count: usize,
}

/// Below this a quotient of doubles, rounded down, is that of the integers: it is at least `1 / b` from
/// the next integer above, which is more than doubles of this size are apart.
const EXACT: i64 = 1 << 52;

/// `floor(a / b)` of what is not negative, without an integer division.
pub(super) fn quotient(numerator: i64, denominator: i64) -> i64 {
    if numerator < EXACT {
        (numerator as f64 / denominator as f64) as i64
    } else {
        numerator / denominator
    }
}

impl<'a> Relaxation<'a> {
    pub(super) fn new(group: &'a Group) -> Self {
        let saved = |mode: &RecomputeMode| i128::from(group.layer().activation - mode.activation);
        let mut cheapest: Option<RecomputeMode> = None;
        for mode in group.modes.iter().filter(|mode| saved(mode) > 0) {
            let is_cheaper = |other: RecomputeMode| {
                let (own, others) = (mode.extra_time, other.extra_time);
                i128::from(own) * saved(&other) < i128::from(others) * saved(mode)
            };
            if cheapest.is_none_or(is_cheaper) {
                cheapest = Some(*mode);
            }
        }
        let workspaces = group.modes.iter().map(|mode| mode.workspace);
        let (leanest, leanest_count) = leanest(group);
        Self {
            group,
            cheapest,
            workspace: workspaces.min().unwrap_or(0),
            leanest,
            leanest_count,
        }
    }

    /// Time of a stage with so many layers, at least.
    #[inline]
    pub(super) fn time(&self, stage: &Stage, layers: i64) -> i64 {
        layers * self.group.layer().time + self.extra_time(stage, layers) + stage.extra_time
    }

    /// A lower limit of the extra time of so many layers that fit, exact but for several modes.
    #[inline]
    pub(super) fn extra_time(&self, stage: &Stage, layers: i64) -> i64 {
        let group = self.group;
        match group.recompute {
            RecomputeRule::None => 0,
            RecomputeRule::Uniform { mode, count } => {
                count.min(layers) * group.modes[mode].extra_time
            }
            RecomputeRule::AllLayers { mode } => layers * group.modes[mode].extra_time,
            RecomputeRule::Free => {
                let need = self.need(stage, layers);
                if need <= 0 {
                    return 0;
                }
                // Whatever the mix, its memory saved is at least the need and the smallest workspace.
                let need = need + self.workspace;
                let Some(mode) = self.cheapest else { return 0 };
                let gain = stage.in_flight * (group.layer().activation - mode.activation);
                match group.modes.len() {
                    _ if gain == 0 => 0,
                    1 => (quotient(need - 1, gain) + 1) * mode.extra_time,
                    _ => fractional_time(need, mode.extra_time, gain),
                }
            }
        }
    }

    /// Memory that is missing with so many layers, none of them recomputed.
    #[inline]
    fn need(&self, stage: &Stage, layers: i64) -> i64 {
        let layer = self.group.layer();
        let each = layer.memory + stage.in_flight * layer.activation;
        layers * each + stage.fixed_memory - self.group.capacity
    }

    /// The most layers, at most `most` and at least `least`, that take no longer than `longest`, and
    /// their time; `least` and its time if even those take longer.
    #[inline]
    pub(super) fn within(
        &self,
        stage: &Stage,
        longest: i64,
        (least, most): (i64, i64),
    ) -> (i64, i64) {
        let each = self.group.layer().time;
        let spare = longest - stage.extra_time;
        let unslowed = match each {
            0 => most,
            _ if spare < 0 => least,
            _ => quotient(spare, each).min(most),
        };
        let mut own = self.slowed(stage, spare, unslowed).max(least);
        let mut time = self.time(stage, own);
        while own > least && time > longest {
            own -= 1;
            time = self.time(stage, own);
        }
        (own, time)
    }

    /// No fewer layers than can be done in `spare`, where `unslowed` could be without recomputing.
    fn slowed(&self, stage: &Stage, spare: i64, unslowed: i64) -> i64 {
        if self.group.recompute != RecomputeRule::Free || self.need(stage, unslowed) <= 0 {
            return unslowed;
        }
        let layer = self.group.layer();
        let Some(mode) = self.cheapest.filter(|_| stage.in_flight > 0) else {
            return unslowed;
        };
        let gain = stage.in_flight * (layer.activation - mode.activation);
        let rate = mode.extra_time as f64 / gain as f64;
        let kept = layer.memory + stage.in_flight * layer.activation;
        let room = self.group.capacity - stage.fixed_memory - self.workspace;
        let layers = (spare as f64 + rate * room as f64) / (layer.time as f64 + rate * kept as f64);
        // One more than the error of the doubles; nothing is slowed as long as nothing is needed.
        let layers = (layers.max(0.0) as i64).saturating_add(1).min(unslowed);
        if self.need(stage, layers) <= 0 {
            unslowed
        } else {
            layers
        }
    }

    /// Extra time of each further layer beyond those that fit unrecomputed, at least; without limit where
    /// no mode saves memory.
    #[inline]
    pub(super) fn extra_rate(&self, stage: &Stage) -> f64 {
        let layer = self.group.layer();
        let Some(mode) = self.cheapest.filter(|_| stage.in_flight > 0) else {
            return f64::INFINITY;
        };
        let gain = stage.in_flight * (layer.activation - mode.activation);
        let kept = layer.memory + stage.in_flight * layer.activation;
        mode.extra_time as f64 / gain as f64 * kept as f64
    }

    /// The most layers that fit on a stage, however they are recomputed; negative if not even none.
    #[inline]
    pub(super) fn most_layers(&self, stage: &Stage) -> i64 {
        let (group, layer) = (self.group, self.group.layer());
        let room = group.capacity - stage.fixed_memory;
        if room < 0 {
            return -1;
        }
        let within = |activation: i64, workspace: i64| {
            let each = layer.memory + stage.in_flight * activation;
            floor_layers(room - workspace, each)
        };
        let recomputed = |mode: &RecomputeMode| within(mode.activation, mode.workspace);
        let kept = within(layer.activation, 0);
        let most = match group.recompute {
            RecomputeRule::None | RecomputeRule::Uniform { count: 0, .. } => kept,
            RecomputeRule::AllLayers { mode } => recomputed(&group.modes[mode]),
            RecomputeRule::Uniform { mode, count } => {
                let mode = &group.modes[mode];
                let saved = stage.in_flight * (layer.activation - mode.activation);
                let each = layer.memory + stage.in_flight * layer.activation;
                let beyond = floor_layers(room - mode.workspace + count * saved, each);
                if beyond >= count {
                    beyond
                } else {
                    recomputed(mode).min(count)
                }
            }
            RecomputeRule::Free => {
                let used = self.leanest[..self.leanest_count].iter();
                used.map(recomputed).fold(kept, i64::max)
            }
        };
        // No layers need no workspace.
        most.max(0).min(stage.upper_layers)
    }

    /// Whether all stages together have less memory than all layers need: then nothing fits. A sum over
    /// the stages, where [`most_layers`](Self::most_layers) divides on each.
    pub(super) fn lacks_memory(&self, layers: i64) -> bool {
        let group = self.group;
        let modes = group.modes.iter().map(|mode| mode.activation);
        let activation = modes.fold(group.layer().activation, i64::min);
        let (mut room, mut in_flight) = (0, i64::MAX);
        for stage in group.stages.iter() {
            room += group.capacity - stage.fixed_memory;
            in_flight = in_flight.min(stage.in_flight);
        }
        layers * (group.layer().memory + in_flight * activation) > room
    }
}

/// The modes by which a stage can hold most layers, in the first places.
fn leanest(group: &Group) -> ([RecomputeMode; MAX_MODES], usize) {
    let none = RecomputeMode {
        kind: 0,
        extra_time: 0,
        activation: 0,
        workspace: 0,
    };
    let mut found = ([none; MAX_MODES], 0);
    for (index, mode) in group.modes.iter().enumerate() {
        let is_beaten = group.modes.iter().enumerate().any(|(other, by)| {
            let keeps = (by.activation, by.workspace) != (mode.activation, mode.workspace);
            by.activation <= mode.activation
                && by.workspace <= mode.workspace
                && (keeps || other < index)
        });
        if mode.activation < group.layer().activation && !is_beaten {
            found.0[found.1] = *mode;
            found.1 += 1;
        }
    }
    found
}

fn floor_layers(room: i64, each: i64) -> i64 {
    if room < 0 {
        -1
    } else if each == 0 {
        i64::MAX
    } else {
        quotient(room, each)
    }
}

/// Time of saving `need > 0` with a mode in fractions of layers, rounded up.
pub(super) fn fractional_time(need: i64, extra_time: i64, gain: i64) -> i64 {
    if let Some(product) = need.checked_mul(extra_time) {
        return quotient(product - 1, gain) + 1;
    }
    let product = i128::from(need) * i128::from(extra_time);
    ((product - 1) / i128::from(gain)) as i64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_those_of_integers() {
        let check = |numerator: i64, denominator: i64| {
            let exact = numerator / denominator;
            assert_eq!(
                quotient(numerator, denominator),
                exact,
                "{numerator} / {denominator}"
            );
        };
        let large = [(1 << 26) + 1, (1 << 47) - 1, EXACT - 1, EXACT, i64::MAX / 4];
        for denominator in [1, 2, 3, 7, 1000, (1 << 26) - 1, (1 << 51) + 3] {
            for whole in large {
                let multiple = whole / denominator * denominator;
                check(whole, denominator);
                check(multiple, denominator);
                check((multiple - 1).max(0), denominator);
            }
        }
        assert_eq!(fractional_time(10, 3, 7), 5);
        assert_eq!(fractional_time(1 << 40, 1 << 30, 1 << 35), 1 << 35);
    }
}
