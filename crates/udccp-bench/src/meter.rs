//! Measures the processor time of this process.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use crate::ALLOCATOR;

/// Processor time and wall time since the start of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    cpu: Duration,
    began: Instant,
}

/// The result of one peer in one turn. Times are the sum of both ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Messages delivered, round trips, or connections.
    pub(crate) count: u64,
    /// Messages sent that did not arrive.
    pub(crate) lost: u64,
    /// Processor time in seconds.
    pub(crate) cpu_s: f64,
    /// Wall time in seconds.
    pub(crate) wall_s: f64,
    /// Median and 99th percentile of a round trip in microseconds.
    pub(crate) percentiles_us: Option<(f64, f64)>,
    /// For one end of an idle connection: bytes that it holds on the heap, and its number of
    /// allocations, including freed ones.
    pub(crate) heap: Option<(f64, f64)>,
}

impl Meter {
    /// Starts a measurement.
    pub(crate) fn start() -> Self {
        Self { cpu: processor_time(), began: Instant::now() }
    }

    /// The instant `seconds` after the start.
    pub(crate) fn after(&self, seconds: f64) -> Instant {
        self.began + Duration::from_secs_f64(seconds)
    }

    /// Ends the measurement.
    pub(crate) fn stop(self, sent: u64, arrived: u64) -> Measured {
        Measured {
            count: arrived,
            lost: sent.saturating_sub(arrived),
            cpu_s: (processor_time() - self.cpu).as_secs_f64(),
            wall_s: self.began.elapsed().as_secs_f64(),
            ..Measured::default()
        }
    }
}

impl Measured {
    /// Processor time per message, round trip or connection, in nanoseconds.
    pub(crate) fn each_ns(&self) -> f64 {
        self.cpu_s * 1e9 / self.count.max(1) as f64
    }

    /// Adds the percentiles of these round trips.
    pub(crate) fn with_round_trips(self, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |permille: usize| {
            let place = (times.len() * permille / 1000).min(times.len().saturating_sub(1));
            times.get(place).map_or(0.0, |t| t.as_secs_f64() * 1e6)
        };
        Self { percentiles_us: Some((at(500), at(990))), ..self }
    }
}

fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("this process may ask");
    let of = |t: nix::sys::time::TimeVal| {
        Duration::new(t.tv_sec().unsigned_abs(), 0)
            + Duration::from_micros(t.tv_usec().unsigned_abs())
    };
    of(usage.user_time()) + of(usage.system_time())
}

/// The state of the heap at some instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heap {
    bytes: usize,
    allocations: u64,
}

impl Heap {
    /// The state now.
    pub(crate) fn now() -> Self {
        Self { bytes: ALLOCATOR.held_bytes(), allocations: ALLOCATOR.allocations() }
    }

    /// Growth in bytes and number of allocations since then, divided by `n`.
    pub(crate) fn since(self, n: usize) -> (f64, f64) {
        let now = Self::now();
        let bytes = now.bytes.saturating_sub(self.bytes);
        let allocations = now.allocations - self.allocations;
        (bytes as f64 / n as f64, allocations as f64 / n as f64)
    }
}
