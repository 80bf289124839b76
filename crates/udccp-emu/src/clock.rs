//! The clock of a run.

use rustix::time::{ClockId, clock_gettime};
use udccp_base::{Duration, Instant};

/// `CLOCK_MONOTONIC`, which all processes of a kernel share, counted from the begin of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero_ns: u64,
}

impl Clock {
    /// A clock whose zero is so far in the future.
    pub fn in_future(wait: Duration) -> Self {
        Self { zero_ns: monotonic_ns() + wait.as_nanos() }
    }

    /// `CLOCK_MONOTONIC` at time zero of the run.
    pub const fn zero_ns(self) -> u64 {
        self.zero_ns
    }

    /// The time of the run now; zero before its begin.
    #[inline]
    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.zero_ns))
    }

    /// Time since the begin of the run; zero before it.
    pub fn elapsed(self) -> Duration {
        self.now().saturating_since(Instant::ZERO)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
