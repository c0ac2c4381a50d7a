//! When a search has to end.

use std::time::{Duration, Instant};

use super::PlanError;

/// The end of the time that a search has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// As long as it takes.
    pub const NEVER: Self = Self(None);

    /// So long from now; without a limit, never. A limit beyond the range of the clock is none.
    #[must_use]
    pub fn after(limit: Option<Duration>) -> Self {
        Self(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// The one that comes first.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(another)) => Self(Some(one.min(another))),
            (one, another) => Self(one.or(another)),
        }
    }

    /// What is left of the time; `None` without a limit.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        let end = self.0?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    /// Whether the time is over.
    #[must_use]
    pub fn is_over(self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Goes on while there is time.
    ///
    /// # Errors
    ///
    /// [`PlanError::TimeOver`] when the time is over.
    pub fn check(self) -> Result<(), PlanError> {
        if self.is_over() {
            return Err(PlanError::TimeOver);
        }
        Ok(())
    }
}
