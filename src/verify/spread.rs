//! Whether the layers can be spread over the stages, given the most that each can hold; and the least
//! memory with which they can.

use super::problem::{Problem, Way};

/// Memory of a stage that recomputes no layer, or all by one mode: `each n + fixed`.
#[derive(Debug, Clone, Copy)]
struct Line {
    each: i64,
    fixed: i64,
}

impl Line {
    /// The most layers within `memory`, if that depends on the layers.
    fn most(self, memory: i64) -> Option<i64> {
        let room = memory - self.fixed;
        match (room < 0, self.each) {
            (true, _) => Some(-1),
            (false, 0) => None,
            (false, each) => Some(room / each),
        }
    }
}

impl Problem<'_> {
    /// The ways to recompute nothing or everything of which one needs the least memory on a stage: with
    /// some layers recomputed the workspace is the same and less is saved.
    fn lines(&self, way: Way, stage: usize) -> impl Iterator<Item = Line> {
        let own = self.units.stages[stage];
        let line = move |kept: i64, workspace: i64| Line {
            each: self.units.layer_memory + own.in_flight * kept,
            fixed: own.fixed_memory + workspace,
        };
        let plain = matches!(way, Way::None | Way::Mix).then(|| line(self.units.activations, 0));
        let modes = self.modes.iter().filter(move |&&mode| match way {
            Way::None => false,
            Way::All(only) | Way::Count(only, _) => mode == only,
            Way::Mix => true,
        });
        let all = modes.map(move |&mode| line(self.units.kept[mode], self.units.workspace[mode]));
        plain.into_iter().chain(all)
    }

    /// The most layers of a stage's window that fit into `memory`; one less than the fewest if none do.
    fn most_within(&self, way: Way, stage: usize, memory: i64) -> i64 {
        let (fewest, most) = self.windows[stage];
        let lines = self
            .lines(way, stage)
            .map(|line| line.most(memory).unwrap_or(most));
        lines.max().unwrap_or(-1).clamp(fewest - 1, most)
    }

    /// Least memory of a stage with so many layers, however long they take to recompute.
    fn least_memory(&self, way: Way, stage: usize, layers: i64) -> i64 {
        let lines = self
            .lines(way, stage)
            .map(|line| line.each * layers + line.fixed);
        lines.min().unwrap_or(i64::MAX)
    }

    /// Whether a permitted distribution of all layers gives no stage more than its entry of `most`.
    pub(super) fn can_spread(&self, most: &[i64]) -> bool {
        let fewest = |stage: usize| self.windows[stage].0;
        if (most.iter().enumerate()).any(|(stage, &most)| most < fewest(stage)) {
            return false;
        }
        if !self.equal_middle {
            let least: i64 = self.windows.iter().map(|window| window.0).sum();
            return (least..=most.iter().sum()).contains(&self.layers);
        }
        !self.middles(most).is_empty()
    }

    /// Layers of each stage in the middle, with which the rest fits on the first and the last. Only where
    /// the middle is equal.
    pub(super) fn middles(&self, most: &[i64]) -> std::ops::RangeInclusive<i64> {
        let last = self.stages() - 1;
        let count = last as i64 - 1;
        let from = (1..last).map(|stage| self.windows[stage].0).max();
        let to = most[1..last].iter().copied().min();
        let needed = self.layers - most[0] - most[last];
        let room = self.layers - self.windows[0].0 - self.windows[last].0;
        from.unwrap_or(0)
            .max((needed + count - 1).div_euclid(count))
            ..=to.unwrap_or(0).min(room.div_euclid(count))
    }

    /// The most layers of each stage within `memory`, by this way of recomputing.
    fn most_of_all(&self, way: Way, memory: i64) -> Vec<i64> {
        let stages = 0..self.stages();
        stages
            .map(|stage| self.most_within(way, stage, memory))
            .collect()
    }

    /// Whether some layout fits into `memory`, by this way of recomputing.
    fn fits_within(&self, way: Way, memory: i64) -> bool {
        self.can_spread(&self.most_of_all(way, memory))
    }

    /// What is missing for any layout to fit: the least memory of the fullest stage over all permitted
    /// layouts, less the capacity, and the first stage that can need just so much. `None` if one fits.
    pub(super) fn shortage(&self) -> Option<(u32, i64)> {
        let ways = self.lightest_ways();
        if ways.iter().any(|&way| self.fits_within(way, self.capacity)) {
            return None;
        }
        let needs = ways.into_iter().map(|way| (self.least_peak(way), way));
        let (peak, way) = needs.min_by_key(|&(peak, _)| peak)?;
        let needs_peak = |&stage: &usize| {
            let layers = self.most_within(way, stage, peak);
            layers >= self.windows[stage].0 && self.least_memory(way, stage, layers) == peak
        };
        let stage = (0..self.stages()).find(needs_peak)?;
        Some((stage as u32, peak - self.capacity))
    }

    /// The least memory of the fullest stage over all distributions, known to exceed the capacity.
    ///
    /// Bisection, by turns in the middle and where the layers held would reach `L` on a straight line.
    /// Each end moves on to where the layers held change.
    fn least_peak(&self, way: Way) -> i64 {
        let stages = 0..self.stages();
        let memory = |stage: usize, layers: i64| self.least_memory(way, stage, layers);
        let largest = stages
            .clone()
            .map(|stage| memory(stage, self.windows[stage].1));
        let held = |memory: i64| {
            let most = self.most_of_all(way, memory);
            let layers: i64 = most.iter().sum();
            (most, layers)
        };
        let (mut below, mut fits) = (self.capacity, largest.max().unwrap_or(0));
        let (mut layers_below, mut layers_fitting) = (held(below).1, held(fits).1);
        let mut straight = true;
        while fits - below > 1 {
            let share = if straight && layers_fitting > layers_below {
                let share = (self.layers - layers_below) as f64;
                (share / (layers_fitting - layers_below) as f64).clamp(0.0, 1.0)
            } else {
                0.5
            };
            straight = !straight;
            let middle = below + ((fits - below) as f64 * share) as i64;
            let middle = middle.clamp(below + 1, fits - 1);
            let (most, layers) = held(middle);
            if self.can_spread(&most) {
                let used = stages.clone().map(|stage| memory(stage, most[stage]));
                // A stage that holds none of its window would not let the layers spread.
                fits = used
                    .max()
                    .map_or(middle, |used| used.clamp(below + 1, middle));
                layers_fitting = layers;
            } else {
                let more = stages
                    .clone()
                    .filter(|&stage| most[stage] < self.windows[stage].1);
                let next = more.map(|stage| memory(stage, most[stage] + 1)).min();
                below = next.map_or(middle, |next| (next - 1).clamp(middle, fits - 1));
                layers_below = layers;
            }
        }
        fits
    }
}
