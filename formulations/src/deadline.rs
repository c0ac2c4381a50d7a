//! When a search has to end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The end of the time that a search has. Loops look at it once per step of some microseconds and more.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(End);

#[derive(Debug, Clone, Copy)]
enum End {
    Never,
    At(Instant, Parts),
    AfterLooks(&'static Looks),
}

/// Whether a phase may use up all of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// Each its part: what is known at the end is of use.
    Shares,
    /// Yes: without the phases after it nothing is of use.
    Whole,
}

/// The time was over before the answer was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time limit ended the search")]
pub struct TimeOver;

/// How often a deadline was looked at, and how often it may be before it is over.
#[derive(Debug)]
pub struct Looks {
    most: u64,
    taken: AtomicU64,
}

impl Looks {
    /// How often the deadline was looked at.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Deadline {
    /// As long as it takes.
    pub const NEVER: Self = Self(End::Never);

    /// So long from now; without a limit, never. A limit beyond the range of the clock is none.
    #[must_use]
    pub fn after(limit: Option<Duration>) -> Self {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        Self(end.map_or(End::Never, |end| End::At(end, Parts::Shares)))
    }

    /// The same end for a search that is of no use unless it comes to its own: its phases share no time out.
    #[must_use]
    pub fn undivided(self) -> Self {
        match self.0 {
            End::At(end, _) => Self(End::At(end, Parts::Whole)),
            _ => self,
        }
    }

    /// Over when it has been looked at so often: with it a test ends a search at any of its steps, on any
    /// machine. What is counted is kept until the process ends.
    #[must_use]
    pub fn after_looks(most: u64) -> (Self, &'static Looks) {
        let looks: &'static Looks = Box::leak(Box::new(Looks {
            most,
            taken: AtomicU64::new(0),
        }));
        (Self(End::AfterLooks(looks)), looks)
    }

    /// The one that comes first.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self.0, other.0) {
            (End::At(one, parts), End::At(another, _)) => Self(End::At(one.min(another), parts)),
            (End::Never, _) | (End::At(..), End::AfterLooks(_)) => other,
            _ => self,
        }
    }

    /// The first of so many equal parts of what is left.
    #[must_use]
    pub fn part(self, parts: u32) -> Self {
        match self.0 {
            End::At(_, Parts::Shares) => {
                self.earlier(Self::after(self.left().map(|left| left / parts)))
            }
            _ => self,
        }
    }

    /// What is left of the time; `None` without a limit.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        match self.0 {
            End::Never => None,
            End::At(end, _) => Some(end.saturating_duration_since(Instant::now())),
            End::AfterLooks(looks) => {
                let is_over = looks.taken.fetch_add(1, Ordering::Relaxed) >= looks.most;
                Some(if is_over {
                    Duration::ZERO
                } else {
                    Duration::MAX
                })
            }
        }
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
    /// [`TimeOver`] when the time is over.
    pub fn check(self) -> Result<(), TimeOver> {
        if self.is_over() {
            Err(TimeOver)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_two_comes_first() {
        let (now, never) = (Deadline::after(Some(Duration::ZERO)), Deadline::NEVER);
        let later = Deadline::after(Some(Duration::from_secs(1000)));
        for (one, other, is_over) in [
            (now, never, true),
            (later, now, true),
            (never, later, false),
        ] {
            assert_eq!(one.earlier(other).is_over(), is_over);
            assert_eq!(other.earlier(one).is_over(), is_over);
        }
        assert!(never.left().is_none() && never.part(4).left().is_none());
        assert!(later.undivided().part(4).left() > Some(Duration::from_mins(15)));
        let part = later.part(4).left().expect("it has an end");
        assert!(part <= Duration::from_secs(250), "{part:?}");
        assert!(!Deadline::after(Some(Duration::MAX)).is_over());
    }

    #[test]
    fn looks_are_counted() {
        let (deadline, looks) = Deadline::after_looks(2);
        let over: Vec<bool> = (0..4).map(|_| deadline.is_over()).collect();
        assert_eq!((over, looks.taken()), (vec![false, false, true, true], 4));
    }
}
