//! The clock of a run.

use rustix::time::{ClockId, clock_gettime};
use udccp_base::{Duration, Instant};

/// `CLOCK_MONOTONIC`, which all processes on a kernel share, counted from the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero_ns: u64,
}

impl Clock {
    /// A clock whose time zero is `wait` from now.
    pub fn in_future(wait: Duration) -> Self {
        Self { zero_ns: monotonic_ns() + wait.as_nanos() }
    }

    /// `CLOCK_MONOTONIC` at time zero of the run.
    pub const fn zero_ns(self) -> u64 {
        self.zero_ns
    }

    /// The time since the start of the run, or zero before it.
    #[inline]
    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.zero_ns))
    }

    /// The time since the start of the run, or zero before it.
    pub fn elapsed(self) -> Duration {
        self.now().saturating_since(Instant::ZERO)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
