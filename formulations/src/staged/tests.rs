//! Known by hand, and random instances against enumeration.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

mod agreement;
mod by_hand;
mod enumeration;
mod random;
