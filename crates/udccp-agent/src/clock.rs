//! The monotonic clock, which all processes on a kernel share.

use nix::time::{ClockId, clock_gettime};
use udccp_base::Instant;

/// The time of `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    // Every Linux has this clock, and its seconds are never negative.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |t| t.tv_sec().unsigned_abs() * 1_000_000_000 + t.tv_nsec().unsigned_abs());
    now as u64
}

/// A clock that starts at the scenario's time zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Time zero, on `CLOCK_MONOTONIC`.
    pub(crate) t0_ns: u64,
}

impl Clock {
    /// The time since time zero, or zero before it.
    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.t0_ns))
    }

    /// The time left until time zero, or zero after it.
    pub(crate) fn time_to_start(self) -> udccp_base::Duration {
        udccp_base::Duration::from_nanos(self.t0_ns.saturating_sub(monotonic_ns()))
    }
}
