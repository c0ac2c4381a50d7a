//! A limit on the checker's work, so that no document keeps it busy for ever.

use std::sync::atomic::{AtomicU64, Ordering};

/// The work is more than the checker takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Steps that are left, for all threads together.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
}

impl Budget {
    /// Steps for one certificate: minutes, where the largest that are shipped take seconds.
    const STEPS: u64 = 50_000_000_000;

    /// A full budget.
    pub(crate) const fn new() -> Self {
        Self {
            left: AtomicU64::new(Self::STEPS),
        }
    }

    /// Takes `steps` away.
    pub(super) fn spend(&self, steps: u64) -> Result<(), TooLarge> {
        let less = |left: u64| left.checked_sub(steps);
        let spent = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        spent.map(|_| ()).map_err(|_| TooLarge)
    }
}
