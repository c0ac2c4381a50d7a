//! A limit on the checker's work, so that no document keeps it busy for ever.

/// The work is more than the checker takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Steps that are left.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    /// Steps for one certificate: minutes, where the largest that are shipped take seconds.
    const STEPS: u64 = 50_000_000_000;

    /// A full budget.
    pub(crate) const fn new() -> Self {
        Self { left: Self::STEPS }
    }

    /// Takes `steps` away.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(steps).ok_or(TooLarge)?;
        Ok(())
    }
}
