//! Limits of a search: of its time, and of the objectives that it looks at.

use crate::deadline::{Deadline, TimeOver};
use crate::solve::SolverOptions;

/// The options of the runs, while there is time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    options: SolverOptions,
}

impl Clock {
    pub(super) fn new(options: &SolverOptions, unit: f64) -> Self {
        Self {
            options: SolverOptions {
                // Objectives are integers: nothing lies between one and the next.
                absolute_gap: 0.4 * unit,
                ..*options
            },
        }
    }

    pub(super) const fn deadline(&self) -> Deadline {
        self.options.deadline
    }

    /// Options for the next run.
    pub(super) fn options(&self) -> Result<SolverOptions, TimeOver> {
        self.options.deadline.check()?;
        Ok(self.options)
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
