//! The one place where the shells read a clock for the core.

use tidegate_core::{Now, Time, Wall};

/// Tells the time to the driver. Tests and harnesses bring their own.
pub trait Clock: Send + Sync + 'static {
    /// The time now, on both clocks.
    fn now(&self) -> Now;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: tokio::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: tokio::time::Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the wall clock"
    )]
    fn now(&self) -> Now {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            time: Time(millis(tokio::time::Instant::now() - self.origin)),
            wall: Wall(millis(wall)),
        }
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
