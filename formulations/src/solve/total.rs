//! What the solver did since the process started, whatever asked for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Statistics;

static RUNS: AtomicU64 = AtomicU64::new(0);
static ITERATIONS: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);

/// What the solver did in this process so far, over all threads. An answer may take several programs,
/// such as the plan, its alternatives and a safer one: the difference of two totals is all they took.
#[must_use]
pub fn total() -> Statistics {
    Statistics {
        runs: RUNS.load(Ordering::Relaxed),
        iterations: ITERATIONS.load(Ordering::Relaxed),
        time: Duration::from_nanos(NANOSECONDS.load(Ordering::Relaxed)),
    }
}

/// Adds one run.
pub(super) fn count(statistics: Statistics) {
    let nanoseconds = u64::try_from(statistics.time.as_nanos()).unwrap_or(u64::MAX);
    RUNS.fetch_add(statistics.runs, Ordering::Relaxed);
    ITERATIONS.fetch_add(statistics.iterations, Ordering::Relaxed);
    NANOSECONDS.fetch_add(nanoseconds, Ordering::Relaxed);
}
