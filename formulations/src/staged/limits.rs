//! Limits of a search: of its time, and of the objectives that it looks at.

use std::time::{Duration, Instant};

use crate::solve::SolverOptions;

/// The options of the runs, within what is left of the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
    options: SolverOptions,
}

impl Clock {
    pub(super) fn start(options: &SolverOptions, unit: f64) -> Self {
        Self {
            start: Instant::now(),
            options: SolverOptions {
                // Objectives are integers: nothing lies between one and the next.
                absolute_gap: 0.4 * unit,
                ..*options
            },
        }
    }

    /// Options for the next run; `None` when the time is over.
    pub(super) fn options(&self) -> Option<SolverOptions> {
        let left = match self.options.time_limit {
            None => None,
            Some(limit) => Some(
                limit
                    .checked_sub(self.start.elapsed())
                    .filter(|left| *left > Duration::ZERO)?,
            ),
        };
        Some(SolverOptions {
            time_limit: left,
            ..self.options
        })
    }
}

/// Objectives up to which plans are sought, one after the other, where no good plan is known: a window
/// that leaves little is fast, and no plan within it proves that all are above.
pub(super) fn cutoffs(lowest: i64, limit: i64) -> impl Iterator<Item = i64> {
    let step = lowest.abs() / 256 + 16;
    let below = (0..6).map(move |round| lowest.saturating_add(step << (2 * round)));
    below
        .take_while(move |&cutoff| cutoff < limit)
        .chain([limit])
}
