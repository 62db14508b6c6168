//! Time as the caller tells it: the core owns no clock (law 11).
//!
//! [`Time`] orders and measures, [`Wall`] is only shown and stored. A deadline is
//! always a [`Time`]; a wall clock that jumps moves no deadline (P37).

use serde::{Deserialize, Serialize};

/// A point on the caller's monotonic clock, in milliseconds since any fixed origin.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(pub u64);

impl Time {
    /// This time moved `ms` milliseconds into the future, stopping at the end of time (P14).
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; 0 if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall time in milliseconds since 1970-01-01 UTC. Shown and stored, never compared with a deadline.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Wall(pub u64);

/// The envelope of an input: when it happened, on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Now {
    /// Monotonic time. One that goes back is clamped and counted.
    pub time: Time,
    /// Wall time of the same instant.
    pub wall: Wall,
}
