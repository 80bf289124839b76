//! Bounds how small a round-trip time a peer may report.

use udccp_base::{Duration, Instant};

/// How long the least round-trip time stands.
const STANDS: Duration = Duration::from_secs(10);
/// Measurements in a row that have to be less than half of it before it falls so far.
const WITNESSES: u8 = 3;

/// The least round-trip time that our own clock measured on the path lately: from a packet to its
/// acknowledgement, the receiver's wait included. No sample is taken for less, whatever Elapsed
/// Time or Timestamp Echo the peer reports.
///
/// A packet that overtakes the others on a path that reorders is acknowledged after next to no
/// time. So a far smaller time than before has to be seen three times in a row. An acknowledgement
/// waits for as long as a receiver sleeps. So what stood is not forgotten for one measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttFloor {
    least: Option<Duration>,
    /// The least of the span before.
    before: Option<Duration>,
    since: Instant,
    /// `least` is of two measurements or more.
    is_confirmed: bool,
    /// Measurements in a row of less than half, and the largest of them.
    witnesses: u8,
    largest: Duration,
}

impl RttFloor {
    /// The floor; zero before anything was measured.
    pub(crate) fn get(&self) -> Duration {
        let least = self.least.into_iter().chain(self.before).min();
        least.unwrap_or_default()
    }

    /// Our clock measured this, the receiver's wait included.
    pub(crate) fn measured(&mut self, now: Instant, total: Duration) {
        if self.is_confirmed && now - self.since >= STANDS {
            (self.before, self.least, self.is_confirmed) = (self.least, None, false);
            self.since = now;
        }
        let floor = self.get();
        if total >= floor / 2 {
            self.witnesses = 0;
        } else {
            self.witnesses += 1;
            self.largest = self.largest.max(total);
            if self.witnesses < WITNESSES {
                return;
            }
        }
        let seen = if self.witnesses == 0 { total } else { self.largest };
        (self.witnesses, self.largest) = (0, Duration::ZERO);
        if self.least.is_none() && self.before.is_none() {
            self.since = now;
        }
        self.is_confirmed = self.least.is_some();
        self.least = Some(self.least.map_or(seen, |least| least.min(seen)));
    }
}
